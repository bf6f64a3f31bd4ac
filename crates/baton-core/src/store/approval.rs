//! Approvals: decisions that a run waits for.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::choices;
use crate::id::{RunId, ThreadId, UserId};
use crate::store::{Order, Page, PageRequest, Pending};
use crate::tool::Risk;

choices! {
    pub enum ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        Expired = "expired",
    }
}

choices! {
    /// Selects approvals by status.
    pub enum ApprovalFilter {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        Expired = "expired",
        /// Every status except `pending`.
        Decided = "decided",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalQuery {
    /// `None` selects all.
    pub status: Option<ApprovalFilter>,
    /// Only approvals of this user's threads.
    pub user_id: Option<UserId>,
    /// By creation time.
    pub order: Order,
}

/// A tool call that waits for a decision.
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

/// Operations on approvals.
pub trait Approvals: Send + Sync {
    /// Creates an approval. For the same run and path, returns the existing one.
    fn ask(&self, approval: Approval) -> Pending<'_, Approval>;

    fn approval(&self, approval: Uuid) -> Pending<'_, Approval>;

    /// In the order of the query.
    fn approvals(&self, query: ApprovalQuery, page: PageRequest) -> Pending<'_, Page<Approval>>;

    /// Decides a pending approval that has not expired; anything else is a conflict.
    fn decide(
        &self,
        approval: Uuid,
        status: ApprovalStatus,
        by: &UserId,
        reason: Option<&str>,
    ) -> Pending<'_, Approval>;
}
