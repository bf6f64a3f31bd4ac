//! MCP servers as agent files, `.mcp.json` and `baton.toml` describe them.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// How to reach a server. `${VAR}` in values is filled from the environment when it is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServer {
    /// Described in `.mcp.json` or `baton.toml` under this name.
    Configured,
    Stdio {
        command: String,
        args: Vec<String>,
        env: IndexMap<String, String>,
    },
    Http {
        url: String,
        headers: IndexMap<String, String>,
    },
}
