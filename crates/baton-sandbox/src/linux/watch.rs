//! Limits that the kernel does not enforce for a group of processes without a control group: memory and disk space of all
//! together, and time. They are checked several times a second, so a program can exceed them for a moment.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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

/// Ends the sandbox when a limit is exceeded.
pub(super) fn start(sandbox: &Sandbox) {
    // A work folder that is full already must not grow, but the program may delete files.
    let disk_bytes = sandbox.limits.disk_bytes.max(DiskUse::of(&sandbox.root).bytes);
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

/// Memory of all processes of the sandbox but process 1. Pages that several share are counted for each.
fn memory() -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let names = entries.flatten().map(|entry| entry.file_name());
    let is_program = |name: &OsString| name.as_encoded_bytes().iter().all(u8::is_ascii_digit) && name != "1";
    names.filter(is_program).map(|name| resident(&Path::new("/proc").join(name))).sum()
}

/// Bytes of a process in memory, without pages of files.
fn resident(process: &Path) -> u64 {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
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
        used.add(folder);
        used
    }

    fn add(&mut self, folder: &Path) {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            self.files += 1;
            if self.files > MAX_FILES {
                self.bytes += MIB;
                continue;
            }
            // Of the entry itself, not of what a link leads to.
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                self.add(&entry.path());
            } else {
                self.bytes += found.blocks() * 512;
            }
        }
    }
}
