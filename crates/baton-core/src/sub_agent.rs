//! What somebody brought who worked for another agent, or for whoever named it.

use serde::{Deserialize, Serialize};

use crate::id::{AgentName, SessionId};

/// One agent's contribution, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgentResult {
    pub agent_id: AgentName,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The stable code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    pub latency_ms: u64,
    /// Where it was worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// The limit that made the agent end early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Where the whole text is, if the response is a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_text: Option<String>,
}

impl SubAgentResult {
    /// The code of a result that was not needed, because somebody else was faster.
    pub const NOT_USED: &'static str = "not_used";

    /// One that never began.
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

    /// Whether it counts: one that somebody else was faster than does not.
    pub fn is_used(&self) -> bool {
        self.error_type.as_deref() != Some(Self::NOT_USED)
    }
}
