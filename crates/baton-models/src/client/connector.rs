//! Connects to a provider, directly or through a proxy.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tower::Service;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type BoxError = Box<dyn Error + Send + Sync>;
type Io = MaybeHttpsStream<TokioIo<TcpStream>>;

/// TCP, the proxy's tunnel and TLS together get [`CONNECT_TIMEOUT`].
#[derive(Clone)]
pub(super) struct Connector {
    route: ConnectionRoute,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    pub fn new(proxies: Arc<Matcher>, keep_alive: Duration) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(keep_alive));
        Self { route: ConnectionRoute { http, proxies, tls: Arc::default() } }
    }

    /// A connection without TLS and proxy.
    pub(super) async fn connect_plain(&self, destination: Uri) -> Result<TcpStream, BoxError> {
        let mut http = self.route.http.clone();
        Ok(within_timeout(async move { Ok(http.call(destination).await?) }).await?.into_inner())
    }

    async fn connect(mut self, destination: Uri) -> Result<MaybeHttpsStream<Routed>, BoxError> {
        if destination.scheme() != Some(&Scheme::HTTPS) {
            return Ok(MaybeHttpsStream::Http(self.route.call(destination).await?));
        }
        let config = Arc::clone(&self.route.tls().await?.to_provider);
        HttpsConnector::from((self.route, config)).call(destination).await
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Routed>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    /// Neither names nor sockets make it wait here.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        within_timeout(self.clone().connect(destination)).boxed()
    }
}

async fn within_timeout<T>(connecting: impl Future<Output = Result<T, BoxError>>) -> Result<T, BoxError> {
    match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(connected) => connected,
        Err(_) => {
            let message = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, message).into())
        }
    }
}

/// How connections are secured. Made for the first of them: reading the machine's certificates takes some 10 ms, and who
/// talks only to a model next door never needs them.
struct Tls {
    to_provider: Arc<ClientConfig>,
    to_proxy: Arc<ClientConfig>,
}

impl Tls {
    fn new() -> Result<Self, rustls::Error> {
        // An error means that the process has chosen a provider already, which is as good.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let to_proxy = ClientConfig::builder().with_platform_verifier()?.with_no_client_auth();
        let mut to_provider = to_proxy.clone();
        to_provider.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { to_provider: to_provider.into(), to_proxy: to_proxy.into() })
    }
}

/// The connection below TLS: to the provider, or to a proxy.
#[derive(Clone)]
struct ConnectionRoute {
    http: HttpConnector,
    proxies: Arc<Matcher>,
    tls: Arc<OnceCell<Tls>>,
}

impl Service<Uri> for ConnectionRoute {
    type Response = Routed;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Routed, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        let mut route = self.clone();
        match self.proxies.intercept(&destination) {
            None => async move { route.direct(destination, false).await }.boxed(),
            Some(proxy) => async move { route.through(&proxy, destination).await }.boxed(),
        }
    }
}

impl ConnectionRoute {
    async fn tls(&self) -> Result<&Tls, BoxError> {
        let read = async || tokio::task::spawn_blocking(Tls::new).await?.map_err(BoxError::from);
        self.tls.get_or_try_init(read).await
    }

    async fn direct(&mut self, to: Uri, is_proxied: bool) -> Result<Routed, BoxError> {
        Ok(Routed { io: Io::Http(self.http.call(to).await?), is_proxied })
    }

    async fn through(&mut self, proxy: &Intercept, destination: Uri) -> Result<Routed, BoxError> {
        let is_tunnelled = destination.scheme() == Some(&Scheme::HTTPS);
        if !is_tunnelled && proxy.uri().scheme() != Some(&Scheme::HTTPS) {
            return self.direct(proxy.uri().clone(), true).await;
        }
        let config = Arc::clone(&self.tls().await?.to_proxy);
        let mut to_proxy = HttpsConnector::from((self.http.clone(), config));
        if !is_tunnelled {
            return Ok(Routed { io: to_proxy.call(proxy.uri().clone()).await?, is_proxied: true });
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        let mut tunnel = match proxy.basic_auth() {
            Some(credential) => tunnel.with_auth(credential.clone()),
            None => tunnel,
        };
        Ok(Routed { io: tunnel.call(destination).await?, is_proxied: false })
    }
}

/// A connection that knows whether a proxy reads its requests: those name their whole address.
#[derive(Debug)]
pub(super) struct Routed {
    io: Io,
    is_proxied: bool,
}

impl Connection for Routed {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.is_proxied)
    }
}

impl Read for Routed {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buffer)
    }
}

impl Write for Routed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
