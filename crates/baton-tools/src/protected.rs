//! What file tools neither read nor write: the server's own files.
//!
//! Text that a model read could otherwise make it plant a command or a permission, or tell secrets: in hidden files such as
//! `.mcp.json` and `.git/hooks`, in `baton.toml`, in the agents themselves, or in the database. Names are compared without case,
//! because a file system may do so too. Links are resolved, and hard links are recognised by the file that they lead to.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

const CONFIG: &str = "baton.toml";
/// Found by their names, which may be links to files with other names.
const LINKED: [&str; 2] = [CONFIG, ".mcp.json"];
/// Links that lead to nothing yet, one after another.
const MAX_HOPS: usize = 8;
/// Files of protected folders that a file with several names is compared with.
const MAX_COMPARED: usize = 10_000;

/// Made for one work folder.
#[derive(Debug)]
pub struct Protected {
    root: Vec<String>,
    places: Vec<Vec<String>>,
    /// The same as paths.
    paths: Vec<PathBuf>,
}

impl Protected {
    /// `root` is free of links. Paths are absolute or relative to it, and need not exist.
    pub fn new(root: &Path, paths: &[PathBuf]) -> Self {
        let linked = LINKED.iter().map(Path::new);
        Self::at(root, paths.iter().map(PathBuf::as_path).chain(linked))
    }

    fn at<'a>(root: &Path, paths: impl Iterator<Item = &'a Path>) -> Self {
        let paths: Vec<PathBuf> = paths.map(|path| resolved(&root.join(path), MAX_HOPS)).collect();
        Self { root: folded(root), places: paths.iter().map(|path| folded(path)).collect(), paths }
    }

    /// Whether a file that has several names is also at or below a protected place. For few files: it looks at all of them.
    pub fn has_file(&self, device: u64, inode: u64) -> bool {
        let is_it = |path: &Path| {
            path.symlink_metadata().is_ok_and(|found| (found.dev(), found.ino()) == (device, inode))
        };
        let mut open = self.paths.clone();
        let mut compared = 0;
        while let Some(path) = open.pop() {
            compared += 1;
            // Rather refuse than miss one.
            if compared > MAX_COMPARED || is_it(&path) {
                return true;
            }
            if let Ok(entries) = path.read_dir() {
                open.extend(entries.flatten().map(|entry| entry.path()));
            }
        }
        false
    }

    /// Hidden files and folders, and the configuration: wherever they are.
    pub fn has_name(name: &OsStr) -> bool {
        let name = fold(name);
        name.starts_with('.') || name == CONFIG
    }

    /// Whether the place behind these names, from the root on and without links, is at or below a protected one.
    pub fn covers(&self, names: &[OsString], last: &OsStr) -> bool {
        let mut place = self.root.clone();
        place.extend(names.iter().map(|name| fold(name)));
        place.push(fold(last));
        self.places.iter().any(|protected| place.starts_with(protected))
    }
}

/// Whether `read_file` leaves a file with this name alone: `.env`, `.env.local`, `.envrc`.
pub fn is_secret(name: &OsStr) -> bool {
    fold(name).starts_with(".env")
}

/// By way of upper case, so that letters with two lower case forms are equal.
fn fold(name: &OsStr) -> String {
    name.to_string_lossy().to_uppercase().to_lowercase()
}

fn folded(path: &Path) -> Vec<String> {
    path.components().map(|component| fold(component.as_os_str())).collect()
}

/// Without links, also where the path or its end does not exist yet.
fn resolved(path: &Path, hops: usize) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let Some(parent) = path.parent() else { return path.to_owned() };
    let mut real = resolved(parent, hops);
    match path.components().next_back() {
        Some(Component::ParentDir) => drop(real.pop()),
        Some(Component::Normal(name)) => {
            let target = real.join(name).read_link().ok().filter(|_| hops > 0);
            match target {
                Some(target) => return resolved(&real.join(target), hops - 1),
                None => real.push(name),
            }
        }
        _ => {}
    }
    real
}
