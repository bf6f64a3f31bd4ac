//! Artifacts: files that users upload and agents produce.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{RunId, ThreadId, UserId};
use crate::store::Pending;

/// Metadata of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub artifact_id: Uuid,
    pub thread_id: ThreadId,
    pub run_id: Option<RunId>,
    pub name: String,
    pub media_type: String,
    pub size: u64,
    pub created_at: Timestamp,
}

/// A file to be written with the step that produced it. Clones share its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct NewArtifact {
    pub artifact: Artifact,
    pub bytes: Arc<[u8]>,
}

/// Omits the bytes, which may be megabytes.
impl fmt::Debug for NewArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewArtifact").field(&self.artifact).finish()
    }
}

/// Operations on artifacts. [`super::Append::artifacts`] writes those of runs.
pub trait Artifacts: Send + Sync {
    /// Stores a file. With a user, the thread is created if it does not exist; another user's thread is not found.
    fn put_artifact(&self, artifact: Artifact, user: Option<&UserId>, bytes: Vec<u8>) -> Pending<'_, ()>;

    fn artifact(&self, artifact: Uuid) -> Pending<'_, (Artifact, Vec<u8>)>;

    /// Newest first.
    fn artifacts(&self, thread: ThreadId) -> Pending<'_, Vec<Artifact>>;
}
