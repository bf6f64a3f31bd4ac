//! The state of a tenant's servers, for a status page. Reading it starts no server.

use baton_core::TenantId;
use baton_core::agent::McpServer;

use crate::servers::Servers;

/// One server as one tenant has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    pub transport: Transport,
    pub state: ServerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Not started yet, or stopped after it was not used.
    Idle,
    Running {
        /// How many it offers, once they were listed.
        tools: Option<usize>,
    },
    /// The last start failed. The next use tries again.
    Failed { reason: String },
}

impl Servers {
    /// The configured servers in their order, then those that agent files describe and this tenant has used.
    pub fn status(&self, tenant: &TenantId) -> Vec<ServerStatus> {
        let used = self.used_by(tenant);
        let configured = self.configured_servers();
        let state_of = |name: &str| {
            let of_name = used.iter().filter(|(used, ..)| used == name).map(|(_, _, state)| state);
            of_name.max_by_key(|state| rank(state)).cloned().unwrap_or(ServerState::Idle)
        };
        let named = configured.iter().map(|(name, server)| ServerStatus {
            name: name.clone(),
            transport: transport(server),
            state: state_of(name),
        });
        let mut described: Vec<ServerStatus> = used
            .iter()
            .filter(|(name, ..)| !configured.contains_key(name))
            .map(|(name, server, state)| ServerStatus {
                name: name.clone(),
                transport: transport(server),
                state: state.clone(),
            })
            .collect();
        described.sort_by(|a, b| a.name.cmp(&b.name));
        named.chain(described).collect()
    }
}

/// Of several servers with the same name, the state with the highest rank is reported.
fn rank(state: &ServerState) -> u8 {
    match state {
        ServerState::Idle => 0,
        ServerState::Running { .. } => 1,
        ServerState::Failed { .. } => 2,
    }
}

fn transport(server: &McpServer) -> Transport {
    match server {
        McpServer::Http { .. } => Transport::Http,
        McpServer::Stdio { .. } | McpServer::Configured => Transport::Stdio,
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;

    use super::*;
    use crate::servers::McpSettings;

    fn stdio(command: &str) -> McpServer {
        let access = baton_core::agent::StdioAccess::default();
        McpServer::Stdio { command: command.to_owned(), args: Vec::new(), env: IndexMap::new(), access }
    }

    #[tokio::test]
    async fn a_server_is_idle_until_it_is_used_and_failed_when_it_does_not_start() {
        let http = McpServer::Http { url: "http://127.0.0.1:1/mcp".to_owned(), headers: IndexMap::new() };
        let configured = [("files".to_owned(), stdio("no-such-program-7731")), ("web".to_owned(), http)];
        let servers = Servers::new(configured.into_iter().collect(), McpSettings::default());
        let (acme, globex) = (TenantId::parse("acme").unwrap(), TenantId::parse("globex").unwrap());
        let idle =
            |name: &str, transport| ServerStatus { name: name.into(), transport, state: ServerState::Idle };
        let at_first = vec![idle("files", Transport::Stdio), idle("web", Transport::Http)];
        assert_eq!(servers.status(&acme), at_first);
        assert!(servers.tools(&acme, "files").await.is_err());
        assert!(servers.tools_of(&acme, None, "own", &stdio("no-such-program-7732")).await.is_err());
        let seen = servers.status(&acme);
        let names: Vec<&str> = seen.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["files", "web", "own"]);
        assert!(matches!(seen[0].state, ServerState::Failed { .. }), "{seen:?}");
        assert_eq!(seen[1], at_first[1]);
        assert!(matches!(seen[2].state, ServerState::Failed { .. }), "{seen:?}");
        assert_eq!(servers.status(&globex), at_first, "tenants have servers of their own");
    }
}
