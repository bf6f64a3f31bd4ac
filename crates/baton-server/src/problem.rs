//! How refusals look: RFC 9457, with codes that never change their meaning. `docs/errors.md` explains each.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use baton_core::StoreError;
use baton_engine::Failure;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::trace;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $word:literal, $status:ident, $title:literal;)+) => {
        /// What went wrong, for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[doc = $doc])* $variant),+ }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }

            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

codes! {
    /// No credential, or one that is not valid (any more).
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "Who is asking?";
    /// The caller is known and may not do this.
    PermissionDenied = "permission_denied", FORBIDDEN, "Permission denied";
    /// Somebody's page tries to use a server that trusts whoever is on this machine.
    ForeignOrigin = "foreign_origin", FORBIDDEN, "Foreign origin";
    /// The thread is unknown, or somebody else's: nobody can tell which.
    ThreadNotFound = "thread_not_found", NOT_FOUND, "Thread not found";
    /// The same for anything else.
    NotFound = "not_found", NOT_FOUND, "Not found";
    AgentNotFound = "agent_not_found", NOT_FOUND, "Agent not found";
    InvalidThreadId = "invalid_thread_id", BAD_REQUEST, "Invalid thread id";
    /// The request cannot be understood; `errors` says where.
    InvalidRequest = "invalid_request", BAD_REQUEST, "Invalid request";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    NotAcceptable = "not_acceptable", NOT_ACCEPTABLE, "Not acceptable";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE, "Payload too large";
    UriTooLong = "uri_too_long", URI_TOO_LONG, "URI too long";
    HeadersTooLarge = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "Headers too large";
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "Request timeout";
    /// The route is for WebSocket clients.
    UpgradeRequired = "upgrade_required", UPGRADE_REQUIRED, "Upgrade required";
    ThreadBusy = "thread_busy", CONFLICT, "Thread busy";
    HandoffActive = "handoff_active", CONFLICT, "A handoff is active";
    NoActiveHandoff = "no_active_handoff", CONFLICT, "No active handoff";
    HandoffRejected = "handoff_rejected", CONFLICT, "Handoff rejected";
    /// What should be changed is not as the caller believes.
    Conflict = "conflict", CONFLICT, "Conflict";
    IdempotencyConflict = "idempotency_conflict", UNPROCESSABLE_ENTITY, "Idempotency key reused";
    CursorExpired = "cursor_expired", GONE, "Cursor expired";
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    /// The tenant has as many runs at work as it may have.
    TooManyRuns = "too_many_runs", TOO_MANY_REQUESTS, "Too many runs";
    BudgetExhausted = "budget_exhausted", PAYMENT_REQUIRED, "Budget exhausted";
    AgentUnavailable = "agent_unavailable", SERVICE_UNAVAILABLE, "Agent unavailable";
    /// The store does not answer, or has no space.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "Store unavailable";
    /// The answer did not begin in time.
    TimedOut = "timed_out", SERVICE_UNAVAILABLE, "Timed out";
    /// The keys that tokens are checked with cannot be fetched.
    IdentityUnavailable = "identity_unavailable", SERVICE_UNAVAILABLE, "Identity provider unavailable";
    /// The server is about to end.
    Draining = "draining", SERVICE_UNAVAILABLE, "Server is shutting down";
    /// A fault of the server. The log says more.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
}

/// A place in the request, as a JSON pointer (`/content/0/text`), or the name of a parameter or header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    pub pointer: String,
    pub detail: String,
}

/// A refusal. It becomes a body in one place, where the trace id is known (see [`crate::trace`]).
#[derive(Debug, Clone)]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    /// Seldom there, and a result is moved about a lot.
    help: Box<Help>,
}

