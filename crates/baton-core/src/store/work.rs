//! Who works on a thread, and what that work writes.
//!
//! A thread is claimed as a whole, so one run at a time is all there can be. Each claim has a higher epoch than the one before,
//! and every write names its claim: whoever lost it, to a crash or to a pause that was too long, cannot write any more.

use std::sync::Arc;
use std::time::Duration;

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
use crate::store::run::{Cancel, End, RunRecord, RunStatus};

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

/// What a heartbeat learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Somebody wants the run to end.
    pub cancel: Option<Cancel>,
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

/// What processes that work on runs do.
pub trait Work: Send + Sync {
    /// Takes the thread's next run: the one whose process is gone, or the first that is queued. `None` when there is none or
    /// somebody else is at it.
    fn claim(&self, thread: ThreadId, owner: &Owner, lease: Duration) -> Pending<'_, Option<Claimed>>;

    /// Says that the owner is still there. [`super::StoreError::Fenced`] when it was taken for dead.
    fn heartbeat(&self, claim: &Claim, lease: Duration) -> Pending<'_, Beat>;

    /// Keeps what a run did. Returns the number of the first event; the others follow without a gap.
    fn append(&self, claim: &Claim, append: Arc<Append>) -> Pending<'_, u64>;
}
