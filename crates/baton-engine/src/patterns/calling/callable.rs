//! Whom an agent may have work for it.

use std::sync::Arc;

use baton_core::agent::{Agent, RoutingMode};
use baton_core::tool::ToolError;

use crate::bounds::Edge;
use crate::patterns::handover::head;
use crate::scope::Scope;

/// Of a description, in characters.
const DESCRIPTION: usize = 300;

/// Those of the file's `agents` that may be called from here, in its order.
#[derive(Debug)]
pub(crate) struct Callable {
    agents: Vec<Arc<Agent>>,
}

impl Callable {
    /// Nobody, when the scope's agent may not call at all.
    pub(crate) fn of(scope: &Scope, edge: Edge) -> Self {
        let listed = if may_delegate(scope) { scope.agent.agents.as_slice() } else { &[] };
        let known = listed.iter().filter_map(|name| scope.run.agents.get(name));
        let admitted = known.filter(|agent| scope.admits(agent, edge).is_ok());
        Self { agents: admitted.cloned().collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.agents.iter().map(|agent| agent.name.as_str()).collect()
    }

    /// One line for each, for a model that has to choose.
    pub(crate) fn list(&self) -> String {
        let lines = self.agents.iter().map(|agent| {
            let words: Vec<&str> = agent.description.split_whitespace().collect();
            format!("- {}: {}", agent.name, head(&words.join(" "), DESCRIPTION))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The agent of this name, or who there is.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Agent>, ToolError> {
        self.agents.iter().find(|agent| agent.name.as_str() == name).ok_or_else(|| {
            ToolError::InvalidArguments(format!(
                "there is no agent `{name}` that you may call; choose from {}",
                self.names().join(", ")
            ))
        })
    }
}

/// Whether the scope's agent may have others work for it at all. Everything that forbids delegation as such belongs here: today
/// the operator's switch, and that a pure router has destinations, not helpers.
fn may_delegate(scope: &Scope) -> bool {
    let only_routes = scope.agent.router.as_ref().is_some_and(|router| router.mode == RoutingMode::Pure);
    let policy = &scope.run.engine.parts.policy;
    !only_routes && policy.agent_tool.is_on(&scope.run.caller.tenant)
}
