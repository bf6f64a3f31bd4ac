//! AG-UI 1.0 messages: the state of a client that has applied the events of a run.

use baton_core::{AgentName, RunId, SessionId};
use serde::Serialize;
use serde_json::Value;

use super::Metadata;

/// An AG-UI message with Baton's metadata.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AguiMessage {
    pub id: String,
    #[serde(flatten)]
    pub body: MessageBody,
    /// The sub-agent that the message belongs to.
    #[serde(rename = "subagentRunId", skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Provenance>,
}

/// Role and content of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum MessageBody {
    User {
        content: MessageContent,
    },
    System {
        content: String,
    },
    /// Text of an agent, or one tool call: clients create a message for each call.
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<AguiToolCall>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
    Activity {
        activity_type: &'static str,
        content: Value,
    },
    Reasoning {
        content: String,
    },
}

/// A tool call within an assistant message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AguiToolCall {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub function: AguiFunction,
    pub metadata: Metadata,
}

/// Name and JSON arguments of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AguiFunction {
    pub name: String,
    pub arguments: String,
}

/// Origin of a message: the last event that changed it, or the stored conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Provenance {
    Event(Metadata),
    Kept { baton: Author },
}

/// Run and agent of a stored message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Author {
    pub run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
}

/// Content of a user message: plain text, or parts if there is media.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MessageContent {
    Text(String),
    Parts(Vec<ContentPart>),
}

/// A text or a media part of a user message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    Text { text: String },
    Image(Media),
    Audio(Media),
    Video(Media),
    Document(Media),
}

/// A media part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Media {
    pub source: MediaSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// Embedded data, or a URL.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum MediaSource {
    Data {
        value: String,
        mime_type: String,
    },
    Url {
        value: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}
