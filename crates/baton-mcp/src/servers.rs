//! All MCP servers of this process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use baton_core::agent::McpServer;
use baton_core::{HumanDuration, TenantId, Tool};
use futures_util::future::join_all;
use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::client::Client;
use crate::connection::Connection;
use crate::error::McpError;
use crate::status::ServerState;
use crate::tool::McpTool;
use crate::variables::Environment;

/// Limits, and where variables come from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// For the handshake, and for listing tools.
    pub start_timeout: HumanDuration,
    /// For one call of a tool.
    pub call_timeout: HumanDuration,
    /// A server that nobody has used for this long is stopped.
    pub idle_timeout: HumanDuration,
    /// The first rest of a server that fails again and again; it doubles up to a minute.
    pub back_off: HumanDuration,
    pub environment: Environment,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start_timeout: HumanDuration::from_secs(30),
            call_timeout: HumanDuration::from_mins(2),
            idle_timeout: HumanDuration::from_mins(10),
            back_off: HumanDuration::from_millis(500),
            environment: Environment::of_process(),
        }
    }
}

/// A handle; clones share the servers. Dropping the last one kills them, also under tools that are still held.
#[derive(Clone)]
pub struct Servers(Arc<Inner>);

struct Inner {
    configured: ArcSwap<IndexMap<String, McpServer>>,
    settings: Arc<Settings>,
    clients: Mutex<HashMap<Key, Arc<Client>>>,
    stopped: CancellationToken,
    sweeper: OnceLock<AbortOnDropHandle<()>>,
}

/// The description is part of the key: agents may describe different servers under one name, and a changed
/// description must not meet an old process.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: TenantId,
    name: String,
    description: String,
}

impl Servers {
    /// Starts nothing.
    pub fn new(configured: IndexMap<String, McpServer>, settings: Settings) -> Self {
        Self(Arc::new(Inner {
            configured: ArcSwap::from_pointee(configured),
            settings: Arc::new(settings),
            clients: Mutex::default(),
            stopped: CancellationToken::new(),
            sweeper: OnceLock::new(),
        }))
    }

    /// Replaces the configured servers. What runs under an old description ends when it is idle.
    pub fn configure(&self, configured: IndexMap<String, McpServer>) {
        self.0.configured.store(Arc::new(configured));
    }

    pub fn names(&self) -> Vec<String> {
        self.0.configured.load().keys().cloned().collect()
    }

    /// The tools of a configured server. Starts it if this tenant has not used it yet.
    pub async fn tools(&self, tenant: &TenantId, server: &str) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        self.tools_of(tenant, server, &McpServer::Configured).await
    }

    /// The tools of a server as an agent file describes it; the name alone stands for a configured one.
    pub async fn tools_of(
        &self,
        tenant: &TenantId,
        name: &str,
        server: &McpServer,
    ) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        let client = self.client(tenant, name, server)?;
        let offers = client.offers().await?;
        let tool =
            |offer: &Arc<_>| Arc::new(McpTool::new(Arc::clone(offer), Arc::clone(&client))) as Arc<dyn Tool>;
        Ok(offers.iter().map(tool).collect())
    }

    /// The processes that run now, for a status page.
    pub fn process_ids(&self) -> Vec<u32> {
        self.0.clients().values().filter_map(|client| client.process_id()).collect()
    }

    /// As they were configured last.
    pub(crate) fn configured_servers(&self) -> Arc<IndexMap<String, McpServer>> {
        self.0.configured.load_full()
    }

    /// Those that a tenant has used, with their descriptions.
    pub(crate) fn used_by(&self, tenant: &TenantId) -> Vec<(String, McpServer, ServerState)> {
        let clients = self.0.clients();
        let used = clients.iter().filter(|(key, _)| key.tenant == *tenant);
        used.map(|(key, client)| (key.name.clone(), client.server().clone(), client.state())).collect()
    }

    /// Asks all servers to end, and waits until they have. Nothing can be started afterwards.
    pub async fn shutdown(&self) {
        self.0.stopped.cancel();
        let connections: Vec<_> = self.0.clients().drain().filter_map(|(_, client)| client.take()).collect();
        stop(connections).await;
    }

    fn client(&self, tenant: &TenantId, name: &str, server: &McpServer) -> Result<Arc<Client>, McpError> {
        let server = match server {
            McpServer::Configured => self.configured(name)?,
            described => described.clone(),
        };
        // Inside the runtime, which a constructor need not be.
        self.0.sweeper.get_or_init(|| sweep(&self.0));
        let description = serde_json::to_string(&server).unwrap_or_default();
        let key = Key { tenant: tenant.clone(), name: name.to_owned(), description };
        let mut clients = self.0.clients();
        if self.0.stopped.is_cancelled() {
            return Err(McpError::Stopped);
        }
        let client = clients.entry(key).or_insert_with(|| {
            let stopped = self.0.stopped.clone();
            let settings = Arc::clone(&self.0.settings);
            Arc::new(Client::new(tenant.clone(), name.to_owned(), server, settings, stopped))
        });
        Ok(Arc::clone(client))
    }

    fn configured(&self, name: &str) -> Result<McpServer, McpError> {
        let configured = self.0.configured.load();
        configured.get(name).cloned().ok_or_else(|| McpError::UnknownServer {
            name: name.to_owned(),
            known: configured.keys().cloned().collect(),
        })
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Servers").field(&self.names()).finish()
    }
}

impl Inner {
    fn clients(&self) -> MutexGuard<'_, HashMap<Key, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connections that nobody needs any more. Clients without a connection and without a user are forgotten.
    fn take_idle(&self) -> Vec<Arc<Connection>> {
        let mut clients = self.clients();
        clients.retain(|_, client| client.is_running() || Arc::strong_count(client) > 1);
        clients.values().filter_map(|client| client.take_idle()).collect()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stopped.cancel();
        for client in self.clients().values() {
            if let Some(connection) = client.take() {
                connection.kill();
            }
        }
    }
}

/// Looks for idle servers now and then. Holds the servers only while it looks, so that it does not keep them alive.
fn sweep(inner: &Arc<Inner>) -> AbortOnDropHandle<()> {
    let pause =
        (inner.settings.idle_timeout.get() / 4).clamp(Duration::from_millis(10), Duration::from_mins(1));
    let inner: Weak<Inner> = Arc::downgrade(inner);
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(pause).await;
            let Some(idle) = inner.upgrade().map(|inner| inner.take_idle()) else { return };
            stop(idle).await;
        }
    }))
}

async fn stop(connections: Vec<Arc<Connection>>) {
    join_all(connections.iter().map(|connection| connection.stop())).await;
}
