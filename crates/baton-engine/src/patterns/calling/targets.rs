//! Selects the agent for a task: a custom agent that the model defines, a listed specialist, or a generic agent.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{
    Advisors, Agent, AgentKind, Delegation, PlanningStrategy, RoutingMode, Skills, ToolAccess, ToolPattern,
};
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{StepKind, StepState};
use baton_core::tool::ToolError;
use serde_json::{Value, json};

use crate::audit;
use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::invocation;
use crate::journal::Record;
use crate::patterns::calling::{AgentDefinition, CallAgentArguments};
use crate::redaction::{head, redact};
use crate::run_state::DENIED;
use crate::scope::Scope;
use crate::task::DELEGATE_PERMISSION;
use crate::toolset::Toolset;

pub(super) const GENERIC: &str = "generic";
pub(super) const CUSTOM: &str = "custom";

const GENERIC_PROMPT: &str = "You work on one mission for another agent. The mission is all that you know. Do what it asks, \
                              completely and correctly; say plainly what you could not do. Answer with the result only.";

/// Returns the agent for a call, with the planning strategy of the call.
pub(super) async fn choose_agent(scope: &Scope, call: &CallAgentArguments) -> Result<Arc<Agent>, ToolError> {
    let agent = match (&call.agent_definition, &call.specialist) {
        (Some(definition), _) => Arc::new(defined_agent(scope, definition).await?),
        (None, Some(name)) => find_specialist(scope, name)?,
        (None, None) => Arc::new(temporary_agent(scope, GENERIC, GENERIC_PROMPT.to_owned(), Vec::new())?),
    };
    match call.planning_strategy {
        Some(strategy) if strategy != agent.planning_strategy => {
            Ok(Arc::new(Agent { planning_strategy: strategy, ..Agent::clone(&agent) }))
        }
        _ => Ok(agent),
    }
}

fn find_specialist(scope: &Scope, name: &str) -> Result<Arc<Agent>, ToolError> {
    CallableAgents::of(scope, InvocationKind::Call).find(name).cloned()
}

/// The agent of a definition. Without a prompt it is the generic agent, with the tools that the definition lists.
async fn defined_agent(scope: &Scope, definition: &AgentDefinition) -> Result<Agent, ToolError> {
    let tools = tokio::select! {
        biased;
        () = scope.cancel.cancelled() => return Err(ToolError::Cancelled),
        tools = grantable_tools(scope, &definition.tool_allowlist) => tools?,
    };
    match &definition.system_prompt {
        Some(prompt) => temporary_agent(scope, CUSTOM, redact(scope.agent(), prompt), tools),
        None => temporary_agent(scope, GENERIC, GENERIC_PROMPT.to_owned(), tools),
    }
}

/// An agent with the caller's model, limits and approvals, but with only the given tools and no other agents.
fn temporary_agent(
    scope: &Scope,
    name: &str,
    prompt: String,
    tools: Vec<ToolPattern>,
) -> Result<Agent, ToolError> {
    let caller = scope.agent();
    let name = AgentName::parse(name).map_err(|error| ToolError::Execution(error.to_string()))?;
    let mut mcp_servers = caller.mcp_servers.clone();
    mcp_servers.retain(|server, _| tools.iter().any(|tool| tool.mcp_server() == Some(server)));
    Ok(Agent {
        display_name: name.to_string(),
        description: format!("Works on one mission for {}.", caller.display_name),
        kind: AgentKind::Local,
        planning_strategy: PlanningStrategy::NativeReact,
        input_schema: None,
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
        visible: None,
        handoffs: Vec::new(),
        name,
        mcp_servers,
        prompt,
        // A model wrote it.
        literal_prompt: true,
        ..Agent::clone(caller)
    })
}

/// Resolves patterns to tools that the caller has and that the policy allows for sub-agents. Refuses a pattern without a match.
async fn grantable_tools(scope: &Scope, wanted: &[String]) -> Result<Vec<ToolPattern>, ToolError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let toolset = Toolset::gather(scope, true, Vec::new()).await;
    let for_all = &scope.run.policy.sub_agent_tools;
    let is_lendable = |name: &&str| for_all.is_empty() || for_all.iter().any(|tool| tool.matches(name));
    let names: Vec<&str> = toolset.specs().into_iter().map(|spec| spec.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().filter(is_lendable).collect();
    let mut lent = Vec::new();
    for text in wanted {
        let pattern = ToolPattern::parse(text).ok();
        let meant = names.iter().filter(|name| pattern.as_ref().is_some_and(|pattern| pattern.matches(name)));
        let meant: Vec<ToolPattern> = meant.filter_map(|name| ToolPattern::parse(name).ok()).collect();
        if meant.is_empty() {
            return Err(not_grantable(text, &names));
        }
        lent.extend(meant);
    }
    lent.sort();
    lent.dedup();
    Ok(lent)
}

