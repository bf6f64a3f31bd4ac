//! What people think of an answer.

use axum::extract::State;
use baton_core::message::{Role, Visibility};
use baton_core::store::{Feedback, ThreadMessage};
use baton_core::{MessageId, StoreError, ThreadId};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::segment::Segment;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::Strict;
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::feedback::FeedbackBody;
use crate::wire::problem::ProblemBody;
use crate::wire::text::Remark;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(give_feedback))
}

/// Says whether an answer was good. It counts for the ways the baton took in its run; a later opinion of the same person replaces it.
#[utoipa::path(post, path = "/api/v1/messages/{message_id}/feedback", tag = "threads",
    params(("message_id" = uuid::Uuid, Path, description = "The id of an agent's message")),
    request_body = FeedbackBody,
    responses((status = 204, description = "It is kept."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such message, or it belongs to another user."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`conflict`: the message is no agent's, so there is no answer to rate.")),
    extensions(("x-permission" = json!("thread:write"))))]
async fn give_feedback(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Segment(message_id): Segment,
    Strict(body): Strict<FeedbackBody>,
) -> ApiResult<StatusCode> {
    let message_id = MessageId::parse(&message_id).map_err(|_| missing())?;
    let (thread_id, found) = find(&app, &caller, message_id).await?;
    if found.message.role != Role::Assistant {
        return Err(Problem::new(Code::Conflict, "only what an agent said can be rated"));
    }
    let feedback = Feedback {
        message_id,
        user_id: caller.user.clone(),
        rating: body.rating.0,
        comment: body.comment.and_then(Remark::said),
        at: Timestamp::now(),
    };
    let audit_record = AuditRecord {
        action: "feedback.give",
        thread_id: Some(thread_id),
        run_id: Some(found.message.run_id),
        decision: "allowed",
        detail: json!({ "message_id": message_id, "rating": feedback.rating }),
    };
    let data = trail::audited(&app, &caller, &trace, audit_record);
    data.put_feedback(feedback).await.map_err(gone)?;
    app.metrics.rated(body.rating.0);
    Ok(StatusCode::NO_CONTENT)
}

/// A message that the caller can see.
async fn find(app: &App, caller: &Caller, message: MessageId) -> ApiResult<(ThreadId, ThreadMessage)> {
    let data = app.data(caller);
    let (thread_id, found) = data.message(message).await.map_err(gone)?;
    trail::visible(app, caller, thread_id).await.map_err(gone)?;
    if found.message.visibility == Visibility::Internal && !caller.sees_all() {
        return Err(missing());
    }
    Ok((thread_id, found))
}

fn missing() -> Problem {
    Problem::not_found("message")
}

/// Whose it is, or that it was, is not told.
fn gone(error: StoreError) -> Problem {
    match error {
        StoreError::NotFound(_) | StoreError::ThreadNotFound => missing(),
        other => other.into(),
    }
}
