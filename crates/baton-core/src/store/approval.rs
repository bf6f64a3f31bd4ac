//! Decisions that wait for a person.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::choices;
use crate::id::{RunId, ThreadId, UserId};
use crate::store::{Page, PageRequest, Pending};
use crate::tool::Risk;

choices! {
    pub enum ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        Expired = "expired",
    }
}

/// A call that waits for a person's yes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub approval_id: Uuid,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub path: String,
    pub tool: String,
    pub arguments: Value,
    pub risk: Risk,
    pub status: ApprovalStatus,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub decided_at: Option<Timestamp>,
    pub decided_by: Option<UserId>,
    pub reason: Option<String>,
}

/// What can be done with approvals.
pub trait Approvals: Send + Sync {
    /// Asking again for the same run and path gives the first one back.
    fn ask(&self, approval: Approval) -> Pending<'_, Approval>;

    fn approval(&self, approval: Uuid) -> Pending<'_, Approval>;

    /// The oldest first; with a user, only those of that user's threads.
    fn approvals(
        &self,
        status: Option<ApprovalStatus>,
        user: Option<&UserId>,
        page: PageRequest,
    ) -> Pending<'_, Page<Approval>>;

    /// Decides one that is pending and not expired; anything else is a conflict.
    fn decide(
        &self,
        approval: Uuid,
        status: ApprovalStatus,
        by: &UserId,
        reason: Option<&str>,
    ) -> Pending<'_, Approval>;
}
