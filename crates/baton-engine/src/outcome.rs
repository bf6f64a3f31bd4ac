//! What a run of an agent came to, with whoever it involved.

use baton_core::event::Dissent;
use baton_core::message::{Message, Part, Role, Visibility};
use baton_core::{AgentName, HumanDuration, MessageId, RunId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::failure::Failure;
use crate::session::Answer;

/// An answer and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    #[serde(flatten)]
    pub answer: Answer,
    /// Who gave it: the end of the chain, the chosen destination, the coordinator.
    pub agent: AgentName,
    /// The person has seen it.
    pub(crate) is_shown: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
}

impl Outcome {
    /// Nothing is left to be said, or somebody else says it.
    pub(crate) fn nothing(agent: &AgentName) -> Self {
        let answer = Answer::words("");
        Self { answer, agent: agent.clone(), is_shown: true, dissent: Vec::new() }
    }

    /// The answer as a part of the conversation.
    pub(crate) fn message(&self, run_id: RunId, visibility: Visibility) -> Message {
        let part = match &self.answer.value {
            Some(data) => Part::Data { data: data.clone() },
            None => Part::text(self.answer.text.clone()),
        };
        Message {
            // Whoever saw it grow knows it by the same id.
            id: self.answer.message_id.unwrap_or_else(|| MessageId::from_uuid(Uuid::now_v7())),
            run_id,
            role: Role::Assistant,
            agent: Some(self.agent.clone()),
            visibility,
            parts: vec![part],
            created_at: Timestamp::now(),
        }
    }
}

/// How a session ended, as it is recorded: it never runs again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Why it was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// What it was about.
    #[serde(default)]
    pub(crate) input: Vec<Part>,
    /// Whose contribution it is, if it was made behind the scenes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<AgentName>,
    #[serde(flatten)]
    pub(crate) end: RecordedEnd,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedEnd {
    Outcome(Box<Outcome>),
    Failure {
        code: String,
        message: String,
        /// How long it had, if its time was over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late: Option<HumanDuration>,
    },
}

impl RecordedEnd {
    pub(crate) fn of(failure: &Failure) -> Self {
        let late = if let Failure::Late(limit) = failure { Some(*limit) } else { None };
        Self::Failure { code: failure.code().to_owned(), message: failure.to_string(), late }
    }
}

impl Recorded {
    pub(crate) fn result(self) -> Result<Outcome, Failure> {
        match self.end {
            RecordedEnd::Outcome(outcome) => Ok(*outcome),
            RecordedEnd::Failure { late: Some(limit), .. } => Err(Failure::Late(limit)),
            RecordedEnd::Failure { code, .. } if code == Failure::Cancelled.code() => Err(Failure::Cancelled),
            RecordedEnd::Failure { code, message, .. } => Err(Failure::Elsewhere { code, message }),
        }
    }
}
