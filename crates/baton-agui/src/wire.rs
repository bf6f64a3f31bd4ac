//! AG-UI 1.0 events, as far as Baton sends them.

mod history;
pub mod message;

use baton_core::{AgentName, RunId, SessionId, ThreadId};
use serde::Serialize;
use serde_json::Value;

pub use message::AguiMessage;

/// The version that is spoken, as a run says when it starts.
pub const PROTOCOL_VERSION: &str = "1.0";

/// One event with what Baton adds to every one of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AguiEvent {
    #[serde(flatten)]
    pub body: Body,
    /// Whose work behind the scenes it is. What is said to the person has none.
    #[serde(rename = "subagentRunId", skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SessionId>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    pub metadata: Metadata,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metadata {
    pub baton: Origin,
}

/// Where an event comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Origin {
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub agent: AgentName,
    pub path: Vec<String>,
    pub seq: u64,
}

/// An agent that begins to work behind the scenes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Begun {
    pub subagent_run_id: SessionId,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_subagent_run_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum Body {
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
        snapshot: Value,
    },
    /// A patch as RFC 6902 has it.
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
    SubagentStarted(Begun),
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
}
