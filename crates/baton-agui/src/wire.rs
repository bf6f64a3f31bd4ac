//! The AG-UI 1.0 events that Baton sends.

mod history;
mod json;
pub mod message;

use std::sync::Arc;

use baton_core::event::Source;
use baton_core::ledger::AgentUsage;
use baton_core::{AgentName, RunId, SessionId, ThreadId, Usage};
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use json::EventWriter;
pub(crate) use json::append;
pub use message::AguiMessage;

/// Protocol version in `RUN_STARTED`.
pub const PROTOCOL_VERSION: &str = "1.0";

/// An AG-UI event with Baton's metadata.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AguiEvent {
    #[serde(flatten)]
    pub body: EventBody,
    /// The sub-agent that the event belongs to. `None` for events that the user sees.
    #[serde(rename = "subagentRunId", skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SessionId>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    pub metadata: Metadata,
}

/// Baton's extension of the AG-UI metadata.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metadata {
    pub baton: EventOrigin,
}

/// Origin of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventOrigin {
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub agent: AgentName,
    pub path: EventPath,
    /// The last field: [`EventWriter`] copies what precedes it.
    pub seq: u64,
}

impl EventOrigin {
    /// Whether only the sequence number differs.
    fn is_same_place(&self, other: &Self) -> bool {
        let Self { thread_id, run_id, agent, path, seq: _ } = self;
        *path == other.path
            && *run_id == other.run_id
            && *thread_id == other.thread_id
            && *agent == other.agent
    }
}

/// The path of an event. Sent as a list of its segments.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPath(pub Arc<str>);

impl Serialize for EventPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.split('/'))
    }
}

/// Start of a sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentStart {
    pub subagent_run_id: SessionId,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_subagent_run_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

/// Type and fields of an AG-UI event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum EventBody {
    RunStarted {
        thread_id: ThreadId,
        run_id: RunId,
        protocol_version: &'static str,
    },
    RunFinished {
        thread_id: ThreadId,
        run_id: RunId,
        outcome: Value,
    },
    RunError {
        message: String,
        code: String,
    },
    MessagesSnapshot {
        messages: Vec<AguiMessage>,
    },
    StateSnapshot {
        snapshot: ThreadState,
    },
    /// A JSON Patch (RFC 6902).
    StateDelta {
        delta: Value,
    },
    TextMessageStart {
        message_id: String,
        role: &'static str,
        name: String,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
        role: &'static str,
    },
    SubagentStarted(SubagentStart),
    SubagentFinished {
        subagent_run_id: SessionId,
        outcome: Value,
    },
    SubagentError {
        subagent_run_id: SessionId,
        message: String,
        code: String,
    },
    ActivitySnapshot {
        message_id: String,
        activity_type: &'static str,
        content: Value,
    },
    Custom {
        name: &'static str,
        value: Value,
    },
    #[serde(rename = "CUSTOM")]
    RunUsage {
        name: &'static str,
        value: RunUsage,
    },
}

/// The AG-UI state of a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadState {
    pub active_agent: ActiveAgent,
}

/// The agent that speaks to the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActiveAgent {
    pub id: AgentName,
    pub display_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Whether the user can leave it.
    pub exitable: bool,
    /// The mode of the thread while the agent holds it: "[Skill Creation Mode]".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// Value of `baton.usage`. Only a run that finished has the last three fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunUsage {
    pub usage: Usage,
    pub by_agent: Vec<AgentUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AgentName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<Source>>,
}
