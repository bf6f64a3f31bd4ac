//! What is said about a request when it is over: one line in the log, and a span. A stream is over when its last byte is sent or its
//! reader has gone.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use baton_core::TraceParent;
use baton_engine::telemetry::{CONTEXT, PARENT, TRACE};
use http::{Method, StatusCode};
use hyper::body::Frame;
use tracing::Span;
use tracing::field::Empty;

use super::KnownCaller;
use crate::app::App;
use crate::client_address::ClientAddress;
use crate::metrics::Metrics;
use crate::problem::Code;
use crate::ui;

/// A request that matches no route has none.
const UNMATCHED: &str = "unmatched";
/// The web page and its files.
const PAGE: &str = "ui";
/// Polled every few seconds by machines, so successes are not logged.
const PROBES: [&str; 4] = ["/livez", "/readyz", "/healthz", "/metrics"];

/// What was asked and from where, without anything that a caller made up: no path, no query, no header.
pub(super) struct RequestSummary {
    method: Method,
    route: Option<MatchedPath>,
    is_page: bool,
    client: Option<ClientAddress>,
    since: Instant,
}

impl RequestSummary {
    pub(super) fn of(request: &Request, app: &App) -> Self {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let is_page = route.is_none() && ui::is_page(app, request);
        let client = request.extensions().get().copied();
        Self { method: request.method().clone(), route, is_page, client, since: Instant::now() }
    }

    fn route(&self) -> &str {
        let otherwise = if self.is_page { PAGE } else { UNMATCHED };
        self.route.as_ref().map_or(otherwise, MatchedPath::as_str)
    }

    fn is_probe(&self) -> bool {
        PROBES.contains(&self.route())
    }
}

/// Says how a request ended when it is dropped.
pub(super) struct RequestEndLog {
    asked: RequestSummary,
    trace_id: String,
    known: KnownCaller,
    span: Span,
    /// None while there is no answer.
    status: Option<StatusCode>,
}

impl RequestEndLog {
    pub(super) fn new(
        asked: RequestSummary,
        trace: &TraceParent,
        from: Option<u64>,
        known: KnownCaller,
    ) -> Self {
        let span = if asked.is_probe() { Span::none() } else { span(&asked, trace, from) };
        Self { asked, trace_id: trace.trace_id(), known, span, status: None }
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(super) fn refused(&self, code: Code) {
        self.span.record("error.type", code.word());
    }

    /// The answer begins.
    pub(super) fn answered(&mut self, metrics: &Metrics, status: StatusCode) {
        let RequestSummary { method, since, .. } = &self.asked;
        metrics.served(self.asked.route(), method, status, since.elapsed());
        self.status = Some(status);
        self.span.record("http.response.status_code", status.as_u16());
        if status.is_server_error() {
            self.span.record("otel.status_code", "ERROR");
        }
        if let Some(caller) = self.known.0.get() {
            self.span.record("baton.tenant.id", caller.tenant.as_str());
        }
    }

    /// The answer, which ends this when it has ended itself.
    pub(super) fn after(self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| Body::new(Streamed { body, _ended: self }))
    }
}

fn span(asked: &RequestSummary, trace: &TraceParent, from: Option<u64>) -> Span {
    let RequestSummary { method, .. } = asked;
    tracing::info_span!(
        target: CONTEXT, parent: None, "request", otel.name = format!("{method} {}", asked.route()), otel.kind = "server",
        { TRACE } = String::from(trace.clone()), { PARENT } = from,
        http.request.method = method.as_str(), http.route = asked.route(), http.response.status_code = Empty,
        baton.tenant.id = Empty, "error.type" = Empty, otel.status_code = Empty,
    )
}

impl Drop for RequestEndLog {
    fn drop(&mut self) {
        let _within = self.span.enter();
        let (method, route, trace_id) =
            (self.asked.method.as_str(), self.asked.route(), self.trace_id.as_str());
        let duration_ms = u64::try_from(self.asked.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (tenant_id, user_id) =
            self.known.0.get().map(|caller| (caller.tenant.as_str(), caller.user.as_str())).unzip();
        let client = self.asked.client.map(tracing::field::display);
        let Some(status) = self.status.map(|status| status.as_u16()) else {
            tracing::info!(
                method,
                route,
                duration_ms,
                trace_id,
                tenant_id,
                user_id,
                client,
                "left before there was an answer"
            );
            return;
        };
        if self.asked.is_probe() && status < 400 {
            tracing::debug!(
                method,
                route,
                status,
                duration_ms,
                trace_id,
                tenant_id,
                user_id,
                client,
                "answered"
            );
        } else {
            tracing::info!(
                method,
                route,
                status,
                duration_ms,
                trace_id,
                tenant_id,
                user_id,
                client,
                "answered"
            );
        }
    }
}

/// A response of unknown length.
struct Streamed {
    body: Body,
    _ended: RequestEndLog,
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
