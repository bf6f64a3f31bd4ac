//! Who takes a mission: an agent that was made for it, a specialist, or a general agent, in this order.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{
    Advisors, Agent, Delegation, Kind, PlanningStrategy, Skills, ToolAccess, ToolPattern,
};
use baton_core::tool::ToolError;

use super::callable::Callable;
use super::{Call, Definition};
use crate::bounds::Edge;
use crate::patterns::handover::shared;
use crate::scope::Scope;
use crate::toolset::Toolset;

pub(super) const GENERIC: &str = "generic";
pub(super) const CUSTOM: &str = "custom";

const GENERIC_PROMPT: &str = "You work on one mission for another agent. The mission is all that you know. Do what it asks, \
                              completely and correctly; say plainly what you could not do. Answer with the result only.";

/// The agent for a call, with the strategy that the call asks for.
pub(super) async fn choose(scope: &Scope, call: &Call) -> Result<Arc<Agent>, ToolError> {
    let agent = match (&call.agent_definition, &call.specialist) {
        (Some(definition), _) => Arc::new(custom(scope, definition).await?),
        (None, Some(name)) => specialist(scope, name)?,
        (None, None) => Arc::new(helper(scope, GENERIC, GENERIC_PROMPT.to_owned(), Vec::new())?),
    };
    match call.planning_strategy {
        Some(strategy) if strategy != agent.planning_strategy => {
            Ok(Arc::new(Agent { planning_strategy: strategy, ..Agent::clone(&agent) }))
        }
        _ => Ok(agent),
    }
}

fn specialist(scope: &Scope, name: &str) -> Result<Arc<Agent>, ToolError> {
    Callable::of(scope, Edge::Call).find(name).cloned()
}

async fn custom(scope: &Scope, definition: &Definition) -> Result<Agent, ToolError> {
    let tools = tokio::select! {
        biased;
        () = scope.cancel.cancelled() => return Err(ToolError::Cancelled),
        tools = lendable(scope, &definition.tool_allowlist) => tools?,
    };
    helper(scope, CUSTOM, literal(&shared(&scope.agent, &definition.system_prompt)), tools)
}

/// Works as its caller does, with its model, limits and approvals, but knows nobody and has only these tools.
fn helper(scope: &Scope, name: &str, prompt: String, tools: Vec<ToolPattern>) -> Result<Agent, ToolError> {
    let caller = &*scope.agent;
    let name = AgentName::parse(name).map_err(|error| ToolError::Execution(error.to_string()))?;
    let mut mcp_servers = caller.mcp_servers.clone();
    mcp_servers.retain(|server, _| tools.iter().any(|tool| tool.mcp_server() == Some(server)));
    Ok(Agent {
        display_name: name.to_string(),
        description: format!("Works on one mission for {}.", caller.display_name),
        kind: Kind::Local,
        planning_strategy: PlanningStrategy::NativeReact,
        output_schema: None,
        tools: ToolAccess { allow: tools, ..caller.tools.clone() },
        skills: Skills::default(),
        agents: Vec::new(),
        delegation: Delegation::default(),
        advisors: Advisors::default(),
        router: None,
        team: None,
        handoff: Vec::new(),
        collaborations: Vec::new(),
        accepts_handoff: None,
        workflow: None,
        can_be_orchestrated: true,
        handoffs: Vec::new(),
        name,
        mcp_servers,
        prompt,
        ..caller.clone()
    })
}

/// The tools that are meant, as names. Nobody can give away what they do not have, or what sub-agents must not have.
async fn lendable(scope: &Scope, wanted: &[String]) -> Result<Vec<ToolPattern>, ToolError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let toolset = Toolset::gather(scope, true, Vec::new()).await;
    let for_all = &scope.run.engine.parts.policy.sub_agent_tools;
    let is_lendable = |name: &&str| for_all.is_empty() || for_all.iter().any(|tool| tool.matches(name));
    let names: Vec<&str> = toolset.specs().into_iter().map(|spec| spec.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().filter(is_lendable).collect();
    let mut lent = Vec::new();
    for text in wanted {
        let pattern = ToolPattern::parse(text).ok();
        let meant = names.iter().filter(|name| pattern.as_ref().is_some_and(|pattern| pattern.matches(name)));
        let meant: Vec<ToolPattern> = meant.filter_map(|name| ToolPattern::parse(name).ok()).collect();
        if meant.is_empty() {
            return Err(not_lendable(text, &names));
        }
        lent.extend(meant);
    }
    lent.sort();
    lent.dedup();
    Ok(lent)
}

fn not_lendable(name: &str, names: &[&str]) -> ToolError {
    let choice = if names.is_empty() {
        "you have none to give".to_owned()
    } else {
        format!("choose from {}", names.join(", "))
    };
    ToolError::NotPermitted(format!(
        "`{name}` is not a tool that you may give to another agent; {choice}, or leave out `tool_allowlist`"
    ))
}

/// A text that a model wrote, as a template that says just that: nothing in it is evaluated.
fn literal(text: &str) -> String {
    if ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
        text.replace('{', "{{ '{' }}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::literal;

    /// F17
    #[test]
    fn what_a_model_writes_is_never_a_template() {
        for text in ["{{ user }}", "{% for x in y %}{# no #}", "{{'{{'}}", "plain {json: 1}"] {
            let environment = minijinja::Environment::new();
            assert_eq!(environment.render_str(&literal(text), ()).unwrap(), text);
        }
    }
}
