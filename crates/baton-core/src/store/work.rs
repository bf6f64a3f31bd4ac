//! Claims: which process executes a run, and what it writes.
//!
//! A thread is claimed as a whole, so only one of its runs executes at a time. Each claim increments the thread's epoch, and
//! every write names its claim: a process that lost its claim, by a crash or a long pause, is fenced.
//!
//! A claim is valid as long as the lease of its process ([`super::Store::beat`]). A claim whose owner has no lease is orphaned,
//! and the next process that claims the thread takes over its run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::choices;
use crate::event::EventKind;
use crate::id::{AgentName, MessageId, RunId, SessionId, ThreadId};
use crate::ledger::LedgerRow;
use crate::message::{Message, Visibility};
use crate::store::Pending;
use crate::store::approval::{ApprovalOutcome, ApprovalRequest};
use crate::store::artifact::NewArtifact;
use crate::store::audit::AuditEntry;
use crate::store::handoff::HandoffSession;
use crate::store::output::SpooledOutput;
use crate::store::pattern::Hop;
use crate::store::run::{AcceptedRun, NewRun, RunEndData, RunRecord, RunStatus};
use crate::store::step_data::StepData;
use crate::store::thread::ThreadMessage;

/// A process that executes runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner(pub Arc<str>);

/// The right to write for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub owner: Owner,
    /// Incremented by each claim of the thread.
    pub epoch: u64,
}

/// A claimed run with the records of earlier attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub claim: Claim,
    pub run: RunRecord,
    /// Steps of earlier attempts, finished or not.
    pub steps: Vec<Step>,
    /// Ledger rows of earlier attempts.
    pub rows: Vec<LedgerRow>,
    /// The thread's most recent handoff, open or not.
    pub handoff: Option<HandoffSession>,
}

choices! {
    pub enum StepKind {
        /// One agent loop, from its task to its answer.
        Session = "session",
        /// One model call.
        Turn = "turn",
        Tool = "tool",
        /// A text that was not streamed is published.
        Say = "say",
        /// A round of a team has ended.
        Round = "round",
        /// A wait for a person's decision.
        Wait = "wait",
        /// A record without an effect, needed after a crash: results of others, refusals.
        Note = "note",
    }
}

choices! {
    pub enum StepState {
        /// Started; whether it had an effect is unknown.
        Started = "started",
        Finished = "finished",
    }
}

/// One recorded effect inside a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// `assistant/advisor:legal/turn:2/tool:1`. A resumed run uses the same paths.
    pub path: String,
    pub session_id: SessionId,
    pub kind: StepKind,
    pub state: StepState,
    /// The input of a started step; the result of a finished one.
    pub data: StepData,
    pub at: Timestamp,
}

impl Step {
    /// The model call of a started turn, which is still unbilled.
    pub fn interrupted_call(&self) -> Option<InterruptedCall> {
        let is_open = self.kind == StepKind::Turn && self.state == StepState::Started;
        if is_open { self.data.read().ok() } else { None }
    }
}

/// A model call in progress: enough to bill it, and to retract its text, if the process dies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptedCall {
    pub message_id: MessageId,
    pub visibility: Visibility,
    /// The ledger row if the call is cut off immediately.
    pub row: LedgerRow,
}

/// An event without a number.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    pub at: Timestamp,
    pub agent: AgentName,
    pub path: Arc<str>,
    pub visibility: Visibility,
    pub kind: EventKind,
}

/// A change of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionChange {
    pub session_id: SessionId,
    pub agent: AgentName,
    pub path: String,
    pub status: RunStatus,
    pub at: Timestamp,
}

