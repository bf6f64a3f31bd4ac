//! The methods of the protocol at one address of a peer.

use baton_core::TraceParent;
use baton_core::remote::{RemoteError, RemoteErrorKind};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method as HttpMethod, Response, StatusCode, Url};
use serde_json::{Value, json};

use super::http::{Http, Request, auth_error, host_of, json as read_json, quoted};
use super::interface::{Binding, Endpoint};
use crate::error::{A2aError, ErrorCode};
use crate::extension::{HEADER_03, HEADER_10, URI};
use crate::jsonrpc::{Method, Request as RpcRequest, RequestId, read_response};
use crate::model::{SendParams, SendResult, StreamItem, Task, TaskQuery};
use crate::sse::{SseError, SseEvent, SseReader};
use crate::wire::WireForm;

/// Maximum bytes of one event of a stream.
const MAX_EVENT: usize = 4 * 1024 * 1024;

/// Why a call failed: the connection, or the peer's answer.
#[derive(Debug, Clone)]
pub(super) enum CallError {
    Http(RemoteError),
    Protocol(A2aError),
}

impl From<RemoteError> for CallError {
    fn from(error: RemoteError) -> Self {
        Self::Http(error)
    }
}

impl CallError {
    pub(super) fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Protocol(error) => Some(error.code),
            Self::Http(_) => None,
        }
    }

    /// Whether another address of the peer may work: this one does not know the method or the version.
    pub(super) fn is_wrong_address(&self) -> bool {
        matches!(
            self.code(),
            Some(ErrorCode::MethodNotFound | ErrorCode::VersionNotSupported | ErrorCode::Other(405 | 501))
        )
    }

    /// The error as the engine reports it.
    pub(super) fn into_remote(self) -> RemoteError {
        match self {
            Self::Http(error) => error,
            Self::Protocol(error) => {
                let kind = match error.code {
                    ErrorCode::TaskNotFound => RemoteErrorKind::TaskNotFound,
                    ErrorCode::Internal | ErrorCode::Other(500..=599) => RemoteErrorKind::Disconnected,
                    ErrorCode::InvalidAgentResponse | ErrorCode::Parse => RemoteErrorKind::Malformed,
                    _ => RemoteErrorKind::Refused,
                };
                let message = format!("it answered \"{}\" ({})", quoted(&error.message), error.code.number());
                RemoteError::new(kind, message)
            }
        }
    }
}

/// One address of a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connection<'a> {
    pub(super) http: &'a Http,
    pub(super) endpoint: &'a Endpoint,
    /// Whether the peer declares the handoff extension.
    pub(super) has_extension: bool,
}

