//! One server for one tenant and workspace: started when it is needed, and again when it has died.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::agent::McpServer;
use baton_core::{CallContext, HumanDuration, TenantId, ToolError};
use rmcp::model::{CallToolRequestParams, CallToolResult, ResourceContents};
use tokio_util::sync::CancellationToken;

use crate::McpError;
use crate::connection::McpConnection;
use crate::connection::failure::McpFailure;
use crate::servers::McpSettings;
use crate::status::ServerState;
use crate::tool::ToolOffer;

/// A server that lived for this long was healthy: its end is no reason to wait.
const HEALTHY: Duration = Duration::from_secs(10);
const MAX_REST: Duration = Duration::from_mins(1);
/// Time limit for reading a resource that an answer links to.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct McpClient {
    tenant: TenantId,
    name: String,
    server: McpServer,
    /// The workspace of the thread that the process belongs to. A server behind HTTP has none.
    workspace: Option<PathBuf>,
    /// Whether the hints of its tools count.
    is_trusted: bool,
    settings: Arc<McpSettings>,
    stopped: CancellationToken,
    live: Mutex<Option<Arc<McpConnection>>>,
    /// Held while a server starts, so that many first users start one. An async lock, for that reason only.
    history: tokio::sync::Mutex<StartHistory>,
}

/// What the last starts came to.
#[derive(Default)]
struct StartHistory {
    failures: u32,
    reason: String,
    rest_until: Option<Instant>,
    /// Why the last start failed; nothing once one has succeeded.
    last_failure: Option<String>,
}

impl McpClient {
    pub fn new(
        tenant: TenantId,
        name: String,
        server: McpServer,
        workspace: Option<PathBuf>,
        is_trusted: bool,
        settings: Arc<McpSettings>,
        stopped: CancellationToken,
    ) -> Self {
        let (live, history) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { tenant, name, server, workspace, is_trusted, settings, stopped, live, history }
    }

    pub async fn offers(&self) -> Result<Arc<[Arc<ToolOffer>]>, McpError> {
        let error =
            |failure: McpFailure| McpError::List { server: self.name.clone(), reason: failure.to_string() };
        let (settings, is_trusted) = (&self.settings, self.is_trusted);
        match self.connection().await?.offers(settings, is_trusted).await {
            Err(McpFailure::NotSent(_)) => {
                self.connection().await?.offers(settings, is_trusted).await.map_err(error)
            }
            other => other.map_err(error),
        }
    }

    /// Calls a tool. A connection that turns out to be dead is made anew once; a call that may have reached the
    /// server is never made twice.
    pub async fn call(
        &self,
        request: CallToolRequestParams,
        limit: HumanDuration,
    ) -> Result<CallToolResult, ToolError> {
        match self.try_call(request.clone(), limit).await {
            Err(McpFailure::NotSent(_)) => self.try_call(request, limit).await,
            other => other,
        }
        .map_err(|failure| match failure {
            McpFailure::NotSent(reason) => ToolError::Transport(format!("{reason}; the call was not made")),
            McpFailure::Call(error) => error,
        })
    }

    async fn try_call(
        &self,
        request: CallToolRequestParams,
        limit: HumanDuration,
    ) -> Result<CallToolResult, McpFailure> {
        let connection = self.connection().await.map_err(|error| {
            McpFailure::Call(ToolError::Transport(format!("{error}; the call was not made")))
        })?;
        let answer = tokio::time::timeout(limit.get(), connection.call(request)).await;
        connection.touch();
        answer.unwrap_or(Err(McpFailure::Call(ToolError::Timeout(limit))))
    }

    /// Reads a resource of the server. Empty if it cannot be read in time: the answer that links to it names it.
    pub async fn read(&self, uri: &str) -> Vec<ResourceContents> {
        let Some(connection) = self.alive() else { return Vec::new() };
        let read = tokio::time::timeout(READ_TIMEOUT, connection.read(uri)).await;
        read.unwrap_or_default()
    }

    async fn connection(&self) -> Result<Arc<McpConnection>, McpError> {
        if let Some(connection) = self.alive() {
            return Ok(connection);
        }
        tokio::select! {
            () = self.stopped.cancelled() => Err(McpError::Stopped),
            started = self.start() => started,
        }
    }

    fn alive(&self) -> Option<Arc<McpConnection>> {
        let connection = self.live().as_ref().filter(|connection| connection.is_alive()).map(Arc::clone)?;
        connection.touch();
        Some(connection)
    }

