//! Limits that the kernel does not enforce for a group of processes without a control group: memory and disk space of all
//! together, and time. They are checked several times a second, so a program can exceed them for a moment.

use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use super::launch::SIGNALLED;
use crate::{Limits, Sandbox};

/// While little memory is used, and while more than a quarter of the limit is.
const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(25)];
/// Looking at the files takes at most one part of this many of the time.
const DISK_SHARE: u32 = 10;
const MIN_DISK_INTERVAL: Duration = Duration::from_millis(500);
/// Files that are looked at. Each further one counts as one MiB.
const MAX_FILES: usize = 100_000;
const MIB: u64 = 1024 * 1024;
/// Permissions without which the owner cannot list a folder and look at its entries.
const OWNER_READS: u32 = 0o500;

/// Ends the sandbox when a limit is exceeded.
pub(super) fn start(sandbox: &Sandbox) {
    // A work folder that is full already must not grow, but the program may delete files.
    let used = DiskUse::of(&sandbox.root).bytes;
    // One that cannot be read has no such excuse: the first look ends the program.
    let used = if used == u64::MAX { 0 } else { used };
    let disk_bytes = sandbox.limits.disk_bytes.max(used);
    let mut watch = Watch {
        root: sandbox.root.clone(),
        limits: Limits { disk_bytes, ..sandbox.limits },
        started: Instant::now(),
        next_disk: Instant::now(),
    };
    std::thread::spawn(move || {
        loop {
            let memory = memory();
            if let Some(problem) = watch.exceeded(memory) {
                eprintln!("sandbox: ended: {problem}");
                std::process::exit(SIGNALLED + libc::SIGKILL);
            }
            let is_much = memory > watch.limits.memory_bytes / 4;
            std::thread::sleep(INTERVALS[usize::from(is_much)]);
        }
    });
}

struct Watch {
    root: PathBuf,
    limits: Limits,
    started: Instant,
    next_disk: Instant,
}

impl Watch {
    /// The limit that is exceeded, if one is.
    fn exceeded(&mut self, memory: u64) -> Option<String> {
        let Limits { memory_bytes, disk_bytes, wall, .. } = self.limits;
        if wall.is_some_and(|most| self.started.elapsed() > most) {
            return Some("the time limit was reached".to_owned());
        }
        if memory > memory_bytes {
            return Some(format!("more than {} MiB of memory were used", memory_bytes / MIB));
        }
        let looked = Instant::now();
        if looked < self.next_disk {
            return None;
        }
        let used = DiskUse::of(&self.root);
        self.next_disk = Instant::now() + (looked.elapsed() * DISK_SHARE).max(MIN_DISK_INTERVAL);
        let is_full = used.bytes > disk_bytes;
        is_full.then(|| format!("the files of the work folder have more than {} MiB", disk_bytes / MIB))
    }
}

/// Memory of all processes of the sandbox but process 1. Pages that several share are counted for each. What cannot be read
/// counts as too much.
fn memory() -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else { return u64::MAX };
    let is_program = |name: &OsString| name.as_encoded_bytes().iter().all(u8::is_ascii_digit) && name != "1";
    let mut bytes: u64 = 0;
    for entry in entries {
        let Ok(entry) = entry else { return u64::MAX };
        let name = entry.file_name();
        if is_program(&name) {
            bytes = bytes.saturating_add(resident(&Path::new("/proc").join(name)));
        }
    }
    bytes
}

/// Bytes of a process in memory, without pages of files.
fn resident(process: &Path) -> u64 {
    let status = match fs::read_to_string(process.join("status")) {
        Ok(status) => status,
        // The process has ended since.
        Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => {
            return 0;
        }
        Err(_) => return u64::MAX,
    };
    let kib = |line: &str| {
        let value = line.strip_prefix("RssAnon:").or_else(|| line.strip_prefix("RssShmem:"))?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    status.lines().filter_map(kib).sum::<u64>() * 1024
}

#[derive(Default)]
struct DiskUse {
    bytes: u64,
    files: usize,
}

impl DiskUse {
    fn of(folder: &Path) -> Self {
        let mut used = Self::default();
        match fs::metadata(folder) {
            Ok(found) => used.add(folder, &found),
            Err(_) => used.bytes = u64::MAX,
        }
        used
    }

    /// A folder that cannot be read counts as too much, unless it belongs to another user: a program could hide files in it. One
    /// that its owner must not read is made readable first.
    fn add(&mut self, folder: &Path, found: &Metadata) {
        let is_own = found.uid() == geteuid().as_raw();
        if is_own && found.mode() & OWNER_READS != OWNER_READS {
            let _ = fs::set_permissions(folder, Permissions::from_mode(found.mode() | 0o700));
        }
        let added = fs::read_dir(folder).and_then(|mut entries| {
            entries.try_for_each(|entry| {
                let entry = entry?;
                // Of the entry itself, not of what a link leads to.
                self.add_entry(&entry.path(), entry.metadata())
            })
        });
        if is_own && added.is_err_and(|error| !is_gone(&error)) {
            self.bytes = u64::MAX;
        }
    }

    fn add_entry(&mut self, path: &Path, found: io::Result<Metadata>) -> io::Result<()> {
        self.files += 1;
        if self.files > MAX_FILES {
            self.bytes = self.bytes.saturating_add(MIB);
            return Ok(());
        }
        match found {
            Ok(found) if found.is_dir() => self.add(path, &found),
            Ok(found) => self.bytes = self.bytes.saturating_add(found.blocks() * 512),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Whether the error means that what was found before was deleted or replaced since.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
