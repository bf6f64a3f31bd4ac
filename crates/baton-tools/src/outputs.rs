//! Where output is kept that is too long to show to a model at once.
//!
//! The model gets the beginning and a handle, and reads on with `read_output`. Handles are random and belong to one run
//! of one tenant; everywhere else they do not exist. What a run kept goes when the run does.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::{CallContext, RunId, TenantId};
use uuid::Uuid;

/// What a model is shown of one output.
pub const SHOWN_BYTES: usize = 16 * 1024;
/// What is kept of one output.
pub const KEPT_BYTES: usize = 8 * 1024 * 1024;
/// What is kept for one run.
const RUN_BYTES: usize = 128 * 1024 * 1024;

/// Shared by all runs of a process. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Outputs(Arc<Store>);

#[derive(Debug)]
struct Store {
    shown_bytes: usize,
    /// Made with the first output, readable for nobody else.
    folder: PathBuf,
    runs: Mutex<HashMap<Owner, Run>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Owner {
    tenant: TenantId,
    run: RunId,
}

#[derive(Debug, Default)]
struct Run {
    bytes: usize,
    outputs: HashMap<String, usize>,
    /// A name of its own, so that nothing in the folder says whose it is.
    folder: String,
}

/// A run that may keep outputs. Dropping it removes them.
#[derive(Debug)]
#[must_use = "outputs of the run are removed when this is dropped"]
pub struct RunOutputs {
    outputs: Outputs,
    owner: Owner,
}

/// A page of a kept output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub text: String,
    /// Where it begins and ends, in bytes.
    pub start: usize,
    pub end: usize,
    pub total: usize,
}

impl Default for Outputs {
    fn default() -> Self {
        Self::new(&std::env::temp_dir(), SHOWN_BYTES)
    }
}

impl Outputs {
    /// Keeps outputs below `parent`, and shows models up to `shown_bytes` of each.
    pub fn new(parent: &Path, shown_bytes: usize) -> Self {
        let folder = parent.join(format!("baton-outputs-{}", Uuid::new_v4().simple()));
        Self(Arc::new(Store { shown_bytes, folder, runs: Mutex::default() }))
    }

    /// Lets a run keep outputs until what is returned here is dropped.
    pub fn open(&self, tenant: &TenantId, run: RunId) -> RunOutputs {
        let owner = Owner { tenant: tenant.clone(), run };
        let folder = Uuid::new_v4().simple().to_string();
        self.runs().entry(owner.clone()).or_insert(Run { folder, ..Run::default() });
        RunOutputs { outputs: self.clone(), owner }
    }

    /// The text as a model gets it: whole when it fits, otherwise its beginning and how to read on.
    pub async fn fit(&self, context: &CallContext, text: String) -> String {
        if text.len() <= self.0.shown_bytes {
            return text;
        }
        let (outputs, owner) = (self.clone(), Owner::of(context));
        let fitted = tokio::task::spawn_blocking(move || outputs.shorten(&owner, &text)).await;
        fitted.unwrap_or_else(|_| "The output was too long to show and could not be kept.".to_owned())
    }

    fn shorten(&self, owner: &Owner, text: &str) -> String {
        let shown = &text[..good_end(text, self.0.shown_bytes)];
        let kept = &text[..text.floor_char_boundary(KEPT_BYTES)];
        let (at, total) = (shown.len(), text.len());
        let lost = match total - kept.len() {
            0 => String::new(),
            lost => format!(" The last {lost} bytes were dropped."),
        };
        let hint = match self.keep(owner, kept) {
            Ok(handle) => {
                format!("Read on with read_output {{\"handle\": \"{handle}\", \"offset\": {at}}}.{lost}")
            }
            Err(error) => {
                tracing::warn!(%error, "output could not be kept");
                "The rest was not kept; ask for less at a time.".to_owned()
            }
        };
        format!("{}\n\n[The first {at} of {total} bytes. {hint}]", shown.trim_end_matches('\n'))
    }

    fn keep(&self, owner: &Owner, text: &str) -> io::Result<String> {
        let handle = format!("out_{}", Uuid::new_v4().simple());
        let path = self.reserve(owner, &handle, text.len())?;
        let written = write(&self.0.folder, &path, text);
        let mut runs = self.runs();
        let run = runs.get_mut(owner);
        match (written, run) {
            (Ok(()), Some(_)) => Ok(handle),
            // The run ended meanwhile, and its folder was removed before this file was in it.
            (Ok(()), None) => {
                drop(runs);
                let _ = path.parent().map(fs::remove_dir_all);
                Err(io::Error::other("the run has ended"))
            }
            (Err(error), run) => {
                if let Some(run) = run {
                    run.outputs.remove(&handle);
                    run.bytes = run.bytes.saturating_sub(text.len());
                }
                Err(error)
            }
        }
    }

    /// Takes the room before anything is written, so that parallel outputs cannot exceed it together.
    fn reserve(&self, owner: &Owner, handle: &str, bytes: usize) -> io::Result<PathBuf> {
        let mut runs = self.runs();
        let run = runs.get_mut(owner).ok_or_else(|| io::Error::other("the run keeps no outputs"))?;
        if run.bytes + bytes > RUN_BYTES {
            return Err(io::Error::other(format!("the run has kept {} bytes already", run.bytes)));
        }
        run.bytes += bytes;
        run.outputs.insert(handle.to_owned(), bytes);
        Ok(self.0.folder.join(&run.folder).join(handle))
    }

    /// Part of a kept output. `None` when this run has no such handle. Blocks.
    pub fn read(
        &self,
        context: &CallContext,
        handle: &str,
        offset: usize,
        limit: usize,
    ) -> Option<io::Result<Slice>> {
        let (path, total) = {
            let runs = self.runs();
            let run = runs.get(&Owner::of(context))?;
            (self.0.folder.join(&run.folder).join(handle), *run.outputs.get(handle)?)
        };
        Some(slice(&path, total, offset, limit))
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<Owner, Run>> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    fn of(context: &CallContext) -> Self {
        Self { tenant: context.tenant.clone(), run: context.run_id }
    }
}

impl Drop for RunOutputs {
    fn drop(&mut self) {
        let Some(run) = self.outputs.runs().remove(&self.owner) else { return };
        if !run.outputs.is_empty() {
            let _ = fs::remove_dir_all(self.outputs.0.folder.join(run.folder));
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn write(root: &Path, path: &Path, text: &str) -> io::Result<()> {
    for folder in [Some(root), path.parent()].into_iter().flatten() {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// Whole characters only: a page begins and ends between them.
fn slice(path: &Path, total: usize, offset: usize, limit: usize) -> io::Result<Slice> {
    let start = offset.min(total);
    let mut bytes = Vec::new();
    let mut file = fs::File::open(path)?;
    file.seek(SeekFrom::Start(start as u64))?;
    // Three bytes more than asked for, to finish a character.
    file.take(limit as u64 + 3).read_to_end(&mut bytes)?;
    let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
    let skipped = bytes.iter().take_while(|byte| is_inside(byte)).count();
    let mut end = bytes.len().min(skipped.max(limit));
    while bytes.get(end).is_some_and(is_inside) {
        end += 1;
    }
    let text = String::from_utf8_lossy(&bytes[skipped..end]).into_owned();
    Ok(Slice { text, start: start + skipped, end: start + end, total })
}

/// At the end of a line where there is one in the last quarter.
fn good_end(text: &str, limit: usize) -> usize {
    let end = text.floor_char_boundary(limit);
    let quarter = text.floor_char_boundary(limit - limit / 4);
    text[quarter..end].rfind('\n').map_or(end, |at| quarter + at + 1)
}
