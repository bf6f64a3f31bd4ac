//! Whose part of a run begins at a place, and why somebody involved them.

use baton_core::AgentName;
use baton_core::store::{RunStatus, SessionRecord, Step, StepKind};
use serde::{Deserialize, Serialize};

use super::super::archive::Archive;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Who {
    pub(super) agent: AgentName,
    pub(super) status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Failed>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) code: String,
    pub(super) message: String,
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
    pub(super) fn of(step: &Step, session: &SessionRecord) -> Self {
        let Recorded { why, failure } = serde_json::from_value(step.data.clone()).unwrap_or_default();
        let why = why.filter(|why| !why.is_empty());
        Self { agent: session.agent.clone(), status: session.status, why, failure }
    }

    /// `agent legal failed (late): Is it allowed?`
    pub(super) fn told(&self) -> String {
        let how = match (&self.failure, self.status) {
            (Some(failed), _) => format!(" failed ({})", failed.code),
            (None, RunStatus::Completed) => String::new(),
            (None, status) => format!(" ({status})"),
        };
        let why = self.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("agent {}{how}{why}", self.agent)
    }
}

/// The sessions of a run, as its steps know them.
pub(super) async fn sessions(archive: &Archive, steps: &[Step]) -> anyhow::Result<Vec<SessionRecord>> {
    let mut sessions = Vec::new();
    for step in steps.iter().filter(|step| step.kind == StepKind::Session) {
        sessions.push(archive.tenant.session(&step.session_id).await?);
    }
    Ok(sessions)
}
