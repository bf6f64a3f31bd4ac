//! The tools of one session.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::{Agent, McpServer, ToolPattern};
use baton_core::chat::ToolCall;
use baton_core::event::EventKind;
use baton_core::store::ApprovalPreview;
use baton_core::tool::{Effect, Tool, ToolError, ToolSpec};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::approvals::policy;
use crate::compile_cache;
use crate::engine_tool::EngineTool;
use crate::scope::Scope;
use crate::skillset::Skillset;
use crate::trial;

/// Reads spooled output. Every session with tools has it, and is offered it once there is spooled output.
const READ_OUTPUT: &str = "read_output";

/// The tools of one session, sorted by name, so that prompts stay cacheable. `read_output` is last, because it is offered later than
/// the others.
#[derive(Debug, Default)]
pub(crate) struct Toolset {
    tools: Vec<SessionTool>,
    /// Names of the tools that an approval rule denies. Models do not see them, and calls of them are refused.
    denied: Vec<String>,
}

/// The tools and skills of a session.
#[derive(Debug)]
pub(crate) struct ToolsAndSkills {
    pub(crate) toolset: Toolset,
    pub(crate) skills: Skillset,
}

impl ToolsAndSkills {
    /// Only tools of the engine.
    pub(crate) fn of(engine_tools: Vec<Arc<dyn EngineTool>>) -> Self {
        Self { toolset: Toolset::of(engine_tools), skills: Skillset::default() }
    }

    /// Tools of the engine and, if `own`, the tools and skills that the agent's file lists.
    pub(crate) async fn collect(
        scope: &Scope,
        own: bool,
        mut engine_tools: Vec<Arc<dyn EngineTool>>,
    ) -> Self {
        let skills = if own { Skillset::of(scope).await } else { Skillset::default() };
        engine_tools.extend(skills.tool());
        Self { toolset: Toolset::gather(scope, own, engine_tools).await, skills }
    }
}

/// A tool of a session: an ordinary one or one of the engine.
#[derive(Debug)]
pub(crate) enum SessionTool {
    Tool(Arc<dyn Tool>),
    Engine(Arc<dyn EngineTool>),
}

impl SessionTool {
    pub(crate) fn spec(&self) -> &ToolSpec {
        match self {
            Self::Tool(tool) => tool.spec(),
            Self::Engine(tool) => tool.spec(),
        }
    }

    /// Whether a call only reads. Tools of the engine count: what the agents that they involve may do is decided by their own files.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Tool(tool) => tool.spec().effect == Effect::ReadOnly,
            Self::Engine(_) => true,
        }
    }

    fn is_hidden(&self) -> bool {
        matches!(self, Self::Engine(tool) if tool.is_hidden())
    }

    /// Parses the arguments of a call and validates them against the tool's schema.
    pub(crate) fn checked(&self, text: &str) -> Result<Value, ToolError> {
        let arguments = match (self, parsed(text)?) {
            (Self::Engine(tool), arguments) => tool.prepare(arguments)?,
            (Self::Tool(_), arguments) => arguments,
        };
        checked(self.accepted_parameters(), arguments)
    }

    /// The schema of the arguments that a call may have.
    pub(crate) fn accepted_parameters(&self) -> &Value {
        match self {
            Self::Tool(tool) => &tool.spec().parameters,
            Self::Engine(tool) => tool.accepted_parameters(),
        }
    }

    pub(crate) fn preview(&self, arguments: &Value) -> Option<ApprovalPreview> {
        match self {
            Self::Tool(_) => None,
            Self::Engine(tool) => tool.preview(arguments),
        }
    }
}

impl Toolset {
    /// Only tools of the engine.
    pub(crate) fn of(engine_tools: Vec<Arc<dyn EngineTool>>) -> Self {
        Self { tools: engine_tools.into_iter().map(SessionTool::Engine).collect(), denied: Vec::new() }
    }

    /// Tools of the engine and, if `own`, those that the agent's file lists.
    pub(crate) async fn gather(scope: &Scope, own: bool, engine_tools: Vec<Arc<dyn EngineTool>>) -> Self {
        let Self { mut tools, .. } = Self::of(engine_tools);
        if own {
            tools.extend(listed(scope).await.into_iter().map(SessionTool::Tool));
        }
        let read_output = scope.run.extensions.tools.iter().find(|tool| tool.spec().name == READ_OUTPUT);
        if own && !tools.is_empty() && !tools.iter().any(|tool| tool.spec().name == READ_OUTPUT) {
            tools.extend(read_output.cloned().map(SessionTool::Tool));
        }
        // The sort is stable and the engine's tools come first, so no other tool can take their names.
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools.dedup_by(|a, b| a.spec().name == b.spec().name);
        tools.sort_by_key(|tool| tool.spec().name == READ_OUTPUT);
        let denied = tools.iter().map(SessionTool::spec).filter(|spec| policy::is_denied(scope, spec));
        let denied = denied.map(|spec| spec.name.clone()).collect();
        Self { tools, denied }
    }

    /// The one tool that a workflow runs. The workflow names it, so `tools` need not list it. A denied tool stays denied.
    pub(crate) async fn single(scope: &Scope, name: &str) -> Self {
        let mut agent = Agent::clone(scope.agent());
        agent.tools.allow = ToolPattern::parse(name).into_iter().collect();
        agent
            .mcp_servers
            .retain(|server, _| agent.tools.allow.iter().any(|one| one.mcp_server() == Some(server)));
        let own = scope.clone().with_session(|session| session.agent = Arc::new(agent));
        if name == trial::NAME {
            return Self::of(trial::tool(&own).into_iter().collect());
        }
        let tools = listed(&own).await.into_iter().map(SessionTool::Tool).collect();
        Self { tools, denied: Vec::new() }
    }

