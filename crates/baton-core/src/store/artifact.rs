//! Artifacts: files that users upload and agents produce.

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

/// Operations on artifacts.
pub trait Artifacts: Send + Sync {
    /// Stores a file. With a user, the thread is created if it does not exist; another user's thread is not found.
    fn put_artifact(&self, artifact: Artifact, user: Option<&UserId>, bytes: Vec<u8>) -> Pending<'_, ()>;

    fn artifact(&self, artifact: Uuid) -> Pending<'_, (Artifact, Vec<u8>)>;

    /// Newest first.
    fn artifacts(&self, thread: ThreadId) -> Pending<'_, Vec<Artifact>>;
}
