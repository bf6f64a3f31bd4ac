//! Decisions that wait for a person.

use axum::Json;
use axum::extract::State;
use baton_core::StoreError;
use baton_core::store::{Approval, ApprovalStatus};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::segment::Segment;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::{Params, Strict};
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::approval::{ApprovalParams, ApprovalView, DecisionBody};
use crate::wire::page::{self, Listed};
use crate::wire::problem::ProblemBody;
use crate::wire::text::Remark;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_approvals)).routes(routes!(decide_approval))
}

/// Calls that wait, or waited, for a person's yes, the oldest first unless `order` says otherwise: those of the caller's own threads,
/// and all of the tenant for those who may read traces.
#[utoipa::path(get, path = "/api/v1/approvals", tag = "approvals", params(ApprovalParams),
    responses((status = 200, body = Listed<ApprovalView>)),
    extensions(("x-permission" = json!("thread:read"))))]
async fn list_approvals(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ApprovalParams>,
) -> ApiResult<Json<Listed<ApprovalView>>> {
    let query = params.query(caller.scope());
    let found = app.data(&caller).approvals(query, page::request(params.limit, params.cursor)).await?;
    Ok(Json(Listed::of(found, ApprovalView::from)))
}

/// Allows the call or refuses it, once and for all.
#[utoipa::path(post, path = "/api/v1/approvals/{approval_id}", tag = "approvals",
    params(("approval_id" = Uuid, Path)),
    request_body = DecisionBody,
    responses((status = 200, body = ApprovalView),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such approval, or it is about somebody else's thread."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`conflict`: it was decided before, or nobody decided in time; `approval_status` says which.")),
    extensions(("x-permission" = json!("approval:decide"))))]
async fn decide_approval(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Segment(approval_id): Segment,
    Strict(body): Strict<DecisionBody>,
) -> ApiResult<Json<ApprovalView>> {
    let approval_id = Uuid::try_parse(&approval_id).map_err(|_| missing())?;
    decide(&app, &caller, &trace, approval_id, body).await.map(Json)
}

/// The same for every door that a decision comes in by.
pub(crate) async fn decide(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    approval_id: Uuid,
    body: DecisionBody,
) -> ApiResult<ApprovalView> {
    let data = app.data(caller);
    let asked = data.approval(approval_id).await.map_err(gone)?;
    data.thread(asked.thread_id, caller.scope()).await.map_err(gone)?;
    let (status, reason) = (ApprovalStatus::from(body.decision), body.reason.and_then(Remark::said));
    let decided = match data.decide(approval_id, status, &caller.user, reason.as_deref()).await {
        Ok(decided) => decided,
        Err(StoreError::Conflict(_)) => {
            return Err(settled(&data.approval(approval_id).await.map_err(gone)?));
        }
        Err(error) => return Err(gone(error)),
    };
    let audit_record = AuditRecord {
        action: "approval.decide",
        thread_id: Some(decided.thread_id),
        run_id: Some(decided.run_id),
        decision: status.word(),
        detail: json!({ "approval_id": approval_id, "path": decided.path, "tool": decided.tool }),
    };
    trail::record(app, caller, Some(trace), audit_record).await?;
    Ok(decided.into())
}

fn settled(approval: &Approval) -> Problem {
    let status = approval.status;
    let detail = match status {
        ApprovalStatus::Expired => "nobody decided in time; the call was not made".to_owned(),
        _ => format!("this was decided before: it is {status}"),
    };
    Problem::new(Code::Conflict, detail).with("approval_status", status.word())
}

fn missing() -> Problem {
    Problem::not_found("approval")
}

/// Whose it is is not told.
fn gone(error: StoreError) -> Problem {
    match error {
        StoreError::NotFound(_) | StoreError::ThreadNotFound => missing(),
        other => other.into(),
    }
}
