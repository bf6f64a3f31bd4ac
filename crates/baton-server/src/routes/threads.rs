//! Conversations. What was said in them is in [`history`]; [`rename`] changes their title.

mod history;
mod rename;

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use baton_core::store::{Cancel, HandoffSession, HopKind, Page, Thread};
use baton_core::{AgentName, StoreError, ThreadId, UserId};
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::roles::{EVERYTHING, TRACE_READ};
use crate::identity::{Caller, Principal};
use crate::problem::ApiResult;
use crate::strict::{Params, ThreadPath};
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::page::{self, Listed};
use crate::wire::problem::ProblemBody;
use crate::wire::thread::{ThreadContext, ThreadParams, ThreadView};

/// Hops that are shown with a thread: the newest ones.
const MAX_HOPS: u32 = 200;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_threads))
        .routes(routes!(show_thread, rename::rename_thread, delete_thread))
        .routes(routes!(history::list_messages))
}

/// The caller's threads, those that were used last first. With `trace:read`, those of the whole tenant. `progress` says how far the
/// agent of an open handoff has come.
#[utoipa::path(get, path = "/api/v1/threads", tag = "threads", params(ThreadParams),
    responses((status = 200, body = Listed<ThreadView>)),
    extensions(("x-permission" = json!("thread:read"))))]
async fn list_threads(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Params(params): Params<ThreadParams>,
) -> ApiResult<Json<Listed<ThreadView>>> {
    let user = whose(&app, &caller, &trace, params.user_id, "/api/v1/threads").await?;
    let page = page::request(params.limit, params.cursor);
    let data = app.data(&caller);
    let found = match &params.q {
        Some(text) => data.find_threads(user.as_ref(), text.as_str(), page).await?,
        None => data.threads(user.as_ref(), page).await?,
    };
    trail::listed(&app, &caller, "thread.list", found.data.iter().map(|thread| &thread.user_id)).await?;
    let open = open_handoffs(&app, &caller, &found).await?;
    let (main, agents) = (main(&app, &caller), app.agents(&caller));
    Ok(Json(Listed::of(found, |thread| {
        let open = open.get(&thread.thread_id);
        ThreadView::of(&caller.tenant, thread, main.as_ref()).with_handoff(open, &agents)
    })))
}

/// The open handoffs of a page of threads: one query for all of them, and none if there is no handoff on the page.
async fn open_handoffs(
    app: &App,
    caller: &Caller,
    page: &Page<Thread>,
) -> ApiResult<HashMap<ThreadId, HandoffSession>> {
    let with_handoff = page.data.iter().filter(|thread| thread.handoff.is_some());
    let threads: Vec<ThreadId> = with_handoff.map(|thread| thread.thread_id).collect();
    if threads.is_empty() {
        return Ok(HashMap::new());
    }
    let open = app.data(caller).open_handoffs_of(&threads).await?;
    Ok(open.into_iter().map(|handoff| (handoff.thread_id, handoff)).collect())
}

/// A thread as it stands.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}", tag = "threads",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    responses((status = 200, body = ThreadContext),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn show_thread(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread_id): ThreadPath,
) -> ApiResult<Json<ThreadContext>> {
    let thread = visible(&app, &caller, thread_id).await?;
    let open = open_handoff(&app, &caller, &thread).await?;
    let data = app.data(&caller);
    let resumable = data.resumable_handoffs(thread_id).await?;
    let mut hops = data.last_hops(thread_id, MAX_HOPS).await?;
    if !caller.may(TRACE_READ) {
        hops.retain(|hop| hop.kind == HopKind::Handoff);
    }
    let view = ThreadView::of(&caller.tenant, thread, main(&app, &caller).as_ref());
    Ok(Json(ThreadContext::of(view, open.as_ref(), resumable, hops, &app.agents(&caller))))
}

/// The open handoff of a thread. One whose time is over is ended first.
async fn open_handoff(app: &App, caller: &Caller, thread: &Thread) -> ApiResult<Option<HandoffSession>> {
    Ok(match thread.handoff {
        Some(_) => app.engine.open_handoff(&caller.tenant, thread.thread_id).await?,
        None => None,
    })
}

/// Deletes a thread with all it owns: messages, events, runs, artifacts, handoffs. An active run is ended first. Other
/// users' threads need `admin:*`.
#[utoipa::path(delete, path = "/api/v1/threads/{thread_id}", tag = "threads",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    responses((status = 204, description = "It is gone."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:write"))))]
async fn delete_thread(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
) -> ApiResult<StatusCode> {
    let data = app.data(&caller);
    let thread = data.thread(thread_id, caller.scope()).await?;
    if thread.user_id != caller.user {
        trail::demand(&app, &caller, &trace, EVERYTHING, "/api/v1/threads/{thread_id}").await?;
    }
    let audit_record = AuditRecord {
        action: "thread.delete",
        thread_id: Some(thread_id),
        decision: "allowed",
        ..AuditRecord::default()
    };
    end_run(&app, &caller, &thread).await?;
    let data = trail::audited(&app, &caller, &trace, audit_record);
    app.engine.delete_thread(&*data, thread_id, Some(&thread.user_id)).await?;
    // Subscribers find that the thread is gone.
    app.engine.parts.live.changed(&caller.tenant, thread_id);
    Ok(StatusCode::NO_CONTENT)
}

/// Its worker would notice at its next write. Cancelled now, it stops at once and makes no more model calls.
async fn end_run(app: &App, caller: &Caller, thread: &Thread) -> ApiResult<()> {
    let Some(run) = thread.active_run else { return Ok(()) };
    match app.engine.cancel(&caller.tenant, run, Cancel::Abort).await {
        Ok(_) | Err(StoreError::NotFound(_) | StoreError::ThreadNotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Who answers in a thread without a holder.
fn main(app: &App, caller: &Principal) -> Option<AgentName> {
    app.first_agent(caller, "").ok().map(|(agent, _)| agent)
}

/// Whose things are listed: the caller's own, unless they may see more and do not want less.
pub(super) async fn whose(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    wanted: Option<UserId>,
    route: &str,
) -> ApiResult<Option<UserId>> {
    let Some(user) = wanted else { return Ok(caller.scope().cloned()) };
    if user != caller.user {
        trail::demand(app, caller, trace, TRACE_READ, route).await?;
    }
    Ok(Some(user))
}

/// A thread that the caller can see, or the same problem for every other one.
pub(super) async fn visible(app: &App, caller: &Caller, thread: ThreadId) -> ApiResult<Thread> {
    Ok(trail::visible(app, caller, thread).await?)
}
