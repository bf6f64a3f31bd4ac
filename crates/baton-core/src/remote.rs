//! The trait for agents on other servers: a protocol adapter implements [`RemoteAgents`], the engine calls it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::agent::Agent;
use crate::choices;
use crate::id::{AgentName, RunId, ThreadId};
use crate::media::ProducedFile;
use crate::message::{Part, Role};
use crate::trace::TraceParent;
use crate::usage::Usage;

/// Connects to the agents of `kind: remote`.
pub trait RemoteAgents: Send + Sync + fmt::Debug {
    /// The connection to an agent. Makes no request. Fails if the agent's file cannot be used, for example because the variable
    /// of a secret is not set.
    fn connect(&self, agent: &Agent) -> Result<Arc<dyn RemoteAgent>, RemoteError>;
}

/// A remote agent. The adapter reconnects and retries; the engine adds deadlines, cancellation and accounting.
pub trait RemoteAgent: Send + Sync + fmt::Debug {
    /// Sends a message and streams what the agent does with it, until its task ends or waits for the user. Nothing is sent before
    /// the stream is polled. Dropping the stream closes the connection and does not cancel the task.
    ///
    /// The last item is [`RemoteEvent::Ended`] or an error. A message that is sent twice has the same id both times.
    fn send(&self, message: RemoteMessage) -> RemoteStream;

    /// Streams a task that the agent has accepted before, from its current state on.
    fn follow(&self, task: RemoteTask) -> RemoteStream;

    /// Cancels a task. A task that has already ended is not an error.
    fn cancel(&self, task_id: &str) -> Pin<Box<dyn Future<Output = Result<(), RemoteError>> + Send + '_>>;

    /// Cancels a task in the background, with a time limit. A failure is only logged.
    fn cancel_in_background(&self, task_id: &str);

    /// Whether the agent can be reached. Uses a card that is not too old, or fetches it.
    fn reachability(&self) -> Pin<Box<dyn Future<Output = Reachability> + Send + '_>>;
}

/// Whether a remote agent can be reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Reachability {
    Reachable {
        /// The agent's card, as it was received.
        card: Arc<Value>,
        /// The host that messages are sent to.
        host: String,
    },
    /// The reason, for people.
    Unreachable(String),
}

pub type RemoteStream = Pin<Box<dyn Stream<Item = Result<RemoteEvent, RemoteError>> + Send>>;

/// A message to a remote agent.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteMessage {
    /// Derived from the place in the run. A message that is repeated after a crash has the same id, so that a peer that knows the
    /// id does not work on it twice.
    pub message_id: Uuid,
    /// The conversation and the task that the message continues.
    pub task: RemoteTask,
    pub parts: Vec<Part>,
    /// Set if the message gives the thread to the agent.
    pub handoff: Option<Box<RemoteHandoff>>,
    /// The run that sends the message.
    pub run_id: RunId,
    pub trace: Option<TraceParent>,
}

/// The ids of a task at a remote agent, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RemoteTask {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// The artifacts and questions of the task that belong to earlier answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
}

impl RemoteTask {
    /// A new task in a context.
    pub fn new_in(context_id: impl Into<String>) -> Self {
        Self { task_id: None, context_id: Some(context_id.into()), seen: Vec::new() }
    }
}

/// A thread that is offered to a remote agent.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteHandoff {
    pub thread_id: ThreadId,
    pub source_agent_id: AgentName,
    pub context_summary: String,
    /// How many messages the thread has.
    pub history_count: u64,
    /// The last messages, oldest first.
    pub recent_messages: Vec<(Role, String)>,
    pub reason: String,
    pub preserve_state: bool,
    pub return_expected: bool,
    /// The user's own words, for an agent that understands the other fields.
    pub words: String,
    /// Data about the handoff, such as known facts under `context`.
    pub metadata: Value,
}

/// What a remote agent does with a message, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteEvent {
    /// The agent has the message. Comes before everything else, and again if an id becomes known later.
    Accepted(RemoteTask),
    /// The agent takes the offered thread.
    HandoffAccepted,
    /// What the agent says about its work. Not a part of the answer.
    Progress(String),
    /// Text of the answer. [`RemoteEnd::text`] has all of it.
    Text(String),
    Ended(Box<RemoteEnd>),
}

