//! The server's life: bind, accept, serve and drain.

pub mod admission;
mod connections;
mod files;
mod housekeeping;
mod pulse;
mod socket;
pub mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::identity::AuthenticationMode;
use crate::stream::glance;
use admission::RESERVE;
use connections::Connections;
use tls::{Tls, TlsError};

/// Interval between searches for orphaned runs.
const WATCH: Duration = Duration::from_secs(1);
/// Maximum number of connections waiting to be accepted; the system may lower it. Clients beyond it retry after about 1 s.
const BACKLOG: u32 = 4096;
/// Time for connections to end after streams were asked to.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    /// Every client that reaches the port would be an administrator.
    #[error(
        "`auth.mode = \"open\"` makes every client an administrator, so it works only on loopback, and {0} is not: listen on \
         127.0.0.1, or set `auth.mode = \"required\"` and create a key with `baton keys create`"
    )]
    OpenToAll(SocketAddr),
    #[error(
        "{0} can be reached from other machines, and without TLS keys and conversations cross the network as plain text: set \
         `server.tls = {{ cert = \"…\", key = \"…\" }}`, or `server.behind_proxy = true` if a proxy in front of this server encrypts, or \
         listen on 127.0.0.1"
    )]
    Unencrypted(SocketAddr),
    #[error("`server.tls`: {0}")]
    Tls(#[from] TlsError),
}

/// The outcome of the runs that were active when shutdown began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Runs that ended in time.
    pub finished: u64,
    /// Runs left for the next process.
    pub left: u64,
}

/// A bound server that does not accept connections yet.
#[derive(Debug)]
pub struct Server {
    app: App,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    /// Makes the server read its certificate again. Without TLS it has no effect.
    pub reload_tls: Arc<Notify>,
    pub address: SocketAddr,
}

impl Server {
    /// Must be called within a tokio runtime.
    pub fn bind(app: App, address: SocketAddr) -> Result<Self, ServeError> {
        if app.settings.auth.mode == AuthenticationMode::Open && !address.ip().is_loopback() {
            return Err(ServeError::OpenToAll(address));
        }
        let settings = &app.settings;
        if settings.tls.is_none() && !settings.behind_proxy && !address.ip().is_loopback() {
            return Err(ServeError::Unencrypted(address));
        }
        let reload_tls = Arc::<Notify>::default();
        let tls = settings.tls.clone().map(|tls| Tls::load(tls, Arc::clone(&reload_tls))).transpose()?;
        let tls = tls.map(Arc::new);
        files::raise_fd_limit(settings.limits.max_connections.saturating_add(RESERVE));
        let failed = |error| ServeError::Listen { address, error };
        let listener = listen(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { app, listener, tls, reload_tls, address })
    }

    /// Serves until `end` resolves, then drains: accepts no new work, finishes or abandons the active runs, and asks streams to
    /// reconnect.
    pub async fn run(self, end: impl Future<Output = ()> + Send) -> Drained {
        let Self { app, listener, tls, .. } = self;
        let own = TaskTracker::new();
        let engine = Arc::clone(&app.engine);
        let draining = app.draining.clone();
        own.spawn(async move { draining.run_until_cancelled(engine.run_maintenance(WATCH)).await });
        if let Some(tls) = tls.clone() {
            let leaving = app.closing.clone();
            own.spawn(async move { leaving.run_until_cancelled(tls.watch()).await });
        }
        let connections = Arc::new(Connections::new(&app, tls));
        own.spawn(Arc::clone(&connections).accept(listener));
        let _ends =
            (app.draining.clone().drop_guard(), app.closing.clone().drop_guard(), connections.ends_with());
        let watching = CancellationToken::new();
        let watched = watching.clone().run_until_cancelled_owned(glance::watch(app.clone()));
        own.spawn(watched);
        own.spawn(watching.clone().run_until_cancelled_owned(housekeeping::run(app.clone())));
        let watching = watching.drop_guard();
        end.await;
        let drained = drain(&app, &connections).await;
        drop(watching);
        own.close();
        own.wait().await;
        drained
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Lets a restarted server bind its port immediately. On other systems than Unix, this option would let two servers bind it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The order matters: load balancers must notice first, and callers that wait for a run must get its result.
async fn drain(app: &App, connections: &Connections) -> Drained {
    tracing::info!("shutting down: no new work is accepted");
    app.draining.cancel();
    tokio::time::sleep(app.settings.grace).await;
    connections.leave();
    let drained = drain_engine(app).await;
    app.closing.cancel();
    connections.end(FAREWELL).await;
    housekeeping::finish(app).await;
    tracing::info!(finished = drained.finished, left = drained.left, "drained");
    drained
}

async fn drain_engine(app: &App) -> Drained {
    let at_work = || u64::try_from(app.engine.active_threads()).unwrap_or(u64::MAX);
    let before = at_work();
    let left = app.engine.drain(app.settings.drain).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "runs could not be given up; they are taken up when their leases end");
        at_work()
    });
    Drained { finished: before.saturating_sub(left), left }
}
