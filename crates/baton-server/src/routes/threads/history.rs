//! What was said in a thread.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use baton_core::store::{MessageQuery, Rating, ThreadMessage};
use baton_core::{MessageId, ThreadId};

use super::visible;
use crate::app::App;
use crate::identity::Caller;
use crate::identity::roles::TRACE_READ;
use crate::problem::ApiResult;
use crate::strict::{Params, ThreadPath};
use crate::trace::Trace;
use crate::trail;
use crate::wire::feedback::Thumb;
use crate::wire::message::MessageView;
use crate::wire::message::query::MessageParams;
use crate::wire::page::Listed;
use crate::wire::problem::ProblemBody;

/// What was said in a thread. The first page has the newest messages, and each further one those before it; within a page the oldest
/// comes first, so that it reads as it was said.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/messages", tag = "threads",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4"), MessageParams),
    responses((status = 200, body = Listed<MessageView>),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
pub(super) async fn list_messages(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    Params(params): Params<MessageParams>,
) -> ApiResult<Json<Listed<MessageView>>> {
    let query = params.query()?;
    if query.include_internal {
        trail::demand(&app, &caller, &trace, TRACE_READ, "/api/v1/threads/{thread_id}/messages").await?;
    }
    visible(&app, &caller, thread_id).await?;
    // One more than wanted tells whether there are more.
    let more = MessageQuery { limit: query.limit + 1, ..query };
    let found = app.data(&caller).messages(thread_id, more).await?;
    let (found, next_cursor) = cut(found, query.limit as usize);
    let ratings = ratings(&app, &caller, thread_id, &found).await?;
    let agents = app.agents(&caller);
    let view = |message: ThreadMessage| {
        let rating = ratings.get(&message.message.id).copied().map(Thumb);
        MessageView { rating, ..MessageView::of(message, &agents) }
    };
    Ok(Json(Listed { data: found.into_iter().map(view).collect(), next_cursor }))
}

/// The caller's ratings of the messages of a page, with one query.
async fn ratings(
    app: &App,
    caller: &Caller,
    thread: ThreadId,
    page: &[ThreadMessage],
) -> ApiResult<HashMap<MessageId, Rating>> {
    let [first, ..] = page else { return Ok(HashMap::new()) };
    let last = page.last().unwrap_or(first);
    let found = app.data(caller).ratings(thread, &caller.user, first.number..=last.number).await?;
    Ok(found.into_iter().collect())
}

/// The newest of them, and from where those before them are read.
fn cut(mut found: Vec<ThreadMessage>, size: usize) -> (Vec<ThreadMessage>, Option<String>) {
    let extra = found.len().saturating_sub(size);
    found.drain(..extra);
    let next = found.first().filter(|_| extra > 0).map(|oldest| oldest.number.to_string());
    (found, next)
}