impl Connection<'_> {
    fn form(&self) -> WireForm {
        self.endpoint.form
    }

    /// Sends a message and returns the first result.
    pub(super) async fn send(
        &self,
        params: &SendParams,
        trace: Option<&TraceParent>,
    ) -> Result<SendResult, CallError> {
        let request = self.sending(Method::Send, params, trace)?;
        let value = self.call(&request).await?;
        self.form()
            .decode_send_result(&value)
            .map_err(|invalid| malformed(&request.url, &invalid.to_string()))
    }

    /// Sends a message and streams what follows.
    pub(super) async fn stream(
        &self,
        params: &SendParams,
        trace: Option<&TraceParent>,
    ) -> Result<ItemStream, CallError> {
        let request = self.sending(Method::Stream, params, trace)?;
        self.open(&request).await
    }

    pub(super) async fn get(&self, id: &str) -> Result<Task, CallError> {
        let query = TaskQuery { id: id.to_owned(), history_length: Some(1) };
        let request = self.request(Method::GetTask, self.form().encode_task_query(&query), Some(id), None)?;
        let value = self.call(&request).await?;
        self.form().decode_task(&value).map_err(|invalid| malformed(&request.url, &invalid.to_string()))
    }

    /// Streams a task that exists. On REST the specification and its proto disagree on the HTTP method, so both are tried.
    pub(super) async fn subscribe(&self, id: &str) -> Result<ItemStream, CallError> {
        let mut request = self.request(Method::Subscribe, json!({ "id": id }), Some(id), None)?;
        let first = self.open(&request).await;
        let is_other = |error: &CallError| {
            matches!(error.code(), Some(ErrorCode::MethodNotFound | ErrorCode::Other(405)))
        };
        match first {
            Err(error) if self.endpoint.binding == Binding::Rest && is_other(&error) => {
                request.method = HttpMethod::POST;
                self.open(&request).await
            }
            other => other,
        }
    }

    pub(super) async fn cancel(&self, id: &str) -> Result<(), CallError> {
        let request = self.request(Method::CancelTask, json!({ "id": id }), Some(id), None)?;
        self.call(&request).await.map(drop)
    }

    /// A request that a peer can recognize if it is repeated: its body and its key are the same for the same message.
    fn sending(
        &self,
        method: Method,
        params: &SendParams,
        trace: Option<&TraceParent>,
    ) -> Result<Request, CallError> {
        let id = &params.message.message_id;
        let mut request = self.request(method, self.form().encode_send_params(params), None, trace)?;
        if let (Binding::JsonRpc, Some(body)) = (self.endpoint.binding, &mut request.body) {
            body["id"] = Value::String(id.clone());
        }
        Ok(request.header("Idempotency-Key", id))
    }

    fn request(
        &self,
        method: Method,
        mut params: Value,
        task: Option<&str>,
        trace: Option<&TraceParent>,
    ) -> Result<Request, CallError> {
        let timeout = self.http.timeouts.response;
        let mut request = match self.endpoint.binding {
            Binding::JsonRpc => {
                if let (Some(tenant), Some(params)) = (&self.endpoint.tenant, params.as_object_mut()) {
                    params.insert("tenant".to_owned(), Value::String(tenant.clone()));
                }
                let id = RequestId::String(uuid::Uuid::new_v4().to_string());
                let rpc = RpcRequest { id, method: method.name(self.form()).to_owned(), params };
                let mut request = Request::new(HttpMethod::POST, self.endpoint.url.clone(), timeout);
                request.body = Some(rpc.to_json());
                request
            }
            Binding::Rest => {
                let (http_method, url) = self.rest(method, task)?;
                let mut request = Request::new(http_method, url, timeout);
                request.body = match method {
                    Method::Send | Method::Stream => Some(params),
                    Method::CancelTask => Some(json!({})),
                    _ => None,
                };
                request
            }
        };
        let is_stream = matches!(method, Method::Stream | Method::Subscribe);
        let accept = if is_stream { "text/event-stream, application/json" } else { "application/json" };
        request = request.header("Accept", accept);
        let is_new = self.form() == WireForm::V10;
        request =
            if is_new { request.header("A2A-Version", "1.0") } else { request.header("A2A-Version", "0.3") };
        if self.has_extension {
            request = request.header(if is_new { HEADER_10 } else { HEADER_03 }, URI);
        }
        if let Some(trace) = trace {
            request = request.header("traceparent", &String::from(trace.clone()));
        }
        Ok(request)
    }

    /// The address of a method on REST. Task ids are escaped, because peers choose them.
    fn rest(&self, method: Method, task: Option<&str>) -> Result<(HttpMethod, Url), CallError> {
        let mut url = self.endpoint.url.clone();
        let task = task.unwrap_or_default();
        let (http_method, last) = match method {
            Method::Send => (HttpMethod::POST, "message:send".to_owned()),
            Method::Stream => (HttpMethod::POST, "message:stream".to_owned()),
            Method::GetTask => (HttpMethod::GET, task.to_owned()),
            Method::CancelTask => (HttpMethod::POST, format!("{task}:cancel")),
            _ => (HttpMethod::GET, format!("{task}:subscribe")),
        };
        {
            let no_base =
                |()| CallError::Http(RemoteError::new(RemoteErrorKind::Malformed, "its address has no path"));
            let mut path = url.path_segments_mut().map_err(no_base)?;
            path.pop_if_empty();
            match (&self.endpoint.tenant, self.form()) {
                (Some(tenant), WireForm::V10) => drop(path.push(tenant)),
                (_, WireForm::V10) => {}
                _ => drop(path.push("v1")),
            }
            if !matches!(method, Method::Send | Method::Stream) {
                path.push("tasks");
            }
            path.push(&last);
        }
        if method == Method::GetTask {
            url.query_pairs_mut().append_pair("historyLength", "1");
        }
        Ok((http_method, url))
    }

    /// Makes a call and returns its result.
    async fn call(&self, request: &Request) -> Result<Value, CallError> {
        let response = self.http.send(request).await?;
        if let Some(error) = auth_error(&response, self.http.has_credentials()) {
            return Err(error.into());
        }
        let (status, value) = read_json(response, self.http.timeouts.silence).await?;
        self.result(status, value)
    }

    fn result(&self, status: StatusCode, value: Value) -> Result<Value, CallError> {
        match self.endpoint.binding {
            Binding::JsonRpc if status.is_success() || value.get("error").is_some() => {
                read_response(&value).map_err(CallError::Protocol)
            }
            Binding::Rest if status.is_success() => Ok(value),
            _ => Err(CallError::Protocol(A2aError::from_rest(status.as_u16(), &value))),
        }
    }

    /// Opens a stream. A peer may answer with one JSON document: an error, or the only item.
    async fn open(&self, request: &Request) -> Result<ItemStream, CallError> {
        let response = self.http.send(request).await?;
        if let Some(error) = auth_error(&response, self.http.has_credentials()) {
            return Err(error.into());
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = content_type.is_some_and(|value| value.starts_with("text/event-stream"));
        if is_stream && response.status().is_success() {
            return Ok(ItemStream {
                response: Some(response),
                reader: SseReader::new(MAX_EVENT),
                ready: Vec::new().into_iter(),
                silence: self.http.timeouts.silence,
                endpoint: self.endpoint.clone(),
            });
        }
        let (status, value) = read_json(response, self.http.timeouts.silence).await?;
        let data = self.result(status, value)?;
        let event = SseEvent { event: ITEM.to_owned(), data: data.to_string() };
        Ok(ItemStream {
            response: None,
            reader: SseReader::new(MAX_EVENT),
            ready: vec![event].into_iter(),
            silence: self.http.timeouts.silence,
            endpoint: self.endpoint.clone(),
        })
    }
}