#[derive(Debug, Clone, Default)]
struct Help {
    errors: Vec<FieldError>,
    retry_after: Option<Duration>,
    /// What else helps to go on: the run that is busy, the nearest names.
    more: Map<String, Value>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), help: Box::default() }
    }

    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.help.errors.push(FieldError { pointer: pointer.into(), detail: detail.into() });
        self
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.help.more.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.help.retry_after = Some(pause);
        self
    }

    /// When the same request may be answered differently.
    pub fn pause(&self) -> Option<Duration> {
        self.help.retry_after
    }

    pub fn permission(permission: &str) -> Self {
        let detail = format!("this needs the permission `{permission}`, which none of your roles has");
        Self::new(Code::PermissionDenied, detail).with("permission", permission)
    }

    /// Unknown, or not the caller's to know.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    pub fn draining() -> Self {
        Self::new(Code::Draining, "this server is about to end; try again, another one or the next takes it")
            .retry_after(Duration::from_secs(1))
    }

    pub fn thread_not_found() -> Self {
        StoreError::ThreadNotFound.into()
    }

    /// The document, as it is sent.
    pub fn to_json(&self, trace_id: &str) -> Value {
        let mut body = Map::new();
        body.insert("type".into(), format!("/docs#{}", self.code.word()).into());
        body.insert("title".into(), self.code.title().into());
        body.insert("status".into(), self.code.status().as_u16().into());
        body.insert("detail".into(), self.detail.as_str().into());
        body.insert("code".into(), self.code.word().into());
        body.insert("trace_id".into(), trace_id.into());
        if !self.help.errors.is_empty() {
            body.insert("errors".into(), serde_json::to_value(&self.help.errors).unwrap_or_default());
        }
        body.extend(self.help.more.clone());
        Value::Object(body)
    }
}

/// Only the status and the problem itself: [`crate::trace`] writes the body.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::ThreadNotFound => Code::ThreadNotFound,
            StoreError::NotFound(_) => Code::NotFound,
            StoreError::ThreadBusy(run) => {
                return Self::new(Code::ThreadBusy, error.to_string()).with("run_id", run.to_string());
            }
            StoreError::TooManyRuns(_) => {
                return Self::new(Code::TooManyRuns, error.to_string()).retry_after(Duration::from_secs(1));
            }
            StoreError::HandoffActive(_) => Code::HandoffActive,
            StoreError::TooManyHandoffs(_) => Code::HandoffRejected,
            StoreError::Conflict(_) | StoreError::HandoffChanged | StoreError::Fenced => Code::Conflict,
            StoreError::IdempotencyConflict => Code::IdempotencyConflict,
            StoreError::InvalidCursor => Code::InvalidRequest,
            StoreError::Unavailable(_) | StoreError::Full(_) => {
                tracing::warn!(%error, trace_id = trace::current(), "the store does not do its work");
                let detail = "the store does not answer at the moment; nothing was changed, try again";
                return Self::new(Code::StoreUnavailable, detail).retry_after(Duration::from_secs(1));
            }
            StoreError::Corrupt(_) | StoreError::Failed(_) => return Self::internal(&error),
        };
        Self::new(code, error.to_string())
    }
}

impl Problem {
    /// What happened is for the log; the caller gets the trace id.
    pub fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, trace_id = trace::current(), "a request failed");
        Self::new(Code::Internal, "the server failed; its log has more under the trace id")
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error.into(),
            Failure::NoAgent(name) => Self::new(Code::AgentNotFound, format!("there is no agent `{name}`")),
            Failure::Unavailable(_) | Failure::HandoffUnavailable(_) => {
                Self::new(Code::AgentUnavailable, failure.to_string())
            }
            Failure::Refused(_) => Self::new(Code::InvalidRequest, failure.to_string()),
            Failure::NotAllowed(permission) => Self::permission(&permission),
            Failure::HandoffActive(_) => Self::new(Code::HandoffActive, failure.to_string()),
            Failure::HandoffRejected { ref reason, .. } => {
                Self::new(Code::HandoffRejected, failure.to_string())
                    .with("accepted", false)
                    .with("rejection_reason", reason.as_str())
            }
            Failure::NoHandoff(_) => Self::new(Code::NoActiveHandoff, failure.to_string()),
            other => Self::internal(&other),
        }
    }
}

pub type Answer<T> = Result<T, Problem>;
