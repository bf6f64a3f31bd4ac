//! Rules that need more than one key or more than one agent.

mod agent;
mod cycle;
mod schemas;
pub mod walk;

use crate::problem::Diagnostic;
use crate::roster::RosterDraft;

/// All problems that only show when the agents are looked at together.
pub fn check(draft: &RosterDraft) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for entry in draft.agents() {
        agent::check(entry, draft, &mut problems);
    }
    cycle::check(draft, &mut problems);
    schemas::check(draft, &mut problems);
    problems
}
