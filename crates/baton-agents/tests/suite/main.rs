//! Agent files through the whole of this crate, as a caller uses it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod foreign;
mod hostile;
mod options;
mod roster;
mod terminal;
mod watching;

use std::sync::Arc;

use baton_agents::{Graph, KnownNames, RosterDraft, SourceFile};
use baton_core::AgentName;

/// A draft from `(name, head)` pairs; each body is one sentence, each description the same.
fn draft(agents: &[(&str, &str)]) -> RosterDraft {
    let sources: Vec<Arc<SourceFile>> = agents
        .iter()
        .map(|(name, head)| {
            SourceFile::new(format!("{name}.md"), format!("---\ndescription: Helps.\n{head}\n---\nHelp.\n"))
        })
        .collect();
    RosterDraft::parse(&sources, &KnownNames::default(), Vec::new())
}

/// The errors of a draft as `file:line:col: rule: message`.
fn errors(draft: &RosterDraft) -> Vec<String> {
    let errors = draft.problems().iter().filter(|problem| problem.is_error());
    errors.map(|problem| format!("{}: {}: {}", problem.location, problem.rule, problem.message)).collect()
}

/// Who can own the answer of `agent`.
fn answers(draft: &RosterDraft, agent: &str) -> Vec<String> {
    let graph = Graph::of(draft, None);
    let node = graph.agents.iter().find(|node| node.id.as_str() == agent).expect("an agent");
    node.answers.iter().map(ToString::to_string).collect()
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a valid name")
}
