//! The one HTTP client, and what every provider's call has in common: an address, a key, a refusal.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use baton_core::{ModelError, ModelErrorKind, TraceParent};
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url};
use secrecy::{ExposeSecret, SecretString};

use crate::fault::{Fault, brief};
use crate::frames::Framing;
use crate::registry::{self, Endpoint};
use crate::retry_after::retry_after;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// An error needs no more; what follows is not read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The platform offers no way to check certificates.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the HTTP client: {0}")]
pub struct ClientError(#[from] reqwest::Error);

/// The client that all providers share, so that connections are pooled. There is no overall time limit: an answer may
/// take minutes, and whoever calls knows best when it has been silent for too long.
pub fn client() -> Result<Client, ClientError> {
    // Fails only when somebody has chosen a provider before, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEP_ALIVE)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE)
        // A redirect would carry `x-api-key` and its like to another host; no provider redirects.
        .redirect(reqwest::redirect::Policy::none())
        // Compressing a stream of small deltas only delays them.
        .gzip(false)
        .build()?;
    Ok(client)
}

/// One provider as it can be called. Cheap to clone; its `Debug` shows no key.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub provider: Arc<str>,
    base: Option<Arc<str>>,
    key: Option<SecretString>,
    needs_key: bool,
    client: Client,
}

impl Connection {
    pub fn new(endpoint: Endpoint, client: Client) -> Self {
        let default = registry::default_base(&endpoint.provider);
        let is_default = endpoint.base_url.as_deref().is_none_or(|base| Some(base) == default);
        let base = endpoint.base_url.as_deref().or(default).map(Arc::from);
        let needs_key = is_default && base.as_deref().is_some_and(|base| !is_loopback(base));
        // A key that was read from a file often ends with a line break.
        let key = endpoint.key.map(|key| SecretString::from(key.expose_secret().trim()));
        let key = key.filter(|key| !key.expose_secret().is_empty());
        Self { provider: endpoint.provider.into(), base, key, needs_key, client }
    }

    /// The address as configured, or the provider's own.
    pub fn base(&self) -> &str {
        self.base.as_deref().unwrap_or_default()
    }

    /// The base address with a path below it; the query of the base stays.
    pub fn url(&self, path: &[&str]) -> Result<Url, Fault> {
        let invalid = |message: String| Fault::new(ModelErrorKind::InvalidRequest, message);
        let Some(base) = self.base.as_deref() else {
            return Err(invalid(format!("`{}` has no known address; set its `base_url`", self.provider)));
        };
        let mut url =
            Url::parse(base).map_err(|error| invalid(format!("its `base_url` is not a URL: {error}")))?;
        // Base addresses are often given with a part of the path.
        let has: Vec<String> = url.path_segments().into_iter().flatten().map(str::to_owned).collect();
        let has: Vec<&str> = has.iter().map(String::as_str).filter(|segment| !segment.is_empty()).collect();
        let overlap = (0..=path.len()).rev().find(|&count| has.ends_with(&path[..count])).unwrap_or(0);
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(&path[overlap..]),
            Err(()) => return Err(invalid("its `base_url` is not an http address".into())),
        };
        Ok(url)
    }

    /// A request that carries the key as `header: {prefix}{key}`.
    pub fn post(
        &self,
        url: Url,
        header: &'static str,
        prefix: &str,
        body: Vec<u8>,
    ) -> Result<Request, Fault> {
        let mut request = Request::new(Method::POST, url);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = self.key()? {
            let mut value = HeaderValue::try_from(format!("{prefix}{key}"))
                .map_err(|_| Fault::new(ModelErrorKind::Auth, "its key holds characters that no key has"))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(header), value);
        }
        *request.body_mut() = Some(body.into());
        Ok(request)
    }

    fn key(&self) -> Result<Option<&str>, Fault> {
        match &self.key {
            Some(key) => Ok(Some(key.expose_secret())),
            None if self.needs_key => {
                let variable = registry::key_variable(&self.provider);
                Err(Fault::new(
                    ModelErrorKind::Auth,
                    format!("no key: set the environment variable {variable}"),
                ))
            }
            None => Ok(None),
        }
    }

    /// Sends the request and returns an answer that can be read as frames.
    pub async fn open(&self, mut request: Request, framing: Framing) -> Result<Response, Fault> {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(framing.media_type()));
        let response = self.client.execute(request).await.map_err(|error| broken(&error))?;
        let status = response.status();
        if status.is_success() && is_framed(&response, framing) {
            return Ok(response);
        }
        let request_id = request_id(response.headers());
        let retry_after = retry_after(response.headers());
        let media_type = media_type(&response);
        let status = (!status.is_success()).then_some(status.as_u16());
        let body = read_some(response).await;
        let mut fault = Fault::from_body(status, &body);
        if fault.kind == ModelErrorKind::Malformed {
            let expected = framing.media_type();
            fault.message = brief(&format!("expected {expected}, got `{media_type}`: {}", fault.message));
        }
        fault.retry_after = retry_after.or(fault.retry_after);
        Err(Fault { request_id, ..fault })
    }

    /// The only way from a fault to an error, so that a key which the provider quotes goes no further.
    pub fn report(&self, fault: Fault) -> ModelError {
        let Fault { kind, mut message, status, request_id, retry_after } = fault;
        if let Some(key) = &self.key {
            message = message.replace(key.expose_secret(), "[key]");
        }
        let provider = self.provider.as_ref().to_owned();
        ModelError { kind, provider, message, status, request_id, retry_after }
    }
}

/// The request as part of a trace: a gateway or a server of one's own continues it, and everybody else ignores it.
pub(crate) fn traced(mut request: Request, trace: Option<&TraceParent>) -> Request {
    let Some(trace) = trace else { return request };
    let headers =
        [("traceparent", Some(trace.to_string())), ("tracestate", trace.state().map(str::to_owned))];
    for (name, value) in headers {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    request
}

/// Whether an address is this machine's own.
pub(crate) fn is_loopback(base: &str) -> bool {
    let url = Url::parse(base).ok();
    url.as_ref().and_then(Url::host_str).is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    })
}

/// No connection, or it broke. The address is left out: it may hold credentials.
pub(crate) fn broken(error: &reqwest::Error) -> Fault {
    let kind = if error.is_timeout() { ModelErrorKind::Timeout } else { ModelErrorKind::Transport };
    let mut message = String::from("the connection failed");
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Fault::new(kind, brief(&message))
}

/// What to quote to the provider's support.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    const NAMES: [&str; 4] = ["x-request-id", "request-id", "apim-request-id", "x-ms-request-id"];
    let value = NAMES.iter().find_map(|name| headers.get(*name))?;
    value.to_str().ok().map(|id| id.chars().take(200).collect())
}

fn media_type(response: &Response) -> String {
    let header =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Proxies lose the header; what they pass on is still what was asked for. Ollama-like servers name their lines in
/// several ways, and their errors are lines too.
fn is_framed(response: &Response, framing: Framing) -> bool {
    match media_type(response).as_str() {
        "" | "text/event-stream" => true,
        other => framing == Framing::Ndjson && other.contains("json"),
    }
}

async fn read_some(response: Response) -> String {
    let mut body = response.bytes_stream();
    let mut bytes = Vec::new();
    while let Some(Ok(piece)) = body.next().await {
        let room = MAX_ERROR_BYTES - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if bytes.len() == MAX_ERROR_BYTES {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
