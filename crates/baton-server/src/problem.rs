//! Error responses: RFC 9457, with stable codes. `docs/errors.md` explains each.

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
        /// A stable error code.
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
    /// The credential is missing, invalid or expired.
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "Authentication required";
    /// The caller lacks the permission.
    PermissionDenied = "permission_denied", FORBIDDEN, "Permission denied";
    /// A page of another origin, or a foreign host name, uses a server in open mode.
    ForeignOrigin = "foreign_origin", FORBIDDEN, "Foreign origin";
    /// A proxy passes requests on to a server in open mode.
    ForwardedRequest = "forwarded_request", FORBIDDEN, "Forwarded request";
    /// The thread does not exist or belongs to another user. Callers cannot distinguish these cases.
    ThreadNotFound = "thread_not_found", NOT_FOUND, "Thread not found";
    /// Like `ThreadNotFound`, for any other resource.
    NotFound = "not_found", NOT_FOUND, "Not found";
    AgentNotFound = "agent_not_found", NOT_FOUND, "Agent not found";
    InvalidThreadId = "invalid_thread_id", BAD_REQUEST, "Invalid thread id";
    /// The request is malformed; `errors` lists the positions.
    InvalidRequest = "invalid_request", BAD_REQUEST, "Invalid request";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    NotAcceptable = "not_acceptable", NOT_ACCEPTABLE, "Not acceptable";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE, "Payload too large";
    /// The limit of stored bytes of the user or the tenant is reached.
    StorageFull = "storage_full", PAYLOAD_TOO_LARGE, "Storage full";
    UriTooLong = "uri_too_long", URI_TOO_LONG, "URI too long";
    HeadersTooLarge = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "Headers too large";
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "Request timeout";
    /// The route requires a WebSocket upgrade.
    UpgradeRequired = "upgrade_required", UPGRADE_REQUIRED, "Upgrade required";
    ThreadBusy = "thread_busy", CONFLICT, "Thread busy";
    HandoffActive = "handoff_active", CONFLICT, "A handoff is active";
    NoActiveHandoff = "no_active_handoff", CONFLICT, "No active handoff";
    HandoffRejected = "handoff_rejected", CONFLICT, "Handoff rejected";
    /// The stored state differs from what the caller expects.
    Conflict = "conflict", CONFLICT, "Conflict";
    /// Someone has decided before, or the run has ended.
    ApprovalDecided = "approval_decided", CONFLICT, "Already decided";
    ApprovalExpired = "approval_expired", CONFLICT, "Approval expired";
    /// The call is not the one that the person has seen.
    ApprovalChanged = "approval_changed", CONFLICT, "The call has changed";
    IdempotencyConflict = "idempotency_conflict", UNPROCESSABLE_ENTITY, "Idempotency key reused";
    CursorExpired = "cursor_expired", GONE, "Cursor expired";
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    /// The tenant's limit of open runs is reached.
    TooManyRuns = "too_many_runs", TOO_MANY_REQUESTS, "Too many runs";
    /// The user's or the tenant's limit of open streams is reached.
    TooManyStreams = "too_many_streams", TOO_MANY_REQUESTS, "Too many streams";
    /// The limit of connections of the client's address is reached.
    TooManyConnections = "too_many_connections", TOO_MANY_REQUESTS, "Too many connections";
    BudgetExhausted = "budget_exhausted", PAYMENT_REQUIRED, "Budget exhausted";
    AgentUnavailable = "agent_unavailable", SERVICE_UNAVAILABLE, "Agent unavailable";
    /// The store is unavailable or full.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "Store unavailable";
    /// The commit was sent, and its reply is lost.
    OutcomeUnknown = "outcome_unknown", SERVICE_UNAVAILABLE, "Outcome unknown";
    /// The limit of connections of the server is reached.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Server overloaded";
    /// The response did not start in time.
    TimedOut = "timed_out", SERVICE_UNAVAILABLE, "Timed out";
    /// The keys for verifying tokens cannot be fetched.
    IdentityUnavailable = "identity_unavailable", SERVICE_UNAVAILABLE, "Identity provider unavailable";
    /// The server is shutting down.
    Draining = "draining", SERVICE_UNAVAILABLE, "Server is shutting down";
    /// An internal error. The log contains the details.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
}

