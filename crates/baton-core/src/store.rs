//! The seam to what survives: threads, runs, steps, money, and who did what.
//!
//! [`Store::tenant`] is the only way to data. What it returns answers for one tenant and knows no other; a thread of somebody
//! else is the same error as one that does not exist.
//!
//! The nouns, each in a file with what can be done to it: [`thread`], [`run`], [`work`] (claims, steps and everything that a run
//! writes), [`handoff`], [`approval`], [`artifact`], [`audit`], [`pattern`], [`key`], [`cache`], [`usage`], [`feedback`].

use std::fmt;
use std::future::Future;
use std::ops::AddAssign;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::id::{HandoffId, RunId, TenantId, ThreadId};

pub mod approval;
pub mod artifact;
pub mod audit;
pub mod cache;
pub mod feedback;
pub mod handoff;
pub mod key;
pub mod page;
pub mod pattern;
pub mod run;
pub mod thread;
pub mod usage;
pub mod work;

pub use approval::{Approval, ApprovalFilter, ApprovalQuery, ApprovalStatus, Approvals};
pub use artifact::{Artifact, Artifacts};
pub use audit::{Audit, AuditEntry, AuditQuery, Audited, Seal, Verdict};
pub use cache::Cache;
pub use feedback::{Feedback, Feedbacks, Rating};
pub use handoff::{
    Activation, HandoffEnd, HandoffNotes, HandoffSession, HandoffState, Handoffs, NewHandoff, Told, Topic,
    WorkflowState,
};
pub use key::{ApiKey, Keys};
pub use page::{Order, Page, PageRequest};
pub use pattern::{Hop, HopKind, Pattern, Patterns};
pub use run::{Accepted, Cancel, End, NewRun, OnBusy, RunQuery, RunRecord, RunStatus, Runs, SessionRecord};
pub use thread::{MessageQuery, Thread, ThreadMessage, Threads};
pub use usage::{UsageBy, UsageLine, UsageQuery, Usages};
pub use work::{
    Append, Appended, Claim, Claimed, HandoffChange, NewEvent, Owner, RunStart, Started, Step, StepKind,
    StepState, Work,
};

/// What a call of the store comes to, later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Everything that is kept. A write is durable when its future is done.
pub trait Store: Send + Sync + fmt::Debug {
    /// The only way to data.
    fn tenant(&self, tenant: &TenantId) -> Arc<dyn TenantStore>;

    /// Tenants that have written anything, for work that concerns all of them, such as sweeping.
    fn tenants(&self) -> Pending<'_, Vec<TenantId>>;

    /// Renews the lease of a process, or begins it. All claims of the process last as long as this lease. Returns those of its
    /// active runs that are to end, each time until they have.
    fn beat(&self, owner: &Owner, lease: Duration) -> Pending<'_, Vec<(TenantId, RunId, Cancel)>>;

    /// Threads of any tenant with a run to take: queued in a thread without a claim, or claimed by an owner without a lease. If
    /// there are more than `limit`, which of them are returned differs from call to call, so none is left out forever.
    fn due(&self, limit: u32) -> Pending<'_, Vec<(TenantId, ThreadId)>>;

    /// Every process that has a lease or had one, except those that were released or have had none for a day.
    fn owners(&self) -> Pending<'_, Vec<Owner>>;

    /// Ends the lease of a process that is known to be gone: its claims are orphaned at once. Returns how many there are.
    fn release(&self, owner: &Owner) -> Pending<'_, u64>;

    /// Whose key this is, by its hash. Revoked keys are not found.
    fn key(&self, hash: &str) -> Pending<'_, Option<(TenantId, ApiKey)>>;

    /// Seals the audit trail of every tenant that has entries since its last seal, and returns how many seals were written.
    /// Meant to be called about once a second; costs nothing when this process has written nothing since. The first call also
    /// finds entries that another process left unsealed when it died.
    fn seal_audit(&self) -> Pending<'_, u64>;

    /// How busy it is.
    fn load(&self) -> Load;

    /// Seals the audit trail, writes what still waits and closes. Later calls fail with [`StoreError::Unavailable`].
    fn close(&self) -> Pending<'_, ()>;
}

