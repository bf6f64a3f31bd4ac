//! Files that a program leaves for the user: those in the folder `attachments` of the work folder that it created or changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::{CallContext, ProducedFile, ToolError};
use rustix::fs::Dir;

use super::ProcessSettings;
use crate::offload::{Abandoned, offload};
use crate::work_dir::WorkDir;

/// The folder, below the work folder.
pub(crate) const FOLDER: &str = "attachments";
/// What tools that run programs say about it.
pub(crate) const NOTE: &str =
    "Files that it creates or changes in the folder `attachments` are shown to the user with your answer.";
/// Entries of the folder that are looked at.
const MAX_ENTRIES: usize = 1_000;
/// Files of one call. A run keeps as many.
const MAX_FILES: usize = 64;
/// Bytes of a file that are read: more than a run keeps, so that the run refuses a larger file and says so.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024 + 1;
/// Bytes of all files of one call. A run keeps as many.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What a file was when it was looked at. A write, a rename and a change of its times change the status time.
#[derive(Debug, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    bytes: u64,
    status_time: (i64, i64),
}

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
        offload(move |abandoned| {
            let before = WorkDir::of(&context, &protected)
                .map(|dir| files(&dir, abandoned).map(|(name, _, version)| (name, version)).collect())
                .unwrap_or_default();
            Ok(Self { context, protected, before })
        })
        .await
    }

    /// The files that the program created or changed, sorted by name, and a note for the model if some are left out.
    pub(super) async fn after(self) -> Result<(Vec<ProducedFile>, String), ToolError> {
        offload(move |abandoned| {
            let Ok(dir) = WorkDir::of(&self.context, &self.protected) else { return Ok(Default::default()) };
            let changed =
                files(&dir, abandoned).filter(|(name, _, version)| self.before.get(name) != Some(version));
            let (mut found, mut bytes, mut left_out) = (Vec::new(), 0, 0_usize);
            for (name, file, version) in changed {
                let needed = version.bytes.min(MAX_FILE_BYTES);
                if found.len() == MAX_FILES || bytes + needed > MAX_BYTES {
                    left_out += 1;
                    continue;
                }
                bytes += needed;
                let mut content = Vec::new();
                if file.take(MAX_FILE_BYTES).read_to_end(&mut content).is_ok() {
                    found.push(ProducedFile::new(content).named(name));
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
        "\n\nNote: {left_out} more in `{FOLDER}`, not shown to the user; the limits are {MAX_FILES} files and {MAX_BYTES} bytes."
    )
}

/// The regular files of the folder that tools may read, opened, sorted by name. None if there is no such folder.
fn files<'a>(
    dir: &'a WorkDir,
    abandoned: &'a Abandoned,
) -> impl Iterator<Item = (String, File, FileVersion)> + 'a {
    names(dir).into_iter().take_while(|_| !abandoned.is_set()).filter_map(|name| {
        let file = dir.file(&format!("{FOLDER}/{name}")).ok()?;
        let status = file.metadata().ok()?;
        let status_time = (status.ctime(), status.ctime_nsec());
        let version = FileVersion { inode: status.ino(), bytes: status.size(), status_time };
        Some((name, file, version))
    })
}

fn names(dir: &WorkDir) -> Vec<String> {
    let Ok(opened) = dir.folder(FOLDER) else { return Vec::new() };
    let Ok(entries) = Dir::read_from(&opened.folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").take(MAX_ENTRIES).collect();
    names.sort();
    names
}
