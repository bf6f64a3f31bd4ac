//! One server for one tenant: started when it is needed, and again when it has died.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::agent::McpServer;
use baton_core::{HumanDuration, TenantId, ToolError};
use rmcp::model::{CallToolRequestParams, CallToolResult};
use tokio_util::sync::CancellationToken;

use crate::McpError;
use crate::connection::Connection;
use crate::connection::failure::Failure;
use crate::servers::Settings;
use crate::status::ServerState;
use crate::tool::Offer;

/// A server that lived for this long was healthy: its end is no reason to wait.
const HEALTHY: Duration = Duration::from_secs(10);
const MAX_REST: Duration = Duration::from_mins(1);

pub(crate) struct Client {
    pub tenant: TenantId,
    name: String,
    server: McpServer,
    settings: Arc<Settings>,
    stopped: CancellationToken,
    live: Mutex<Option<Arc<Connection>>>,
    /// Held while a server starts, so that many first users start one. An async lock, for that reason only.
    history: tokio::sync::Mutex<History>,
}

/// What the last starts came to.
#[derive(Default)]
struct History {
    failures: u32,
    reason: String,
    rest_until: Option<Instant>,
    /// Why the last start failed; nothing once one has succeeded.
    last_failure: Option<String>,
}

impl Client {
    pub fn new(
        tenant: TenantId,
        name: String,
        server: McpServer,
        settings: Arc<Settings>,
        stopped: CancellationToken,
    ) -> Self {
        let (live, history) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { tenant, name, server, settings, stopped, live, history }
    }

    pub async fn offers(&self) -> Result<Arc<[Arc<Offer>]>, McpError> {
        let error =
            |failure: Failure| McpError::List { server: self.name.clone(), reason: failure.to_string() };
        match self.connection().await?.offers(&self.settings).await {
            Err(Failure::NotSent(_)) => self.connection().await?.offers(&self.settings).await.map_err(error),
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
            Err(Failure::NotSent(_)) => self.try_call(request, limit).await,
            other => other,
        }
        .map_err(|failure| match failure {
            Failure::NotSent(reason) => ToolError::Transport(format!("{reason}; the call was not made")),
            Failure::Call(error) => error,
        })
    }

    async fn try_call(
        &self,
        request: CallToolRequestParams,
        limit: HumanDuration,
    ) -> Result<CallToolResult, Failure> {
        let connection = self.connection().await.map_err(|error| {
            Failure::Call(ToolError::Transport(format!("{error}; the call was not made")))
        })?;
        let answer = tokio::time::timeout(limit.get(), connection.call(request)).await;
        connection.touch();
        answer.unwrap_or(Err(Failure::Call(ToolError::Timeout(limit))))
    }

    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        if let Some(connection) = self.alive() {
            return Ok(connection);
        }
        tokio::select! {
            () = self.stopped.cancelled() => Err(McpError::Stopped),
            started = self.start() => started,
        }
    }

    fn alive(&self) -> Option<Arc<Connection>> {
        let connection = self.live().as_ref().filter(|connection| connection.is_alive()).map(Arc::clone)?;
        connection.touch();
        Some(connection)
    }

    /// When the future is dropped, the half-started process goes with it and the next user starts anew.
    async fn start(&self) -> Result<Arc<Connection>, McpError> {
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
        match Connection::start(&self.name, &self.server, &self.settings).await {
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

    fn keep(&self, connection: Arc<Connection>) -> Result<Arc<Connection>, McpError> {
        let mut live = self.live();
        // Whoever stops us cancels first and looks here second, so one of the two sees the connection.
        if self.stopped.is_cancelled() {
            return Err(McpError::Stopped);
        }
        *live = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Gives up a connection that nobody has used for a while.
    pub fn take_idle(&self) -> Option<Arc<Connection>> {
        let mut live = self.live();
        // Users hold a clone, and clones are made under this lock.
        let is_idle = |connection: &Arc<Connection>| {
            Arc::strong_count(connection) == 1 && connection.idle_time() >= self.settings.idle_timeout.get()
        };
        if live.as_ref().is_some_and(is_idle) { live.take() } else { None }
    }

    pub fn take(&self) -> Option<Arc<Connection>> {
        self.live().take()
    }

    pub fn is_running(&self) -> bool {
        self.live().is_some()
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

    fn live(&self) -> MutexGuard<'_, Option<Arc<Connection>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
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
        let mut history = History::default();
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
