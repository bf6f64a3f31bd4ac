//! An agent as its file defines it, without what others must not see.
//!
//! How servers and remote agents are reached is for operators. Others learn that they are there: the values of variables
//! and headers, arguments, and everything in an address behind its host may each be a secret, and none looks like one.

use baton_core::agent::{Agent, AgentKind, McpServer, RemoteAuth, RemoteCard};
use baton_sanitize::{Mask, sanitize_value};
use reqwest::Url;
use serde_json::{Map, Value, json};

const MASKED: &str = "[REDACTED]";

/// Every key with its value or its default.
pub fn definition(agent: &Agent) -> Value {
    let whole = serde_json::to_value(agent).unwrap_or_default();
    let mut shown = sanitize_value(&whole, Mask::SecretsOnly);
    if let Some(keys) = shown.as_object_mut() {
        let servers = agent.mcp_servers.iter().map(|(name, server)| (name.clone(), server_view(server)));
        keys.insert("mcp_servers".to_owned(), Value::Object(servers.collect()));
        if let AgentKind::Remote { card, auth } = &agent.kind {
            if let RemoteCard::Url(url) = card {
                keys.insert("card".to_owned(), json!({ "url": origin(url) }));
            }
            if let Some(auth) = auth {
                keys.insert("auth".to_owned(), json!({ "type": auth_type(auth) }));
            }
        }
    }
    shown
}

fn server_view(server: &McpServer) -> Value {
    match server {
        McpServer::Configured => json!("configured"),
        McpServer::Stdio { command, args, env, .. } => json!({ "stdio": {
            "command": program(command),
            "args": vec![MASKED; args.len()],
            "env": names(env.keys()),
        }}),
        McpServer::Http { url, headers } => json!({ "http": {
            "url": origin(url),
            "headers": names(headers.keys()),
        }}),
    }
}

/// The keys, with masked values.
fn names<'a>(keys: impl Iterator<Item = &'a String>) -> Value {
    Value::Object(keys.map(|key| (key.clone(), MASKED.into())).collect::<Map<_, _>>())
}

/// The file name of a command. Its folder is not shown, because it tells how the machine is set up.
fn program(command: &str) -> &str {
    command.rsplit(['/', '\\']).next().unwrap_or(command)
}

/// Scheme, host and port. Paths and queries are left out, because they may contain tokens.
fn origin(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) if url.has_host() => url.origin().ascii_serialization(),
        _ => MASKED.to_owned(),
    }
}

fn auth_type(auth: &RemoteAuth) -> &'static str {
    match auth {
        RemoteAuth::Bearer { .. } => "bearer",
        RemoteAuth::ApiKey { .. } => "api_key",
        RemoteAuth::Basic { .. } => "basic",
        RemoteAuth::OAuth2 { .. } => "oauth2",
    }
}

#[cfg(test)]
mod tests {
    use baton_core::AgentName;
    use baton_core::agent::{SecretName, StdioAccess};
    use indexmap::IndexMap;

    use super::*;

    #[test]
    fn how_others_are_reached_is_not_told() {
        let secret = || IndexMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]);
        let mut agent =
            Agent::plain(AgentName::parse("a").unwrap(), "Helps.", "api_key: sk-hunter2hunter2hunter2");
        let stdio = McpServer::Stdio {
            command: "/home/hunter2/bin/serve".into(),
            args: vec!["--as".into(), "hunter2".into()],
            env: secret(),
            access: StdioAccess::default(),
        };
        let http = |url: &str| McpServer::Http { url: url.into(), headers: secret() };
        agent.mcp_servers.insert("files".into(), stdio);
        agent
            .mcp_servers
            .insert("web".into(), http("https://x:hunter2@mcp.example:8443/hunter2?key=hunter2"));
        agent.mcp_servers.insert("odd".into(), http("${HUNTER}/hunter2"));
        agent.mcp_servers.insert("known".into(), McpServer::Configured);
        agent.kind = AgentKind::Remote {
            card: RemoteCard::Url("https://partner.example/hunter2/card.json".into()),
            auth: Some(RemoteAuth::Basic {
                username: "hunter2".into(),
                password: SecretName::parse("$HUNTER2").unwrap(),
            }),
        };
        let shown = definition(&agent);
        assert!(!shown.to_string().to_lowercase().contains("hunter2"), "{shown:#}");
        assert_eq!(shown["mcp_servers"]["files"]["stdio"]["command"], "serve");
        assert_eq!(shown["mcp_servers"]["files"]["stdio"]["env"], json!({ "TOKEN": MASKED }));
        assert_eq!(shown["mcp_servers"]["web"]["http"]["url"], "https://mcp.example:8443");
        assert_eq!(shown["card"], json!({ "url": "https://partner.example" }));
        assert_eq!(shown["auth"], json!({ "type": "basic" }));
        assert_eq!(shown["limits"]["max_turns"], 10);
    }
}
