//! Trace ids, bodies of problem responses, and the log entry of each request. Outside all other layers except
//! [`crate::guards::headers`].

mod ended;

use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use baton_core::TraceParent;
use baton_engine::telemetry;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, header};
use tracing::Instrument as _;

use crate::app::App;
use crate::client_address::ClientAddress;
use crate::identity::Caller;
use crate::problem::Problem;
use ended::{RequestEndLog, RequestSummary};

/// Response header with the trace id, besides `traceparent`.
pub const HEADER: &str = "x-trace-id";

tokio::task_local! {
    static CURRENT: Trace;
}

/// The trace id of the current task, for log entries without access to the request.
pub fn current() -> Option<String> {
    CURRENT.try_with(|trace| trace.0.trace_id()).ok()
}

/// The trace context of the request that the current task handles.
pub fn current_trace() -> Option<Trace> {
    CURRENT.try_with(Trace::clone).ok()
}

/// The trace context of a request, with this server's span as the parent.
#[derive(Debug, Clone)]
pub struct Trace(pub Arc<TraceParent>, Option<ClientAddress>);

impl Trace {
    /// The client's address, as the audit trail has it.
    pub fn address(&self) -> Option<String> {
        self.1.map(|address| address.to_string())
    }
}

impl<S: Sync> FromRequestParts<S> for Trace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| Problem::internal(&"a request without a trace"))
    }
}

/// The caller, once authenticated: passes it from the access layer to this outer layer.
#[derive(Debug, Clone, Default)]
pub struct KnownCaller(Arc<OnceLock<Caller>>);

impl KnownCaller {
    pub fn tell(request: &Extensions, caller: &Caller) {
        if let Some(Self(known)) = request.get() {
            let _ = known.set(caller.clone());
        }
    }
}

/// Continues the caller's trace or starts one, writes the bodies of problems, and logs the outcome.
pub async fn layer(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (trace, from) = of(request.headers());
    let (trace, known) = (Arc::new(trace), KnownCaller::default());
    let current = Trace(Arc::clone(&trace), request.extensions().get().copied());
    request.extensions_mut().insert(current.clone());
    request.extensions_mut().insert(known.clone());
    let mut ended = RequestEndLog::new(RequestSummary::of(&request, &app), &trace, from, known);
    let answering = CURRENT.scope(current, next.run(request)).instrument(ended.span());
    let mut response = answering.await;
    let trace_id = trace.trace_id();
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        write(&problem, &trace_id, &mut response);
        app.metrics.refused(problem.code);
        ended.refused(problem.code);
    }
    let headers = response.headers_mut();
    if let (Ok(id), Ok(parent)) = (trace_id.parse(), trace.to_string().parse()) {
        headers.insert(HEADER, id);
        headers.insert("traceparent", parent);
    }
    ended.answered(&app.metrics, response.status());
    ended.after(response)
}

/// Returns this server's span in the caller's trace, and the caller's span. A missing, invalid or repeated `traceparent` starts
/// a new trace.
fn of(headers: &HeaderMap) -> (TraceParent, Option<u64>) {
    let mut given = headers.get_all("traceparent").iter();
    let parent = match (given.next(), given.next()) {
        (Some(only), None) => only.to_str().ok().and_then(|text| TraceParent::parse(text).ok()),
        _ => None,
    };
    let Some(parent) = parent else { return (telemetry::new_trace(), None) };
    let states = headers.get_all("tracestate").iter().filter_map(|state| state.to_str().ok());
    let state = states.collect::<Vec<_>>().join(",");
    let from = parent.ids().1;
    (parent.with_state(&state).at_span(telemetry::new_span_id()), Some(from))
}

fn write(problem: &Problem, trace_id: &str, response: &mut Response) {
    let body = problem.to_json(trace_id).to_string();
    let mut written = (problem.code.status(), body).into_response();
    let headers = written.headers_mut();
    headers.extend(std::mem::take(response.headers_mut()));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.remove(header::CONTENT_LENGTH);
    if let Some(pause) = problem.pause() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(pause.as_secs().max(1)));
    }
    if problem.code == crate::problem::Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    *response = written;
}
