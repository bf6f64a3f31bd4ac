//! Results of sub-agents.

use serde::{Deserialize, Serialize};

use crate::id::{AgentName, SessionId};

/// The result of a sub-agent, or its error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgentResult {
    pub agent_id: AgentName,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The stable error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    pub latency_ms: u64,
    /// Session of the sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// The limit that ended the sub-agent early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Reference to the whole text, if the response is a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_text: Option<String>,
}

impl SubAgentResult {
    /// Error code of a result that was not needed, because another sub-agent finished first.
    pub const NOT_USED: &'static str = "not_used";

    /// A sub-agent that was not started.
    pub fn failed(agent_id: AgentName, error: String, code: &str) -> Self {
        Self {
            agent_id,
            success: false,
            response: None,
            error: Some(error),
            error_type: Some(code.to_owned()),
            latency_ms: 0,
            session_id: None,
            cached: false,
            limit: None,
            full_text: None,
        }
    }

    /// Whether the result counts. `false` if another sub-agent finished first.
    pub fn is_used(&self) -> bool {
        self.error_type.as_deref() != Some(Self::NOT_USED)
    }
}
