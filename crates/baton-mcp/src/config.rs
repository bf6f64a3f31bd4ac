//! Reads `.mcp.json`, the file that coding assistants share.

use std::fs;
use std::path::Path;

use baton_core::agent::{McpServer, StdioAccess};
use indexmap::IndexMap;
use serde::Deserialize;

use crate::error::McpError;

/// Reads the servers of a file. Variables stay as they are written; they are filled in when a server starts.
pub fn load(path: &Path) -> Result<IndexMap<String, McpServer>, McpError> {
    let text = fs::read_to_string(path).map_err(|error| problem(path, format!("cannot be read: {error}")))?;
    parse(path, &text)
}

/// `path` is for messages only.
pub fn parse(path: &Path, text: &str) -> Result<IndexMap<String, McpServer>, McpError> {
    // Editors on Windows put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file: McpFile = serde_json::from_str(text).map_err(|error| problem(path, error.to_string()))?;
    file.servers
        .into_iter()
        .map(|(name, value)| match server(&name, value) {
            Ok(server) => Ok((name, server)),
            Err(reason) => Err(problem(path, format!("mcpServers.{name}: {reason}"))),
        })
        .collect()
}

#[derive(Deserialize)]
struct McpFile {
    #[serde(rename = "mcpServers")]
    servers: IndexMap<String, serde_json::Value>,
}

/// Other tools add keys of their own, so unknown ones are fine.
#[derive(Deserialize)]
struct ServerEntry {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: IndexMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: IndexMap<String, String>,
    /// Baton's own keys for its sandbox.
    #[serde(default)]
    network: bool,
    #[serde(default)]
    read: Vec<String>,
}

fn server(name: &str, value: serde_json::Value) -> Result<McpServer, String> {
    // The name becomes a part of `mcp:<server>/<tool>`.
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_word) {
        return Err("a server name has only letters, digits, `_`, `-` and `.`".to_owned());
    }
    let entry: ServerEntry = serde_json::from_value(value).map_err(|error| error.to_string())?;
    match (entry.kind.as_deref(), entry.command, entry.url) {
        (None | Some("stdio"), Some(command), None) => {
            let access = StdioAccess { network: entry.network, read: entry.read };
            Ok(McpServer::Stdio { command, args: entry.args, env: entry.env, access })
        }
        // A server of the retired SSE transport usually speaks streamable HTTP today; if not, starting it says so.
        (None | Some("http" | "streamable-http" | "streamableHttp" | "sse"), None, Some(url)) => {
            Ok(McpServer::Http { url, headers: entry.headers })
        }
        (None, None, None) => Err("needs `command`, or `url`".to_owned()),
        (None, Some(_), Some(_)) => Err("has both `command` and `url`; say which with `type`".to_owned()),
        (Some("stdio"), command, url) => chosen(command, url, "stdio", "command"),
        (Some(kind @ ("http" | "streamable-http" | "streamableHttp" | "sse")), command, url) => {
            chosen(command, url, kind, "url")
        }
        (Some(other), ..) => Err(format!("`type` is `{other}`, and has to be `stdio` or `http`")),
    }
}

fn chosen(
    command: Option<String>,
    url: Option<String>,
    kind: &str,
    needed: &str,
) -> Result<McpServer, String> {
    let surplus = if needed == "url" { command.map(|_| "command") } else { url.map(|_| "url") };
    match surplus {
        Some(surplus) => Err(format!("`type` is `{kind}`, which has no `{surplus}`")),
        None => Err(format!("`type` is `{kind}`, which needs `{needed}`")),
    }
}

fn problem(path: &Path, reason: String) -> McpError {
    McpError::Config { path: path.display().to_string(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<IndexMap<String, McpServer>, String> {
        parse(Path::new("x/.mcp.json"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn both_kinds_with_and_without_type() {
        let servers = read(
            r#"{"mcpServers": {
                "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "${TOKEN}"}, "trust": true},
                "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${T}"}},
                "old": {"type": "sse", "url": "https://example.com/sse"}
            }, "inputs": []}"#,
        )
        .unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "docs", "old"]);
        assert!(matches!(&servers["files"], McpServer::Stdio { env, .. } if env["TOKEN"] == "${TOKEN}"));
        assert!(matches!(&servers["docs"], McpServer::Http { headers, .. } if headers.len() == 1));
        assert!(matches!(&servers["old"], McpServer::Http { .. }));
        assert!(read("\u{feff}{\"mcpServers\": {}}").unwrap().is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("", "x/.mcp.json: EOF while parsing a value"),
            ("{}", "missing field `mcpServers`"),
            (r#"{"mcpServers": {"a": 1}}"#, "mcpServers.a: invalid type"),
            (r#"{"mcpServers": {"a": {}}}"#, "mcpServers.a: needs `command`, or `url`"),
            (r#"{"mcpServers": {"a": {"command": "x", "url": "y"}}}"#, "has both"),
            (r#"{"mcpServers": {"a": {"type": "http", "command": "x"}}}"#, "which has no `command`"),
            (r#"{"mcpServers": {"a": {"type": "stdio"}}}"#, "which needs `command`"),
            (r#"{"mcpServers": {"a": {"type": "ws", "url": "x"}}}"#, "has to be `stdio` or `http`"),
            (r#"{"mcpServers": {"a/b": {"command": "x"}}}"#, "a server name has only"),
            (r#"{"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}"#, "expected a string"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("x/.mcp.json: ") && error.contains(expected), "{text}: {error}");
        }
    }
}
