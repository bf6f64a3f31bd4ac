//! Events of a thread. The engine writes them; every interface (SSE, WebSocket, A2A, CLI) reads the same events and translates
//! them into its own format.

mod growing;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::budget::BudgetWarning;
use crate::choices;
use crate::id::{AgentName, HandoffId, MessageId, RunId, SessionId, ThreadId, ToolCallId};
use crate::ledger::AgentUsage;
use crate::media::FileRef;
use crate::message::Visibility;
use crate::store::{ApprovalOutcome, ApprovalRequest, HopKind};
use crate::sub_agent::SubAgentResult;
use crate::usage::Usage;
use crate::workflow::WorkflowProgress;

pub use growing::Growing;

/// An event with its envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Numbered per thread from 1 without gaps, if the event is stored.
    pub seq: u64,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub at: Timestamp,
    pub agent: AgentName,
    /// Position in the run's tree: `assistant/advisor:legal/turn:2/tool:1`. Shared, because many events of a stream have the
    /// same path.
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
        /// Whether the answering agent holds the thread by a handoff, so that the user can leave it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_held: bool,
    },
    RunFinished {
        outcome: RunOutcome,
        usage: Usage,
        /// The limit that was reached, if it forced the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
        /// The agent that answered, which may differ from the one addressed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<AgentName>,
        /// Agents that contributed to the answer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sources: Vec<Source>,
        /// The parts of `usage` by agent, ordered by name.
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
    /// The run waits for decisions, and no process works on it. [`EventKind::RunResumed`] follows a decision.
    RunWaiting {
        /// At least one. The store keeps only their ids, because a run may wait many times for the same, and adds the requests when
        /// the event is read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupts: Vec<ApprovalRequest>,
        /// The ids of `interrupts`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits_for: Vec<Uuid>,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_agent: Vec<AgentUsage>,
    },
    /// The run continues after it waited.
    RunResumed {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_held: bool,
    },
    SessionStarted {
        session_id: SessionId,
        parent: Option<SessionId>,
        /// Why the caller involved this agent, in the caller's words.
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
    /// Contains the complete text, for readers that missed the deltas.
    TextFinished {
        message_id: MessageId,
        speaker: String,
        text: String,
    },
    /// The text was cut off by an error. Discard it: it starts again from the beginning.
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
        /// Files that the call produced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
    },
    /// The files that are parts of the answer, in the order of its parts. Published once, with the end of the run.
    Files {
        message_id: MessageId,
        files: Vec<FileRef>,
    },
    Handoff(HandoffEvent),
    /// A sub-agent requested by the API caller has finished. Delegations by models do not produce this event.
    #[serde(rename = "brought")]
    SubAgentFinished(SubAgentResult),
    /// The baton passes to another agent for the rest of the run.
    Passed {
        /// `transfer`, `route` or `chain`.
        by: HopKind,
        from: AgentName,
        to: AgentName,
        reason: String,
        /// The visibility of the receiver's messages.
        #[serde(default = "nobody")]
        heard_by: Visibility,
    },
    /// A team member's message to all others.
    Broadcast {
        member: AgentName,
        round: u32,
        text: String,
    },
    /// A team member's vote on ending the discussion.
    Voted {
        member: AgentName,
        round: u32,
        ready: bool,
        reason: String,
    },
    /// The discussion of a team has ended; its coordinator answers next.
    TeamEnded {
        rounds: u32,
        /// `consensus`, `max_rounds`, `coordinator`, or the limit that was reached.
        by: String,
        dissent: Vec<Dissent>,
    },
    /// Progress of a workflow: step 2 of 5. Every reply of an agent with a workflow has one.
    Progress(WorkflowProgress),
    /// A guardrail has refused a text, which is not part of the event.
    Guardrail(GuardrailEvent),
    /// A budget is nearly used up. Published once per budget and period.
    Budget(BudgetWarning),
    /// A call or a question waits for a person, or has been decided.
    Approval(Box<ApprovalEvent>),
    /// A status line for the user ("Researching…").
    Status {
        text: String,
    },
}

impl EventKind {
    /// Whether the event is stored and has its own number. Text deltas are not, because the finished text is. An event that is
    /// not stored carries the number of the last one that was.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::TextStarted { .. } | Self::TextDelta { .. } | Self::Reasoning { .. })
    }

    /// Whether this is the last event of its run, or the last one before the run waits.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::RunFinished { .. } | Self::RunFailed { .. } | Self::RunWaiting { .. })
    }

    /// Whether the run starts, or continues after it waited.
    pub fn is_start(&self) -> bool {
        matches!(self, Self::RunStarted { .. } | Self::RunResumed { .. })
    }
}

/// An approval and what became of it so far. Not flat, because the request has a `kind` too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalEvent {
    pub request: ApprovalRequest,
    pub outcome: ApprovalOutcome,
}

/// Default visibility: hidden from the user.
fn nobody() -> Visibility {
    Visibility::Internal
}

/// A check of a guardrail that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardrailEvent {
    /// `input` or `output`.
    pub side: String,
    /// The key of the check in the agent's file.
    pub check: String,
    /// A clause without the text: `it is longer than 100 characters`.
    pub reason: String,
}

/// An agent that contributed to an answer, and its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub agent: AgentName,
    pub session_id: SessionId,
}

/// A team member that did not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dissent {
    pub member: AgentName,
    pub reason: String,
}

/// A phase of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffEvent {
    pub handoff_id: HandoffId,
    pub phase: HandoffPhase,
    pub from: AgentName,
    pub to: AgentName,
    pub reason: String,
    /// The sentence shown to the user.
    pub message: String,
    /// How long it is expected to take. Only when the target accepts, and if enough earlier ones are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_duration_seconds: Option<u64>,
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
    pub enum RunOutcome {
        Success = "success",
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ApprovalRequest {
        let agent = AgentName::parse("assistant").unwrap();
        ApprovalRequest::of_call("assistant/turn:1/tool:1", agent, "shell", Value::Null)
    }

    #[test]
    fn events_about_approvals_are_read_back() {
        let approval = ApprovalEvent { request: request(), outcome: ApprovalOutcome::pending() };
        let waiting = EventKind::RunWaiting {
            interrupts: vec![request()],
            waits_for: vec![request().approval_id],
            usage: Usage::default(),
            by_agent: Vec::new(),
        };
        for kind in
            [EventKind::Approval(Box::new(approval)), waiting, EventKind::RunResumed { is_held: true }]
        {
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<EventKind>(&text).unwrap(), kind);
        }
    }

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
