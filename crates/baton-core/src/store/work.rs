//! Who works on a thread, and what that work writes.
//!
//! A thread is claimed as a whole, so one run at a time is all there can be. Each claim has a higher epoch than the one before,
//! and every write names its claim: whoever lost it, to a crash or to a pause that was too long, cannot write any more.
//!
//! A claim has no lease of its own: it lasts as long as the lease of its process ([`super::Store::beat`]). A claim whose owner has
//! no lease is orphaned, and the next process that asks for the thread gets its run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices;
use crate::event::EventKind;
use crate::id::{AgentName, MessageId, RunId, SessionId, ThreadId};
use crate::ledger::LedgerRow;
use crate::message::{Message, Visibility};
use crate::store::Pending;
use crate::store::audit::AuditEntry;
use crate::store::handoff::HandoffSession;
use crate::store::pattern::Hop;
use crate::store::run::{Accepted, End, NewRun, RunRecord, RunStatus};
use crate::store::thread::ThreadMessage;

/// A process that works on runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner(pub Arc<str>);

/// The right to write for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub owner: Owner,
    /// Higher with each claim of the thread.
    pub epoch: u64,
}

/// A run that is now ours, with all it did before.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub claim: Claim,
    pub run: RunRecord,
    /// Those of earlier attempts, finished or not.
    pub steps: Vec<Step>,
    /// What earlier attempts spent.
    pub rows: Vec<LedgerRow>,
    /// The thread's handoff that changed last, open or not.
    pub handoff: Option<HandoffSession>,
}

choices! {
    pub enum StepKind {
        /// One agent's loop, from its task to its answer.
        Session = "session",
        /// One model call.
        Turn = "turn",
        Tool = "tool",
        /// A text that was not streamed is shown.
        Say = "say",
        /// A round of a team has ended.
        Round = "round",
        /// Nothing happened here, but it has to be known later: what others brought, what was refused.
        Note = "note",
    }
}

choices! {
    pub enum StepState {
        /// Begun; whether it had an effect is not known.
        Started = "started",
        Finished = "finished",
    }
}

/// One recorded effect inside a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// `assistant/advisor:legal/turn:2/tool:1`: the same after a crash.
    pub path: String,
    pub session_id: SessionId,
    pub kind: StepKind,
    pub state: StepState,
    /// What was about to happen, while it is started; what came of it, once it is finished.
    pub data: Value,
    pub at: Timestamp,
}

impl Step {
    /// The model call that was under way here, if one was and nobody has settled it.
    pub fn call_under_way(&self) -> Option<CallUnderWay> {
        let is_open = self.kind == StepKind::Turn && self.state == StepState::Started;
        if is_open { serde_json::from_value(self.data.clone()).ok() } else { None }
    }
}

/// What is known of a model call that is under way: enough to account for it, and to take back its text, if the process dies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallUnderWay {
    pub message_id: MessageId,
    pub visibility: Visibility,
    /// As it stands when the call is cut off at once.
    pub row: LedgerRow,
}

/// An event that has no number yet.
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

/// What a run has done, to be kept as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Append {
    /// Counts the appends of one claim from 1. A number that was there already is not written again, so an append whose outcome
    /// is unknown can be repeated.
    pub number: u64,
    /// A later state of the same path replaces an earlier one; a finished step is never replaced.
    pub steps: Vec<Step>,
    pub events: Vec<NewEvent>,
    pub messages: Vec<Message>,
    pub rows: Vec<LedgerRow>,
    pub sessions: Vec<SessionChange>,
    pub audit: Vec<AuditEntry>,
    /// Passes of the baton that have ended. One that is known already is not written again.
    pub hops: Vec<Hop>,
    /// At most one for each handoff.
    pub handoffs: Vec<HandoffChange>,
    /// Whose run it is, where that was decided only when it began.
    pub agent: Option<AgentName>,
    /// The agent that answers next.
    pub holder: Option<AgentName>,
    /// The run ends or begins to wait, and the claim ends with it.
    pub end: Option<RunEnd>,
    /// With [`Append::end`]: the same write claims the thread's next queued run, if there is one. Without `end` it has no effect.
    pub claim_next: bool,
}

/// A handoff as a run leaves it, workflow included.
#[derive(Debug, Clone, PartialEq)]
pub struct HandoffChange {
    /// Its version is the one that the change was made on; 0 opens the handoff. With any other version than the stored one the
    /// whole append is refused with [`super::StoreError::HandoffChanged`].
    pub session: HandoffSession,
    /// Where it opens: refused when the target has this many open in the tenant.
    pub max_open: Option<u32>,
}

/// The last write of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    pub status: RunStatus,
    pub end: End,
}

/// What an append resulted in.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// The number of its first event; the others follow without a gap.
    pub first_seq: u64,
    /// How many runs are queued behind this one; behind `next`, if there is one.
    pub queued: u64,
    /// The run that was claimed by [`Append::claim_next`]. A repeated append gives it again, as long as nothing was written for
    /// it.
    pub next: Option<Box<Claimed>>,
}

/// How a process begins a run in the write that accepts it.
#[derive(Debug, Clone)]
pub struct RunStart {
    pub owner: Owner,
    /// The first append. Written only if the thread never had a handoff: then nothing else decides how the run begins.
    pub append: Arc<Append>,
}

/// A run that was claimed in the write that accepted it.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    pub claimed: Claimed,
    /// The last [`Started::RECENT`] messages that a person sees, oldest first. The run's own is the last of them if the person
    /// sees it.
    pub recent: Vec<ThreadMessage>,
    /// What became of [`RunStart::append`], if it was written.
    pub appended: Option<Appended>,
}

impl Started {
    /// How many messages it has at most.
    pub const RECENT: u32 = 100;
}

/// What processes that work on runs do. Every owner has a lease ([`super::Store::beat`]) before it claims anything: without one
/// its claims are orphaned at once.
pub trait Work: Send + Sync {
    /// Accepts a message like [`super::Runs::accept`] and, if nothing else is queued or active in its thread, claims its run in
    /// the same write. Otherwise the run is queued and the second value is `None`.
    ///
    /// Can be repeated with the same run when its outcome is unknown: a run that was claimed for this owner, and for which
    /// nothing but [`RunStart::append`] was written, is started once.
    fn start(&self, run: NewRun, start: RunStart) -> Pending<'_, (Accepted, Option<Started>)>;

    /// Takes the thread's next run: the one whose owner has no lease, or the first that is queued. `None` when there is none or
    /// an owner with a lease has the thread.
    fn claim(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>>;

    /// The same after a claim whose outcome is unknown: also takes a run that this owner has claimed and written nothing for.
    fn claim_again(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>>;

    /// Gives a claim back without ending its run: the next process that asks for the thread takes the run over. Does nothing
    /// if the claim is not valid any more.
    fn abandon(&self, claim: &Claim) -> Pending<'_, ()>;

    /// Keeps what a run did. An append that ends the run ends its claim; with [`Append::claim_next`] it also takes the next
    /// queued run, so that a thread with nothing queued is left without a claim and is never asked in vain.
    fn append(&self, claim: &Claim, append: Arc<Append>) -> Pending<'_, Appended>;
}
