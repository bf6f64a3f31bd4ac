//! AG-UI 1.0 messages: what a client has when it has applied the events of a run.

use baton_core::{AgentName, RunId, SessionId};
use serde::Serialize;
use serde_json::Value;

use super::Metadata;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AguiMessage {
    pub id: String,
    #[serde(flatten)]
    pub body: MessageBody,
    /// Whose work behind the scenes it is.
    #[serde(rename = "subagentRunId", skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Provenance>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum MessageBody {
    User {
        content: Content,
    },
    System {
        content: String,
    },
    /// What an agent said, or which tools it called: clients make a message of its own for each call.
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCall {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub function: Function,
    pub metadata: Metadata,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Function {
    pub name: String,
    pub arguments: String,
}

/// Where a message comes from: the last event that changed it, or the conversation as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Provenance {
    Event(Metadata),
    Kept { baton: Author },
}

/// Who wrote a message that was kept, and in which run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Author {
    pub run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
}

/// What a person sent: only words, or something beside them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    Text { text: String },
    Image(Media),
    Audio(Media),
    Video(Media),
    Document(Media),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Media {
    pub source: MediaSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

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
