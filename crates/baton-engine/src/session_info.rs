//! Summary of a stored session: its agent, why it was invoked, and how it ended.

use baton_core::AgentName;
use baton_core::store::{RunStatus, SessionRecord, Step};
use serde::{Deserialize, Serialize};

/// A session as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    pub agent: AgentName,
    pub status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<SessionFailure>,
}

/// Why a session failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFailure {
    /// Stable error code for programs.
    pub code: String,
    pub message: String,
}

/// The fields that are read from a session's step.
#[derive(Default, Deserialize)]
struct SessionStepData {
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    failure: Option<SessionFailure>,
}

impl SessionInfo {
    /// `step` is the step at the session's path.
    pub fn of(step: &Step, session: &SessionRecord) -> Self {
        let SessionStepData { why, failure } = step.data.read().unwrap_or_default();
        let why = why.filter(|why| !why.is_empty());
        Self { agent: session.agent.clone(), status: session.status, why, failure }
    }
}
