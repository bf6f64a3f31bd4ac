//! Whether a remote agent can be reached, and what its card says.

use std::fmt::Write as _;
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::remote::{Reachability, RemoteAgents as _};
use serde_json::{Value, json};

use crate::project::Project;
use crate::report::visible;
use crate::wiring;

/// How long the card may take.
const TIME: Duration = Duration::from_secs(5);
/// Skills that are listed.
const MAX_SKILLS: usize = 20;

/// Asks the agent for its card. `None` for a local agent.
pub(super) fn look(project: &Project, agent: &Agent) -> anyhow::Result<Option<Reachability>> {
    if !agent.kind.is_remote() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let remotes = wiring::remote_agents(project)?;
    let late = |_| Reachability::Unreachable(format!("no answer within {} s", TIME.as_secs()));
    Ok(Some(match remotes.connect(agent) {
        Ok(remote) => runtime
            .block_on(async { tokio::time::timeout(TIME, remote.reachability()).await.unwrap_or_else(late) }),
        Err(error) => Reachability::Unreachable(error.message),
    }))
}

/// The agent as JSON, with `reachable` and the card or the reason.
pub(super) fn with_reachability(agent: &Agent, remote: Option<&Reachability>) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(agent)?;
    match remote {
        None => {}
        Some(Reachability::Reachable { card, host }) => {
            value["remote"] = json!({ "reachable": true, "host": host, "card": **card });
        }
        Some(Reachability::Unreachable(reason)) => {
            value["remote"] = json!({ "reachable": false, "reason": reason });
        }
    }
    Ok(value)
}

/// What a person reads below the definition.
pub(super) fn text(remote: &Reachability) -> String {
    let (card, host) = match remote {
        Reachability::Unreachable(reason) => return format!("\nnot reachable: {}\n", visible(reason)),
        Reachability::Reachable { card, host } => (card, host),
    };
    let field = |name: &str| visible(card[name].as_str().unwrap_or_default());
    let mut out = format!("\nreachable at {}\n", visible(host));
    let _ = writeln!(out, "  {} {}: {}", field("name"), field("version"), field("description"));
    let is_on = |name: &str| card["capabilities"][name].as_bool().unwrap_or_default();
    for (name, label) in [("streaming", "streams"), ("pushNotifications", "sends push notifications")] {
        if is_on(name) {
            let _ = writeln!(out, "  {label}");
        }
    }
    for skill in card["skills"].as_array().into_iter().flatten().take(MAX_SKILLS) {
        let text = |name: &str| visible(skill[name].as_str().unwrap_or_default());
        let _ = writeln!(out, "  skill {}: {}", text("name"), text("description"));
    }
    out
}
