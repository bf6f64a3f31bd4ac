//! The end of data: retention, erasure of a user, and how much is stored.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::id::{RunId, ThreadId, UserId};
use crate::store::{AuditEntry, Pending};

/// How long history is kept. `None` keeps it forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryRetention {
    /// Threads with all they own, since their last use.
    pub threads: Option<SignedDuration>,
    /// Events, steps and sessions of a run, since its end. Its messages, costs and result stay.
    pub events: Option<SignedDuration>,
    /// Entries of the audit trail, since the seal that covers them.
    pub audit: Option<SignedDuration>,
}

/// A request to erase a user that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    pub erasure_id: Uuid,
    pub user_id: UserId,
    /// Data of the user that is older is erased.
    pub requested_at: Timestamp,
}

/// Operations that remove data. Each is a short write, or a sequence of short writes that can be repeated after a crash.
pub trait Lifecycle: Send + Sync {
    /// Threads that were not used since `before` and on which no run or handoff is open, those that were used longest ago first.
    fn expired_threads(&self, before: Timestamp, limit: u32) -> Pending<'_, Vec<ThreadId>>;

    /// Deletes a thread, unless it was used since `before` or a run or handoff is open on it. Returns whether it was deleted.
    fn delete_expired_thread(&self, thread: ThreadId, before: Timestamp) -> Pending<'_, bool>;

    /// Removes the rest of long threads whose deletion was interrupted.
    fn finish_deletions(&self) -> Pending<'_, ()>;

    /// Removes events, steps and sessions of runs that ended before. Examines up to `limit` runs after `after`, or after those that an
    /// earlier sweep has done. Returns the last one, to continue after it; `None` when there are no more.
    fn delete_events(
        &self,
        before: Timestamp,
        after: Option<RunId>,
        limit: u32,
    ) -> Pending<'_, Option<RunId>>;

    /// Verifies the entries of the audit trail that seals before `before` cover, and returns the number of the last such seal. `None` if
    /// there is nothing to remove. Fails with `Corrupt` if the trail was changed: nothing of it may be removed then.
    fn expired_audit(&self, before: Timestamp) -> Pending<'_, Option<u64>>;

    /// Removes a batch of the oldest entries, up to this seal at most, with a signed record of what was removed and an entry in the
    /// trail. Returns whether there are more.
    fn truncate_audit(&self, before: Timestamp, seal: u64) -> Pending<'_, bool>;

    /// Requests the erasure of a user, with this entry in the audit trail. Removes their API keys and idempotency records. Returns the
    /// open request if there is one.
    fn begin_erasure(&self, user: &UserId, entry: AuditEntry) -> Pending<'_, Erasure>;

    /// Erasures that are not complete, oldest first.
    fn open_erasures(&self) -> Pending<'_, Vec<Erasure>>;

    /// Completes an erasure after the user's threads were deleted: removes what the user left elsewhere, and replaces their id in the
    /// sums of costs and in the audit trail. Fails with `Conflict` if there are threads to delete.
    fn finish_erasure(&self, erasure: Uuid) -> Pending<'_, ()>;

    /// Records how many bytes the files in the workspace of a thread have. Without the thread it has no effect.
    fn set_file_bytes(&self, thread: ThreadId, bytes: u64) -> Pending<'_, ()>;

    /// Bytes of messages, artifacts, spooled outputs and files of workspaces, of one user or of the tenant.
    fn stored_bytes(&self, user: Option<&UserId>) -> Pending<'_, u64>;
}
