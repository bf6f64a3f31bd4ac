//! Runs: the work for one incoming message, from its acceptance to its end.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices;
use crate::event::{Dissent, Event, Source};
use crate::id::{AgentName, MessageId, RunId, SessionId, ThreadId, UserId};
use crate::ledger::LedgerRow;
use crate::message::Message;
use crate::store::work::Step;
use crate::store::{Page, PageRequest, Pending};
use crate::usage::Usage;

choices! {
    pub enum RunStatus {
        Queued = "queued",
        Running = "running",
        /// For a human or a remote agent.
        Waiting = "waiting",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        /// Its process died and it could not go on.
        Interrupted = "interrupted",
    }
}

impl RunStatus {
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted)
    }
}

choices! {
    /// What happens to a message that comes while its thread is at work.
    pub enum OnBusy {
        /// Its run waits for its turn.
        Enqueue = "enqueue",
        /// It is refused.
        Reject = "reject",
        /// The run that is under way is cancelled; this one comes when it has ended.
        Interrupt = "interrupt",
    }
}

choices! {
    /// How a run is to be ended from outside.
    pub enum Cancel {
        /// With one closing turn.
        Stop = "stop",
        /// At once.
        Abort = "abort",
    }
}

/// A message to be worked on. Its thread begins with it if there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    pub run_id: RunId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    /// Who is to answer.
    pub agent: AgentName,
    /// What was said; becomes part of the thread's history with the same write.
    pub message: Message,
    /// What the engine needs to begin, or to begin again after a crash.
    pub request: Value,
    pub on_busy: OnBusy,
    pub idempotency: Option<Idempotency>,
    /// Refused when the tenant has this many runs queued, running or waiting.
    pub max_active: Option<u32>,
    /// Refused with [`StoreError::HandoffActive`](super::StoreError::HandoffActive) while a handoff is open on the thread.
    pub unless_held: bool,
}

/// A promise that the same request is not done twice within its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// As the caller chose it.
    pub key: String,
    /// Of the whole request: the same key with another request is a mistake.
    pub fingerprint: String,
    pub expires_at: Timestamp,
}

/// What became of a [`NewRun`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The first run with this idempotency key, which may be an older one.
    pub run_id: RunId,
    /// The stored message that started the run.
    pub message_id: MessageId,
    pub is_new: bool,
    /// The run that has to end first.
    pub behind: Option<RunId>,
}

/// A run as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub run_id: RunId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    pub agent: AgentName,
    pub status: RunStatus,
    pub created_at: Timestamp,
    /// When it was claimed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The sum of its ledger rows so far.
    pub usage: Usage,
    /// How often it was claimed: more than once after a crash.
    pub attempts: u32,
    /// The number of its message in the thread: what was said before it is its history.
    pub message_number: u64,
    #[serde(skip)]
    pub request: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct End {
    /// The answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The same as JSON, when a schema was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The limit that made it end early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Who gave the answer, which may be another agent than the one that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AgentName>,
    /// Who contributed to it behind the scenes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Members of a team that did not agree with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
    /// The stable code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The error in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Which runs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    pub thread_id: Option<ThreadId>,
    pub user_id: Option<UserId>,
    pub agent: Option<AgentName>,
    pub status: Option<RunStatus>,
    pub since: Option<Timestamp>,
}

/// One agent's loop inside a run, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub session_id: SessionId,
    pub run_id: RunId,
    pub thread_id: ThreadId,
    pub agent: AgentName,
    /// Where in the run's tree it begins.
    pub path: String,
    /// That of its run, unless it ended before it.
    pub status: RunStatus,
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Its own calls, without those of its children.
    pub usage: Usage,
}

/// What can be done with runs.
pub trait Runs: Send + Sync {
    /// Keeps the message and queues its run, in one write. The thread begins if it does not exist; one of another user is not
    /// found.
    fn accept(&self, run: NewRun) -> Pending<'_, Accepted>;

    fn run(&self, run: RunId) -> Pending<'_, RunRecord>;

    /// The newest first.
    fn runs(&self, query: RunQuery, page: PageRequest) -> Pending<'_, Page<RunRecord>>;

    /// Asks for the end of a run. One that nobody works on ends here and now, any other when its process notices. Returns the
    /// status after that; a run that has ended stays as it is.
    fn cancel_run(&self, run: RunId, how: Cancel) -> Pending<'_, RunStatus>;

    /// Events of one run with a number above `after`, in order.
    fn run_events(&self, run: RunId, after: u64, limit: u32) -> Pending<'_, Vec<Event>>;

    /// What each call of a run cost, in the order of their beginning.
    fn ledger(&self, run: RunId) -> Pending<'_, Vec<LedgerRow>>;

    /// What a run has recorded, in the order in which it was begun.
    fn steps(&self, run: RunId) -> Pending<'_, Vec<Step>>;

    /// Sessions of the newest runs, each run's together, parents before children.
    fn sessions(&self, thread: Option<ThreadId>, page: PageRequest) -> Pending<'_, Page<SessionRecord>>;

    /// The sessions of one run, parents before children.
    fn run_sessions(&self, run: RunId) -> Pending<'_, Vec<SessionRecord>>;

    fn session(&self, session: &SessionId) -> Pending<'_, SessionRecord>;
}