fn not_grantable(name: &str, names: &[&str]) -> ToolError {
    let choice = if names.is_empty() {
        "you have none to give".to_owned()
    } else {
        format!("choose from {}", names.join(", "))
    };
    ToolError::NotPermitted(format!(
        "`{name}` is not a tool that you may give to another agent; {choice}, or leave out `tool_allowlist`"
    ))
}

/// Maximum length of an agent's description in the tool's description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// Maximum length of an agent's input schema in the tool's description, in characters.
const MAX_SCHEMA_CHARS: usize = 2_000;

/// Tells a caller what the agent's tasks have to look like.
pub(super) fn schema_note(agent: &Agent) -> String {
    let note = |schema: &Value| {
        format!(" Its task is JSON of this schema: {}", head(&schema.to_string(), MAX_SCHEMA_CHARS))
    };
    agent.input_schema.as_ref().map(note).unwrap_or_default()
}

/// The agents in the file's `agents` that may be called from this scope, in the order of the file.
#[derive(Debug)]
pub(crate) struct CallableAgents {
    agents: Vec<Arc<Agent>>,
}

impl CallableAgents {
    /// Empty if the scope's agent may not delegate.
    pub(crate) fn of(scope: &Scope, invocation: InvocationKind) -> Self {
        let listed = if may_delegate(scope) { scope.agent().agents.as_slice() } else { &[] };
        let known = listed.iter().filter_map(|name| scope.run.agents.get(name));
        let admitted = known.filter(|agent| invocation::admits(scope, agent, invocation).is_ok());
        Self { agents: admitted.cloned().collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    pub(crate) fn agents(&self) -> &[Arc<Agent>] {
        &self.agents
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.agents.iter().map(|agent| agent.name.as_str()).collect()
    }

    /// One line per agent, for a tool description.
    pub(crate) fn list(&self) -> String {
        let lines = self.agents.iter().map(|agent| {
            let words: Vec<&str> = agent.description.split_whitespace().collect();
            let about = head(&words.join(" "), MAX_DESCRIPTION_CHARS);
            format!("- {}: {about}{}", agent.name, schema_note(agent))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The agent with this name, or an error that lists the available ones.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Agent>, ToolError> {
        self.agents.iter().find(|agent| agent.name.as_str() == name).ok_or_else(|| {
            ToolError::InvalidArguments(format!(
                "there is no agent `{name}` that you may call; choose from {}",
                self.names().join(", ")
            ))
        })
    }
}

/// Whether the scope's agent may delegate at all. Every rule against delegation as such belongs here: the operator's switch, the
/// user's permission, and that a pure router has destinations, not sub-agents.
fn may_delegate(scope: &Scope) -> bool {
    is_delegation_offered(scope) && scope.run.request.rights.allow(DELEGATE_PERMISSION)
}

/// Like [`may_delegate`], without the user's permission.
fn is_delegation_offered(scope: &Scope) -> bool {
    let only_routes = scope.agent().router.as_ref().is_some_and(|router| router.mode == RoutingMode::Pure);
    !only_routes && scope.run.policy.agent_tool.is_on(&scope.run.caller.tenant)
}

/// Records in journal and audit log that an agent works without sub-agents because the user lacks the permission. Once per run is
/// enough, because the permission is the same for all agents.
pub(crate) async fn record_denied_delegation(scope: &Scope) -> Result<(), Failure> {
    let would_ask = !scope.agent().agents.is_empty() && is_delegation_offered(scope);
    if !would_ask || scope.run.request.rights.allow(DELEGATE_PERMISSION) || !scope.run.progress.deny() {
        return Ok(());
    }
    let text = format!(
        "`{}` calls no other agent: the person does not have the permission `{DELEGATE_PERMISSION}`",
        scope.name()
    );
    let record = Record {
        steps: vec![scope.at(DENIED).step().build(StepKind::Note, StepState::Finished, &json!({}))?],
        events: vec![scope.event(Visibility::Internal, EventKind::Status { text })],
        audit: vec![audit::denied(scope, DELEGATE_PERMISSION)],
        ..Record::default()
    };
    // Boxed, like everything with a record that most sessions never write.
    Box::pin(scope.run.recorder.journal.commit_soon(record)).await;
    Ok(())
}
