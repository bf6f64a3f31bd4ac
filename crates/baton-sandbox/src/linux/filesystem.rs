//! The file system of a sandbox: an empty one with the folders of the system, the work folder and private ones.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::pivot_root;

use super::{Outcome, during};
use crate::Sandbox;

/// Where the file system of the server is while the new one is built.
const OLD: &str = "/.old";
/// What every program in a sandbox can read, if it exists. Of `/etc` only what any user may read and no service keeps secrets in.
pub const SYSTEM_PATHS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];
/// Links to folders below `/usr` on most systems, which stay links.
const SYSTEM_LINKS: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Memory that files in `/tmp` may take.
const TMP: &str = "size=64m,nr_inodes=4096,mode=1777";

/// Files that a program can read and execute.
pub(super) fn readable(sandbox: &Sandbox) -> Vec<PathBuf> {
    SYSTEM_PATHS.iter().map(PathBuf::from).chain(sandbox.read_only.iter().cloned()).collect()
}

pub(super) fn devices() -> impl Iterator<Item = &'static Path> {
    DEVICES.iter().map(Path::new)
}

/// Replaces the file system of this process, which is alone in its mount and process namespaces.
pub(super) fn enter(sandbox: &Sandbox) -> Outcome<()> {
    let root = &sandbox.root;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach(None, Path::new("/"), None, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None)?;
    // On the work folder, because it surely exists. As soon as this is the root, the work folder is visible again below `OLD`.
    attach(Some("tmpfs"), root, Some("tmpfs"), quiet, Some("size=1m,mode=755"))?;
    let old = root.join(OLD.trim_start_matches('/'));
    fs::create_dir(&old).map_err(during("a mount point"))?;
    pivot_root(root, &old).map_err(during("the new root"))?;
    std::env::set_current_dir("/").map_err(during("the new root"))?;
    for path in readable(sandbox) {
        expose(&path, true)?;
    }
    for device in devices() {
        expose(device, false)?;
    }
    private_folders(quiet)?;
    expose(root, false)?;
    hide(sandbox)?;
    umount2(OLD, MntFlags::MNT_DETACH).map_err(during("the old root"))?;
    fs::remove_dir(OLD).map_err(during("the old root"))?;
    let fixed = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | quiet;
    attach(None, Path::new("/"), None, fixed, None)?;
    std::env::set_current_dir(root).map_err(during("the work folder"))
}

fn private_folders(quiet: MsFlags) -> Outcome<()> {
    make_folder(Path::new("/tmp"))?;
    attach(Some("tmpfs"), Path::new("/tmp"), Some("tmpfs"), quiet, Some(TMP))?;
    make_folder(Path::new("/proc"))?;
    // Refused where a container hides parts of its own `/proc`. Programs then have none.
    let _ = attach(Some("proc"), Path::new("/proc"), Some("proc"), quiet | MsFlags::MS_NOEXEC, None);
    for (name, target) in [
        ("shm", "/tmp"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, Path::new("/dev").join(name)).map_err(during("/dev"))?;
    }
    Ok(())
}

/// Shows a path of the old file system under the same path. One that does not exist is left out.
fn expose(path: &Path, read_only: bool) -> Outcome<()> {
    let source = old(path);
    let Ok(kind) = fs::symlink_metadata(&source).map(|found| found.file_type()) else { return Ok(()) };
    if fs::symlink_metadata(path).is_ok() && kind.is_symlink() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    if kind.is_symlink() && SYSTEM_LINKS.iter().any(|link| path == Path::new(link)) {
        let target = fs::read_link(&source).map_err(during("a link"))?;
        return symlink(target, path).map_err(during("a link"));
    }
    // A link such as `/etc/localtime` is resolved in the old file system.
    let Some(source) = resolve(path) else { return Ok(()) };
    let place = |path: &Path| if source.is_dir() { make_folder(path) } else { make_file(path) };
    place(path)?;
    attach(path_text(&source), path, None, MsFlags::MS_BIND | MsFlags::MS_REC, None)?;
    if read_only {
        let fixed = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID;
        attach(None, path, None, fixed | kept_flags(path), None)?;
    }
    Ok(())
}

/// The flags of a mount that a less privileged namespace must not clear.
fn kept_flags(path: &Path) -> MsFlags {
    let flags = statvfs(path).map_or(FsFlags::empty(), |found| found.flags());
    let pairs = [
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    pairs.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, kept)| kept).collect()
}

/// Covers what the program must not see: files by an empty device, folders by an empty folder.
fn hide(sandbox: &Sandbox) -> Outcome<()> {
    for path in &sandbox.hidden {
        let Ok(found) = fs::metadata(path) else { continue };
        if found.is_dir() {
            let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            attach(Some("tmpfs"), path, Some("tmpfs"), flags, Some("size=4k,mode=555"))?;
        } else {
            attach(path_text(&old(Path::new("/dev/null"))), path, None, MsFlags::MS_BIND, None)?;
        }
    }
    Ok(())
}

fn old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

/// The path below `OLD` that a path of the old file system leads to, with links resolved there. Bounded, as links may form a
/// circle.
fn resolve(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..16 {
        let Ok(target) = fs::read_link(old(&path)) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    let found = old(&path);
    // `..` in a target must not lead out of the old root.
    let found = found.canonicalize().ok()?;
    (found.starts_with(OLD)).then_some(found)
}

fn make_folder(path: &Path) -> Outcome<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(|error| format!("{}: {error}", path.display()))
}

fn make_file(path: &Path) -> Outcome<()> {
    fs::write(path, "").map_err(|error| format!("{}: {error}", path.display()))
}

fn path_text(path: &Path) -> Option<&str> {
    path.to_str()
}

fn attach(
    source: Option<&str>,
    target: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    options: Option<&str>,
) -> Outcome<()> {
    mount(source, target, kind, flags, options)
        .map_err(|error| format!("mount {}: {error}", target.display()))
}
