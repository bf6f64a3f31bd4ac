//! Connections, from their beginning to the drain at the end.

mod connections;
mod files;
mod pulse;
mod socket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::identity::Mode;
use crate::stream::glance;
use connections::Connections;

/// How often runs are looked for whose process is gone.
const WATCH: Duration = Duration::from_secs(1);
/// Connections that may wait to be accepted, as far as the system allows. One that finds no place comes back after a second.
const BACKLOG: u32 = 4096;
/// What connections get to end by themselves once streams have been told to.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    /// Everybody who reaches the port would be an administrator.
    #[error(
        "`auth.mode = \"open\"` makes everybody an administrator, so it works only on loopback, and {0} is not: listen on \
         127.0.0.1, or set `auth.mode = \"required\"` and create a key with `baton keys create`"
    )]
    OpenToAll(SocketAddr),
}

/// What became of the work that was under way when the server was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Runs that ended in time.
    pub finished: u64,
    /// Runs that whoever comes next goes on with.
    pub left: u64,
}

/// A server that listens but does not answer yet.
#[derive(Debug)]
pub struct Server {
    app: App,
    listener: TcpListener,
    pub address: SocketAddr,
}

impl Server {
    /// Within a runtime.
    pub fn bind(app: App, address: SocketAddr) -> Result<Self, ServeError> {
        if app.settings.auth.mode == Mode::Open && !address.ip().is_loopback() {
            return Err(ServeError::OpenToAll(address));
        }
        files::allow(app.settings.limits.max_connections);
        let failed = |error| ServeError::Listen { address, error };
        let listener = listen(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { app, listener, address })
    }

    /// Answers until `end` is done, then drains: no new work, runs finished or left to whoever is next, streams told to come back.
    pub async fn run(self, end: impl Future<Output = ()> + Send) -> Drained {
        let Self { app, listener, .. } = self;
        let own = TaskTracker::new();
        let engine = Arc::clone(&app.engine);
        let draining = app.draining.clone();
        own.spawn(async move { draining.run_until_cancelled(engine.keep_watch(WATCH)).await });
        let connections = Arc::new(Connections::new(&app));
        own.spawn(Arc::clone(&connections).accept(listener));
        let _ends = (app.draining.clone().drop_guard(), connections.ends_with());
        let watching = CancellationToken::new();
        let watched = watching.clone().run_until_cancelled_owned(glance::watch(app.clone()));
        own.spawn(watched);
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
    // A server that is started again has its port back at once. Elsewhere than on Unix this would let two have it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The order matters: whoever sends requests here has to notice first, and whoever waits for a run has to hear of its end.
async fn drain(app: &App, connections: &Connections) -> Drained {
    tracing::info!("asked to end: no new work from now on");
    app.draining.cancel();
    tokio::time::sleep(app.settings.grace).await;
    connections.leave();
    let drained = drain_engine(app).await;
    app.closing.cancel();
    connections.end(FAREWELL).await;
    tracing::info!(finished = drained.finished, left = drained.left, "drained");
    drained
}

async fn drain_engine(app: &App) -> Drained {
    let at_work = || u64::try_from(app.engine.at_work()).unwrap_or(u64::MAX);
    let before = at_work();
    let left = app.engine.drain(app.settings.drain).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "runs could not be given up; they are taken up when their leases end");
        at_work()
    });
    Drained { finished: before.saturating_sub(left), left }
}
