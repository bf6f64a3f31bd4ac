//! Files that a program leaves for the user: those in the folder `attachments` of the work folder that it created or changed.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::media::{MAX_FILE_BYTES, MAX_RUN_FILE_BYTES, MAX_RUN_FILES};
use baton_core::{CallContext, ProducedFile, ToolError};
use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};

use super::ProcessSettings;
use crate::offload::offload;
use crate::work_dir::WorkDir;

/// The folder, below the work folder.
pub(crate) const FOLDER: &str = "attachments";
/// The sentence on it in the descriptions of tools that run programs.
pub(crate) const NOTE: &str =
    "Files that it creates or changes in the folder `attachments` are shown to the user with your answer.";
/// Maximum entries of the folder. With more, nothing is attached.
const MAX_ENTRIES: usize = 1_000;
/// Bytes of a file that are read: more than a run keeps, so that the run refuses a larger file and says so.
const MAX_READ: u64 = MAX_FILE_BYTES + 1;

/// Identity and version of a file. A write, a rename and a change of its times change the status time.
#[derive(Debug, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    bytes: u64,
    status_time: (i64, i64),
    /// A file with holes would pass the limits of disk space, and one with several names may be a file of the server.
    is_refused: bool,
}

impl FileVersion {
    fn of(status: &Stat) -> Self {
        let bytes = u64::try_from(status.st_size).unwrap_or_default();
        let on_disk = u64::try_from(status.st_blocks).unwrap_or_default() * 512;
        let has_holes = bytes > SMALL && on_disk < bytes / 2;
        Self {
            inode: status.st_ino,
            bytes,
            status_time: (status.st_ctime, status.st_ctime_nsec.try_into().unwrap_or_default()),
            is_refused: has_holes || status.st_nlink > 1,
        }
    }
}

/// Files up to this size are not examined for holes: file systems store them within other structures.
const SMALL: u64 = 64 * 1024;

/// The folder before the program runs.
#[derive(Debug)]
pub(super) struct Attachments {
    context: Arc<CallContext>,
    /// Files of the server, which no link makes an attachment.
    protected: Vec<PathBuf>,
    before: BTreeMap<String, FileVersion>,
}

impl Attachments {
    pub(super) async fn before(
        settings: &ProcessSettings,
        context: &Arc<CallContext>,
    ) -> Result<Self, ToolError> {
        let protected = settings.sandbox.as_ref().map(|sandbox| sandbox.hidden.clone()).unwrap_or_default();
        let context = Arc::clone(context);
        offload(move |_| {
            let before =
                WorkDir::of(&context, &protected).ok().and_then(|dir| versions(&dir)).unwrap_or_default();
            Ok(Self { context, protected, before })
        })
        .await
    }

    /// The files that the program created or changed, sorted by name, and a note for the model if some are left out.
    pub(super) async fn after(self) -> Result<(Vec<ProducedFile>, String), ToolError> {
        offload(move |abandoned| {
            let Ok(dir) = WorkDir::of(&self.context, &self.protected) else { return Ok(Default::default()) };
            let Some(now) = versions(&dir) else {
                return Ok((Vec::new(), format!("\n\nNote: nothing in `{FOLDER}` is shown to the user: it has more than {MAX_ENTRIES} entries.")));
            };
            let (mut found, mut bytes, mut left_out) = (Vec::new(), 0, 0_usize);
            for (name, version) in now.into_iter().take_while(|_| !abandoned.is_set()) {
                if self.before.get(&name) == Some(&version) {
                    continue;
                }
                let needed = version.bytes.min(MAX_READ);
                if version.is_refused || found.len() == MAX_RUN_FILES || bytes + needed > MAX_RUN_FILE_BYTES {
                    left_out += 1;
                    continue;
                }
                let Ok(file) = dir.file(&format!("{FOLDER}/{name}")) else {
                    left_out += 1;
                    continue;
                };
                // Another program may let the file grow meanwhile.
                let mut content = Vec::new();
                match file.take(MAX_READ.min(MAX_RUN_FILE_BYTES - bytes)).read_to_end(&mut content) {
                    Ok(read) => {
                        bytes += read as u64;
                        found.push(ProducedFile::new(content).named(name));
                    }
                    Err(_) => left_out += 1,
                }
            }
            Ok((found, note(left_out)))
        })
        .await
    }
}

fn note(left_out: usize) -> String {
    if left_out == 0 {
        return String::new();
    }
    format!(
        "\n\nNote: {left_out} more in `{FOLDER}`, not shown to the user; the limits are {MAX_RUN_FILES} files and {MAX_RUN_FILE_BYTES} bytes, and \
         hidden files, links and files with holes are left out."
    )
}

/// The regular files of the folder. None if there is no such folder, and `None` if it has too many entries. Nothing is opened.
fn versions(dir: &WorkDir) -> Option<BTreeMap<String, FileVersion>> {
    let Ok(opened) = dir.folder(FOLDER) else { return Some(BTreeMap::new()) };
    let Ok(entries) = Dir::read_from(&opened.folder) else { return Some(BTreeMap::new()) };
    let mut found = BTreeMap::new();
    for (at, entry) in entries.flatten().enumerate() {
        // Two of them are `.` and `..`.
        if at >= MAX_ENTRIES + 2 {
            return None;
        }
        let Ok(status) = statat(&opened.folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let Ok(name) = entry.file_name().to_str() else { continue };
        if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile {
            found.insert(name.to_owned(), FileVersion::of(&status));
        }
    }
    Some(found)
}
