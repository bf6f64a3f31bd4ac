//! A running server, from its handshake to its end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::ToolError;
use baton_core::agent::McpServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, Peer, RoleClient, ServiceError};

use crate::McpError;
use crate::connection::failure::McpFailure;
use crate::process::ChildProcess;
use crate::servers::McpSettings;
use crate::tool::ToolOffer;
use crate::variables::{Resolved, Secrets};

pub(crate) mod failure;
mod listing;
mod opening;

/// How long a server may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) struct McpConnection {
    name: String,
    peer: Peer<RoleClient>,
    /// Taken out when it is closed.
    service: Mutex<Option<RunningService<RoleClient, NotificationListener>>>,
    /// Absent for a server behind HTTP.
    process: Option<ChildProcess>,
    secrets: Secrets,
    changes: ToolListChanges,
    /// An async lock, so that many first users cause one listing.
    listed: tokio::sync::Mutex<Option<ListedTools>>,
    lost: Arc<AtomicBool>,
    started: Instant,
    last_used: Mutex<Instant>,
}

/// Counts how often the server said that its tools changed.
type ToolListChanges = Arc<AtomicU64>;

struct ListedTools {
    /// The count before the listing began.
    changes: u64,
    offers: Arc<[Arc<ToolOffer>]>,
}

impl McpConnection {
    pub async fn start(
        name: &str,
        server: &McpServer,
        settings: &McpSettings,
        workspace: Option<&Path>,
    ) -> Result<Self, McpError> {
        let environment = match workspace {
            Some(workspace) => settings.environment.with_workspace(workspace),
            None => settings.environment.clone(),
        };
        let Resolved { server, secrets } = Resolved::new(server, &environment)
            .map_err(|reason| McpError::Variable { server: name.to_owned(), reason })?;
        let changes = ToolListChanges::default();
        let listener = NotificationListener(Arc::clone(&changes));
        let lost = Arc::<AtomicBool>::default();
        let (service, process) = opening::open(&server, listener, &lost, settings, workspace)
            .await
            .map_err(|reason| McpError::Start { server: name.to_owned(), reason: secrets.hide(&reason) })?;
        tracing::info!(
            server = name,
            pid = process.as_ref().and_then(ChildProcess::id),
            "MCP server started"
        );
        Ok(Self {
            name: name.to_owned(),
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            process,
            secrets,
            changes,
            listed: tokio::sync::Mutex::default(),
            lost,
            started: Instant::now(),
            last_used: Mutex::new(Instant::now()),
        })
    }

    pub fn is_alive(&self) -> bool {
        !self.lost.load(Ordering::Acquire)
            && !self.peer.is_transport_closed()
            && self.process.as_ref().is_none_or(|process| process.exit_status().is_none())
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().and_then(ChildProcess::id)
    }

    /// How many tools were listed last, if that is known without waiting.
    pub fn listed_tools(&self) -> Option<usize> {
        self.listed.try_lock().ok()?.as_ref().map(|listed| listed.offers.len())
    }

    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub fn idle_time(&self) -> Duration {
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Dropping the future tells the server that nobody waits any more; the service's own task sends that.
    pub async fn call(&self, request: CallToolRequestParams) -> Result<CallToolResult, McpFailure> {
        let tool = request.name.clone();
        match self.peer.call_tool(request).await {
            Ok(result) => Ok(result),
            Err(error) => Err(self.judge(&tool, error).await),
        }
    }

    /// The contents of a resource; none if the server has no resources or refuses.
    pub async fn read(&self, uri: &str) -> Vec<ResourceContents> {
        let info = self.peer.peer_info();
        if info.is_none_or(|info| info.capabilities.resources.is_none()) {
            return Vec::new();
        }
        let read = self.peer.read_resource(ReadResourceRequestParams::new(uri)).await;
        read.map(|read| read.contents).unwrap_or_default()
    }

    async fn judge(&self, tool: &str, error: ServiceError) -> McpFailure {
        let failure = McpFailure::of(error, &format!("mcp:{}/{tool}", self.name), self.process.is_none());
        if !failure.leaves_connection() {
            self.lost.store(true, Ordering::Release);
        }
        let end = match (&self.process, &failure) {
            (Some(process), McpFailure::Call(ToolError::Transport(_))) => process.obituary().await,
            _ => String::new(),
        };
        failure.explained(&end, &self.secrets)
    }

    /// Asks the server to end, and waits for it.
    pub async fn stop(&self) {
        let service = self.take_service();
        if let Some(mut service) = service {
            let _ = service.close_with_timeout(GRACE).await;
        }
        if let Some(process) = &self.process {
            process.end(GRACE).await;
        }
        tracing::info!(server = self.name, "MCP server stopped");
    }

    /// Ends the server at once, also while calls are waiting for it.
    pub fn kill(&self) {
        if let Some(process) = &self.process {
            process.kill();
        }
        drop(self.take_service());
    }

    /// Makes room for a new connection. Calls over HTTP may still be answered; a process ends now.
    pub fn abandon(&self) {
        if self.process.is_some() {
            self.kill();
        }
    }

    fn take_service(&self) -> Option<RunningService<RoleClient, NotificationListener>> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What Baton does with what servers send on their own.
#[derive(Debug)]
struct NotificationListener(ToolListChanges);

impl ClientHandler for NotificationListener {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    fn get_info(&self) -> ClientConfig {
        let baton = Implementation::new("baton", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), baton)
    }
}
