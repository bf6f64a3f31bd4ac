//! MCP servers as agent files, `.mcp.json` and `baton.toml` define them.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// How to reach a server. `${VAR}` in values is expanded from the environment when the server starts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServer {
    /// Defined under this name in `.mcp.json` or `baton.toml`.
    Configured,
    Stdio {
        command: String,
        args: Vec<String>,
        env: IndexMap<String, String>,
        #[serde(default)]
        access: StdioAccess,
    },
    Http {
        url: String,
        headers: IndexMap<String, String>,
    },
}

/// What the process of a server may use in a sandbox, beside its workspace and the files of the system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StdioAccess {
    pub network: bool,
    /// Files and folders that it can read and execute.
    pub read: Vec<String>,
}

/// Prints names only: values of variables and headers may be secrets, and debug output ends up in logs.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("Configured"),
            Self::Stdio { command, env, .. } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("env", &env.keys())
                .finish_non_exhaustive(),
            Self::Http { headers, .. } => {
                f.debug_struct("Http").field("headers", &headers.keys()).finish_non_exhaustive()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debugging_shows_no_secret() {
        let secret = || IndexMap::from([("TOKEN".to_owned(), "s3cret".to_owned())]);
        let stdio = McpServer::Stdio {
            command: "run".into(),
            args: vec!["--key=s3cret".into()],
            env: secret(),
            access: StdioAccess::default(),
        };
        let http = McpServer::Http { url: "https://x/?key=s3cret".into(), headers: secret() };
        let shown = format!("{stdio:?} {http:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("s3cret"), "{shown}");
    }
}
