//! Files that the tools and models of a run produce. Each becomes an artifact of the thread and, unless it is for the model only, a
//! part of the answer.
//!
//! The append that records the result of a call also stores its files, and the run waits for it. So nothing refers to a file that
//! is not stored, and a call that is replayed after a crash stores nothing again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_core::StoreError;
use baton_core::chat::ToolResult;
use baton_core::event::EventKind;
use baton_core::media::{self, FileRef, MAX_FILE_BYTES, MAX_RUN_FILE_BYTES, MAX_RUN_FILES, ProducedFile};
use baton_core::message::{Image, ImageSource};
use baton_core::store::{Artifact, NewArtifact, Step};
use data_encoding::BASE64;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::scope::Scope;
use crate::window::MAX_IMAGES;

/// Files of one call that are looked at, with those that are empty, too large or known.
const MAX_CALL_FILES: usize = 2 * MAX_RUN_FILES;
/// Bytes of an image that a model gets. As base64, it is within the limits of all providers.
const MAX_SHOWN_BYTES: u64 = 3_750_000;

/// The key under which steps record the files of a call.
const FILES: &str = "files";

type Digest = [u8; 32];

/// The files of one run.
#[derive(Debug, Default)]
pub(crate) struct RunFiles(Mutex<RunFilesState>);

#[derive(Debug, Default)]
struct RunFilesState {
    /// Stored files. Their ids are in the order in which they were produced.
    stored: BTreeMap<Uuid, FileRef>,
    /// Stored files by the hash of their content: the same content is not stored twice.
    by_digest: HashMap<Digest, Uuid>,
    /// How many files are stored or about to be.
    count: usize,
    bytes: u64,
    /// Whether a guardrail withheld the answer.
    is_withheld: bool,
}

/// The files of one call, ready to be stored with its step.
#[derive(Debug, Default)]
pub(crate) struct CallFiles {
    pub(crate) refs: Vec<FileRef>,
    pub(crate) new: Vec<NewArtifact>,
    digests: Vec<(Digest, Uuid)>,
    /// A line for each file, also for those that are not kept.
    pub(crate) lines: Vec<String>,
}

impl RunFiles {
    /// With the files that steps of earlier attempts recorded.
    pub(crate) fn after(steps: &[Step]) -> Self {
        let mut state = RunFilesState::default();
        for refs in steps.iter().filter_map(|step| step.data.field::<Vec<FileRef>>(FILES)) {
            for file in refs {
                state.add(file);
            }
        }
        state.count = state.stored.len();
        state.bytes = state.stored.values().map(|file| file.size).sum();
        Self(Mutex::new(state))
    }

    /// The files that are parts of the answer, oldest first.
    pub(crate) fn of_answer(&self) -> Vec<FileRef> {
        let state = self.state();
        let files = state.stored.values().filter(|file| file.is_for_user && !state.is_withheld);
        files.cloned().collect()
    }

    /// Leaves the files out of the answer, because a guardrail withheld its text.
    pub(crate) fn withhold(&self) {
        self.state().is_withheld = true;
    }

    /// Makes the files of a call known once they are stored.
    pub(crate) fn add_stored(&self, files: &CallFiles) {
        let mut state = self.state();
        state.by_digest.extend(files.digests.iter().copied());
        for file in &files.refs {
            state.add(file.clone());
        }
    }

    fn state(&self) -> MutexGuard<'_, RunFilesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves room for a file, so that parallel calls cannot exceed the limits together. Returns its number.
    fn reserve(&self, bytes: u64) -> Result<usize, String> {
        let mut state = self.state();
        if state.count == MAX_RUN_FILES {
            return Err(format!("a run keeps up to {MAX_RUN_FILES} files"));
        }
        if state.bytes + bytes > MAX_RUN_FILE_BYTES {
            return Err(format!("the files of a run may have {MAX_RUN_FILE_BYTES} bytes together"));
        }
        state.bytes += bytes;
        state.count += 1;
        Ok(state.count)
    }

    /// Takes back a reservation whose file is not kept.
    fn release(&self, bytes: u64) {
        let mut state = self.state();
        state.bytes -= bytes;
        state.count -= 1;
    }

    fn known(&self, digest: &Digest) -> Option<FileRef> {
        let state = self.state();
        state.by_digest.get(digest).and_then(|id| state.stored.get(id)).cloned()
    }
}

impl RunFilesState {
    fn add(&mut self, file: FileRef) {
        let is_for_user = file.is_for_user;
        self.stored.entry(file.artifact_id).or_insert(file).is_for_user |= is_for_user;
    }
}

