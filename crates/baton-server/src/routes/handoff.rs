//! Handing a thread to another agent, and getting it back.
//!
//! - [`start`]: asks an agent to take it.
//! - [`audited_action`]: whatever becomes of a wish is on record.
//! - [`history`]: all handoffs of a thread.

mod audited_action;
mod history;
mod start;

use axum::Json;
use axum::extract::State;
use baton_core::ThreadId;
use baton_core::store::HandoffSession;
use baton_engine::{ExitRequest, HandoffResult};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::messages::engine_caller;
use super::threads::visible;
use crate::app::App;
use crate::identity::Caller;
use crate::identity::roles::HANDOFF_CANCEL;
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::{Strict, ThreadPath};
use crate::trace::Trace;
use crate::trail;
use crate::wire::handoff::request::{ResumeBody, ReturnBody};
use crate::wire::handoff::{HandoffResumed, HandoffReturn, HandoffView};
use crate::wire::problem::ProblemBody;
use audited_action::AuditedAction;
pub(crate) use start::{main, no_main, start};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show_handoff, start::start_handoff, exit_handoff))
        .routes(routes!(return_handoff))
        .routes(routes!(resume_handoff))
        .routes(routes!(history::list_resumable))
        .routes(routes!(history::list_handoffs))
        .routes(routes!(history::discard_handoff))
}

/// Who has a thread by a handoff, or is about to, and how far they have come.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/handoff", tag = "handoffs",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    responses((status = 200, body = HandoffView),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`no_active_handoff`: no handoff is active on this thread.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn show_handoff(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread_id): ThreadPath,
) -> ApiResult<Json<HandoffView>> {
    visible(&app, &caller, thread_id).await?;
    let open = app.engine.open_handoff(&caller.tenant, thread_id).await?;
    let open =
        open.ok_or_else(|| Problem::new(Code::NoActiveHandoff, "no handoff is active on this thread"))?;
    Ok(Json(HandoffView::of(&caller.tenant, open, &app.agents(&caller))))
}

/// Leaves a handoff: the thread is back at once, whatever the agent that had it is doing. What was collected is kept, so that it can
/// be gone on with. The thread's own user always may; others need `handoff:cancel`.
#[utoipa::path(delete, path = "/api/v1/threads/{thread_id}/handoff", tag = "handoffs",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    responses((status = 200, body = HandoffReturn),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`no_active_handoff`: no handoff is active on this thread.")),
    extensions(("x-permission" = json!("signed-in")), ("x-rate-limit" = json!("exempt"))))]
async fn exit_handoff(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
) -> ApiResult<Json<HandoffReturn>> {
    exit(&app, &caller, &trace, thread_id).await.map(Json)
}

/// The same for every door that it can be asked by.
pub(crate) async fn exit(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    thread_id: ThreadId,
) -> ApiResult<HandoffReturn> {
    let exit = leaving(app, caller, trace, thread_id, "/api/v1/threads/{thread_id}/handoff").await?;
    let wish = AuditedAction::new(app, caller, trace, thread_id, "handoff.exit");
    let ended = wish.finish(app.engine.exit_handoff(exit).await).await?;
    Ok(returned(app, caller, ended))
}

/// Gives a thread back on behalf of the agent that has it. The thread's own user may; others need `handoff:cancel`.
#[utoipa::path(post, path = "/api/v1/threads/{thread_id}/handoff/return", tag = "handoffs",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    request_body = ReturnBody,
    responses((status = 200, body = HandoffReturn),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`no_active_handoff`: no handoff is active on this thread.")),
    extensions(("x-permission" = json!("signed-in"))))]
async fn return_handoff(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    Strict(body): Strict<ReturnBody>,
) -> ApiResult<Json<HandoffReturn>> {
    let exit =
        leaving(&app, &caller, &trace, thread_id, "/api/v1/threads/{thread_id}/handoff/return").await?;
    let ReturnBody { completion_status: status, result_summary, artifacts_created } = body;
    let wish = AuditedAction::new(&app, &caller, &trace, thread_id, "handoff.return");
    let result = app.engine.return_handoff(exit, HandoffResult { status, result_summary, artifacts_created });
    let ended = wish.finish(result.await).await?;
    Ok(Json(returned(&app, &caller, ended)))
}

/// Goes on with a handoff that ended before it was done, exactly where it was. `GET /api/v1/threads/{thread_id}` lists those that can
/// be gone on with.
#[utoipa::path(post, path = "/api/v1/threads/{thread_id}/handoff/resume", tag = "handoffs",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    request_body = ResumeBody,
    responses((status = 200, body = HandoffResumed),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user. `not_found`: it has had no such handoff."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`handoff_active`: another handoff is active. `no_active_handoff`: there is nothing to resume. \
                `handoff_rejected`: the agent does not take it up again.")),
    extensions(("x-permission" = json!("handoff:initiate")), ("x-work" = json!("run"))))]
async fn resume_handoff(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    Strict(ResumeBody { handoff_id }): Strict<ResumeBody>,
) -> ApiResult<Json<HandoffResumed>> {
    own(&app, &caller, thread_id).await?;
    let exit = ExitRequest {
        caller: engine_caller(&caller, thread_id),
        is_administrator: false,
        rights: caller.rights.clone(),
        trace: Some((*trace.0).clone()),
        address: trace.address(),
    };
    let wish = AuditedAction::new(&app, &caller, &trace, thread_id, "handoff.resume");
    let result = app.engine.resume_handoff(exit, handoff_id).await;
    let (handoff, run_id) = wish.finish(result).await?;
    let handoff = HandoffView::of(&caller.tenant, handoff, &app.agents(&caller));
    Ok(Json(HandoffResumed { handoff, run_id }))
}

/// The owner of the thread, or a caller with the permission to end handoffs of others.
async fn leaving(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    thread_id: ThreadId,
    route: &str,
) -> ApiResult<ExitRequest> {
    let thread = visible(app, caller, thread_id).await?;
    let is_administrator = thread.user_id != caller.user;
    if is_administrator {
        trail::demand(app, caller, trace, HANDOFF_CANCEL, route).await?;
    }
    Ok(ExitRequest {
        caller: engine_caller(caller, thread_id),
        is_administrator,
        rights: caller.rights.clone(),
        trace: Some((*trace.0).clone()),
        address: trace.address(),
    })
}

/// Who sees everything still speaks only in their own threads.
async fn own(app: &App, caller: &Caller, thread_id: ThreadId) -> ApiResult<()> {
    app.data(caller).thread(thread_id, Some(&caller.user)).await?;
    Ok(())
}

fn returned(app: &App, caller: &Caller, handoff: HandoffSession) -> HandoffReturn {
    HandoffReturn::of(&caller.tenant, handoff, &app.agents(caller))
}