/// The end of a remote task, or the point at which it waits for the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoteEnd {
    pub state: RemoteState,
    /// The text of the artifacts, or of the message if the agent answered without a task.
    pub text: String,
    /// The text of the last status: the end of the answer, a question, or the reason of a failure.
    pub message: String,
    /// Names of what the agent made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// What the whole task has used so far, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffReply>,
    /// Files that the agent sent, which the engine stores. Those that it only links to are named in the text.
    #[serde(skip)]
    pub files: Vec<ProducedFile>,
}

impl RemoteEnd {
    /// The answer: the text, and the message unless the text ends with it.
    pub fn answer(&self) -> String {
        let (text, message) = (self.text.trim_end(), self.message.trim());
        match (text.trim().is_empty(), text.ends_with(message)) {
            (true, _) => message.to_owned(),
            (false, true) => text.to_owned(),
            (false, false) => format!("{text}\n\n{message}"),
        }
    }
}

choices! {
    /// How a remote task ended, or what it waits for.
    pub enum RemoteState {
        Completed = "completed",
        /// The agent asks the user something.
        InputRequired = "input_required",
        /// The user has to authenticate with another service.
        AuthRequired = "auth_required",
        Failed = "failed",
        Canceled = "canceled",
        /// The agent does not take the task.
        Rejected = "rejected",
    }
}

impl RemoteState {
    /// Whether the task waits for the user and can be continued.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// What a remote agent says about the handoff of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum HandoffReply {
    /// It does not take the thread.
    Declined { reason: String },
    /// It gives the thread back.
    Returned { outcome: ReturnOutcome, summary: String, artifacts: Vec<String> },
}

choices! {
    /// The result of a handoff, as the agent that held the thread reports it.
    pub enum ReturnOutcome {
        Completed = "completed",
        Cancelled = "cancelled",
        Failed = "failed",
    }
}

/// The remote task of a handoff, stored with it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteLink {
    #[serde(flatten)]
    pub task: RemoteTask,
    /// What the ledger has of the task's usage.
    pub billed: Usage,
    /// Whether the agent has accepted the thread and its first answer has not been read.
    pub is_unread: bool,
    /// The first answer, if it came without a task that could be followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening: Option<Box<RemoteEnd>>,
}

/// Why a remote agent gives no answer. The message says what to do, and has no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RemoteError {
    pub kind: RemoteErrorKind,
    pub message: String,
}

impl RemoteError {
    pub fn new(kind: RemoteErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

choices! {
    pub enum RemoteErrorKind {
        /// No connection, so nothing was sent.
        Unreachable = "unreachable",
        /// The connection broke and could not be restored, or the peer reports an internal error.
        Disconnected = "disconnected",
        /// No data within the time limit.
        Timeout = "timeout",
        /// It refuses the credentials, or they are missing.
        Auth = "auth",
        /// It refuses the request.
        Refused = "refused",
        /// It does not know the task.
        TaskNotFound = "task_not_found",
        /// Its response violates the protocol or exceeds a limit.
        Malformed = "malformed",
    }
}

impl RemoteErrorKind {
    /// Whether the agent is down, as opposed to refusing.
    pub fn is_down(self) -> bool {
        matches!(self, Self::Unreachable | Self::Disconnected | Self::Timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_repeats_the_text_is_left_out() {
        let end = |text: &str, message: &str| RemoteEnd {
            state: RemoteState::Completed,
            text: text.to_owned(),
            message: message.to_owned(),
            artifacts: Vec::new(),
            usage: None,
            handoff: None,
            files: Vec::new(),
        };
        assert_eq!(end("Paris", "Paris").answer(), "Paris");
        assert_eq!(end("", "Paris").answer(), "Paris");
        assert_eq!(end("Paris\n", "").answer(), "Paris");
        assert_eq!(end("Hello!\n\nWhich city?", "Which city?").answer(), "Hello!\n\nWhich city?");
        assert_eq!(end("Paris", "Anything else?").answer(), "Paris\n\nAnything else?");
    }
}
