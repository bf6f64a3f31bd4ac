//! The tools of one session.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::{Agent, McpServer};
use baton_core::event::EventKind;
use baton_core::tool::{Effect, Tool, ToolError, ToolSpec};
use futures_util::future::join_all;
use jsonschema::Validator;
use serde_json::Value;

use crate::scope::Scope;

/// Pages through what was too long; whoever has tools has it too.
const READ_OUTPUT: &str = "read_output";

/// What the session's agent may use, in a fixed order, so that prompts stay cacheable.
#[derive(Debug, Default)]
pub struct Toolset {
    tools: Vec<Arc<dyn Tool>>,
}

impl Toolset {
    /// Built-in tools and those of MCP servers that the agent lists. A server that cannot be reached costs its tools,
    /// not the run; the trace says so.
    pub async fn gather(scope: &Scope) -> Self {
        let agent = &scope.agent;
        let engine = &scope.run.engine.parts;
        let mut tools: Vec<Arc<dyn Tool>> =
            engine.tools.iter().filter(|tool| permitted(agent, tool.spec())).cloned().collect();
        let source = engine.servers.as_ref();
        let named = servers(agent);
        let asked = named.iter().filter_map(|(server, definition)| {
            let tools = source?.tools(&scope.run.caller.tenant, server, definition);
            Some(async move { (server, tools.await) })
        });
        for (server, found) in join_all(asked).await {
            match found {
                Ok(found) => tools.extend(found.into_iter().filter(|tool| permitted(agent, tool.spec()))),
                Err(error) => {
                    let text = format!("the MCP server `{server}` is not available: {error}");
                    scope.trace(EventKind::Status { text }).await;
                }
            }
        }
        if !tools.is_empty() && !tools.iter().any(|tool| tool.spec().name == READ_OUTPUT) {
            tools.extend(engine.tools.iter().find(|tool| tool.spec().name == READ_OUTPUT).cloned());
        }
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools.dedup_by(|a, b| a.spec().name == b.spec().name);
        Self { tools }
    }

    pub fn specs(&self) -> Vec<&ToolSpec> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }

    pub fn find(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.tools.iter().find(|tool| tool.spec().name == name).ok_or_else(|| {
            let names = self.tools.iter().map(|tool| tool.spec().name.as_str());
            let near = names
                .filter(|known| known.contains(name) || name.contains(known))
                .min_by_key(|known| known.len());
            ToolError::Unknown { name: name.to_owned(), nearest: near.map(str::to_owned) }
        })
    }
}

fn permitted(agent: &Agent, spec: &ToolSpec) -> bool {
    agent.tools.permits(&spec.name) && (!agent.tools.read_only || spec.effect == Effect::ReadOnly)
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
    // A call without arguments often comes without text.
    let text = if text.trim().is_empty() { "{}" } else { text };
    let arguments: Value = serde_json::from_str(text)
        .map_err(|error| ToolError::InvalidArguments(format!("they are not JSON: {error}")))?;
    let validator: Validator = jsonschema::validator_for(&spec.parameters)
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
