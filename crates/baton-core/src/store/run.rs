//! Runs: the processing of one incoming message, from acceptance to its end.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices;
use crate::event::{Dissent, Event, Source};
use crate::id::{AgentName, MessageId, RunId, SessionId, ThreadId, UserId};
use crate::ledger::LedgerRow;
use crate::media::FileRef;
use crate::message::Message;
use crate::store::approval::Decision;
use crate::store::work::Step;
use crate::store::{Page, PageRequest, Pending};
use crate::usage::Usage;

choices! {
    pub enum RunStatus {
        Queued = "queued",
        Running = "running",
        /// Waits for a person or a remote agent.
        Waiting = "waiting",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        /// Its process died and the run could not be resumed.
        Interrupted = "interrupted",
    }
}

impl RunStatus {
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted)
    }
}

choices! {
    /// What happens to a message whose thread has an active run.
    pub enum OnBusy {
        /// Its run is queued.
        Enqueue = "enqueue",
        /// The message is refused.
        Reject = "reject",
        /// The active run is cancelled; the new one starts once it has ended.
        Interrupt = "interrupt",
    }
}

choices! {
    /// How to cancel a run.
    pub enum Cancel {
        /// After one closing turn.
        Stop = "stop",
        /// Immediately.
        Abort = "abort",
    }
}

/// How many runs may be queued or running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunLimits {
    /// Of the tenant.
    pub tenant: Option<u32>,
    /// Of the user.
    pub user: Option<u32>,
}

/// A message to be processed. Creates its thread if necessary.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    pub run_id: RunId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    /// The agent that answers.
    pub agent: AgentName,
    /// Stored in the thread's history by the same write.
    pub message: Message,
    /// The engine's input, for the first attempt and for attempts after a crash.
    pub request: Value,
    pub on_busy: OnBusy,
    pub idempotency: Option<Idempotency>,
    /// Refuses if the tenant has this many runs queued or running.
    pub max_active: Option<u32>,
    /// Refuses if the user has this many runs queued or running. Requests that arrive together may exceed it slightly.
    pub max_active_of_user: Option<u32>,
    /// Fails with [`StoreError::HandoffActive`](super::StoreError::HandoffActive) while a handoff is open on the thread.
    pub unless_held: bool,
    /// Fails with [`StoreError::QuestionOpen`](super::StoreError::QuestionOpen) while a run waits for the answer to
    /// exactly one question of the thread.
    pub unless_asked: bool,
    /// The message answers a question of the thread's workflow. Refuses with a conflict unless the question is open.
    pub answers: Option<Box<Decision>>,
}

impl NewRun {
    /// A message to `agent` that waits while the thread is busy. Its run has the id that the message names.
    pub fn new(thread_id: ThreadId, user_id: UserId, agent: AgentName, message: Message) -> Self {
        Self {
            run_id: message.run_id,
            thread_id,
            user_id,
            agent,
            message,
            request: Value::Object(serde_json::Map::new()),
            on_busy: OnBusy::Enqueue,
            idempotency: None,
            max_active: None,
            max_active_of_user: None,
            unless_held: false,
            unless_asked: false,
            answers: None,
        }
    }

    /// The record of the run after its claim, without the values that only the store knows: the message's number and the start
    /// time.
    pub fn claimed(&self, created_at: Timestamp) -> RunRecord {
        RunRecord {
            run_id: self.run_id,
            thread_id: self.thread_id,
            user_id: self.user_id.clone(),
            agent: self.agent.clone(),
            status: RunStatus::Running,
            created_at,
            started_at: None,
            finished_at: None,
            usage: Usage::default(),
            attempts: 1,
            message_number: 0,
            request: self.request.clone(),
            end: None,
            cancel: None,
        }
    }
}

/// Ensures that the same request is processed once, until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// Chosen by the caller.
    pub key: String,
    /// Hash of the whole request. The same key with another fingerprint is an error.
    pub fingerprint: String,
    pub expires_at: Timestamp,
}

/// The outcome of a [`NewRun`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedRun {
    /// The first run with this idempotency key, which may be an older one.
    pub run_id: RunId,
    /// The stored message that started the run.
    pub message_id: MessageId,
    pub is_new: bool,
    /// The run directly ahead in the queue.
    pub behind: Option<RunId>,
    /// Number of the thread's last event before the run continued, if the message answered its question; 0 otherwise.
    pub after: u64,
}

/// A stored run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub run_id: RunId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    pub agent: AgentName,
    pub status: RunStatus,
    pub created_at: Timestamp,
    /// Time of the first claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Sum of its ledger rows so far.
    pub usage: Usage,
    /// Number of claims; more than one after a crash. A run that has waited counts from one again.
    pub attempts: u32,
    /// Number of its message in the thread. Earlier messages are its history.
    pub message_number: u64,
    #[serde(skip)]
    pub request: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEndData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunEndData {
    /// The answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The answer as JSON, if an output schema was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The limit that ended the run early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The agent that answered, which may differ from the one addressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AgentName>,
    /// Agents that contributed to the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Team members that did not agree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
    /// The files that are parts of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// The stable error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Filters for runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    pub thread_id: Option<ThreadId>,
    pub user_id: Option<UserId>,
    pub agent: Option<AgentName>,
    pub status: Option<RunStatus>,
    pub since: Option<Timestamp>,
}

/// A stored session: one agent loop within a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub session_id: SessionId,
    pub run_id: RunId,
    pub thread_id: ThreadId,
    pub agent: AgentName,
    /// Its position in the run's tree.
    pub path: String,
    /// The run's status, unless the session ended earlier.
    pub status: RunStatus,
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Its own calls, without those of child sessions.
    pub usage: Usage,
}

/// Operations on runs.
pub trait Runs: Send + Sync {
    /// Stores the message and queues its run, in one write. Creates the thread if it does not exist; another user's thread is
    /// not found.
    fn accept(&self, run: NewRun) -> Pending<'_, AcceptedRun>;

    /// What became of the request of this user with the same key and fingerprint. Another fingerprint is an error.
    fn accepted_before(&self, user: UserId, request: Idempotency) -> Pending<'_, Option<AcceptedRun>>;

    fn run(&self, run: RunId) -> Pending<'_, RunRecord>;

    /// Newest first.
    fn runs(&self, query: RunQuery, page: PageRequest) -> Pending<'_, Page<RunRecord>>;

    /// Cancels a run. A run without a worker ends immediately, otherwise its worker ends it. A waiting run that is to stop is
    /// queued, so that a worker takes its closing turn. Returns the resulting status; a finished run is unchanged.
    fn cancel_run(&self, run: RunId, how: Cancel) -> Pending<'_, RunStatus>;

    /// Events of a run with a number above `after`, in order.
    fn run_events(&self, run: RunId, after: u64, limit: u32) -> Pending<'_, Vec<Event>>;

    /// The cost of each call, in order of start.
    fn ledger(&self, run: RunId) -> Pending<'_, Vec<LedgerRow>>;

    /// The steps of a run, in order of start.
    fn steps(&self, run: RunId) -> Pending<'_, Vec<Step>>;

    /// Sessions of the newest runs, grouped by run, parents before children.
    fn sessions(&self, thread: Option<ThreadId>, page: PageRequest) -> Pending<'_, Page<SessionRecord>>;

    /// The sessions of one run, parents before children.
    fn run_sessions(&self, run: RunId) -> Pending<'_, Vec<SessionRecord>>;

    fn session(&self, session: &SessionId) -> Pending<'_, SessionRecord>;
}
