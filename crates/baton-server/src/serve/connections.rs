//! All connections: how they begin, how many there may be, and how they end.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::Service as _;

use super::pulse::{Patience, Pulse};
use super::socket::Socket;
use crate::app::App;
use crate::settings::Limits;

/// Until a connection is accepted again after it could not be, as when there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Requests that one HTTP/2 connection may have under way.
const STREAMS: u32 = 200;
/// What HTTP/2 peers may send before they are heard: for one request, and for all of a connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// What may wait to be sent: a reader that is slower than that is waited for.
const SEND_BUFFER: usize = 32 << 10;
/// How often an HTTP/2 peer is asked whether it is there.
const PING: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Connections {
    router: Router,
    builder: Builder<Tasks>,
    patience: Patience,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    /// No more connections, and none is used again for another request.
    leaving: CancellationToken,
    /// Whatever is still open is closed.
    cut: CancellationToken,
}

/// HTTP/2 answers each request in a task of its own; they end with the connections.
#[derive(Debug, Clone)]
struct Tasks {
    tasks: TaskTracker,
    cut: CancellationToken,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        let cut = self.cut.clone();
        self.tasks.spawn(async move { cut.run_until_cancelled(future).await });
    }
}

impl Connections {
    pub fn new(app: &App) -> Self {
        let limits = &app.settings.limits;
        let (tasks, cut) = (TaskTracker::new(), CancellationToken::new());
        Self {
            router: crate::router(app),
            builder: builder(limits, Tasks { tasks: tasks.clone(), cut: cut.clone() }),
            patience: Patience { first: limits.read_timeout, between: limits.keep_alive },
            places: Arc::new(Semaphore::new(limits.max_connections.min(Semaphore::MAX_PERMITS))),
            tasks,
            leaving: CancellationToken::new(),
            cut,
        }
    }

    /// Until it is time to leave. The listener is closed then.
    pub async fn accept(self: Arc<Self>, listener: TcpListener) {
        let accepting = async {
            let (mut full, mut failed) = (Seldom::default(), Seldom::default());
            loop {
                let place = self.place(&mut full).await;
                match listener.accept().await {
                    Ok((stream, _)) => self.begin(stream, place),
                    // It gave up before it was accepted.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        if failed.is_time() {
                            tracing::warn!(%error, "cannot accept connections; trying again and again");
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        };
        self.leaving.run_until_cancelled(accepting).await;
    }

    /// Whoever comes when all places are taken waits in the queue of the system.
    async fn place(&self, full: &mut Seldom) -> OwnedSemaphorePermit {
        let free = || Arc::clone(&self.places);
        if let Ok(place) = free().try_acquire_owned() {
            return place;
        }
        if full.is_time() {
            tracing::warn!("as many connections as `limits.max_connections` allows; more have to wait");
        }
        free().acquire_owned().await.expect("never closed")
    }

    fn begin(self: &Arc<Self>, stream: TcpStream, place: OwnedSemaphorePermit) {
        let socket = Socket::new(stream, place, self.tasks.token());
        self.tasks.spawn(Box::pin(Arc::clone(self).serve(socket)));
    }

    async fn serve(self: Arc<Self>, socket: Socket) {
        let pulse = Pulse::new();
        let asked = pulse.clone();
        let service = service_fn(|request| answer(self.router.clone(), &asked, request));
        let mut connection = pin!(self.builder.serve_connection_with_upgrades(TokioIo::new(socket), service));
        let mut is_leaving = false;
        while let Some(until) = pulse.look(self.patience) {
            tokio::select! {
                // What has arrived counts, also when this process was too slow to notice in time.
                biased;
                result = connection.as_mut() => {
                    if let Err(error) = result {
                        tracing::debug!(error, "a connection broke");
                    }
                    return;
                }
                () = self.cut.cancelled() => return,
                () = self.leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = tokio::time::sleep_until(until) => {}
            }
        }
        // Nobody needs it. What is left to say, such as HTTP/2's goodbye, is said in a moment or not at all.
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(Duration::from_secs(1), connection).await;
    }

    /// Everything ends when this is dropped, also when nobody had the time to drain.
    pub fn ends_with(&self) -> [DropGuard; 2] {
        [self.leaving.clone().drop_guard(), self.cut.clone().drop_guard()]
    }

    /// No more connections. Those that are open end with what they are doing.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    /// Waits until all have ended, and ends what is left after `patience`.
    pub async fn end(&self, patience: Duration) {
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::info!(open = self.tasks.len(), "closing what is still open");
            self.cut.cancel();
            // A WebSocket that listens to nobody ends with the process.
            let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
        }
    }
}

/// What happens a thousand times a second is worth a line now and then.
#[derive(Debug, Default)]
struct Seldom(Option<Instant>);

impl Seldom {
    fn is_time(&mut self) -> bool {
        let is_time = self.0.is_none_or(|last| last.elapsed() > Duration::from_secs(10));
        if is_time {
            self.0 = Some(Instant::now());
        }
        is_time
    }
}

/// The answer counts until its last byte.
fn answer(
    mut router: Router,
    pulse: &Pulse,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
    let beat = pulse.begin();
    let answering = router.call(request.map(Body::new));
    async move {
        let response = answering.await?;
        Ok(response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &beat;
                frame
            }))
        }))
    }
}

/// Small buffers: thousands of streams are open at once, and each says little.
fn builder(limits: &Limits, tasks: Tasks) -> Builder<Tasks> {
    let mut builder = Builder::new(tasks);
    // A little more than is accepted, so that what is too large gets an answer that says so.
    let head = limits.max_header_bytes.saturating_add(limits.max_url_bytes).saturating_add(8 << 10);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.keep_alive)
        .max_buf_size(head)
        .pipeline_flush(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}
