//! Agents that a caller names.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;

use crate::app::App;
use crate::problem::{Answer, Code, Problem};

/// Nothing longer is compared with every name there is.
const LONGEST: usize = 100;

/// The agent of this name, or the names that may have been meant.
pub fn agent(app: &App, text: &str) -> Answer<Arc<Agent>> {
    let found = AgentName::parse(text).ok().and_then(|name| app.agents().get(&name).cloned());
    found.ok_or_else(|| unknown(app, text))
}

fn unknown(app: &App, text: &str) -> Problem {
    let is_long = text.len() > LONGEST;
    let nearest = if is_long { Vec::new() } else { app.roster.borrow().roster.nearest(text) };
    let nearest: Vec<String> = nearest.iter().map(ToString::to_string).collect();
    let help = match nearest.as_slice() {
        [] => "GET /api/v1/agents lists them".to_owned(),
        names => format!("did you mean `{}`?", names.join("` or `")),
    };
    let shown = if is_long { "of this name".to_owned() } else { format!("`{text}`") };
    Problem::new(Code::AgentNotFound, format!("there is no agent {shown}; {help}")).with("nearest", nearest)
}
