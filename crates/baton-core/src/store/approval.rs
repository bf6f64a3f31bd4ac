//! Decisions that wait for a person.

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
    /// Which approvals a list has.
    pub enum ApprovalFilter {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        Expired = "expired",
        /// Approved, denied or expired: every status but `pending`.
        Decided = "decided",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalQuery {
    /// Without it, all.
    pub status: Option<ApprovalFilter>,
    /// Only those of this user's threads.
    pub user_id: Option<UserId>,
    /// By the time at which the call was asked for.
    pub order: Order,
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

    /// In the order of the query.
    fn approvals(&self, query: ApprovalQuery, page: PageRequest) -> Pending<'_, Page<Approval>>;

    /// Decides one that is pending and not expired; anything else is a conflict.
    fn decide(
        &self,
        approval: Uuid,
        status: ApprovalStatus,
        by: &UserId,
        reason: Option<&str>,
    ) -> Pending<'_, Approval>;
}
