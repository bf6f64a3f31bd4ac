//! Plain HTTP/1 connections that the reader of a reply polls itself.
//!
//! A connection has no task of its own. The task that waits for the head of a response or for a part of its body drives it, so
//! that no part of a reply is passed from one task to another. A connection whose body was read to its end is kept for the next
//! request to the same server. Dropping a body that was not closes its connection.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::{Body, Frame};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::broken;
use super::connector::Connector;
use super::http1::Http1Connection;
use crate::fault::ModelFault;

/// How often idle connections are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);
/// The port of an `http` address without one.
const DEFAULT_PORT: u16 = 80;

/// A client for `http` addresses that are reached without a proxy. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct DirectClient {
    connector: Connector,
    pool: Arc<ConnectionPool>,
}

impl DirectClient {
    pub(super) fn new(connector: Connector, idle_timeout: Duration) -> Self {
        Self { connector, pool: Arc::new(ConnectionPool { idle_timeout, state: Mutex::default() }) }
    }

    /// Returns when the head of the response has arrived. A request that an idle connection could not send any more, because the
    /// server has closed it, is sent on another one.
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Response<DirectBody>, ModelFault> {
        let (address, request) = in_origin_form(request)?;
        loop {
            let kept = self.pool.take(&address);
            let is_kept = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.connect(&address).await?,
            };
            match connection.exchange(&request).await {
                Ok(response) => {
                    let connection = Some((connection, address));
                    let pool = Arc::clone(&self.pool);
                    return Ok(response.map(|()| DirectBody { connection, pool }));
                }
                Err(failed) if failed.is_unsent && is_kept => {}
                Err(failed) => return Err(broken(&failed.error)),
            }
        }
    }

    async fn connect(&self, address: &Authority) -> Result<Box<Http1Connection>, ModelFault> {
        let uri = Uri::builder().scheme("http").authority(address.clone()).path_and_query("/").build();
        let uri = uri.expect("a scheme, an authority and a path");
        let socket = self.connector.connect_plain(uri).await.map_err(|error| broken(&*error))?;
        Ok(Box::new(Http1Connection::new(socket)))
    }
}

/// The address of the server, and the request in origin form with a `Host` header.
fn in_origin_form(request: Request<Bytes>) -> Result<(Authority, Request<Bytes>), ModelFault> {
    let (mut head, body) = request.into_parts();
    let mut uri = std::mem::take(&mut head.uri).into_parts();
    let address = uri.authority.take().ok_or_else(|| ModelFault::malformed("the address has no host"))?;
    let host = match address.port_u16().filter(|port| *port != DEFAULT_PORT) {
        Some(port) => HeaderValue::try_from(format!("{}:{port}", address.host())),
        None => HeaderValue::from_str(address.host()),
    };
    head.headers.insert(HOST, host.map_err(|_| ModelFault::malformed("the address has no valid host"))?);
    uri.scheme = None;
    uri.path_and_query.get_or_insert(PathAndQuery::from_static("/"));
    head.uri = Uri::from_parts(uri).expect("a path is a valid address");
    Ok((address, Request::from_parts(head, body)))
}

/// The body of a response. Reading it reads its connection.
#[derive(Debug)]
pub(crate) struct DirectBody {
    /// `None` once the body has ended or failed.
    connection: Option<(Box<Http1Connection>, Authority)>,
    pool: Arc<ConnectionPool>,
}

impl Body for DirectBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some((connection, _)) = &mut self.connection else { return Poll::Ready(None) };
        let polled = connection.poll_body(context);
        match &polled {
            Poll::Pending | Poll::Ready(Some(Ok(_))) => {}
            // Closes the connection.
            Poll::Ready(Some(Err(_))) => self.connection = None,
            Poll::Ready(None) => {
                if let Some((connection, address)) = self.connection.take() {
                    self.pool.put(address, connection);
                }
            }
        }
        polled.map(|part| part.map(|part| part.map(Frame::data)))
    }
}

/// Idle connections by the address of their server.
#[derive(Debug)]
struct ConnectionPool {
    idle_timeout: Duration,
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    idle: HashMap<Authority, Vec<IdleConnection>>,
    /// Closes connections that are idle for too long. Runs while there are any.
    sweeper: Option<AbortHandle>,
}

