//! Decisions that a thread remembers: list them, and revoke them.

use axum::Json;
use axum::extract::State;
use baton_core::store::Revocation;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Problem};
use crate::strict::{ThreadPath, ToolPath};
use crate::trace::Trace;
use crate::trail;
use crate::wire::approval::RememberedView;
use crate::wire::page::Listed;
use crate::wire::problem::ProblemBody;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_remembered)).routes(routes!(forget_remembered))
}

/// The tools about which a decision is remembered for the thread, by name.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/remembered", tag = "approvals",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    responses((status = 200, body = Listed<RememberedView>),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn list_remembered(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread_id): ThreadPath,
) -> ApiResult<Json<Listed<RememberedView>>> {
    let data = app.data(&caller);
    trail::visible(&app, &caller, thread_id).await?;
    let found = data.remembered_decisions(thread_id).await?;
    Ok(Json(Listed::whole(found.into_iter().map(RememberedView::from).collect())))
}

/// Revoke the remembered decision about a tool: later calls of it in the thread wait for a person again. Calls that were made before
/// are not affected.
#[utoipa::path(delete, path = "/api/v1/threads/{thread_id}/remembered/{tool}", tag = "approvals",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4"), ("tool" = String, Path)),
    responses((status = 204, description = "It is revoked."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: no decision about this tool is remembered. `thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("approval:decide"))))]
async fn forget_remembered(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    ToolPath(tool): ToolPath,
) -> ApiResult<StatusCode> {
    let data = app.data(&caller);
    trail::visible(&app, &caller, thread_id).await?;
    let (by, trace_id) = (caller.user.clone(), Some(trace.0.trace_id()));
    let revoked = data.forget_decisions(Revocation { thread_id, tool, by, trace_id }).await?;
    if revoked { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found("remembered decision")) }
}
