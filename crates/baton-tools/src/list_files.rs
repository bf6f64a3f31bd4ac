//! `list_files`: what is in the work folder.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolError, ToolSpec};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offload::{Abandoned, offload};
use crate::schema::{arguments, object};
use crate::work_dir::{OpenFolder, WorkDir, io};

const DEFAULT_ENTRIES: usize = 200;
const MAX_ENTRIES: usize = 2_000;
/// How much is looked at before a listing gives up, however little of it is shown.
const MAX_SEEN: usize = 50_000;
const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub struct ListFiles {
    spec: ToolSpec,
    /// What is left out beside hidden files and `baton.toml`.
    protected: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct ListFilesArguments {
    path: Option<String>,
    recursive: Option<bool>,
    limit: Option<usize>,
}

impl Default for ListFiles {
    fn default() -> Self {
        let spec = ToolSpec {
            name: "list_files".to_owned(),
            description: "Lists files and folders of the work folder, sorted by name, one per line with the size in bytes; \
                          folders end in `/`. With `recursive` everything below is listed. Hidden files and folders are left out."
                .to_owned(),
            parameters: object(
                json!({
                    "path": {"type": "string", "description": "The folder to list, relative to the work folder. Default: the work folder itself"},
                    "recursive": {"type": "boolean", "description": "Whether to list what is inside folders too. Default false"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_ENTRIES, "description": "The most entries to list. Default 200"},
                }),
                &[],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, protected: Vec::new() }
    }
}

impl ListFiles {
    pub fn without(protected: Vec<PathBuf>) -> Self {
        Self { protected, ..Self::default() }
    }
}

impl Tool for ListFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let protected = self.protected.clone();
        Box::pin(async move {
            let wanted: ListFilesArguments = arguments(input)?;
            let text = offload(move |abandoned| {
                let path = wanted.path.unwrap_or_default();
                let work_dir = WorkDir::of(&context, &protected)?;
                let OpenFolder { folder, names } = work_dir.folder(&path)?;
                let mut listing = Listing {
                    work_dir: &work_dir,
                    names,
                    lines: Vec::new(),
                    limit: wanted.limit.unwrap_or(DEFAULT_ENTRIES).clamp(1, MAX_ENTRIES),
                    recursive: wanted.recursive.unwrap_or(false),
                    seen: 0,
                    is_cut: false,
                    abandoned,
                };
                listing.add(&folder, &prefix(&path), 0)?;
                Ok(listing.finish())
            });
            Ok(text.await?.into())
        })
    }
}

/// What stands before a name so that the line is a path other tools take.
fn prefix(path: &str) -> String {
    match path.trim_end_matches('/').trim_start_matches("./") {
        "" | "." => String::new(),
        path => format!("{path}/"),
    }
}

struct Listing<'a> {
    work_dir: &'a WorkDir,
    /// Of the folders from the work folder to the one that is read.
    names: Vec<OsString>,
    lines: Vec<String>,
    limit: usize,
    recursive: bool,
    seen: usize,
    is_cut: bool,
    abandoned: &'a Abandoned,
}

impl Listing<'_> {
    fn add(&mut self, folder: &OwnedFd, prefix: &str, depth: usize) -> Result<(), ToolError> {
        for name in self.names(folder, prefix)? {
            if self.lines.len() >= self.limit {
                self.is_cut = true;
                return Ok(());
            }
            let shown = format!("{prefix}{}", name.to_string_lossy());
            // Gone since the folder was read.
            let Ok(status) = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => {
                    self.lines.push(format!("{shown}/"));
                    if self.recursive && depth < MAX_DEPTH {
                        self.below(folder, &name, &shown, depth)?;
                    }
                }
                FileType::RegularFile => self.lines.push(format!("{shown} ({} bytes)", status.st_size)),
                FileType::Symlink => self.lines.push(format!("{shown} (link)")),
                _ => self.lines.push(format!("{shown} (special)")),
            }
        }
        Ok(())
    }

    fn below(
        &mut self,
        folder: &OwnedFd,
        name: &CString,
        shown: &str,
        depth: usize,
    ) -> Result<(), ToolError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(folder, name, flags, Mode::empty()) {
            Ok(inner) => {
                self.names.push(OsStr::from_bytes(name.as_bytes()).to_owned());
                let added = self.add(&inner, &format!("{shown}/"), depth + 1);
                self.names.pop();
                added
            }
            // A folder that may not be read is listed without its content.
            Err(_) => Ok(()),
        }
    }

    fn names(&mut self, folder: &OwnedFd, shown: &str) -> Result<Vec<CString>, ToolError> {
        self.abandoned.check()?;
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(|errno| io(shown, errno))? {
            let entry = entry.map_err(|errno| io(shown, errno))?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_SEEN {
                self.is_cut = true;
                break;
            }
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if !self.work_dir.protects(&self.names, name) {
                names.push(entry.file_name().to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn finish(mut self) -> String {
        if self.is_cut {
            self.lines.push("… and more; list a folder further down, or set a higher limit".to_owned());
        }
        if self.lines.is_empty() { "The folder is empty.".to_owned() } else { self.lines.join("\n") }
    }
}
