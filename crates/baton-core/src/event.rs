//! One thing that happened in a thread. The engine writes events; every door (SSE, WebSocket, A2A, CLI)
//! reads the same ones and projects them into its own vocabulary.

mod growing;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices;
use crate::id::{AgentName, HandoffId, MessageId, RunId, SessionId, ThreadId, ToolCallId};
use crate::ledger::AgentUsage;
use crate::message::Visibility;
use crate::store::HopKind;
use crate::sub_agent::SubAgentResult;
use crate::usage::Usage;

pub use growing::Growing;

/// The envelope: where, when and about whom. What happened is in `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Numbered per thread from 1, without gaps, if it is kept.
    pub seq: u64,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub at: Timestamp,
    pub agent: AgentName,
    /// Where in the run's tree: `assistant/advisor:legal/turn:2/tool:1`. Shared, because a stream has many events of one
    /// place.
    pub path: Arc<str>,
    pub visibility: Visibility,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Whether `path` is `place` or below it.
pub fn is_within(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    RunStarted {
        /// Whoever answers has the thread by a handoff, so that the person can leave.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_held: bool,
    },
    RunFinished {
        outcome: Outcome,
        usage: Usage,
        /// The limit that was met, when the answer is a closing one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
        /// Who gave the answer, which may be another agent than the one that was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<AgentName>,
        /// Who contributed to it behind the scenes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sources: Vec<Source>,
        /// Who took what of `usage`, in the order of their names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_agent: Vec<AgentUsage>,
    },
    RunFailed {
        code: String,
        message: String,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_agent: Vec<AgentUsage>,
    },
    SessionStarted {
        session_id: SessionId,
        parent: Option<SessionId>,
        /// Why somebody involved it, in their own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    SessionFinished {
        session_id: SessionId,
    },
    SessionFailed {
        session_id: SessionId,
        code: String,
        message: String,
    },
    TextStarted {
        message_id: MessageId,
        speaker: String,
    },
    TextDelta {
        message_id: MessageId,
        delta: String,
    },
    /// The whole text once more, so that it can be shown to whoever did not see it grow.
    TextFinished {
        message_id: MessageId,
        speaker: String,
        text: String,
    },
    /// A fault cut this text in the middle: drop it, it comes again from the start.
    TurnRestarted {
        message_id: MessageId,
    },
    Reasoning {
        message_id: MessageId,
        delta: String,
    },
    ToolCalled {
        call_id: ToolCallId,
        tool: String,
        arguments: Value,
    },
    ToolReturned {
        call_id: ToolCallId,
        output: String,
        failed: bool,
    },
    Handoff(HandoffEvent),
    /// One of those whom the caller had asked is done. What models have others do is between them.
    Brought(SubAgentResult),
    /// The baton goes to another agent for the rest of the run.
    Passed {
        /// `transfer`, `route` or `chain`.
        by: HopKind,
        from: AgentName,
        to: AgentName,
        reason: String,
        /// Who hears what the receiver says.
        #[serde(default = "nobody")]
        heard_by: Visibility,
    },
    /// A member of a team says something to all others.
    Broadcast {
        member: AgentName,
        round: u32,
        text: String,
    },
    /// A member of a team says whether the discussion can end.
    Voted {
        member: AgentName,
        round: u32,
        ready: bool,
        reason: String,
    },
    /// A team has finished its discussion; its coordinator answers.
    TeamEnded {
        rounds: u32,
        /// `consensus`, `max_rounds`, `coordinator`, or the limit that was met.
        by: String,
        dissent: Vec<Dissent>,
    },
    /// How far a workflow has come: step 2 of 5.
    Progress {
        state: String,
        label: String,
        step: u32,
        total: u32,
    },
    /// A sentence for the person about what is going on ("Researching…").
    Status {
        text: String,
    },
}

impl EventKind {
    /// Whether it is written down and has a number of its own. A text that grows is not: the finished text is. What is not kept
    /// carries the number of the last event that was.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::TextStarted { .. } | Self::TextDelta { .. } | Self::Reasoning { .. })
    }

    /// Whether nothing of its run follows.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::RunFinished { .. } | Self::RunFailed { .. })
    }
}

/// What nobody said to be for the person is not.
fn nobody() -> Visibility {
    Visibility::Internal
}

/// An agent that contributed to an answer, and where to read what it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub agent: AgentName,
    pub session_id: SessionId,
}

/// A member of a team that did not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dissent {
    pub member: AgentName,
    pub reason: String,
}

/// A change of a thread's lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffEvent {
    pub handoff_id: HandoffId,
    pub phase: HandoffPhase,
    pub from: AgentName,
    pub to: AgentName,
    pub reason: String,
    /// The sentence for the person.
    pub message: String,
}

choices! {
    pub enum HandoffPhase {
        Connecting = "connecting",
        Active = "active",
        Returning = "returning",
        Completed = "completed",
        Cancelled = "cancelled",
        Error = "error",
    }
}

choices! {
    /// How a run ended without an error.
    pub enum Outcome {
        Success = "success",
        /// It waits for a person or a remote agent.
        Interrupt = "interrupt",
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_flat_in_the_envelope() {
        let event = Event {
            seq: 7,
            thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            run_id: RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            agent: AgentName::parse("assistant").unwrap(),
            path: "assistant/turn:1".into(),
            visibility: Visibility::User,
            kind: EventKind::Status { text: "Researching…".into() },
        };
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["kind"], "status");
        assert_eq!(json["text"], "Researching…");
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
    }
}
