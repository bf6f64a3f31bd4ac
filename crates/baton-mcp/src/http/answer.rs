//! Reads the answer to a posted message, with a limit: a server that sends without end must not fill the memory.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::StatusCode;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;
use tokio_util::bytes::Bytes;

use super::HttpError;
use crate::stdout::TOO_LONG;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Of a body that is not a message: what is repeated in the error.
const SHOWN_BYTES: usize = 1000;

type Answer = Result<StreamableHttpPostResponse, HttpError>;

/// `limit` is the maximum of bytes of a body, or of an event of a stream.
pub(super) async fn read(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
    limit: usize,
) -> Answer {
    let status = response.status();
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        && let Some(challenge) = text(WWW_AUTHENTICATE.as_str())
    {
        return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
    }
    match status {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
        StatusCode::NOT_FOUND if in_session => return Err(StreamableHttpError::SessionExpired),
        _ => {}
    }
    let kind = text(CONTENT_TYPE.as_str()).unwrap_or_default();
    let session = text(HEADER_SESSION_ID);
    if !status.is_success() {
        let retry_after = text(RETRY_AFTER.as_str());
        let refusal = Refusal { status, is_json: kind.starts_with(JSON), retry_after, session };
        return refusal.read(response, message, in_session, limit).await;
    }
    let asked = request_id(message);
    if kind.starts_with(EVENTS) {
        let events = LimitedEvents::new(response.bytes_stream().boxed(), limit, asked);
        return Ok(StreamableHttpPostResponse::Sse(SseStream::from_bytes_stream(events).boxed(), session));
    }
    // Some servers answer 200 with nothing where 202 is specified.
    if asked.is_none() && response.content_length() == Some(0) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if !kind.starts_with(JSON) {
        return Err(StreamableHttpError::UnexpectedContentType(Some(kind).filter(|kind| !kind.is_empty())));
    }
    let Some(body) = body(response, limit).await? else { return Ok(too_long(asked, limit, session)) };
    match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(JsonRpcMessage::Error(error)) => correlated(error, asked, in_session, session),
        Ok(parsed) => Ok(StreamableHttpPostResponse::Json(parsed, session)),
        // No answer is expected to a notification.
        Err(_) if asked.is_none() => Ok(StreamableHttpPostResponse::Accepted),
        Err(error) => Err(unexpected(format!("the answer is not a message: {error}: {}", shown(&body)))),
    }
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// An answer with an error status.
struct Refusal {
    status: StatusCode,
    is_json: bool,
    retry_after: Option<String>,
    session: Option<String>,
}

impl Refusal {
    async fn read(
        self,
        response: Response,
        message: &ClientJsonRpcMessage,
        in_session: bool,
        limit: usize,
    ) -> Answer {
        let Self { status, is_json, retry_after, session } = self;
        let is_busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
        let busy = || StreamableHttpError::from(HttpStatusError::new(status.as_u16(), retry_after));
        if is_busy && (!is_json || status == StatusCode::TOO_MANY_REQUESTS) {
            return Err(busy());
        }
        let asked = request_id(message);
        let body = match body(response, limit).await {
            Ok(Some(body)) => body,
            Ok(None) => return Ok(too_long(asked, limit, session)),
            Err(_) => Vec::new(),
        };
        let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok();
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if status.is_client_error() && !is_denied && !in_session && is_discovery(message) {
            // An older server does not know the request; the handshake then uses the older form.
            let error = match parsed {
                Some(JsonRpcMessage::Error(error)) => error.error,
                _ => ErrorData::invalid_request(format!("HTTP {status}: {}", shown(&body)), None),
            };
            return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, asked), None));
        }
        match parsed {
            Some(JsonRpcMessage::Error(error)) if is_json && !is_denied => {
                correlated(error, asked, in_session, session)
            }
            _ if is_busy => Err(busy()),
            _ => Err(unexpected(format!("HTTP {status}: {}", shown(&body)))),
        }
    }
}

fn is_discovery(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::DiscoverRequest(_)))
}

/// An error without an id means that the request was not even read. It gets the id of the request, which would otherwise wait forever.
fn correlated(
    mut error: rmcp::model::JsonRpcError,
    asked: Option<RequestId>,
    in_session: bool,
    session: Option<String>,
) -> Answer {
    if error.id.is_none() {
        if in_session && is_lost_session(&error.error) {
            return Err(StreamableHttpError::SessionExpired);
        }
        error.id = asked;
    }
    Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session))
}

/// A server that was started anew knows no old sessions. The protocol wants status 404 for that; many servers answer
/// 400 with such a text instead.
fn is_lost_session(error: &ErrorData) -> bool {
    let message = error.message.to_lowercase();
    message.contains("session") || message.contains("not initialized")
}

/// The whole body; `None` if it is longer than `limit`. The rest is not read then.
async fn body(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

fn too_long(asked: Option<RequestId>, limit: usize, session: Option<String>) -> StreamableHttpPostResponse {
    match asked {
        Some(id) => {
            StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error(limit), Some(id)), session)
        }
        None => StreamableHttpPostResponse::Accepted,
    }
}

fn error(limit: usize) -> ErrorData {
    let message = format!("the answer is longer than {limit} bytes and was not read to its end");
    ErrorData::new(rmcp::model::ErrorCode(TOO_LONG), message, None)
}

fn unexpected(reason: String) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(reason))
}

fn shown(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)])
}

/// The bytes of an event stream. An event that is too long ends the stream with an error answer to the request.
struct LimitedEvents {
    inner: BoxStream<'static, reqwest::Result<Bytes>>,
    limit: usize,
    asked: Option<RequestId>,
    /// Bytes since the last empty line.
    event: usize,
    is_line_empty: bool,
    last: u8,
    has_ended: bool,
}

impl LimitedEvents {
    fn new(
        inner: BoxStream<'static, reqwest::Result<Bytes>>,
        limit: usize,
        asked: Option<RequestId>,
    ) -> Self {
        Self { inner, limit, asked, event: 0, is_line_empty: true, last: 0, has_ended: false }
    }

    /// Counts the bytes of the current event. Returns false if there are too many.
    fn fits(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            match byte {
                // The second half of a line break.
                b'\n' if self.last == b'\r' => {}
                b'\n' | b'\r' if self.is_line_empty => self.event = 0,
                b'\n' | b'\r' => self.is_line_empty = true,
                _ => self.is_line_empty = false,
            }
            self.last = byte;
            self.event += 1;
            if self.event > self.limit {
                return false;
            }
        }
        true
    }

    /// Ends the event, which is then not a message and is skipped, and answers the request.
    fn refusal(&self) -> Bytes {
        let answer = self.asked.clone().map(|id| ServerJsonRpcMessage::error(error(self.limit), Some(id)));
        let answer = answer.and_then(|answer| serde_json::to_string(&answer).ok());
        let event = answer.map(|answer| format!("data: {answer}\n\n")).unwrap_or_default();
        format!("\n\n{event}").into()
    }
}

impl Stream for LimitedEvents {
    type Item = reqwest::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match ready!(self.inner.poll_next_unpin(cx)) {
            Some(Ok(bytes)) if !self.fits(&bytes) => {
                self.has_ended = true;
                Poll::Ready(Some(Ok(self.refusal())))
            }
            next => Poll::Ready(next),
        }
    }
}
