//! The one HTTP client that all providers share, so that connections are pooled.

mod connector;
mod direct;
mod http1;

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use baton_core::ModelErrorKind;
use bytes::Bytes;
use http::header::{PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper_util::client::legacy;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::fault::{ModelFault, brief};
use connector::Connector;
use direct::{DirectBody, DirectClient};

const KEEP_ALIVE: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(90);

/// Pools of connections. Cheap to clone.
///
/// `hyper`, and for plain connections [`mod@http1`], without a layer between: a call needs no redirects, cookies, compression or overall time limit. Connections with TLS
/// or through a proxy have a task each, because several HTTP/2 requests share one. Plain ones are read by the caller.
#[derive(Debug, Clone)]
pub struct ModelHttpClient {
    pooled: legacy::Client<Connector, Full<Bytes>>,
    direct: DirectClient,
    proxies: Arc<Matcher>,
}

/// Uses the machine's certificates and the proxies of the environment (`HTTPS_PROXY`, `NO_PROXY`, …). There is no overall
/// time limit: an answer may take minutes, and the caller decides how long it waits for the next chunk.
impl Default for ModelHttpClient {
    fn default() -> Self {
        Self::new(Matcher::from_system())
    }
}

impl ModelHttpClient {
    fn new(proxies: Matcher) -> Self {
        let proxies = Arc::new(proxies);
        let connector = Connector::new(Arc::clone(&proxies), KEEP_ALIVE);
        let direct = DirectClient::new(connector.clone(), IDLE);
        let pooled = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE)
            .build(connector);
        Self { pooled, direct, proxies }
    }

    /// Returns when the head of the response has arrived.
    pub(crate) async fn send(
        &self,
        mut request: Request<Bytes>,
    ) -> Result<Response<ResponseBody>, ModelFault> {
        let agent = HeaderValue::from_static(concat!("baton/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        let proxy = self.proxies.intercept(request.uri());
        if request.uri().scheme() == Some(&Scheme::HTTP) {
            let Some(proxy) = proxy else {
                return Ok(self.direct.send(request).await?.map(ResponseBody::Direct));
            };
            // A proxy reads the head of a plain request itself. Of a TLS connection it sees only the `CONNECT` before.
            if let Some(credential) = proxy.basic_auth() {
                request.headers_mut().insert(PROXY_AUTHORIZATION, credential.clone());
            }
        }
        let response = self.pooled.request(request.map(Full::new)).await.map_err(|error| broken(&error))?;
        Ok(response.map(ResponseBody::Pooled))
    }
}

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// The task of the connection reads it.
    Pooled(Incoming),
    /// Polling it reads it.
    Direct(DirectBody),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Pooled(body) => Pin::new(body).poll_frame(context).map_err(io::Error::other),
            Self::Direct(body) => Pin::new(body).poll_frame(context),
        }
    }
}

/// No connection, or it broke. The address is left out: it may hold credentials.
pub(crate) fn broken(error: &(dyn Error + 'static)) -> ModelFault {
    let (mut kind, mut message) = (ModelErrorKind::Transport, String::from("the connection failed"));
    let mut source = Some(error);
    while let Some(cause) = source {
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::TimedOut) => kind = ModelErrorKind::Timeout,
            Some(io::ErrorKind::ConnectionRefused) => kind = ModelErrorKind::Unreachable,
            _ => {}
        }
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    ModelFault::new(kind, brief(&message))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A proxy that answers the first request of one connection, and returns the head of that request.
    async fn proxy(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(socket.read_buf(&mut head).await.unwrap(), 0);
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        });
        (address, seen)
    }

    fn through(address: &str) -> ModelHttpClient {
        let matcher = Matcher::builder().all(format!("http://user:word@{address}")).no("direct.test").build();
        ModelHttpClient::new(matcher)
    }

    fn get(uri: &str) -> Request<Bytes> {
        Request::get(uri).body(Bytes::new()).unwrap()
    }

    #[tokio::test]
    async fn plain_requests_go_through_the_proxy_with_its_credential() {
        let (address, seen) = proxy("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
        let response = through(&address).send(get("http://model.test/v1")).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hi");
        let head = seen.await.unwrap();
        assert!(head.starts_with("GET http://model.test/v1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("proxy-authorization: Basic dXNlcjp3b3Jk\r\n"), "{head}");
    }

    #[tokio::test]
    async fn tls_connections_are_tunnelled_through_the_proxy() {
        let (address, seen) = proxy("HTTP/1.1 403 Forbidden\r\n\r\n").await;
        let fault = through(&address).send(get("https://model.test/v1")).await.unwrap_err();
        assert_eq!(fault.kind, ModelErrorKind::Transport);
        let head = seen.await.unwrap();
        assert!(head.starts_with("CONNECT model.test:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.to_lowercase().contains("proxy-authorization: basic"), "{head}");
    }

    #[tokio::test]
    async fn excepted_hosts_are_reached_without_the_proxy() {
        let (address, seen) = proxy("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        assert!(through(&address).send(get("http://direct.test:1/")).await.is_err(), "no such host");
        assert!(!seen.is_finished(), "the proxy has seen nothing");
        seen.abort();
    }
}