    /// When the future is dropped, the half-started process goes with it and the next user starts anew.
    async fn start(&self) -> Result<Arc<McpConnection>, McpError> {
        let mut history = self.history.lock().await;
        if let Some(connection) = self.alive() {
            return Ok(connection);
        }
        let dead = self.live().take();
        if let Some(dead) = dead {
            dead.abandon();
            history.died(dead.uptime(), self.settings.back_off);
        }
        history.check(&self.name)?;
        match McpConnection::start(&self.name, &self.server, &self.settings, self.workspace.as_deref()).await
        {
            Ok(connection) => {
                history.last_failure = None;
                self.keep(Arc::new(connection))
            }
            Err(error) => {
                history.last_failure = Some(error.to_string());
                if let McpError::Start { reason, .. } = &error {
                    history.failed(reason, self.settings.back_off);
                }
                Err(error)
            }
        }
    }

    fn keep(&self, connection: Arc<McpConnection>) -> Result<Arc<McpConnection>, McpError> {
        let mut live = self.live();
        // Whoever stops us cancels first and looks here second, so one of the two sees the connection.
        if self.stopped.is_cancelled() {
            return Err(McpError::Stopped);
        }
        *live = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Gives up a connection that nobody has used for a while.
    pub fn take_idle(&self) -> Option<Arc<McpConnection>> {
        let mut live = self.live();
        // Users hold a clone, and clones are made under this lock.
        let is_idle = |connection: &Arc<McpConnection>| {
            Arc::strong_count(connection) == 1 && connection.idle_time() >= self.settings.idle_timeout.get()
        };
        if live.as_ref().is_some_and(is_idle) { live.take() } else { None }
    }

    /// The same for one that is not used at this moment, however short that is.
    pub fn take_unused(&self) -> Option<Arc<McpConnection>> {
        let mut live = self.live();
        live.take_if(|connection| Arc::strong_count(connection) == 1)
    }

    pub fn take(&self) -> Option<Arc<McpConnection>> {
        self.live().take()
    }

    pub fn is_running(&self) -> bool {
        self.live().is_some()
    }

    /// Whether a call of this caller may reach the server.
    pub fn serves(&self, context: &CallContext) -> bool {
        let is_own = |workspace: &PathBuf| context.workspace() == Some(workspace);
        context.tenant == self.tenant && self.workspace.as_ref().is_none_or(is_own)
    }

    /// Whether the server is a process that can write files of a thread's workspace.
    pub fn has_workspace(&self) -> bool {
        self.workspace.is_some()
    }

    pub fn server(&self) -> &McpServer {
        &self.server
    }

    /// For a status page. Does not wait: a server that is starting is reported as idle.
    pub fn state(&self) -> ServerState {
        let alive = self.live().as_ref().filter(|connection| connection.is_alive()).map(Arc::clone);
        if let Some(connection) = alive {
            return ServerState::Running { tools: connection.listed_tools() };
        }
        let reason = self.history.try_lock().ok().and_then(|history| history.last_failure.clone());
        reason.map_or(ServerState::Idle, |reason| ServerState::Failed { reason })
    }

    pub fn process_id(&self) -> Option<u32> {
        self.live().as_ref().and_then(|connection| connection.process_id())
    }

    fn live(&self) -> MutexGuard<'_, Option<Arc<McpConnection>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartHistory {
    fn died(&mut self, uptime: Duration, back_off: HumanDuration) {
        if uptime >= HEALTHY {
            *self = Self::default();
        } else {
            self.failed("it ended soon after its start", back_off);
        }
    }

    /// The first failure is forgiven; after that every rest is twice as long as the one before.
    fn failed(&mut self, reason: &str, back_off: HumanDuration) {
        self.failures += 1;
        reason.clone_into(&mut self.reason);
        let doublings = self.failures.saturating_sub(2).min(16);
        let rest = back_off.get().saturating_mul(1 << doublings).min(MAX_REST);
        self.rest_until = (self.failures > 1).then(|| Instant::now() + rest);
    }

    fn check(&self, server: &str) -> Result<(), McpError> {
        let rest =
            self.rest_until.map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default();
        let millis = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
        if millis == 0 {
            return Ok(());
        }
        let (server, reason) = (server.to_owned(), self.reason.clone());
        Err(McpError::BackOff {
            server,
            failures: self.failures,
            rest: HumanDuration::from_millis(millis),
            reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_get_longer_and_health_forgives() {
        let hour = HumanDuration::from_secs(3600);
        let mut history = StartHistory::default();
        assert_eq!(history.check("a"), Ok(()));
        history.failed("no", hour);
        assert_eq!(history.check("a"), Ok(()));
        history.died(Duration::from_secs(1), hour);
        let error = history.check("a").unwrap_err();
        assert!(
            matches!(&error, McpError::BackOff { failures: 2, rest, .. } if rest.get() <= MAX_REST),
            "{error}"
        );
        history.died(HEALTHY, hour);
        assert_eq!(history.check("a"), Ok(()));
    }
}
