//! The handoffs of a thread, and discarding the saved state of one.

use axum::Json;
use axum::extract::State;
use http::StatusCode;

use super::audited_action::AuditedAction;
use super::leaving;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::ApiResult;
use crate::routes::threads::visible;
use crate::strict::{HandoffPath, ThreadPath};
use crate::trace::Trace;
use crate::wire::handoff::past::PastHandoff;
use crate::wire::page::Listed;
use crate::wire::problem::ProblemBody;
use crate::wire::thread::ResumableView;

/// Your own work with agents that ended before it was done and can be taken up again, in any conversation, the newest first: the newest
/// ones only. `POST /api/v1/threads/{thread_id}/handoff/resume` takes one up.
#[utoipa::path(get, path = "/api/v1/handoffs/resumable", tag = "handoffs",
    responses((status = 200, body = Listed<ResumableView>)),
    extensions(("x-permission" = json!("thread:read"))))]
pub(super) async fn list_resumable(
    State(app): State<App>,
    caller: Caller,
) -> ApiResult<Json<Listed<ResumableView>>> {
    let left = app.data(&caller).resumable_handoffs_of(&caller.user).await?;
    Ok(Json(Listed::whole(ResumableView::all(left, &app.agents(&caller)))))
}

/// All handoffs of a thread, open or ended, the oldest first. A client draws dividers in old history with them.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/handoffs", tag = "handoffs",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    responses((status = 200, body = Listed<PastHandoff>),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
pub(super) async fn list_handoffs(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread_id): ThreadPath,
) -> ApiResult<Json<Listed<PastHandoff>>> {
    if visible(&app, &caller, thread_id).await?.handoff.is_some() {
        // Ends the handoff if it has expired.
        app.engine.open_handoff(&caller.tenant, thread_id).await?;
    }
    let handoffs = app.data(&caller).handoffs(thread_id).await?;
    let agents = app.agents(&caller);
    let data = handoffs.into_iter().map(|handoff| PastHandoff::of(handoff, &agents)).collect();
    Ok(Json(Listed::whole(data)))
}

/// Discards what an ended handoff has saved, so that it is no longer in `resumable_handoffs`. A second request changes nothing. The
/// thread's own user always may; others need `handoff:cancel`.
#[utoipa::path(delete, path = "/api/v1/threads/{thread_id}/handoffs/{handoff_id}", tag = "handoffs",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4"),
        ("handoff_id" = uuid::Uuid, Path, description = "The id of the handoff")),
    responses((status = 204, description = "Nothing is saved any more."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user. `not_found`: it has had no such handoff."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`handoff_active`: the handoff is still open.")),
    extensions(("x-permission" = json!("signed-in"))))]
pub(super) async fn discard_handoff(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    HandoffPath(handoff_id): HandoffPath,
) -> ApiResult<StatusCode> {
    let route = "/api/v1/threads/{thread_id}/handoffs/{handoff_id}";
    let exit = leaving(&app, &caller, &trace, thread_id, route).await?;
    let wish = AuditedAction::new(&app, &caller, &trace, thread_id, "handoff.discard");
    wish.finish(app.engine.discard_handoff(&exit, handoff_id).await).await?;
    Ok(StatusCode::NO_CONTENT)
}
