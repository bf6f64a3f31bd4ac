//! The agents in use, and whether the newest files are valid.

use std::sync::Arc;

use baton_agents::problem::Severity;
use baton_agents::{Diagnostic, Rejected, Roster};
use jiff::Timestamp;

/// Result of the last read of the agent files. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RosterState {
    /// The agents in use: the newest valid ones.
    pub roster: Arc<Roster>,
    /// When these agents were loaded.
    pub loaded_at: Timestamp,
    /// When the files were last read.
    pub checked_at: Timestamp,
    /// Why the newest files are not in use; `None` if they are.
    rejected: Option<Arc<Rejected>>,
    /// Problems of created agents that cannot be used.
    left_out: Vec<Diagnostic>,
}

impl RosterState {
    /// The newest files are in use.
    pub fn loaded(roster: Arc<Roster>) -> Self {
        let now = Timestamp::now();
        Self { roster, loaded_at: now, checked_at: now, rejected: None, left_out: Vec::new() }
    }

    /// The same files, with the agents that people of a tenant created.
    #[must_use]
    pub fn with_created(self, roster: Arc<Roster>, left_out: Vec<Diagnostic>) -> Self {
        Self { roster, left_out, ..self }
    }

    /// The newest files are invalid: keeps the current agents.
    pub fn keep(&mut self, rejected: Rejected) {
        self.checked_at = Timestamp::now();
        self.rejected = Some(Arc::new(rejected));
    }

    pub fn is_current(&self) -> bool {
        self.rejected.is_none()
    }

    /// Errors and warnings of the newest files, whether or not these are in use.
    pub fn findings(&self) -> impl Iterator<Item = &Diagnostic> {
        let problems = match &self.rejected {
            Some(rejected) => &rejected.problems,
            None => self.roster.problems(),
        };
        problems.iter().chain(&self.left_out).filter(|problem| problem.severity != Severity::Note)
    }
}