/// The name of an event that is an item without an envelope.
const ITEM: &str = "baton-item";

fn malformed(url: &Url, problem: &str) -> CallError {
    let message =
        format!("{} answered with something else than the protocol says: {}", host_of(url), quoted(problem));
    CallError::Http(RemoteError::new(RemoteErrorKind::Malformed, message))
}

/// The items of a stream, in order.
#[derive(Debug)]
pub(super) struct ItemStream {
    response: Option<Response>,
    reader: SseReader,
    ready: std::vec::IntoIter<SseEvent>,
    silence: std::time::Duration,
    endpoint: Endpoint,
}

impl ItemStream {
    /// The next item. `None` at the end of the stream, which need not be the end of the task.
    pub(super) async fn next(&mut self) -> Option<Result<StreamItem, CallError>> {
        loop {
            if let Some(event) = self.ready.next() {
                return Some(self.item(&event));
            }
            let response = self.response.as_mut()?;
            let url = response.url().clone();
            let chunk = match tokio::time::timeout(self.silence, response.chunk()).await {
                Err(_) => {
                    let message = format!("{} was silent for {} s", host_of(&url), self.silence.as_secs());
                    return Some(Err(RemoteError::new(RemoteErrorKind::Timeout, message).into()));
                }
                Ok(Err(error)) => {
                    let message = format!("{} broke the connection: {}", host_of(&url), error.without_url());
                    return Some(Err(RemoteError::new(RemoteErrorKind::Disconnected, message).into()));
                }
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(chunk))) => chunk,
            };
            match self.reader.read(&chunk) {
                Ok(events) => self.ready = events.into_iter(),
                Err(error @ (SseError::TooLarge(_) | SseError::NotUtf8)) => {
                    return Some(Err(malformed(&url, &error.to_string())));
                }
            }
        }
    }

    fn item(&self, event: &SseEvent) -> Result<StreamItem, CallError> {
        let url = &self.endpoint.url;
        let value: Value =
            serde_json::from_str(&event.data).map_err(|_| malformed(url, "an event is not JSON"))?;
        let value = match self.endpoint.binding {
            _ if event.event == "error" => {
                return Err(CallError::Protocol(A2aError::from_rest(500, &value)));
            }
            Binding::JsonRpc if event.event != ITEM => read_response(&value).map_err(CallError::Protocol)?,
            Binding::Rest if value.get("error").is_some() => {
                return Err(CallError::Protocol(A2aError::from_rest(500, &value)));
            }
            _ => value,
        };
        self.endpoint.form.decode_stream_item(&value).map_err(|invalid| malformed(url, &invalid.to_string()))
    }
}
