//! Whose part of a run begins at a place, why somebody involved them, and how it ended: what is read of a session again.

use baton_core::AgentName;
use baton_core::store::{RunStatus, SessionRecord, Step};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Who {
    pub agent: AgentName,
    pub status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Stable, for programs.
    pub code: String,
    pub message: String,
}

/// What is read of a session's step.
#[derive(Default, Deserialize)]
struct Recorded {
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    failure: Option<Failed>,
}

impl Who {
    /// The step is the one that the session began with.
    pub fn of(step: &Step, session: &SessionRecord) -> Self {
        let Recorded { why, failure } = Recorded::deserialize(&step.data).unwrap_or_default();
        let why = why.filter(|why| !why.is_empty());
        Self { agent: session.agent.clone(), status: session.status, why, failure }
    }
}
