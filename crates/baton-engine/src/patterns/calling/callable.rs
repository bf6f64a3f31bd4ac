//! Whom an agent may have work for it.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{Agent, RoutingMode};
use baton_core::tool::ToolError;
use serde_json::Value;

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

    pub(crate) fn names(&self) -> Vec<&AgentName> {
        self.agents.iter().map(|agent| &agent.name).collect()
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
            let names: Vec<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
            ToolError::InvalidArguments(format!(
                "there is no agent `{name}` that you may call; choose from {}",
                names.join(", ")
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

/// Arguments without those that say nothing: small models fill in `null`, `""` and `{}` for what they mean to leave out.
pub(crate) fn without_blanks(arguments: Value) -> Value {
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    match arguments {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| says_something(value)).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::without_blanks;

    #[test]
    fn what_is_blank_was_meant_to_be_left_out() {
        let filled =
            json!({"mission": "x", "specialist": null, "reason": " ", "agent_definition": {}, "n": 0});
        assert_eq!(without_blanks(filled), json!({"mission": "x", "n": 0}));
        assert_eq!(without_blanks(json!([])), json!([]));
    }
}
