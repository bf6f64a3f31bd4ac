//! Connections: accepting them, limiting their number, and closing them.

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::Service as _;

use super::admission::{Admission, Admitted, ConnectionRefusal, RESERVE_TIME};
use super::pulse::{IdleTimeouts, Pulse};
use super::socket::Socket;
use super::tls::Tls;
use crate::app::App;
use crate::client_address::TrustedProxies;
use crate::settings::RequestLimits;

/// Back-off after `accept` fails, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum concurrent requests of one HTTP/2 connection.
const STREAMS: u32 = 200;
/// HTTP/2 flow control windows, in bytes: per stream, and per connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Maximum bytes buffered for sending; a slower reader applies back-pressure.
const SEND_BUFFER: usize = 32 << 10;
/// Interval of HTTP/2 keep-alive pings.
const PING: Duration = Duration::from_secs(20);

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
struct Peer {
    address: IpAddr,
    /// Why only health checks are answered.
    refusal: Option<ConnectionRefusal>,
}

/// A connection that is ready for HTTP, and whether it may be HTTP/2.
enum Transport {
    Plain(Socket, bool),
    Encrypted(Box<TlsStream<Socket>>, bool),
}

#[derive(Debug)]
pub struct Connections {
    router: Router,
    trusted_proxies: TrustedProxies,
    http1: http1::Builder,
    /// Reads the version from the connection.
    either: auto::Builder<Tasks>,
    patience: IdleTimeouts,
    admission: Admission,
    tls: Option<Arc<Tls>>,
    tasks: TaskTracker,
    /// Cancelled to stop accepting. Open connections end after their current request.
    leaving: CancellationToken,
    /// Cancelled to close all open connections.
    cut: CancellationToken,
}