    /// The tools that the model may see in the course of the session.
    pub(crate) fn specs(&self) -> Vec<&ToolSpec> {
        let is_shown = |tool: &&SessionTool| !tool.is_hidden() && !self.denied.contains(&tool.spec().name);
        self.tools.iter().filter(is_shown).map(SessionTool::spec).collect()
    }

    /// The tools that the model sees now: `read_output` only if the run has spooled output.
    pub(crate) fn offered(&self, scope: &Scope) -> Vec<&ToolSpec> {
        let has_output = scope.run.recorder.spool.has_output();
        self.specs().into_iter().filter(|spec| has_output || spec.name != READ_OUTPUT).collect()
    }

    /// The names of the tools whose results are evidence for an answer: those of the agent's file, and those that ask other agents.
    pub(crate) fn evidence_tools(&self) -> impl Iterator<Item = &str> {
        let gives_evidence = |tool: &&SessionTool| match tool {
            SessionTool::Tool(tool) => tool.spec().name != READ_OUTPUT,
            SessionTool::Engine(tool) => tool.gives_evidence() && !tool.is_hidden(),
        };
        let names = self.tools.iter().filter(gives_evidence).map(|tool| tool.spec().name.as_str());
        names.filter(|name| !self.denied.iter().any(|denied| denied == name))
    }

    /// A tool of the agent's file that finds things by a question alone: it only reads, and `query` is all that it needs.
    pub(crate) fn search_tool(&self) -> Option<&str> {
        let specs = self.tools.iter().filter_map(|tool| match tool {
            SessionTool::Tool(tool) => Some(tool.spec()),
            SessionTool::Engine(_) => None,
        });
        let searches = |spec: &&ToolSpec| {
            let query = &spec.parameters["properties"]["query"]["type"];
            spec.effect == Effect::ReadOnly
                && spec.parameters["required"] == json!(["query"])
                && query == "string"
                && !self.denied.contains(&spec.name)
        };
        specs.into_iter().find(searches).map(|spec| spec.name.as_str())
    }

    pub(crate) fn find(&self, name: &str) -> Result<&SessionTool, ToolError> {
        self.tools.iter().find(|tool| tool.spec().name == name).ok_or_else(|| {
            let names = self.tools.iter().map(|tool| tool.spec().name.as_str());
            let near = names
                .filter(|known| known.contains(name) || name.contains(known))
                .min_by_key(|known| known.len());
            ToolError::Unknown { name: name.to_owned(), nearest: near.map(str::to_owned) }
        })
    }

    /// Whether a tool returns text of untrusted authors.
    pub(crate) fn is_untrusted(&self, name: &str) -> bool {
        match self.find(name) {
            Ok(SessionTool::Tool(tool)) => tool.is_untrusted(),
            Ok(SessionTool::Engine(tool)) => tool.is_untrusted(),
            Err(_) => false,
        }
    }

    /// How a successful call would end the session. See [`EngineTool::ends_with`].
    pub(crate) fn ends_with(&self, call: &ToolCall) -> Option<String> {
        match self.find(&call.name) {
            Ok(SessionTool::Engine(tool)) => {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
                tool.ends_with(&arguments)
            }
            _ => None,
        }
    }
}

/// The built-in tools and those of MCP servers that the agent lists. If a server is unavailable, its tools are missing; the run
/// continues, and the trace says so.
async fn listed(scope: &Scope) -> Vec<Arc<dyn Tool>> {
    let agent = scope.agent();
    let extensions = &scope.run.extensions;
    let mut tools: Vec<Arc<dyn Tool>> =
        extensions.tools.iter().filter(|tool| permitted(scope, tool.spec())).cloned().collect();
    let source = extensions.servers.as_ref();
    let named = servers(agent);
    let workspace = if named.is_empty() { None } else { scope.run.workspace() };
    let asked = named.iter().filter_map(|(server, definition)| {
        let tools = source?.tools(&scope.run.caller.tenant, workspace.as_deref(), server, definition);
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

/// Whether the agent's file and, for a sub-agent, the policy permit a tool.
pub(crate) fn permitted(scope: &Scope, spec: &ToolSpec) -> bool {
    let tools = &scope.agent().tools;
    let for_all = &scope.run.policy.sub_agent_tools;
    let is_confined = scope.session.bounds.is_sub_agent() && !for_all.is_empty();
    tools.permits(&spec.name)
        && (!tools.read_only || spec.effect == Effect::ReadOnly)
        && (!is_confined || for_all.iter().any(|pattern| pattern.matches(&spec.name)))
}

/// The MCP servers that the agent names, under `mcp_servers` or within `tools`.
fn servers(agent: &Agent) -> Vec<(String, McpServer)> {
    let mut seen = BTreeSet::new();
    let listed = agent.mcp_servers.iter().map(|(name, server)| (name.clone(), server.clone()));
    let in_tools = agent.tools.allow.iter().filter_map(|pattern| pattern.mcp_server());
    let in_tools =
        in_tools.filter(|name| !name.contains('*')).map(|name| (name.to_owned(), McpServer::Configured));
    listed.chain(in_tools).filter(|(name, _)| seen.insert(name.clone())).collect()
}

/// Parses arguments. Empty text means no arguments: models often send it.
fn parsed(text: &str) -> Result<Value, ToolError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    crate::json::parse(text)
        .map_err(|error| ToolError::InvalidArguments(format!("they are not JSON: {error}")))
}

/// Validates arguments against the tool's schema. The error tells the model what to correct.
fn checked(parameters: &Value, arguments: Value) -> Result<Value, ToolError> {
    let validator = compile_cache::validator(parameters)
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
