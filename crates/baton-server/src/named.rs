//! Lookup of agents by name.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;

use crate::app::App;
use crate::identity::Principal;
use crate::problem::{ApiResult, Code, Problem};
use crate::roster::RosterState;

/// Maximum length of a name that is compared with all known names.
const LONGEST: usize = 100;

/// Returns the agent, or a problem with similar names. An agent that is not for the caller's tenant is unknown.
pub fn agent(app: &App, caller: &Principal, text: &str) -> ApiResult<Arc<Agent>> {
    let found = AgentName::parse(text).ok().and_then(|name| app.agents(caller).get(&name).cloned());
    let is_shown = |name: &AgentName| app.engine.parts.tenants.permits(&caller.tenant, name);
    found.ok_or_else(|| unknown(&app.roster_of(caller), text, is_shown))
}

/// Like [`agent`], for a name that a request gives: if it is unknown, created agents are read again first, because another server may
/// have saved it a moment ago.
pub async fn newest_agent(app: &App, caller: &Principal, text: &str) -> ApiResult<Arc<Agent>> {
    match agent(app, caller, text) {
        Ok(found) => Ok(found),
        Err(_) => {
            app.refresh_agents(caller).await;
            agent(app, caller, text)
        }
    }
}

/// The same for everyone: an agent that is not for all tenants is unknown.
pub fn public_agent(app: &App, text: &str) -> ApiResult<Arc<Agent>> {
    let is_shown = |name: &AgentName| app.engine.parts.tenants.is_for_all(name);
    let found = AgentName::parse(text).ok().filter(is_shown);
    let found = found.and_then(|name| app.engine.all_agents().get(&name).cloned());
    found.ok_or_else(|| unknown(&app.roster.borrow(), text, is_shown))
}

fn unknown(state: &RosterState, text: &str, is_shown: impl Fn(&AgentName) -> bool) -> Problem {
    let is_long = text.len() > LONGEST;
    let nearest = if is_long { Vec::new() } else { state.roster.nearest(text) };
    let nearest = nearest.iter().filter(|name| is_shown(name));
    let nearest: Vec<String> = nearest.map(ToString::to_string).collect();
    let help = match nearest.as_slice() {
        [] => "GET /api/v1/agents lists them".to_owned(),
        names => format!("did you mean `{}`?", names.join("` or `")),
    };
    let shown = if is_long { "of this name".to_owned() } else { format!("`{text}`") };
    Problem::new(Code::AgentNotFound, format!("there is no agent {shown}; {help}")).with("nearest", nearest)
}