#[derive(Debug)]
struct IdleConnection {
    connection: Box<Http1Connection>,
    since: Instant,
}

impl ConnectionPool {
    /// The connection that was used last and can still be used. Closes those that cannot.
    fn take(&self, address: &Authority) -> Option<Box<Http1Connection>> {
        loop {
            let idle = self.lock().idle.get_mut(address)?.pop()?;
            if self.is_usable(&idle) {
                return Some(idle.connection);
            }
        }
    }

    fn put(self: &Arc<Self>, address: Authority, connection: Box<Http1Connection>) {
        if !connection.is_idle() {
            return;
        }
        let mut state = self.lock();
        state.idle.entry(address).or_default().push(IdleConnection { connection, since: Instant::now() });
        if state.sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            state.sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    fn is_usable(&self, idle: &IdleConnection) -> bool {
        idle.since.elapsed() < self.idle_timeout && idle.connection.is_reusable()
    }

    /// Closes idle connections that cannot be used any more. Returns whether others are left.
    fn sweep(&self) -> bool {
        let mut state = self.lock();
        state.idle.retain(|_, idle| {
            idle.retain(|one| self.is_usable(one));
            !idle.is_empty()
        });
        if state.idle.is_empty() {
            state.sweeper = None;
        }
        state.sweeper.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

async fn sweep(pool: Weak<ConnectionPool>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        if !pool.upgrade().is_some_and(|pool| pool.sweep()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt as _;
    use hyper_util::client::proxy::matcher::Matcher;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;

    use super::*;

    /// Answers one request and keeps its connection open until the returned sender is used.
    async fn server() -> (Uri, oneshot::Sender<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/v1?x=1", listener.local_addr().unwrap()).parse().unwrap();
        let (close, closed) = oneshot::channel();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(socket.read_buf(&mut head).await.unwrap(), 0);
            }
            let head = String::from_utf8(head).unwrap();
            assert!(head.starts_with("GET /v1?x=1 HTTP/1.1\r\n"), "{head}");
            assert!(head.contains(&format!("host: {}\r\n", socket.local_addr().unwrap())), "{head}");
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
            let _ = closed.await;
        });
        (uri, close)
    }

    fn client(idle_timeout: Duration) -> DirectClient {
        let proxies = Arc::new(Matcher::builder().build());
        DirectClient::new(Connector::new(proxies, Duration::from_secs(30)), idle_timeout)
    }

    /// Answers once on each connection, and counts them.
    async fn closing_server() -> (Uri, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let _ = socket.read(&mut [0; 4096]).await;
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
            }
        });
        (uri, accepted)
    }

    async fn ask(client: &DirectClient, uri: Uri) {
        let request = Request::get(uri).body(Bytes::new()).unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hi");
    }

    #[tokio::test]
    async fn idle_connections_are_closed_when_the_server_has_closed_them() {
        let (uri, close) = server().await;
        let client = client(Duration::from_secs(90));
        ask(&client, uri).await;
        assert!(client.pool.sweep(), "one is idle");
        drop(close);
        while client.pool.sweep() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(client.pool.lock().idle.is_empty());
    }

    /// The server closes every connection after its answer; the client notices it when it takes the connection, or before it writes.
    #[tokio::test]
    async fn requests_are_sent_on_another_connection_if_one_was_closed() {
        let (uri, accepted) = closing_server().await;
        let client = client(Duration::from_secs(90));
        for _ in 0..20 {
            ask(&client, uri.clone()).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(accepted.load(Ordering::Relaxed), 20);
    }

    #[tokio::test]
    async fn bodies_that_were_not_read_close_their_connection() {
        let (uri, _close) = server().await;
        let client = client(Duration::from_secs(90));
        drop(client.send(Request::get(uri).body(Bytes::new()).unwrap()).await.unwrap());
        assert!(client.pool.lock().idle.is_empty());
    }

    #[tokio::test]
    async fn idle_connections_are_closed_after_the_idle_timeout() {
        let (uri, _close) = server().await;
        let client = client(Duration::ZERO);
        ask(&client, uri.clone()).await;
        assert_eq!(client.pool.lock().idle.len(), 1);
        assert!(client.pool.take(uri.authority().unwrap()).is_none());
        assert!(!client.pool.sweep());
    }
}
