//! The work for single messages. What each step of it did is in [`steps`].

mod steps;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use baton_core::store::{Cancel, RunRecord, RunStatus};
use baton_core::{RunId, StoreError, ThreadId};
use baton_engine::results_in;
use hyper::body::Body as _;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::threads::{visible, whose};
use crate::app::App;
use crate::identity::Caller;
use crate::identity::roles::RUN_CANCEL;
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::{Params, RunPath, Strict};
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::page::{self, Listed};
use crate::wire::problem::ProblemBody;
use crate::wire::run::{CancelBody, CancelWish, CancelledView, RunDetail, RunParams, RunView};
use crate::wire::session;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_runs))
        .routes(routes!(show_run))
        .routes(routes!(steps::list_steps))
        .routes(routes!(cancel_run))
}

/// The caller's runs, the newest first. With `trace:read`, those of the whole tenant.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(RunParams),
    responses((status = 200, body = Listed<RunView>),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: `thread_id` names no thread of the caller.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn list_runs(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Params(params): Params<RunParams>,
) -> ApiResult<Json<Listed<RunView>>> {
    let user = whose(&app, &caller, &trace, params.user_id.clone(), "/api/v1/runs").await?;
    let thread = params.thread_id.as_deref().map(thread).transpose()?;
    if let Some(thread) = thread {
        visible(&app, &caller, thread).await?;
    }
    let query = params.query(thread, user);
    let found = app.data(&caller).runs(query, page::request(params.limit, params.cursor)).await?;
    trail::listed(&app, &caller, "run.list", found.data.iter().map(|run| &run.user_id)).await?;
    Ok(Json(Listed::of(found, RunView::from)))
}

fn thread(text: &str) -> ApiResult<ThreadId> {
    ThreadId::parse(text).map_err(|_| {
        Problem::new(Code::InvalidThreadId, "`thread_id` is no thread id").at("thread_id", "a UUID version 4")
    })
}

/// A run with everything that happened in it: who worked, below whom and for how much, and what each of those brought who were asked.
#[utoipa::path(get, path = "/api/v1/runs/{run_id}", tag = "runs",
    params(("run_id" = uuid::Uuid, Path, description = "The id of the run")),
    responses((status = 200, body = RunDetail),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such run, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn show_run(
    State(app): State<App>,
    caller: Caller,
    RunPath(run_id): RunPath,
) -> ApiResult<Json<RunDetail>> {
    let run = find(&app, &caller, run_id).await?;
    let data = app.data(&caller);
    let sessions = data.run_sessions(run_id).await.map_err(gone)?;
    let steps = data.steps(run_id).await.map_err(gone)?;
    let rows = data.ledger(run_id).await.map_err(gone)?;
    let results = results_in(&steps).into_iter().map(Into::into).collect();
    Ok(Json(RunDetail::of(run, results, session::tree(sessions, &steps, &rows))))
}

/// Asks a run to end before it is done. It ends as soon as its process notices; one that has ended stays as it is.
/// Callers may end their own runs; those of others need `run:cancel`.
#[utoipa::path(post, path = "/api/v1/runs/{run_id}/cancel", tag = "runs",
    params(("run_id" = uuid::Uuid, Path, description = "The id of the run")),
    request_body = Option<CancelBody>,
    responses((status = 200, body = CancelledView),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such run, or it belongs to another user.")),
    extensions(("x-permission" = json!("signed-in")), ("x-rate-limit" = json!("exempt"))))]
async fn cancel_run(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    RunPath(run_id): RunPath,
    OptionalCancelBody(wish): OptionalCancelBody,
) -> ApiResult<Json<CancelledView>> {
    let status = cancel(&app, &caller, &trace, run_id, wish.how()).await?;
    Ok(Json(CancelledView { run_id: run_id.to_string(), status: status.into() }))
}

/// The same for every door that it can be asked by.
pub(crate) async fn cancel(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    run_id: RunId,
    how: Cancel,
) -> ApiResult<RunStatus> {
    let run = find(app, caller, run_id).await?;
    if run.user_id != caller.user {
        trail::demand(app, caller, trace, RUN_CANCEL, "/api/v1/runs/{run_id}/cancel").await?;
    }
    if run.status.is_final() {
        return Ok(run.status);
    }
    let audit_record = AuditRecord {
        action: "run.cancel",
        thread_id: Some(run.thread_id),
        run_id: Some(run_id),
        decision: "allowed",
        detail: json!({ "mode": how }),
    };
    let data = trail::audited(app, caller, trace, audit_record);
    app.engine.cancel_audited(&*data, run_id, how).await.map_err(gone)
}

/// A run that the caller can see.
async fn find(app: &App, caller: &Caller, run: RunId) -> ApiResult<RunRecord> {
    let found = app.data(caller).run(run).await.map_err(gone)?;
    let is_theirs = caller.scope().is_none_or(|user| *user == found.user_id);
    if !is_theirs {
        return Err(Problem::not_found("run"));
    }
    trail::read(app, caller, found.thread_id, &found.user_id).await?;
    Ok(found)
}

/// Also what goes while it is read.
fn gone(error: StoreError) -> Problem {
    match error {
        StoreError::NotFound(_) | StoreError::ThreadNotFound => Problem::not_found("run"),
        other => other.into(),
    }
}

/// How a run is to end. The body may be missing.
struct OptionalCancelBody(CancelWish);

impl FromRequest<App> for OptionalCancelBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if request.body().is_end_stream() {
            return Ok(Self(CancelWish::default()));
        }
        Strict::from_request(request, app).await.map(|Strict(wish)| Self(wish))
    }
}
