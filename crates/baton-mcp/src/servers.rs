//! All MCP servers of this process.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use baton_core::agent::McpServer;
use baton_core::{HumanDuration, TenantId, Tool};
use futures_util::future::join_all;
use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::client::McpClient;
use crate::confinement::McpSandbox;
use crate::connection::McpConnection;
use crate::error::McpError;
use crate::status::ServerState;
use crate::tool::McpTool;
use crate::variables::Environment;

/// Limits, and where variables come from.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// For the handshake, and for listing tools.
    pub start_timeout: HumanDuration,
    /// For one call of a tool.
    pub call_timeout: HumanDuration,
    /// A server that nobody has used for this long is stopped.
    pub idle_timeout: HumanDuration,
    /// The first rest of a server that fails again and again; it doubles up to a minute.
    pub back_off: HumanDuration,
    /// Processes that one tenant may have at once.
    pub max_processes: usize,
    /// Names of configured servers whose hints about their tools are believed.
    pub trusted: BTreeSet<String>,
    pub environment: Environment,
    /// `None` runs processes with all rights of Baton.
    pub sandbox: Option<McpSandbox>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            start_timeout: HumanDuration::from_secs(30),
            call_timeout: HumanDuration::from_mins(2),
            idle_timeout: HumanDuration::from_mins(10),
            back_off: HumanDuration::from_millis(500),
            max_processes: 32,
            trusted: BTreeSet::new(),
            environment: Environment::of_process(),
            sandbox: None,
        }
    }
}

/// A handle; clones share the servers. Dropping the last one kills them, also under tools that are still held.
#[derive(Clone)]
pub struct Servers(Arc<ServersInner>);

struct ServersInner {
    configured: IndexMap<String, McpServer>,
    settings: Arc<McpSettings>,
    clients: Mutex<HashMap<ServerKey, Arc<McpClient>>>,
    stopped: CancellationToken,
    sweeper: OnceLock<AbortOnDropHandle<()>>,
}

/// The description is part of the key: agents may describe different servers under one name, and a changed
/// description must not meet an old process.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ServerKey {
    tenant: TenantId,
    workspace: Option<PathBuf>,
    name: String,
    description: String,
    is_trusted: bool,
    /// By an agent file: it does not get all variables.
    is_described: bool,
}

impl Servers {
    /// Starts nothing.
    pub fn new(configured: IndexMap<String, McpServer>, settings: McpSettings) -> Self {
        Self(Arc::new(ServersInner {
            configured,
            settings: Arc::new(settings),
            clients: Mutex::default(),
            stopped: CancellationToken::new(),
            sweeper: OnceLock::new(),
        }))
    }

    pub fn names(&self) -> Vec<String> {
        self.0.configured.keys().cloned().collect()
    }

    /// The servers that were configured, without those that agent files describe.
    pub fn configured(&self) -> impl Iterator<Item = &McpServer> {
        self.0.configured.values()
    }

