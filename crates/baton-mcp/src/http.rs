//! A server behind streamable HTTP. Sessions and streams are rmcp's work, the answers to requests are read in [`answer`].

mod answer;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use indexmap::IndexMap;
use reqwest::header::ACCEPT;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{RequestBuilder, Url};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, SseRetryPolicy};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};

use crate::stdout::MAX_LINE_BYTES;

/// How often a broken stream is opened again, and how long the first pause is; each is twice the one before.
const RECONNECTS: usize = 3;
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
const MAX_REDIRECTS: usize = 5;
const ACCEPTED: &str = "text/event-stream, application/json";

pub(crate) type HttpTransport = StreamableHttpClientTransport<HttpClient>;
type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Nothing is sent yet: that happens with the first message. `lost` is set when the server has gone for good.
pub(crate) fn transport(
    url: &str,
    headers: &IndexMap<String, String>,
    lost: Arc<AtomicBool>,
) -> Result<HttpTransport, String> {
    // The address may hold a secret, so it is not repeated.
    let parsed = Url::parse(url).map_err(|error| format!("its URL is not valid: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!(
            "its URL starts with `{}:`, and has to start with `http:` or `https:`",
            parsed.scheme()
        ));
    }
    let headers = headers.iter().map(header).collect::<Result<Headers, _>>()?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_sse_event_size(MAX_LINE_BYTES)
        // A new session may be with a new version of the server, so it has to begin with a new list of tools.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(Reconnects { lost });
    Ok(StreamableHttpClientTransport::with_client(HttpClient::new()?, config))
}

fn header((name, value): (&String, &String)) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a header name"))?;
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| format!("the value of header `{name}` has characters that a header cannot have"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// rmcp's own policies go on forever, and calls with them. A connection whose streams cannot be opened again is lost
/// as a whole, because it would not hear of changes either.
#[derive(Debug)]
struct Reconnects {
    lost: Arc<AtomicBool>,
}

impl SseRetryPolicy for Reconnects {
    fn retry(&self, times: usize) -> Option<Duration> {
        if times < RECONNECTS {
            return Some(RECONNECT_PAUSE * (1 << times));
        }
        self.lost.store(true, Ordering::Release);
        None
    }
}

/// rmcp's client, with limits on what it reads.
#[derive(Clone)]
pub(crate) struct HttpClient(reqwest::Client);

impl HttpClient {
    fn new() -> Result<Self, String> {
        // The process has one TLS provider; whoever needs it first installs it.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Fails only when somebody else was quicker.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        reqwest::Client::builder()
            .redirect(Policy::custom(follow_at_home))
            // Bodies are limited as they arrive: a compressed one could be a thousand times larger than what was sent.
            .no_gzip()
            // Not every answer is read to its end, which stalls connections that are used again.
            .pool_max_idle_per_host(0)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

/// The headers are secrets of one server: they go with a redirect (`/mcp` to `/mcp/` is common) only to itself.
fn follow_at_home(attempt: Attempt) -> Action {
    let origin = attempt.previous().first().map(Url::origin);
    let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
    if keeps_method && origin == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limit = MAX_LINE_BYTES;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, limit).await
    }

    /// Not rmcp's: that one reads a body to its end, however long it is.
    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let in_session = session.is_some();
        let mut request = with_headers(self.0.post(&*uri), headers)?.header(ACCEPT, ACCEPTED);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, &*session);
        }
        let response = request.json(&message).send().await?;
        answer::read(response, &message, in_session, limit).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, HttpError> {
        self.0
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, MAX_LINE_BYTES)
            .await
    }
}

/// Headers that the protocol sets. The version is among rmcp's own headers of a request.
const RESERVED: [&str; 3] = ["accept", HEADER_SESSION_ID, HEADER_LAST_EVENT_ID];

fn with_headers(request: RequestBuilder, headers: Headers) -> Result<RequestBuilder, HttpError> {
    headers.into_iter().try_fold(request, |request, (name, value)| {
        if RESERVED.iter().any(|reserved| name.as_str().eq_ignore_ascii_case(reserved)) {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        Ok(request.header(name, value))
    })
}

/// Whether the server certainly did not act on the request.
pub(crate) fn never_arrived(error: &(dyn std::error::Error + 'static)) -> bool {
    match error.downcast_ref::<HttpError>() {
        Some(StreamableHttpError::SessionExpired) => true,
        Some(StreamableHttpError::Client(error)) => error.is_connect(),
        _ => false,
    }
}
