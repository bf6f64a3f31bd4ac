//! What the server says about the system it works with: the store, the providers, the MCP servers.

use baton_engine::Agents;
use baton_mcp::{ServerState, ServerStatus, Servers, Transport};
use baton_server::system::{Inspect, McpFacts, McpState, ProviderFacts, StoreKind, SystemFacts};

use crate::config::Config;
use crate::project::Project;
use crate::wiring;

/// A provider that works without a key, on this machine.
const OLLAMA: &str = "ollama";

/// Providers are looked at once, because their keys are read once; MCP servers each time.
pub fn inspect(project: &Project, agents: &Agents, servers: Servers) -> Inspect {
    let store = store_kind(&project.config.store.url);
    let reachable = wiring::providers_within_reach(&project.config, agents);
    let named = wiring::providers(&project.config, agents);
    let providers = reachable.into_iter().filter(|name| name != "offline");
    let providers: Vec<ProviderFacts> = providers
        .map(|name| {
            let is_local = name == OLLAMA && named.contains(&name);
            provider(&project.config, name, is_local)
        })
        .collect();
    Box::new(move |tenant| SystemFacts {
        store,
        providers: providers.clone(),
        mcp_servers: servers.status(tenant).into_iter().map(mcp).collect(),
    })
}

fn store_kind(url: &str) -> StoreKind {
    if url.starts_with("sqlite:") { StoreKind::Sqlite } else { StoreKind::Postgres }
}

fn provider(config: &Config, name: String, is_local: bool) -> ProviderFacts {
    let has_key = wiring::key(&name).is_ok_and(|key| key.is_some());
    let has_address = config.models.providers.get(&name).is_some_and(|table| table.base_url.is_some());
    ProviderFacts {
        is_configured: has_key || has_address || is_local,
        key_variable: (name != OLLAMA).then(|| baton_models::registry::key_variable(&name)),
        name,
    }
}

fn mcp(status: ServerStatus) -> McpFacts {
    let ServerStatus { name, transport, state } = status;
    McpFacts {
        name,
        is_http: transport == Transport::Http,
        state: match state {
            ServerState::Idle => McpState::Idle,
            ServerState::Running { tools } => McpState::Running { tools },
            ServerState::Failed { reason } => McpState::Failed { reason },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_with_an_address_is_configured_without_a_key() {
        let text = "[models.providers.my-server]\nbase_url = \"http://127.0.0.1:1/v1\"\n";
        let config = Config::parse(text, "baton.toml".as_ref(), std::iter::empty()).unwrap();
        let named = provider(&config, "my-server".to_owned(), false);
        assert!(named.is_configured);
        assert_eq!(named.key_variable.as_deref(), Some("MY_SERVER_API_KEY"));
        assert!(!provider(&config, "unknown-provider".to_owned(), false).is_configured);
        let local = provider(&config, OLLAMA.to_owned(), true);
        assert!(local.is_configured && local.key_variable.is_none());
    }

    #[test]
    fn a_store_is_named_by_its_address() {
        assert_eq!(store_kind("sqlite://baton.db"), StoreKind::Sqlite);
        assert_eq!(store_kind("postgres://baton@db/baton"), StoreKind::Postgres);
    }
}
