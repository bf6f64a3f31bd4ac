//! The traits for durable data: threads, runs, steps, costs and the audit trail.
//!
//! [`Store::tenant`] is the only access to data. The value it returns is limited to one tenant; another tenant's thread gives
//! the same error as one that does not exist.
//!
//! One module per noun: [`thread`], [`run`], [`work`] (claims, steps and everything a run writes), [`handoff`], [`approval`],
//! [`notification`], [`artifact`], [`audit`], [`pattern`], [`key`], [`cache`], [`usage`], [`feedback`], [`embedding`], [`output`] (long tool output),
//! [`budget`] (budgets that runs share), [`push`] (push notifications of A2A tasks), [`skill`] and [`created_agent`] (skills and
//! agents that people created), [`lifecycle`] (retention and erasure).

use std::fmt;
use std::future::Future;
use std::ops::AddAssign;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::id::{HandoffId, RunId, TenantId, ThreadId};

pub mod approval;
pub mod artifact;
pub mod audit;
pub mod budget;
pub mod cache;
pub mod created_agent;
pub mod embedding;
pub mod feedback;
pub mod handoff;
pub mod key;
pub mod lifecycle;
pub mod notification;
pub mod output;
pub mod page;
pub mod pattern;
pub mod push;
pub mod run;
pub mod skill;
pub mod step_data;
pub mod thread;
pub mod usage;
pub mod work;

pub use approval::{
    Approval, ApprovalFilter, ApprovalKind, ApprovalOutcome, ApprovalPreview, ApprovalQuery, ApprovalRequest,
    ApprovalStatus, Approvals, Decision, PreviewField, RememberedDecision, Revocation, WORKFLOW_TOOL,
};
pub use artifact::{Artifact, Artifacts, NewArtifact};
pub use audit::{Audit, AuditEntry, AuditQuery, AuditScope, AuditTruncation, AuditVerdict, Audited, Seal};
pub use budget::{BudgetAccounts, BudgetState, Reservation, ReservationOutcome, Reserved};
pub use cache::Cache;
pub use created_agent::{
    AgentDraft, AgentSaving, AgentSnapshot, AgentsVersion, CreatedAgents, NewAgent, StoredAgent,
};
pub use embedding::{Embedding, Embeddings, SectionHash};
pub use feedback::{Feedback, Feedbacks, Rating};
pub use handoff::{
    Activation, HandoffEnd, HandoffNotes, HandoffOrigin, HandoffSession, HandoffState, Handoffs, LastTopic,
    MAX_LEFT_HANDOFFS, NewHandoff, NotifiedParty, SecondRequest, SecondRequestState, WorkflowState,
};
pub use key::{ApiKey, Keys};
pub use lifecycle::{Erasure, HistoryRetention, Lifecycle};
pub use notification::{NextNotification, Notifications, TakenNotification};
pub use output::{OutputHandle, OutputSlice, Outputs, SpooledOutput};
pub use page::{Order, Page, PageRequest};
pub use pattern::{GENERAL_CLASS, Hop, HopKind, HopOutcome, Pattern, Patterns, short_reason};
pub use push::{PushConfig, PushConfigs, PushKey, PushOutcome, PushTarget, TakenPush};
pub use run::{
    AcceptedRun, Cancel, NewRun, OnBusy, RunEndData, RunLimits, RunQuery, RunRecord, RunStatus, Runs,
    SessionRecord,
};
pub use skill::{CreatedSkills, NewSkill, SkillSaving, SkillSummary, StoredSkill};
pub use step_data::StepData;
pub use thread::{MessageQuery, Thread, ThreadMessage, Threads};
pub use usage::{UsageBy, UsageLine, UsageQuery, Usages};
pub use work::{
    Append, Appended, Claim, Claimed, HandoffChange, NewEvent, Owner, RunStart, StartedRun, Step, StepKind,
    StepState, Work,
};

/// The future of a store call.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Result of [`Store::beat`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRenewal {
    /// Active runs of the process that are to be cancelled, again with each renewal until they have ended.
    pub cancelled: Vec<(TenantId, RunId, Cancel)>,
    /// Whether the lease had expired while another process had one, which may have claimed the runs of this process.
    pub was_claimable: bool,
}

/// A store. A write is durable once its future resolves.
pub trait Store: Send + Sync + fmt::Debug {
    /// Access to the data of one tenant.
    fn tenant(&self, tenant: &TenantId) -> Arc<dyn TenantStore>;