/// Numbers since the store was opened, for whoever watches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Transactions that wrote something,
    pub batches: u64,
    /// and how many writes they held together.
    pub writes: u64,
    /// Writes that wait now.
    pub waiting: u64,
    /// Statements that were sent to the database, those that read and those that begin and end transactions included.
    pub statements: u64,
}

/// The data of one tenant.
pub trait TenantStore:
    Threads
    + Runs
    + Work
    + Handoffs
    + Approvals
    + Artifacts
    + Audit
    + Patterns
    + Keys
    + Cache
    + Usages
    + Feedbacks
    + fmt::Debug
{
    fn tenant(&self) -> &TenantId;

    /// Removes what has outlived its time: partial workflow state, idempotency records, cached results, approvals that nobody
    /// decided. History stays.
    fn sweep(&self, retention: Retention) -> Pending<'_, Swept>;
}

/// How long things are kept that are not history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Partial state of a workflow whose handoff is not active.
    pub workflow_state: SignedDuration,
}

/// How much a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub workflow_states: u64,
    pub idempotency_records: u64,
    pub cached_results: u64,
    /// Those that expired without a decision.
    pub approvals: u64,
}

impl AddAssign for Swept {
    fn add_assign(&mut self, other: Self) {
        self.workflow_states += other.workflow_states;
        self.idempotency_records += other.idempotency_records;
        self.cached_results += other.cached_results;
        self.approvals += other.approvals;
    }
}

/// Why the store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Unknown, or of another tenant or user: nobody can tell which.
    #[error("thread not found for tenant: check the id, or start a new conversation")]
    ThreadNotFound,
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The caller asked to be refused rather than to wait.
    #[error(
        "the thread is busy with run {0}: wait for it, or send the message with `on_busy` enqueue or interrupt"
    )]
    ThreadBusy(RunId),
    /// As many as the tenant may have are queued or at work.
    #[error("{0} runs are at work, which is as many as may be: wait for one to end")]
    TooManyRuns(u32),
    #[error("an active handoff already exists for this thread: {0}")]
    HandoffActive(HandoffId),
    /// As many as an agent may hold are open.
    #[error("{0} conversations are with this agent, which is as many as it takes: try again later")]
    TooManyHandoffs(u32),
    /// What should be changed is not as the caller believes; read it again.
    #[error("{0} was changed by someone else in the meantime")]
    Conflict(&'static str),
    /// The handoff has another version than the change was made on, or cannot go from its state to the new one.
    #[error("the handoff was changed by someone else in the meantime")]
    HandoffChanged,
    #[error("the idempotency key was used before with another request")]
    IdempotencyConflict,
    /// The caller's mistake, not the store's.
    #[error("the cursor is not valid: use `next_cursor` of the page before, or none")]
    InvalidCursor,
    /// The claim is not valid any more: another process works on the thread.
    #[error("another process has taken over this thread")]
    Fenced,
    /// It may work in a moment: a locked file, a database that restarts.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    #[error("there is no space left to store anything: {0}")]
    Full(String),
    /// Nothing but a person can mend it.
    #[error("the store is damaged or not a Baton store: {0}")]
    Corrupt(String),
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing it.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Full(_))
    }

    /// Whether a handoff is in the way of a change.
    pub fn is_about_handoff(&self) -> bool {
        matches!(self, Self::HandoffChanged | Self::HandoffActive(_) | Self::TooManyHandoffs(_))
    }

    /// Stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ThreadNotFound => "thread_not_found",
            Self::NotFound(_) => "not_found",
            Self::ThreadBusy(_) => "thread_busy",
            Self::TooManyRuns(_) => "too_many_runs",
            Self::HandoffActive(_) => "handoff_active",
            Self::TooManyHandoffs(_) => "handoff_rejected",
            Self::Conflict(_) | Self::HandoffChanged => "conflict",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::InvalidCursor => "invalid_request",
            Self::Fenced => "superseded",
            Self::Unavailable(_) => "store_unavailable",
            Self::Full(_) => "store_full",
            Self::Corrupt(_) => "store_corrupt",
            Self::Failed(_) => "store_failed",
        }
    }
}

/// A moment as stores keep it: microseconds, because PostgreSQL has no more.
pub fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}