/// Prepares the files of a call to be stored, within the limits of the run, the user and the tenant. Files beyond
/// [`MAX_CALL_FILES`] are not looked at, because each would add a line to the prompt.
pub(crate) async fn prepare(scope: &Scope, mut produced: Vec<ProducedFile>) -> CallFiles {
    let mut files = CallFiles::default();
    let dropped = produced.len().saturating_sub(MAX_CALL_FILES);
    produced.truncate(MAX_CALL_FILES);
    for file in produced {
        let media_type = media::media_type(file.media_type.as_deref(), &file.bytes);
        let size = file.bytes.len();
        match keep(scope, file, &media_type, &mut files).await {
            Ok(kept) => {
                let shown = if kept.is_for_user { " It is shown to the user with your answer." } else { "" };
                files.lines.push(format!("{}{shown}", kept.describe()));
                files.refs.push(kept);
            }
            Err(reason) => {
                let text = format!("a file was not kept: {media_type}, {size} bytes; {reason}");
                files.lines.push(format!("[{text}]"));
                scope.trace(EventKind::Status { text }).await;
            }
        }
    }
    if dropped > 0 {
        files
            .lines
            .push(format!("[{dropped} more files were not kept: a run keeps up to {MAX_RUN_FILES} files]"));
    }
    files
}

async fn keep(
    scope: &Scope,
    file: ProducedFile,
    media_type: &str,
    files: &mut CallFiles,
) -> Result<FileRef, String> {
    let ProducedFile { name, bytes, is_for_user, .. } = file;
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("files up to {MAX_FILE_BYTES} bytes are kept"));
    }
    let (run, size) = (&scope.run, bytes.len() as u64);
    let digest: Digest = Sha256::digest(&bytes).into();
    let in_call = files.digests.iter().find(|(known, _)| *known == digest).map(|(_, id)| *id);
    let in_call = in_call.and_then(|id| files.refs.iter().find(|file| file.artifact_id == id)).cloned();
    if let Some(known) = in_call.or_else(|| run.recorder.files.known(&digest)) {
        return Ok(FileRef { is_for_user: is_for_user || known.is_for_user, ..known });
    }
    let number = run.recorder.files.reserve(size)?;
    if let Err(error) = run.storage.check(&*run.store, &run.caller.user, size).await {
        run.recorder.files.release(size);
        return Err(refusal(&error));
    }
    let name = name.map_or_else(|| default_name(media_type, number), |name| media::clean_name(&name));
    let (artifact_id, media_type) = (Uuid::now_v7(), media_type.to_owned());
    let artifact = Artifact {
        artifact_id,
        thread_id: run.caller.thread_id,
        run_id: Some(run.run_id),
        name: name.clone(),
        media_type: media_type.clone(),
        size,
        created_at: Timestamp::now(),
    };
    files.new.push(NewArtifact { artifact, bytes });
    files.digests.push((digest, artifact_id));
    Ok(FileRef { artifact_id, name, media_type, size, is_for_user })
}

fn refusal(error: &StoreError) -> String {
    match error {
        StoreError::StorageFull { whose, limit } => {
            format!("the {whose}'s limit of {limit} stored bytes is reached")
        }
        error => format!("its storage could not be checked: {error}"),
    }
}

/// `image-1.png`
fn default_name(media_type: &str, number: usize) -> String {
    let kind = media_type.split('/').next().filter(|kind| ["image", "audio", "video"].contains(kind));
    format!("{}-{number}.{}", kind.unwrap_or("file"), media::extension(media_type))
}

/// Loads the newest pictures of tool results for a model that accepts them. A result without its pictures still names them.
pub(crate) async fn load_images(scope: &Scope, results: &mut [ToolResult]) {
    let all = results.iter().flat_map(|result| &result.files).filter(|file| is_shown_to_models(file)).count();
    let mut skipped = all.saturating_sub(MAX_IMAGES);
    for result in results {
        for file in result.files.iter().filter(|file| is_shown_to_models(file)) {
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            match scope.run.store.artifact(file.artifact_id).await {
                Ok((artifact, bytes)) => result.images.push(Image {
                    source: ImageSource::Base64(BASE64.encode(&bytes)),
                    media_type: artifact.media_type,
                    name: Some(artifact.name),
                }),
                Err(error) => {
                    tracing::warn!(artifact = %file.artifact_id, %error, "a model does not see an image");
                }
            }
        }
    }
}

fn is_shown_to_models(file: &FileRef) -> bool {
    let is_accepted =
        ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&file.media_type.as_str());
    is_accepted && file.size <= MAX_SHOWN_BYTES
}
