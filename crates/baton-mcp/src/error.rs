//! What can go wrong before a tool is called. Failures of a call are [`baton_core::ToolError`]s.

use baton_core::HumanDuration;

use crate::variables::InvalidVariable;

/// No variant carries a value from the environment: what a server says about itself is cleaned first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error("{path}: {reason}")]
    Config { path: String, reason: String },
    #[error("no MCP server is called `{name}`; configured are: {}", list(.known))]
    UnknownServer { name: String, known: Vec<String> },
    #[error("MCP server `{server}`: {reason}")]
    Variable { server: String, reason: InvalidVariable },
    #[error("MCP server `{server}` does not start: {reason}")]
    Start { server: String, reason: String },
    #[error("MCP server `{server}` cannot list its tools: {reason}")]
    List { server: String, reason: String },
    #[error(
        "MCP server `{server}` failed {failures} times in a row and rests for {rest}; the last time: {reason}"
    )]
    BackOff { server: String, failures: u32, rest: HumanDuration, reason: String },
    #[error(
        "MCP server `{server}` is not started: this tenant has {most} others in use, the most that \
         `mcp.max_processes_per_tenant` allows"
    )]
    TooMany { server: String, most: usize },
    #[error("the MCP servers are shut down")]
    Stopped,
}

impl McpError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "mcp_config",
            Self::UnknownServer { .. } => "mcp_unknown_server",
            Self::Variable { .. } => "mcp_variable",
            Self::Start { .. } => "mcp_start",
            Self::List { .. } => "mcp_list",
            Self::BackOff { .. } => "mcp_back_off",
            Self::TooMany { .. } => "mcp_too_many",
            Self::Stopped => "mcp_stopped",
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