    /// Tenants that have written anything, for maintenance such as sweeping.
    fn tenants(&self) -> Pending<'_, Vec<TenantId>>;

    /// The version of the created agents of every tenant that has some or had some, to find out which have changed.
    fn agent_versions(&self) -> Pending<'_, Vec<AgentsVersion>>;

    /// Renews or creates the lease of a process. All claims of the process are valid as long as this lease.
    fn beat(&self, owner: &Owner, lease: Duration) -> Pending<'_, LeaseRenewal>;

    /// Pending approvals of any tenant that have expired, at most `limit`, for [`Approvals::expire`].
    fn overdue_approvals(&self, limit: u32) -> Pending<'_, Vec<(TenantId, Uuid)>>;

    /// Open approvals of any tenant whose notification is due, those that wait longest first.
    fn due_notifications(&self, limit: u32) -> Pending<'_, Vec<(TenantId, Uuid)>>;

    /// Push notification configurations of any tenant that are due, those that wait longest first.
    fn due_push(&self, limit: u32) -> Pending<'_, Vec<(TenantId, PushKey)>>;

    /// Threads of any tenant with a claimable run: queued in a thread without a claim, or claimed by an owner without a lease.
    /// With more than `limit` threads the selection is random, so that none is starved.
    fn due(&self, limit: u32) -> Pending<'_, Vec<(TenantId, ThreadId)>>;

    /// All processes that have a lease or had one, except those released or without a lease for 24 h.
    fn owners(&self) -> Pending<'_, Vec<Owner>>;

    /// Ends the lease of a process that is known to be gone, which orphans its claims immediately. Returns the number of these
    /// claims.
    fn release(&self, owner: &Owner) -> Pending<'_, u64>;

    /// Finds a key by its hash. Revoked keys are not found.
    fn key(&self, hash: &str) -> Pending<'_, Option<(TenantId, ApiKey)>>;

    /// Seals the audit trail of every tenant with entries since its last seal. Returns the number of seals written.
    ///
    /// Call about once a second; it costs nothing if this process has written nothing since. The first call also seals entries
    /// that another process left unsealed.
    fn seal_audit(&self) -> Pending<'_, u64>;

    /// Takes or renews a duty that one process of the installation has at a time, such as sweeping. Returns whether this process has it
    /// now, for the time of the lease.
    fn take_duty(&self, duty: &'static str, owner: &Owner, lease: Duration) -> Pending<'_, bool>;

    /// Writes erased data out of the database's own files where Baton can do that: SQLite's log is merged into its file, in which
    /// deleted content is overwritten.
    fn purge_files(&self) -> Pending<'_, ()>;

    /// One trivial query, to find out whether the store answers.
    fn ping(&self) -> Pending<'_, ()>;

    /// Load counters.
    fn load(&self) -> StoreLoad;

    /// Seals the audit trail, completes the queued writes and closes. Later calls fail with [`StoreError::Unavailable`].
    fn close(&self) -> Pending<'_, ()>;
}

/// Counters since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreLoad {
    /// Transactions that wrote something.
    pub batches: u64,
    /// Writes in these transactions.
    pub writes: u64,
    /// Writes currently queued.
    pub waiting: u64,
    /// Statements sent to the database, including reads and transaction control.
    pub statements: u64,
}

/// The data of one tenant.
pub trait TenantStore:
    Threads
    + Runs
    + Work
    + Handoffs
    + Approvals
    + Notifications
    + PushConfigs
    + Artifacts
    + Audit
    + Patterns
    + Keys
    + Cache
    + Usages
    + Feedbacks
    + Outputs
    + BudgetAccounts
    + CreatedSkills
    + CreatedAgents
    + Lifecycle
    + Embeddings
    + fmt::Debug
{
    fn tenant(&self) -> &TenantId;

    /// The same tenant. Every write through the returned value that succeeds and changes something also records `entry`, in its
    /// transaction: both are stored, or neither.
    fn audited(&self, entry: AuditEntry) -> Arc<dyn TenantStore>;

    /// Deletes expired data: workflow state, idempotency records, cached results, and spooled output of finished runs. History is
    /// kept.
    fn sweep(&self, retention: Retention) -> Pending<'_, Swept>;
}

/// Retention of data that is not history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// For the workflow state of a handoff that is not open.
    pub workflow_state: SignedDuration,
}

