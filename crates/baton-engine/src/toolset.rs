//! The tools of one session.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::{Agent, McpServer, ToolPattern};
use baton_core::chat::ToolCall;
use baton_core::event::EventKind;
use baton_core::tool::{Effect, Tool, ToolError, ToolSpec};
use futures_util::future::join_all;
use serde_json::Value;

use crate::compiled;
use crate::given::Given;
use crate::scope::Scope;
use crate::skillset::Skillset;

/// Pages through what was too long; whoever has tools has it too.
const READ_OUTPUT: &str = "read_output";

/// What the session's agent may use, in a fixed order, so that prompts stay cacheable.
#[derive(Debug, Default)]
pub(crate) struct Toolset {
    tools: Vec<Offered>,
}

/// What a session begins with.
#[derive(Debug)]
pub(crate) struct Equipment {
    pub(crate) toolset: Toolset,
    pub(crate) skills: Skillset,
}

impl Equipment {
    /// Tools of the engine alone.
    pub(crate) fn of(given: Vec<Arc<dyn Given>>) -> Self {
        Self { toolset: Toolset::of(given), skills: Skillset::default() }
    }

    /// Tools of the engine and, if `own`, the tools and skills that the agent's file lists.
    pub(crate) async fn gather(scope: &Scope, own: bool, mut given: Vec<Arc<dyn Given>>) -> Self {
        let skills = if own { Skillset::of(scope).await } else { Skillset::default() };
        given.extend(skills.tool());
        Self { toolset: Toolset::gather(scope, own, given).await, skills }
    }
}

/// One tool, from outside or from the engine itself.
#[derive(Debug)]
pub(crate) enum Offered {
    Tool(Arc<dyn Tool>),
    Given(Arc<dyn Given>),
}

impl Offered {
    pub(crate) fn spec(&self) -> &ToolSpec {
        match self {
            Self::Tool(tool) => tool.spec(),
            Self::Given(given) => given.spec(),
        }
    }

    fn is_hidden(&self) -> bool {
        matches!(self, Self::Given(given) if given.is_hidden())
    }

    /// The arguments of a call as JSON that satisfies the tool's schema.
    pub(crate) fn checked(&self, text: &str) -> Result<Value, ToolError> {
        let arguments = match (self, parsed(text)?) {
            (Self::Given(given), arguments) => given.prepare(arguments)?,
            (Self::Tool(_), arguments) => arguments,
        };
        checked(self.spec(), arguments)
    }

    pub(crate) fn preview(&self, arguments: &Value) -> Option<String> {
        match self {
            Self::Tool(_) => None,
            Self::Given(given) => given.preview(arguments),
        }
    }
}

impl Toolset {
    /// Tools of the engine alone.
    pub(crate) fn of(given: Vec<Arc<dyn Given>>) -> Self {
        Self { tools: given.into_iter().map(Offered::Given).collect() }
    }

    /// Tools of the engine and, if `own`, those that the agent's file lists.
    pub(crate) async fn gather(scope: &Scope, own: bool, given: Vec<Arc<dyn Given>>) -> Self {
        let Self { mut tools } = Self::of(given);
        if own {
            tools.extend(listed(scope).await.into_iter().map(Offered::Tool));
        }
        let read_output = scope.run.engine.parts.tools.iter().find(|tool| tool.spec().name == READ_OUTPUT);
        if own && !tools.is_empty() && !tools.iter().any(|tool| tool.spec().name == READ_OUTPUT) {
            tools.extend(read_output.cloned().map(Offered::Tool));
        }
        // The engine's own come first, so that nothing from outside takes their names.
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools.dedup_by(|a, b| a.spec().name == b.spec().name);
        Self { tools }
    }

    /// The one tool that a workflow runs. Its file names it there, so it need not be listed a second time; what is denied stays
    /// denied.
    pub(crate) async fn single(scope: &Scope, name: &str) -> Self {
        let mut agent = Agent::clone(&scope.agent);
        agent.tools.allow = ToolPattern::parse(name).into_iter().collect();
        agent
            .mcp_servers
            .retain(|server, _| agent.tools.allow.iter().any(|one| one.mcp_server() == Some(server)));
        let mut own = scope.clone();
        own.agent = Arc::new(agent);
        Self { tools: listed(&own).await.into_iter().map(Offered::Tool).collect() }
    }

