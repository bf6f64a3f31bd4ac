//! Joining a thread or a run while it happens.

#![allow(unused_qualifications, reason = "the macros of utoipa spell names out")]

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse as _, Response};
use baton_agui::Detail;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::{Caller, Principal};
use crate::problem::{ApiResult, Code, Problem};
use crate::stream::follow::Of;
use crate::stream::resume::{StreamPosition, join};
use crate::stream::{sse, websocket};
use crate::strict::{Params, RunPath, ThreadPath};
use crate::trace::Trace;
use crate::trail;
use crate::wire::event::SentEvent;
use crate::wire::problem::ProblemBody;
use crate::wire::schema::words;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(of_thread)).routes(routes!(of_run)).routes(routes!(by_websocket))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Since {
    /// The number of the last event that is known; the same as `Last-Event-ID`, which wins. Nothing: from the beginning.
    after: Option<u64>,
    /// `trace` shows also what agents say behind the scenes; needs `trace:read`.
    #[param(required = false, schema_with = words::<Detail>)]
    detail: Option<Detail>,
}

/// `Last-Event-ID`, as a browser sends it when it comes back.
struct LastEventId(Option<u64>);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("last-event-id") else { return Ok(Self(None)) };
        let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        let wrong = || {
            Problem::new(Code::InvalidRequest, "`Last-Event-ID` is the number of an event")
                .at("Last-Event-ID", "send the `id` of the last event, or leave it out")
        };
        number.map(|number| Self(Some(number))).ok_or_else(wrong)
    }
}

/// The number of the last event that a listener has; one that has any comes back.
fn after(app: &App, known: Option<u64>) -> u64 {
    let after = known.unwrap_or(0);
    if after > 0 {
        app.metrics.stream_resumed();
    }
    after
}

/// Internal text is for those who may read traces.
fn detail(caller: &Principal, wanted: Option<Detail>) -> ApiResult<Detail> {
    let detail = wanted.unwrap_or(Detail::Person);
    if detail == Detail::Trace {
        caller.demand("trace:read")?;
    }
    Ok(detail)
}

/// Join a thread.
///
/// What happened after `Last-Event-ID`, then what happens: runs after runs, until the client goes. In the middle of a run it begins
/// with `RUN_STARTED`, `MESSAGES_SNAPSHOT` and `STATE_SNAPSHOT`, so that a fresh client understands the rest.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/events", tag = "streams", operation_id = "join_thread",
    params(("thread_id" = String, Path, format = Uuid), Since,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event that is known")),
    responses(
        (status = 200, description = "AG-UI events", content_type = "text/event-stream", body = SentEvent),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "No such event", body = ProblemBody, content_type = "application/problem+json"),
        ),
    extensions(("x-permission" = json!("thread:read"))))]
async fn of_thread(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    LastEventId(last): LastEventId,
    Params(from): Params<Since>,
) -> ApiResult<Response> {
    let detail = detail(&caller, from.detail)?;
    trail::visible(&app, &caller, thread).await?;
    let place = StreamPosition { thread, of: Of::Thread, after: after(&app, last.or(from.after)) };
    Ok(sse::respond(&app, join(&app, &caller, place, detail).await?))
}

/// Join a run, or read it again.
///
/// Ends with the run. 204 when the run has ended and nothing follows.
#[utoipa::path(get, path = "/api/v1/runs/{run_id}/events", tag = "streams", operation_id = "join_run",
    params(("run_id" = String, Path, format = Uuid), Since,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event that is known")),
    responses(
        (status = 200, description = "AG-UI events", content_type = "text/event-stream", body = SentEvent),
        (status = 204, description = "The run has ended, and everything is known"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "No such event", body = ProblemBody, content_type = "application/problem+json"),
        ),
    extensions(("x-permission" = json!("thread:read"))))]
async fn of_run(
    State(app): State<App>,
    caller: Caller,
    RunPath(run): RunPath,
    LastEventId(last): LastEventId,
    Params(from): Params<Since>,
) -> ApiResult<Response> {
    let detail = detail(&caller, from.detail)?;
    let store = app.data(&caller);
    let record = store.run(run).await?;
    if caller.scope().is_some_and(|user| *user != record.user_id) {
        return Err(Problem::not_found("run"));
    }
    trail::read(&app, &caller, record.thread_id, &record.user_id).await?;
    let after = after(&app, last.or(from.after));
    if after > 0 && record.status.is_final() && store.run_events(run, after, 1).await?.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let place = StreamPosition { thread: record.thread_id, of: Of::Run(run), after };
    Ok(sse::respond(&app, join(&app, &caller, place, detail).await?))
}

/// Join a thread over WebSocket.
///
/// The same events, each with its number as `id` to reconnect with, and a way back: `{"type": "message", "content": …}`, `{"type": "cancel"}`, `{"type": "exit_handoff"}`,
/// `{"type": "approve", "approval_id": …, "decision": …}`.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/ws", tag = "streams", operation_id = "join_by_websocket",
    params(("thread_id" = String, Path, format = Uuid), Since,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event that is known")),
    responses(
        (status = 101, description = "AG-UI events, one in each message"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "No such event", body = ProblemBody, content_type = "application/problem+json"),
        (status = 426, description = "Not a WebSocket", body = ProblemBody, content_type = "application/problem+json"),
        ),
    extensions(("x-permission" = json!("thread:read"))))]
async fn by_websocket(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread): ThreadPath,
    LastEventId(last): LastEventId,
    Params(from): Params<Since>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let detail = detail(&caller, from.detail)?;
    trail::visible(&app, &caller, thread).await?;
    let upgrade = upgrade
        .map_err(|_| Problem::new(Code::UpgradeRequired, "connect to this route with a WebSocket client"))?;
    let place = StreamPosition { thread, of: Of::Thread, after: after(&app, last.or(from.after)) };
    let joined = join(&app, &caller, place, detail).await?;
    Ok(websocket::respond(app, caller, trace, thread, upgrade, joined))
}