/// Number of rows that a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub workflow_states: u64,
    pub idempotency_records: u64,
    pub cached_results: u64,
    /// Spooled outputs of finished runs.
    pub spooled_outputs: u64,
}

impl AddAssign for Swept {
    fn add_assign(&mut self, other: Self) {
        self.workflow_states += other.workflow_states;
        self.idempotency_records += other.idempotency_records;
        self.cached_results += other.cached_results;
        self.spooled_outputs += other.spooled_outputs;
    }
}

/// Why a store call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Unknown, or owned by another tenant or user. Callers cannot distinguish these cases.
    #[error("thread not found for tenant: check the id, or start a new conversation")]
    ThreadNotFound,
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The caller chose [`OnBusy::Reject`].
    #[error(
        "the thread is busy with run {0}: wait for it, or send the message with `on_busy` enqueue or interrupt"
    )]
    ThreadBusy(RunId),
    /// The tenant's limit of open runs is reached.
    #[error("{0} runs are active, which is the limit: wait for one to end")]
    TooManyRuns(u32),
    /// The user's limit of open runs is reached.
    #[error("you have {0} active runs, which is the limit of a user: wait for one to end")]
    TooManyRunsOfUser(u32),
    #[error("an active handoff already exists for this thread: {0}")]
    HandoffActive(HandoffId),
    /// Exactly one question is open on the thread, and the message may be its answer.
    #[error("a question is open on this thread: answer it, or name the agent that the message is for")]
    QuestionOpen,
    /// The agent's limit of open handoffs is reached.
    #[error("{0} conversations are with this agent, which is its limit: try again later")]
    TooManyHandoffs(u32),
    /// The stored state differs from what the caller expects. Read it again.
    #[error("{0} was changed by someone else in the meantime")]
    Conflict(&'static str),
    /// The handoff has another version, or cannot change from its state to the new one.
    #[error("the handoff was changed by someone else in the meantime")]
    HandoffChanged,
    #[error("the idempotency key was used before with another request")]
    IdempotencyConflict,
    /// The request is invalid, not the store.
    #[error("the cursor is not valid: use `next_cursor` of the page before, or none")]
    InvalidCursor,
    /// The claim is no longer valid: another process owns the thread.
    #[error("another process has taken over this thread")]
    Fenced,
    /// Transient: a locked file, a restarting database.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The commit was sent, and its reply is lost: the change is made completely or not at all. The same call can be repeated
    /// where it carries its own id (messages, appends, uploads); otherwise read first.
    #[error("whether the change was made is not known: {0}")]
    OutcomeUnknown(String),
    /// The limit of stored bytes of the user or the tenant.
    #[error("the {whose} has reached the limit of {limit} stored bytes: delete threads, then try again")]
    StorageFull { whose: &'static str, limit: u64 },
    #[error("there is no space left to store anything: {0}")]
    Full(String),
    /// Requires manual repair.
    #[error("the store is damaged or not a Baton store: {0}")]
    Corrupt(String),
    /// A row that this version cannot read: a newer version wrote it, or it was edited.
    #[error("a stored row cannot be read: {0}")]
    Unreadable(String),
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::OutcomeUnknown(_) | Self::Full(_))
    }

    /// Whether a handoff prevents the change.
    pub fn is_about_handoff(&self) -> bool {
        matches!(self, Self::HandoffChanged | Self::HandoffActive(_) | Self::TooManyHandoffs(_))
    }

    /// Stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ThreadNotFound => "thread_not_found",
            Self::NotFound(_) => "not_found",
            Self::ThreadBusy(_) => "thread_busy",
            Self::TooManyRuns(_) | Self::TooManyRunsOfUser(_) => "too_many_runs",
            Self::HandoffActive(_) => "handoff_active",
            Self::QuestionOpen => "question_open",
            Self::TooManyHandoffs(_) => "handoff_rejected",
            Self::Conflict(_) | Self::HandoffChanged => "conflict",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::InvalidCursor => "invalid_request",
            Self::Fenced => "superseded",
            Self::Unavailable(_) => "store_unavailable",
            Self::OutcomeUnknown(_) => "outcome_unknown",
            Self::StorageFull { .. } => "storage_full",
            Self::Full(_) => "store_full",
            Self::Corrupt(_) | Self::Unreadable(_) => "store_corrupt",
            Self::Failed(_) => "store_failed",
        }
    }
}

/// A time in microseconds, the precision of stores.
pub fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}