/// Executor for the tasks that HTTP/2 spawns per request; they end with the connections.
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
    pub fn new(app: &App, tls: Option<Arc<Tls>>) -> Self {
        let limits = &app.settings.limits;
        let (tasks, cut) = (TaskTracker::new(), CancellationToken::new());
        Self {
            router: crate::router(app),
            trusted_proxies: app.settings.trusted_proxies.clone(),
            http1: http1_builder(limits),
            either: either_builder(limits, Tasks { tasks: tasks.clone(), cut: cut.clone() }),
            patience: IdleTimeouts { first: limits.read_timeout, between: limits.keep_alive },
            admission: Admission::new(limits, app.settings.trusted_proxies.clone()),
            tls,
            tasks,
            leaving: CancellationToken::new(),
            cut,
        }
    }

    /// Accepts connections until shutdown, then closes the listener.
    pub async fn accept(self: Arc<Self>, listener: TcpListener) {
        let accepting = async {
            let (mut full, mut failed) = (Seldom::default(), Seldom::default());
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => self.begin(stream, peer.ip(), &mut full),
                    // The client disconnected before it was accepted.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        if failed.is_time() {
                            tracing::warn!(%error, "cannot accept connections; retrying");
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        };
        self.leaving.run_until_cancelled(accepting).await;
    }

    fn begin(self: &Arc<Self>, stream: TcpStream, address: IpAddr, full: &mut Seldom) {
        let socket = |permit| Socket::new(stream, permit, self.tasks.token());
        match self.admission.admit(address) {
            Admitted::Fully(permit) => {
                let peer = Peer { address, refusal: None };
                self.tasks.spawn(Box::pin(Arc::clone(self).serve(socket(Some(permit)), peer)));
            }
            Admitted::ToReserve(refusal, token) => {
                if full.is_time() {
                    tracing::warn!(%address, ?refusal, "connections beyond the limits of `[limits]` are refused");
                }
                let peer = Peer { address, refusal: Some(refusal) };
                let serving = tokio::time::timeout(RESERVE_TIME, Arc::clone(self).serve(socket(None), peer));
                self.tasks.spawn(Box::pin(async move { token.run_until_cancelled(serving).await }));
            }
        }
    }

    async fn serve(self: Arc<Self>, socket: Socket, peer: Peer) {
        let transport = tokio::select! {
            biased;
            transport = self.negotiate(socket) => transport,
            () = self.cut.cancelled() => return,
            () = self.leaving.cancelled() => return,
            () = tokio::time::sleep(self.patience.first) => return,
        };
        match transport {
            Some(Transport::Plain(socket, is_http2)) => self.converse(socket, is_http2, peer).await,
            // Boxed: it is large, and most connections are not encrypted here.
            Some(Transport::Encrypted(stream, is_http2)) => {
                Box::pin(self.converse(*stream, is_http2, peer)).await;
            }
            None => {}
        }
    }

    /// Finds out the version of HTTP, after the handshake of TLS. `None` if that fails.
    ///
    /// Decided here: a connection that reads the preface of HTTP/2 itself gives HTTP/1 its first bytes apart from the rest, for
    /// which hyper doubles the buffer of the connection to 16 KiB.
    async fn negotiate(&self, socket: Socket) -> Option<Transport> {
        let Some(tls) = &self.tls else {
            let may_be_http2 = socket.may_be_http2().await;
            return Some(Transport::Plain(socket, may_be_http2));
        };
        match Box::pin(tls.accept(socket)).await {
            Ok((stream, is_http2)) => Some(Transport::Encrypted(Box::new(stream), is_http2)),
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
        }
    }

    async fn converse<S>(&self, stream: S, is_http2: bool, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let pulse = Pulse::new();
        let asked = pulse.clone();
        let service = service_fn(|mut request: Request<Incoming>| {
            let client = self.trusted_proxies.client(peer.address, request.headers());
            request.extensions_mut().insert(client);
            if let Some(refusal) = peer.refusal {
                request.extensions_mut().insert(refusal);
            }
            answer(self.router.clone(), &asked, request)
        });
        let stream = TokioIo::new(stream);
        if is_http2 {
            let connection = self.either.serve_connection_with_upgrades(stream, service);
            // Boxed: it is large, and most connections are not HTTP/2.
            Box::pin(self.attend(connection, &pulse, auto::UpgradeableConnection::graceful_shutdown)).await;
        } else {
            let connection = self.http1.serve_connection(stream, service).with_upgrades();
            self.attend(connection, &pulse, http1::UpgradeableConnection::graceful_shutdown).await;
        }
    }

    /// Polls a connection until it ends, is idle for too long, or is cut.
    async fn attend<C, E>(&self, connection: C, pulse: &Pulse, shut_down: impl Fn(Pin<&mut C>))
    where
        C: Future<Output = Result<(), E>>,
        E: Display,
    {
        let mut connection = pin!(connection);
        let mut is_leaving = false;
        while let Some(until) = pulse.look(self.patience) {
            tokio::select! {
                // The connection first, so that data that has arrived counts even if this task was delayed past the idle
                // timeout.
                biased;
                result = connection.as_mut() => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "a connection broke");
                    }
                    return;
                }
                () = self.cut.cancelled() => return,
                () = self.leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    shut_down(connection.as_mut());
                }
                () = tokio::time::sleep_until(until) => {}
            }
        }
        // The connection is idle. Closing frames such as HTTP/2's GOAWAY get 1 s.
        shut_down(connection.as_mut());
        let _ = tokio::time::timeout(Duration::from_secs(1), connection).await;
    }

    /// Guards that close all connections when dropped, even without a drain.
    pub fn ends_with(&self) -> [DropGuard; 2] {
        [self.leaving.clone().drop_guard(), self.cut.clone().drop_guard()]
    }

    /// Stops accepting. Open connections end after their current request.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    /// Waits until all connections have ended, and closes the remaining ones after `patience`.
    pub async fn end(&self, patience: Duration) {
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::info!(open = self.tasks.len(), "closing what is still open");
            self.cut.cancel();
            // A WebSocket that does not react ends with the process.
            let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
        }
    }
}

/// Limits how often a frequent event is logged.
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

/// Counts as a request in progress until the last byte of the response.
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

/// Bytes of a request's head. Slightly above the limits, so that a request above them still gets an error response.
fn max_head(limits: &RequestLimits) -> usize {
    limits.max_header_bytes.saturating_add(limits.max_url_bytes).saturating_add(8 << 10)
}

/// Small buffers, because thousands of streams are open at once and each sends little.
fn http1_builder(limits: &RequestLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.keep_alive)
        .max_buf_size(max_head(limits))
        .pipeline_flush(false);
    builder
}

fn either_builder(limits: &RequestLimits, tasks: Tasks) -> auto::Builder<Tasks> {
    let mut builder = auto::Builder::new(tasks);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.keep_alive)
        .max_buf_size(max_head(limits))
        .pipeline_flush(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(max_head(limits)).unwrap_or(u32::MAX))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}
