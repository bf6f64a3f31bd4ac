//! The outcome of an agent and of a run, and how a session's step records it.

use baton_core::event::Dissent;
use baton_core::media::FileRef;
use baton_core::message::{Message, Part, Role, Visibility};
use baton_core::store::{ApprovalRequest, RunStatus};
use baton_core::{AgentName, HumanDuration, LedgerRow, MessageId, RunId, Usage};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::bounds::LimitKind;
use crate::failure::Failure;

/// The answer of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub text: String,
    /// The answer as JSON, if it has a schema.
    pub value: Option<Value>,
    /// The limit that ended the session early.
    pub limit: Option<LimitKind>,
    pub turns: u32,
    /// The id of the streamed message, if the answer was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The files that are parts of the answer. Only the answer of a run that ended has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
}

impl Answer {
    /// A text that no turn produced.
    pub(crate) fn without_turn(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None, limit: None, turns: 0, message_id: None, files: Vec::new() }
    }
}

/// An answer and the agent that gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    #[serde(flatten)]
    pub answer: Answer,
    /// The agent that gave the answer: the last of the chain, the router's choice, the coordinator.
    pub agent: AgentName,
    /// Whether the user has seen the answer.
    pub(crate) is_shown: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
}

impl Outcome {
    /// An empty outcome: nothing is left to say, or another agent says it.
    pub(crate) fn nothing(agent: &AgentName) -> Self {
        let answer = Answer::without_turn("");
        Self { answer, agent: agent.clone(), is_shown: true, dissent: Vec::new() }
    }

    /// The failure of a run whose answer was cut short by a budget. The answer of its closing turn stays.
    pub(crate) fn budget_exhausted(&self) -> Option<Failure> {
        let limit = self.answer.limit.filter(|limit| matches!(limit, LimitKind::Cost | LimitKind::Tokens))?;
        let message = format!("the budget is used up ({limit}): the answer is what could be said with it");
        Some(Failure::BudgetExhausted { message, limit })
    }

    /// The answer as a message of the thread.
    pub(crate) fn message(&self, run_id: RunId, visibility: Visibility) -> Message {
        let part = match &self.answer.value {
            Some(data) => Part::Data { data: data.clone() },
            None => Part::text(self.answer.text.clone()),
        };
        Message {
            // The streamed text has the same id.
            id: self.answer.message_id.unwrap_or_else(|| MessageId::from_uuid(Uuid::now_v7())),
            run_id,
            role: Role::Assistant,
            agent: Some(self.agent.clone()),
            visibility,
            parts: std::iter::once(part).chain(self.answer.files.iter().map(FileRef::to_part)).collect(),
            created_at: Timestamp::now(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunResult {
    pub status: RunStatus,
    pub answer: Option<Answer>,
    /// The agent that answered, which may differ from the requested one.
    pub answered_by: Option<AgentName>,
    pub failure: Option<Failure>,
    /// What the run waits for, with [`RunStatus::Waiting`].
    pub waits_for: Vec<ApprovalRequest>,
    pub usage: Usage,
    pub rows: Vec<LedgerRow>,
}

impl RunResult {
    /// The result of a run whose outcome this process does not know.
    pub(crate) fn without_end(failure: Failure) -> Self {
        Self {
            status: RunStatus::Failed,
            answer: None,
            answered_by: None,
            failure: Some(failure),
            waits_for: Vec::new(),
            usage: Usage::default(),
            rows: Vec::new(),
        }
    }
}

/// The end of a session as its step records it. A recorded session does not run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedSession {
    /// Why the agent was invoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// The task of the session.
    #[serde(default)]
    pub(crate) input: Vec<Part>,
    /// The agent, if it contributed without speaking to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<AgentName>,
    #[serde(flatten)]
    pub(crate) end: RecordedSessionEnd,
}

/// The outcome or the failure of a recorded session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedSessionEnd {
    Outcome(Box<Outcome>),
    Failure {
        code: String,
        message: String,
        /// The time limit, if it expired.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late: Option<HumanDuration>,
        /// The text that the time limit cut off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<String>,
    },
}

impl RecordedSessionEnd {
    pub(crate) fn of(failure: &Failure) -> Self {
        let (late, partial) = match failure {
            Failure::TimedOut { limit, partial } => (Some(*limit), partial.clone()),
            _ => (None, None),
        };
        Self::Failure { code: failure.code().to_owned(), message: failure.to_string(), late, partial }
    }
}

impl RecordedSession {
    pub(crate) fn result(self) -> Result<Outcome, Failure> {
        match self.end {
            RecordedSessionEnd::Outcome(outcome) => Ok(*outcome),
            RecordedSessionEnd::Failure { late: Some(limit), partial, .. } => {
                Err(Failure::TimedOut { limit, partial })
            }
            RecordedSessionEnd::Failure { code, .. } if code == Failure::Cancelled.code() => {
                Err(Failure::Cancelled)
            }
            RecordedSessionEnd::Failure { code, message, .. } => {
                Err(Failure::EndedElsewhere { code, message })
            }
        }
    }
}