/// A position in the request: a JSON pointer (`/content/0/text`), or the name of a parameter or header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    pub pointer: String,
    pub detail: String,
}

/// An error response. The body is written in [`crate::trace`], where the trace id is known.
#[derive(Debug, Clone)]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    /// Boxed, because it is rarely set and results are moved often.
    help: Box<Help>,
}

#[derive(Debug, Clone, Default)]
struct Help {
    errors: Vec<FieldError>,
    retry_after: Option<Duration>,
    /// Additional fields: the active run, similar names.
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

    /// The delay after which a retry may succeed.
    pub fn pause(&self) -> Option<Duration> {
        self.help.retry_after
    }

    pub fn permission(permission: &str) -> Self {
        let detail = format!("this needs the permission `{permission}`, which none of your roles has");
        Self::new(Code::PermissionDenied, detail).with("permission", permission)
    }

    /// For a resource that does not exist or that the caller may not see.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    pub fn draining() -> Self {
        Self::new(Code::Draining, "this server is about to end; try again, another one or the next takes it")
            .retry_after(Duration::from_secs(1))
    }

    /// The document as sent.
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

/// Sets only the status and an extension: [`crate::trace`] writes the body.
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
            StoreError::TooManyRuns(_) | StoreError::TooManyRunsOfUser(_) => {
                return Self::new(Code::TooManyRuns, error.to_string()).retry_after(Duration::from_secs(1));
            }
            StoreError::StorageFull { .. } => Code::StorageFull,
            StoreError::HandoffActive(_) => Code::HandoffActive,
            StoreError::TooManyHandoffs(_) => Code::HandoffRejected,
            StoreError::Conflict(_)
            | StoreError::HandoffChanged
            | StoreError::QuestionOpen
            | StoreError::Fenced => Code::Conflict,
            StoreError::IdempotencyConflict => Code::IdempotencyConflict,
            StoreError::InvalidCursor => Code::InvalidRequest,
            StoreError::Unavailable(_) | StoreError::Full(_) => {
                tracing::warn!(%error, trace_id = trace::current(), "the store is unavailable");
                let detail = "the store is unavailable at the moment; nothing was changed, try again";
                return Self::new(Code::StoreUnavailable, detail).retry_after(Duration::from_secs(1));
            }
            StoreError::OutcomeUnknown(_) => {
                tracing::warn!(%error, trace_id = trace::current(), "the outcome of a change is unknown");
                let detail = "the connection to the store was lost during the commit: the change may have been made. Repeat the \
                    request with the same Idempotency-Key if it had one; otherwise read the current state first";
                return Self::new(Code::OutcomeUnknown, detail).retry_after(Duration::from_secs(1));
            }
            StoreError::Corrupt(_) | StoreError::Unreadable(_) | StoreError::Failed(_) => {
                return Self::internal(&error);
            }
        };
        Self::new(code, error.to_string())
    }
}

impl Problem {
    /// Logs the error. The caller only gets the trace id.
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
            Failure::Unavailable(_) | Failure::HandoffUnavailable(_) | Failure::Remote { .. } => {
                Self::new(Code::AgentUnavailable, failure.to_string())
            }
            Failure::Refused(_) | Failure::InvalidAnswer(_) => {
                Self::new(Code::InvalidRequest, failure.to_string())
            }
            Failure::NotAllowed(permission) => Self::permission(&permission),
            Failure::HandoffActive(_) => Self::new(Code::HandoffActive, failure.to_string()),
            Failure::HandoffRejected { ref reason, .. } => {
                Self::new(Code::HandoffRejected, failure.to_string())
                    .with("accepted", false)
                    .with("rejection_reason", reason.as_str())
            }
            Failure::BudgetExhausted { .. } => Self::new(Code::BudgetExhausted, failure.to_string()),
            Failure::NoHandoff(_) => Self::new(Code::NoActiveHandoff, failure.to_string()),
            other => Self::internal(&other),
        }
    }
}

pub type ApiResult<T> = Result<T, Problem>;
