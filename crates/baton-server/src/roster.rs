//! The agents in use, and whether the newest files are valid.

use std::sync::Arc;

use baton_agents::problem::Severity;
use baton_agents::{Problem, Rejected, Roster};
use jiff::Timestamp;

/// The result of the last reading of the agent files. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RosterState {
    /// The agents in use: the newest that were valid.
    pub roster: Arc<Roster>,
    /// When those were loaded.
    pub loaded_at: Timestamp,
    /// When the files were read last.
    pub checked_at: Timestamp,
    /// Why the newest files are not in use; `None` when they are.
    rejected: Option<Arc<Rejected>>,
}

impl RosterState {
    /// The newest files are in use.
    pub fn loaded(roster: Arc<Roster>) -> Self {
        let now = Timestamp::now();
        Self { roster, loaded_at: now, checked_at: now, rejected: None }
    }

    /// The newest files are broken: the agents stay as they were.
    pub fn keep(&mut self, rejected: Rejected) {
        self.checked_at = Timestamp::now();
        self.rejected = Some(Arc::new(rejected));
    }

    pub fn is_current(&self) -> bool {
        self.rejected.is_none()
    }

    /// Errors and warnings of the newest files, whether or not they are in use.
    pub fn findings(&self) -> impl Iterator<Item = &Problem> {
        let problems = match &self.rejected {
            Some(rejected) => &rejected.problems,
            None => self.roster.problems(),
        };
        problems.iter().filter(|problem| problem.severity != Severity::Note)
    }
}
