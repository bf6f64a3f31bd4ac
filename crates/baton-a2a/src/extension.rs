//! The handoff and orchestration extension: what a card declares, and the data parts by which a thread is handed over.
//!
//! A message whose data part is a [`HandoffRequest`] lists [`URI`] in its `extensions`; the request names it in the header
//! `X-A2A-Extensions` (0.3) or `A2A-Extensions` (1.0). Tenant and user come from the credential, never from these parts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::card::{AgentCard, Extension};
use crate::model::{Message, Metadata, Part};

/// The identifier of the extension.
pub const URI: &str = "https://baton.dev/a2a/extensions/orchestration/v1";
/// The request header that activates extensions in 0.3.
pub const HEADER_03: &str = "X-A2A-Extensions";
/// The request header that activates extensions in 1.0.
pub const HEADER_10: &str = "A2A-Extensions";

/// How an agent takes over a thread (C-21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffCapability {
    pub supports_handoff: bool,
    /// Phrases of the user that suggest a handoff to this agent.
    pub handoff_triggers: Vec<String>,
    /// The states of the agent's workflow, in order.
    pub workflow_states: Vec<String>,
    /// Whether no other agent works on the thread meanwhile.
    pub requires_exclusive_control: bool,
    pub max_session_duration_seconds: u64,
}

impl Default for HandoffCapability {
    fn default() -> Self {
        Self {
            supports_handoff: false,
            handoff_triggers: Vec::new(),
            workflow_states: Vec::new(),
            requires_exclusive_control: true,
            max_session_duration_seconds: 3600,
        }
    }
}

/// How an agent involves others and can be involved (B11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrchestrationCapability {
    pub can_orchestrate: bool,
    pub can_be_orchestrated: bool,
    pub strategies: Vec<String>,
    pub max_concurrent_delegations: u32,
}

impl Default for OrchestrationCapability {
    fn default() -> Self {
        Self {
            can_orchestrate: false,
            can_be_orchestrated: true,
            strategies: vec!["parallel".to_owned(), "sequential".to_owned()],
            max_concurrent_delegations: 5,
        }
    }
}

/// The parameters of the extension on a card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a card")]
pub struct ExtensionParams {
    /// Whether the agent accepts handoffs (C-22).
    pub handoff_support: bool,
    /// Whether the agent has a workflow whose state is kept between messages (C-22).
    pub stateful_workflows: bool,
    /// Whether a context can have several messages (D11).
    pub multi_turn: bool,
    /// Whether a person may be asked to approve or to answer (D11).
    pub hitl_support: bool,
    pub handoff: HandoffCapability,
    pub orchestration: OrchestrationCapability,
}

impl ExtensionParams {
    /// The declaration for a card.
    pub fn declare(&self) -> Extension {
        let Ok(Value::Object(params)) = serde_json::to_value(self) else {
            unreachable!("a struct is an object")
        };
        Extension {
            uri: URI.to_owned(),
            description: Some("Handoff of a conversation, and orchestration of agents".to_owned()),
            required: false,
            params,
        }
    }

    /// What a card declares; `None` if it does not declare the extension. Members that cannot be read have their default.
    pub fn of(card: &AgentCard) -> Option<Self> {
        let extension = card.capabilities.extensions.iter().find(|extension| extension.uri == URI)?;
        Some(Self::read(&extension.params))
    }

    fn read(params: &Map<String, Value>) -> Self {
        let flag = |name: &str| params.get(name).and_then(Value::as_bool).unwrap_or(false);
        Self {
            handoff_support: flag("handoff_support"),
            stateful_workflows: flag("stateful_workflows"),
            multi_turn: flag("multi_turn"),
            hitl_support: flag("hitl_support"),
            handoff: member(params, "handoff"),
            orchestration: member(params, "orchestration"),
        }
    }
}

fn member<T: Default + for<'a> Deserialize<'a>>(params: &Map<String, Value>, name: &str) -> T {
    params.get(name).and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
}

/// A data part of the extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum HandoffPart {
    #[serde(rename = "handoff")]
    Request(HandoffRequest),
    #[serde(rename = "handoff_accept")]
    Accept(HandoffAccept),
    #[serde(rename = "handoff_decline")]
    Decline(HandoffDecline),
    #[serde(rename = "handoff_return")]
    Return(HandoffReturn),
}

/// Asks an agent to take over a thread (C-2, C-3).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffRequest {
    pub thread_id: String,
    pub source_agent_id: String,
    pub target_agent_id: String,
    pub context_summary: String,
    /// The number of messages in `recent_messages`.
    pub conversation_history_count: u32,
    /// The last messages of the thread, oldest first.
    pub recent_messages: Vec<RecentMessage>,
    pub handoff_reason: String,
    pub preserve_state: bool,
    pub return_expected: bool,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub handoff_metadata: Metadata,
}

/// A message that the target receives as context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentMessage {
    /// `user` or `assistant`.
    pub role: String,
    pub content: String,
}

/// The target takes over (C-4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffAccept {
    pub thread_id: String,
    pub source_agent_id: String,
    pub target_agent_id: String,
    pub accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_duration_seconds: Option<u64>,
}

/// The target does not take over (C-4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffDecline {
    pub thread_id: String,
    pub source_agent_id: String,
    pub target_agent_id: String,
    /// Always false; a reader of the seed's single message type needs no second type.
    pub accepted: bool,
    #[serde(alias = "rejection_reason")]
    pub reason: String,
}

/// How a handoff ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandoffOutcome {
    Completed,
    #[serde(alias = "canceled")]
    Cancelled,
    /// Also a value of a newer version.
    #[default]
    #[serde(alias = "error", other)]
    Failed,
}

/// The target gives the thread back (C-5).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffReturn {
    pub thread_id: String,
    /// The agent that returns the thread.
    pub source_agent_id: String,
    /// The agent that receives it.
    pub target_agent_id: String,
    #[serde(alias = "completion_status")]
    pub outcome: HandoffOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_summary: Option<String>,
    /// Names or ids of what was created.
    pub artifacts_created: Vec<String>,
}

impl HandoffPart {
    pub fn to_part(&self) -> Part {
        Part::data(serde_json::to_value(self).unwrap_or_default())
    }

    /// The part, if it is one of the extension; `None` for other data, and for parts that cannot be read.
    pub fn from_part(part: &Part) -> Option<Self> {
        Self::deserialize(part.as_data()?).ok()
    }

    /// The first part of the extension in a message.
    pub fn find(message: &Message) -> Option<Self> {
        message.parts.iter().find_map(Self::from_part)
    }
}
