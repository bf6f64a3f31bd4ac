//! The state of the agent files, as the API shows it.

use std::path::Path;

use baton_agents::Diagnostic;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::agent::DiagnosticView;
use super::schema::moment;
use crate::roster::RosterState;

/// The agents in use, and what the last reading of their files found.
#[derive(Debug, Serialize, ToSchema)]
pub struct RosterView {
    pub status: RosterStatus,
    /// How many are in use.
    pub agents: usize,
    /// When those were loaded.
    #[schema(schema_with = moment)]
    pub loaded_at: Timestamp,
    /// When the files were read last.
    #[schema(schema_with = moment)]
    pub checked_at: Timestamp,
    /// Errors and warnings of the newest files.
    pub diagnostics: Vec<DiagnosticView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RosterStatus {
    /// The newest files are in use.
    Current,
    /// The newest files were rejected; the last good version is active.
    LastGood,
}

impl RosterView {
    pub fn of(
        state: &RosterState,
        agents: usize,
        is_shown: impl Fn(&Diagnostic) -> bool,
        root: &Path,
    ) -> Self {
        let findings = state.findings().filter(|problem| is_shown(problem));
        Self {
            status: if state.is_current() { RosterStatus::Current } else { RosterStatus::LastGood },
            agents,
            loaded_at: state.loaded_at,
            checked_at: state.checked_at,
            diagnostics: findings.map(|problem| DiagnosticView::of(problem, root)).collect(),
        }
    }
}