    /// What the model is told of.
    pub(crate) fn specs(&self) -> Vec<&ToolSpec> {
        self.tools.iter().filter(|tool| !tool.is_hidden()).map(Offered::spec).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Offered, ToolError> {
        self.tools.iter().find(|tool| tool.spec().name == name).ok_or_else(|| {
            let names = self.tools.iter().map(|tool| tool.spec().name.as_str());
            let near = names
                .filter(|known| known.contains(name) || name.contains(known))
                .min_by_key(|known| known.len());
            ToolError::Unknown { name: name.to_owned(), nearest: near.map(str::to_owned) }
        })
    }

    /// How a call would end the session, if it would.
    pub(crate) fn ends_with(&self, call: &ToolCall) -> Option<String> {
        match self.find(&call.name) {
            Ok(Offered::Given(given)) => {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
                given.ends_with(&arguments)
            }
            _ => None,
        }
    }
}

/// Built-in tools and those of MCP servers that the agent lists. A server that cannot be reached costs its tools, not the run;
/// the trace says so.
async fn listed(scope: &Scope) -> Vec<Arc<dyn Tool>> {
    let agent = &scope.agent;
    let engine = &scope.run.engine.parts;
    let mut tools: Vec<Arc<dyn Tool>> =
        engine.tools.iter().filter(|tool| permitted(scope, tool.spec())).cloned().collect();
    let source = engine.servers.as_ref();
    let named = servers(agent);
    let asked = named.iter().filter_map(|(server, definition)| {
        let tools = source?.tools(&scope.run.caller.tenant, server, definition);
        Some(async move { (server, tools.await) })
    });
    for (server, found) in join_all(asked).await {
        match found {
            Ok(found) => tools.extend(found.into_iter().filter(|tool| permitted(scope, tool.spec()))),
            Err(error) => {
                let text = format!("the MCP server `{server}` is not available: {error}");
                scope.trace(EventKind::Status { text }).await;
            }
        }
    }
    tools
}

/// What the agent's file allows, and for a sub-agent what all sub-agents may use.
pub(crate) fn permitted(scope: &Scope, spec: &ToolSpec) -> bool {
    let tools = &scope.agent.tools;
    let for_all = &scope.run.engine.parts.policy.sub_agent_tools;
    let is_confined = scope.bounds.is_sub_agent && !for_all.is_empty();
    tools.permits(&spec.name)
        && (!tools.read_only || spec.effect == Effect::ReadOnly)
        && (!is_confined || for_all.iter().any(|pattern| pattern.matches(&spec.name)))
}

/// Servers the agent names, under `mcp_servers` or within `tools`.
fn servers(agent: &Agent) -> Vec<(String, McpServer)> {
    let mut seen = BTreeSet::new();
    let listed = agent.mcp_servers.iter().map(|(name, server)| (name.clone(), server.clone()));
    let in_tools = agent.tools.allow.iter().filter_map(|pattern| pattern.mcp_server());
    let in_tools =
        in_tools.filter(|name| !name.contains('*')).map(|name| (name.to_owned(), McpServer::Configured));
    listed.chain(in_tools).filter(|(name, _)| seen.insert(name.clone())).collect()
}

/// Arguments as JSON that satisfies the tool's schema. The error is for the model: it says what to correct.
pub fn checked_arguments(spec: &ToolSpec, text: &str) -> Result<Value, ToolError> {
    checked(spec, parsed(text)?)
}

/// A call without arguments often comes without text.
fn parsed(text: &str) -> Result<Value, ToolError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str(text)
        .map_err(|error| ToolError::InvalidArguments(format!("they are not JSON: {error}")))
}

fn checked(spec: &ToolSpec, arguments: Value) -> Result<Value, ToolError> {
    let validator = compiled::validator(&spec.parameters)
        .map_err(|error| ToolError::Execution(format!("the tool's own schema is invalid: {error}")))?;
    let mistakes: Vec<String> = validator
        .iter_errors(&arguments)
        .take(5)
        .map(|error| match error.instance_path().to_string() {
            path if path.is_empty() => error.to_string(),
            path => format!("{path}: {error}"),
        })
        .collect();
    if mistakes.is_empty() { Ok(arguments) } else { Err(ToolError::InvalidArguments(mistakes.join("; "))) }
}
