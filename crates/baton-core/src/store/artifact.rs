//! Files that people sent or agents made.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{RunId, ThreadId, UserId};
use crate::store::Pending;

/// A file, without its bytes.
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

/// What can be done with artifacts.
pub trait Artifacts: Send + Sync {
    /// With a user, its thread begins if there is none; one of another user is not found.
    fn put_artifact(&self, artifact: Artifact, user: Option<&UserId>, bytes: Vec<u8>) -> Pending<'_, ()>;

    fn artifact(&self, artifact: Uuid) -> Pending<'_, (Artifact, Vec<u8>)>;

    /// The newest first.
    fn artifacts(&self, thread: ThreadId) -> Pending<'_, Vec<Artifact>>;
}
