//! Renaming a thread.

use axum::Json;
use axum::extract::State;

use super::{main, open_handoff, visible};
use crate::app::App;
use crate::identity::Caller;
use crate::identity::roles::EVERYTHING;
use crate::problem::ApiResult;
use crate::strict::{Strict, ThreadPath};
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::problem::ProblemBody;
use crate::wire::thread::{RenameThread, ThreadView};

/// Renames a thread. The title stays, whatever is said later; the thread keeps its place in the list. Other users' threads need
/// `admin:*`.
#[utoipa::path(patch, path = "/api/v1/threads/{thread_id}", tag = "threads",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4")),
    request_body = RenameThread,
    responses((status = 200, body = ThreadView),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:write"))))]
pub(super) async fn rename_thread(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    Strict(RenameThread { title }): Strict<RenameThread>,
) -> ApiResult<Json<ThreadView>> {
    let thread = visible(&app, &caller, thread_id).await?;
    if thread.user_id != caller.user {
        trail::demand(&app, &caller, &trace, EVERYTHING, "/api/v1/threads/{thread_id}").await?;
    }
    // The audit trail never holds message text, and a title may be a part of one.
    let audit_record = AuditRecord {
        action: "thread.rename",
        thread_id: Some(thread_id),
        decision: "allowed",
        ..AuditRecord::default()
    };
    let data = trail::audited(&app, &caller, &trace, audit_record);
    let renamed = data.rename_thread(thread_id, Some(&thread.user_id), title.as_str()).await?;
    let open = open_handoff(&app, &caller, &renamed).await?;
    let view = ThreadView::of(&caller.tenant, renamed, main(&app, &caller).as_ref());
    Ok(Json(view.with_handoff(open.as_ref(), &app.agents(&caller))))
}
