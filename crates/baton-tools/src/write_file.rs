//! `write_file`: a text file of the work folder, written whole or not at all.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolError, ToolSpec};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::builtin::ToolSettings;
use crate::offload::{Abandoned, offload};
use crate::schema::{arguments, object};
use crate::work_dir::{PathError, ResolvedFile, WorkDir, io};

const MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub struct WriteFile {
    spec: ToolSpec,
    protected: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct WriteFileArguments {
    path: String,
    content: String,
}

impl Default for WriteFile {
    fn default() -> Self {
        Self::new(ToolSettings::default().protected)
    }
}

impl WriteFile {
    /// Leaves what is at or below these paths alone, beside hidden files and `baton.toml`.
    pub fn new(protected: Vec<PathBuf>) -> Self {
        let spec = ToolSpec {
            name: "write_file".to_owned(),
            description: "Writes a text file in the work folder. Replaces the whole file when it exists, and makes missing \
                          folders. To change a part of a file, read it first and write all of it. Hidden files and folders \
                          (names that start with a dot), baton.toml and the agent folders are protected and refused."
                .to_owned(),
            parameters: object(
                json!({
                    "path": {"type": "string", "minLength": 1, "description": "Path of the file, relative to the work folder, such as notes/plan.md"},
                    "content": {"type": "string", "description": "The whole content of the file"},
                }),
                &["path", "content"],
            ),
            effect: Effect::Writes,
            risk: Risk::Medium,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, protected }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let protected = self.protected.clone();
        Box::pin(async move {
            let WriteFileArguments { path, content } = arguments(input)?;
            if content.len() > MAX_BYTES {
                return Err(ToolError::Limit(format!("a file has at most {MAX_BYTES} bytes")));
            }
            let text = offload(move |abandoned| {
                let place = WorkDir::of(&context, &protected)?.place(&path)?;
                check_storage(&place, content.len(), context.storage_left)?;
                write(&place, &path, &content, abandoned)?;
                Ok(format!("Wrote {path} ({} bytes).", content.len()))
            });
            Ok(text.await?.into())
        })
    }
}

/// Writes beside the place and renames, so that readers see the old file or the new one.
fn write(place: &ResolvedFile, path: &str, content: &str, abandoned: &Abandoned) -> Result<(), ToolError> {
    let mode = mode_of(place, path)?;
    let temporary = Temporary { place, name: format!(".{}.tmp", Uuid::new_v4().simple()) };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&place.folder, &temporary.name, flags, Mode::from_raw_mode(0o666));
    let mut file = File::from(file.map_err(|errno| io(path, errno))?);
    let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| PathError::Io { path: path.to_owned(), error })?;
    if let Some(mode) = mode {
        fchmod(&file, mode).map_err(|errno| io(path, errno))?;
    }
    abandoned.check()?;
    renameat(&place.folder, &temporary.name, &place.folder, &place.name).map_err(|errno| io(path, errno))?;
    Ok(())
}

/// Refuses to write more than may be added. The file that is replaced counts as free.
fn check_storage(place: &ResolvedFile, bytes: usize, left: Option<u64>) -> Result<(), ToolError> {
    let Some(left) = left else { return Ok(()) };
    let replaced = statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW);
    let replaced = replaced.map_or(0, |status| status.st_size.unsigned_abs());
    let adding = (bytes as u64).saturating_sub(replaced);
    if adding == 0 || adding <= left {
        return Ok(());
    }
    Err(ToolError::Limit(format!(
        "{bytes} bytes are too many: the storage of the user or tenant has {left} bytes left. Nothing was written. Delete files or \
         conversations first"
    )))
}

/// The permissions of the file that is replaced.
fn mode_of(place: &ResolvedFile, path: &str) -> Result<Option<Mode>, PathError> {
    match statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile => {
            // Never set-user-id: the content is somebody else's now.
            Ok(Some(Mode::from_raw_mode(status.st_mode & 0o777)))
        }
        Ok(_) => Err(PathError::NotAFile(path.to_owned())),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(io(path, errno)),
    }
}

/// Removed on every way out. After the rename there is nothing left to remove.
struct Temporary<'a> {
    place: &'a ResolvedFile,
    name: String,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(&self.place.folder, &self.name, AtFlags::empty());
    }
}
