//! Lookup of agents by name.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;

use crate::app::App;
use crate::problem::{ApiResult, Code, Problem};

/// Maximum length of a name that is compared with all known names.
const LONGEST: usize = 100;

/// Returns the agent, or a problem with similar names.
pub fn agent(app: &App, text: &str) -> ApiResult<Arc<Agent>> {
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