    /// The tools of a configured server. Starts it if this tenant has not used it yet.
    pub async fn tools(&self, tenant: &TenantId, server: &str) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        self.tools_of(tenant, None, server, &McpServer::Configured).await
    }

    /// The tools of a server as an agent file describes it; the name alone stands for a configured one. With a workspace, a
    /// server that is a process has it as its folder, and only calls of the same workspace reach it.
    pub async fn tools_of(
        &self,
        tenant: &TenantId,
        workspace: Option<&Path>,
        name: &str,
        server: &McpServer,
    ) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        let client = self.client(tenant, workspace, name, server)?;
        let offers = client.offers().await?;
        let tool =
            |offer: &Arc<_>| Arc::new(McpTool::new(Arc::clone(offer), Arc::clone(&client))) as Arc<dyn Tool>;
        Ok(offers.iter().map(tool).collect())
    }

    /// The processes that run now, for a status page.
    pub fn process_ids(&self) -> Vec<u32> {
        self.0.clients().values().filter_map(|client| client.process_id()).collect()
    }

    pub(crate) fn configured_servers(&self) -> &IndexMap<String, McpServer> {
        &self.0.configured
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

    fn client(
        &self,
        tenant: &TenantId,
        workspace: Option<&Path>,
        name: &str,
        server: &McpServer,
    ) -> Result<Arc<McpClient>, McpError> {
        // An agent file may describe another server under the name of a trusted one.
        let is_described = !matches!(server, McpServer::Configured);
        let (server, is_trusted) = match server {
            McpServer::Configured => (self.find(name)?, self.0.settings.trusted.contains(name)),
            described => (described.clone(), false),
        };
        // Inside the runtime, which a constructor need not be.
        self.0.sweeper.get_or_init(|| sweep(&self.0));
        let description = serde_json::to_string(&server).unwrap_or_default();
        let is_process = matches!(server, McpServer::Stdio { .. });
        let workspace = workspace.filter(|_| is_process).map(Path::to_owned);
        let key = ServerKey {
            tenant: tenant.clone(),
            workspace: workspace.clone(),
            name: name.to_owned(),
            description,
            is_trusted,
            is_described,
        };
        let mut clients = self.0.clients();
        if self.0.stopped.is_cancelled() {
            return Err(McpError::Stopped);
        }
        if let Some(client) = clients.get(&key) {
            return Ok(Arc::clone(client));
        }
        if is_process {
            self.make_room(&mut clients, tenant, name)?;
        }
        let (settings, stopped) = (self.settings(is_described), self.0.stopped.clone());
        let (tenant, name) = (tenant.clone(), name.to_owned());
        let client = McpClient::new(tenant, name, server, workspace, is_trusted, settings, stopped);
        let client = Arc::new(client);
        clients.insert(key, Arc::clone(&client));
        Ok(client)
    }

    fn settings(&self, is_described: bool) -> Arc<McpSettings> {
        let settings = &self.0.settings;
        if !is_described {
            return Arc::clone(settings);
        }
        let environment = settings.environment.for_described();
        Arc::new(McpSettings { environment, ..McpSettings::clone(settings) })
    }

    /// Ends processes of the tenant that are not in use, if it has as many as it may. A client that is held counts as a process: it
    /// may start one at any time.
    fn make_room(
        &self,
        clients: &mut HashMap<ServerKey, Arc<McpClient>>,
        tenant: &TenantId,
        name: &str,
    ) -> Result<(), McpError> {
        let most = self.0.settings.max_processes;
        let is_one = |key: &ServerKey, client: &McpClient| {
            key.tenant == *tenant && matches!(client.server(), McpServer::Stdio { .. })
        };
        let mut count = clients.iter().filter(|(key, client)| is_one(key, client)).count();
        clients.retain(|key, client| {
            if count < most || !is_one(key, client) || Arc::strong_count(client) > 1 {
                return true;
            }
            let unused = client.take_unused();
            if unused.is_none() && client.is_running() {
                return true;
            }
            if let Some(connection) = unused {
                connection.kill();
            }
            count -= 1;
            false
        });
        if count < most { Ok(()) } else { Err(McpError::TooMany { server: name.to_owned(), most }) }
    }

    fn find(&self, name: &str) -> Result<McpServer, McpError> {
        let configured = &self.0.configured;
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

impl ServersInner {
    fn clients(&self) -> MutexGuard<'_, HashMap<ServerKey, Arc<McpClient>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connections that nobody needs any more. Clients without a connection and without a user are forgotten.
    fn take_idle(&self) -> Vec<Arc<McpConnection>> {
        let mut clients = self.clients();
        clients.retain(|_, client| client.is_running() || Arc::strong_count(client) > 1);
        clients.values().filter_map(|client| client.take_idle()).collect()
    }
}

impl Drop for ServersInner {
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
fn sweep(inner: &Arc<ServersInner>) -> AbortOnDropHandle<()> {
    let pause =
        (inner.settings.idle_timeout.get() / 4).clamp(Duration::from_millis(10), Duration::from_mins(1));
    let inner: Weak<ServersInner> = Arc::downgrade(inner);
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(pause).await;
            let Some(idle) = inner.upgrade().map(|inner| inner.take_idle()) else { return };
            stop(idle).await;
        }
    }))
}

async fn stop(connections: Vec<Arc<McpConnection>>) {
    join_all(connections.iter().map(|connection| connection.stop())).await;
}