/// Results of a run, written atomically.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Append {
    /// Counts the appends of one claim from 1. A number that was already written is skipped, so an append with an unknown
    /// outcome can be repeated.
    pub number: u64,
    /// A later state of a path replaces an earlier one; a finished step is never replaced.
    pub steps: Vec<Step>,
    pub events: Vec<NewEvent>,
    pub messages: Vec<Message>,
    pub rows: Vec<LedgerRow>,
    /// Long tool output referred to by the steps.
    pub outputs: Vec<SpooledOutput>,
    /// Files referred to by the steps, of the run's thread.
    pub artifacts: Vec<NewArtifact>,
    pub sessions: Vec<SessionChange>,
    pub audit: Vec<AuditEntry>,
    /// Completed hops. Known hops are skipped.
    pub hops: Vec<Hop>,
    /// New approvals. Known ones are skipped.
    pub approvals: Vec<ApprovalRequest>,
    /// Approvals that the run itself closes: as `cancelled` or `invalidated`, or a workflow's question as `answered` by the run's
    /// message. Decided ones are skipped.
    pub closed_approvals: Vec<(Uuid, ApprovalOutcome)>,
    /// At most one per handoff.
    pub handoffs: Vec<HandoffChange>,
    /// The agent of the run, if that was decided after its start.
    pub agent: Option<AgentName>,
    /// The agent that answers next.
    pub holder: Option<AgentName>,
    /// With an end of [`RunStatus::Waiting`]: the approvals that the run waits for. If one of them is already decided or expired,
    /// the run is queued instead.
    pub waits_for: Vec<Uuid>,
    /// Ends or parks the run, and releases the claim.
    pub end: Option<RunEnd>,
    /// With [`Append::end`]: the same write claims the thread's next queued run, if any. No effect without `end`.
    pub claim_next: bool,
    /// Charges the rows to the shared budgets in which their calls are reserved. An end removes the run's other reservations.
    pub settles_budgets: bool,
}

/// A changed handoff, including its workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct HandoffChange {
    /// The version is the one that the change is based on; 0 creates the handoff. If it differs from the stored one, the whole
    /// append fails with [`super::StoreError::HandoffChanged`].
    pub session: HandoffSession,
    /// For a new handoff: refuses if the target already has this many open in the tenant.
    pub max_open: Option<u32>,
}

/// Status and result of a run that ends or waits.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    pub status: RunStatus,
    pub end: RunEndData,
}

/// Result of an append.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// Number of the first event; the others follow without gaps.
    pub first_seq: u64,
    /// Number of runs queued behind this one, or behind `next` if it is set.
    pub queued: u64,
    /// The run claimed by [`Append::claim_next`]. A repeated append returns it again, as long as nothing was written for it.
    pub next: Option<Box<Claimed>>,
}

/// Parameters for starting a run in the write that accepts it.
#[derive(Debug, Clone)]
pub struct RunStart {
    pub owner: Owner,
    /// The first append. Written only if the thread has never had a handoff, because a handoff could change how the run starts.
    pub append: Arc<Append>,
}

/// A run that was claimed in the write that accepted it.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedRun {
    pub claimed: Claimed,
    /// The last [`StartedRun::RECENT`] messages visible to the user, oldest first. The run's own message is the last one, if it
    /// is visible.
    pub recent: Vec<ThreadMessage>,
    /// Result of [`RunStart::append`], if it was written.
    pub appended: Option<Appended>,
}

impl StartedRun {
    /// Maximum number of messages.
    pub const RECENT: u32 = 100;
}

/// Operations of processes that execute runs. An owner needs a lease ([`super::Store::beat`]) before it claims anything:
/// without one its claims are orphaned immediately.
pub trait Work: Send + Sync {
    /// Accepts a message like [`super::Runs::accept`] and, if its thread is idle, claims its run in the same write. Otherwise
    /// the run is queued and the second value is `None`.
    ///
    /// Can be repeated with the same run if the outcome is unknown: a run claimed for this owner, for which nothing but
    /// [`RunStart::append`] was written, is started once.
    fn start(&self, run: NewRun, start: RunStart) -> Pending<'_, (AcceptedRun, Option<StartedRun>)>;

    /// Claims the thread's next run: an orphaned one, or else the first queued one. `None` if there is none or an owner with a
    /// lease has the thread.
    fn claim(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>>;

    /// Like [`Work::claim`], after a claim with an unknown outcome: also returns a run that this owner has claimed without
    /// writing anything.
    fn claim_again(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>>;

    /// Releases a claim without ending its run, so that the next process takes it over. No effect if the claim is no longer
    /// valid.
    fn abandon(&self, claim: &Claim) -> Pending<'_, ()>;

    /// Writes results of a run. An append that ends the run releases its claim; with [`Append::claim_next`] it also claims the
    /// next queued run, if there is one.
    fn append(&self, claim: &Claim, append: Arc<Append>) -> Pending<'_, Appended>;
}
