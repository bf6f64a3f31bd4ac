//! Calls and questions that wait for a person.

use axum::Json;
use axum::extract::State;
use baton_core::store::run::Idempotency;
use baton_core::store::{AcceptedRun, Approval, ApprovalStatus, MessageQuery};
use baton_core::{StoreError, ThreadId};
use baton_engine::{DecideError, DecisionInput, check_decision};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::segment::Segment;
use crate::app::App;
use crate::identity::{Caller, Principal};
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::{Params, Strict};
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::approval::{ApprovalParams, ApprovalView, DECIDE, DecisionBody, ResumeEntry};
use crate::wire::page::{self, Listed};
use crate::wire::problem::ProblemBody;

/// The permission to send messages.
const WRITE: &str = "thread:write";

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_approvals)).routes(routes!(get_approval, decide_approval))
}

/// Calls and questions that wait, or waited, for a person, the oldest first unless `order` says otherwise: those of the caller's own
/// threads, and all of the tenant for those who may read traces.
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
    trail::listed(&app, &caller, "approval.list", found.data.iter().map(|approval| &approval.user_id))
        .await?;
    Ok(Json(Listed::of(found, ApprovalView::from)))
}

/// One approval, decided or not.
#[utoipa::path(get, path = "/api/v1/approvals/{approval_id}", tag = "approvals",
    params(("approval_id" = Uuid, Path)),
    responses((status = 200, body = ApprovalView),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such approval, or it belongs to another user's thread.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn get_approval(
    State(app): State<App>,
    caller: Caller,
    Segment(approval_id): Segment,
) -> ApiResult<Json<ApprovalView>> {
    let approval_id = Uuid::try_parse(&approval_id).map_err(|_| missing())?;
    visible(&app, &caller, approval_id).await.map(|found| Json(found.into()))
}

/// Decide about a call, or answer a question.
///
/// A decision is made once. The run that waits for it continues at once. No run waits for a workflow's question: its answer is
/// sent as the next message of the thread, and `answer_run_id` is the run of that message.
#[utoipa::path(post, path = "/api/v1/approvals/{approval_id}", tag = "approvals",
    params(("approval_id" = Uuid, Path)),
    request_body = DecisionBody,
    responses((status = 200, body = ApprovalView),
        (status = 400, body = ProblemBody, content_type = "application/problem+json",
            description = "`invalid_request`: the arguments or the answer do not satisfy the schema."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such approval, or it belongs to another user's thread."),
        (status = 403, body = ProblemBody, content_type = "application/problem+json",
            description = "`permission_denied`: only the user of the thread answers a workflow's question, with `thread:write`."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`approval_decided`, `approval_expired` or `approval_changed`; `approval_status` is its status. \
                `thread_busy`: the thread of a workflow's question has an active run.")),
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

/// Decides for every kind of request. A refusal is recorded in the audit trail.
pub(crate) async fn decide(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    approval_id: Uuid,
    body: DecisionBody,
) -> ApiResult<ApprovalView> {
    let decided = try_decide(app, caller, trace, approval_id, body, None).await;
    if let Err(problem) = &decided {
        record_refusal(app, caller, trace, approval_id, problem).await?;
    }
    decided
}

async fn record_refusal(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    approval_id: Uuid,
    problem: &Problem,
) -> ApiResult<()> {
    let mut detail = json!({ "code": problem.code.word() });
    // An id of another tenant is not put into the trail of this one.
    if app.data(caller).approval(approval_id).await.is_ok() {
        detail["approval_id"] = json!(approval_id);
    }
    let audit_record =
        AuditRecord { action: "approval.decide", decision: "refused", detail, ..AuditRecord::default() };
    trail::record(app, caller, Some(trace), audit_record).await
}

/// Decides. The same `request` is not processed twice.
async fn try_decide(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    approval_id: Uuid,
    body: DecisionBody,
    request: Option<Idempotency>,
) -> ApiResult<ApprovalView> {
    let asked = visible(app, caller, approval_id).await?;
    if asked.request.is_workflow_question() {
        // The answer is a message.
        trail::demand(app, caller, trace, WRITE, "/api/v1/approvals/{approval_id}").await?;
        if app.is_draining() {
            return Err(Problem::draining());
        }
    }
    let input = DecisionInput {
        idempotency: request,
        rights: caller.rights.clone(),
        limits: app.run_limits(caller),
        ..body.input(trace.0.trace_id())
    };
    let decided = app.engine.decide(&caller.tenant, approval_id, &caller.user, input).await;
    decided.map(Into::into).map_err(refused)
}

/// An approval that the caller may see.
async fn visible(app: &App, caller: &Principal, approval_id: Uuid) -> ApiResult<Approval> {
    let found = app.data(caller).approval(approval_id).await.map_err(gone)?;
    trail::visible(app, caller, found.thread_id).await.map_err(gone)?;
    Ok(found)
}

/// Applies the `resume` entries of AG-UI. Returns the run that continues: that of the first entry. A repeated `request` gets the
/// same run; entries that its first attempt did not reach are decided then.
pub(crate) async fn resume(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    thread: ThreadId,
    entries: Vec<ResumeEntry>,
    request: Option<Idempotency>,
) -> ApiResult<AcceptedRun> {
    trail::demand(app, caller, trace, DECIDE, "/api/v1/threads/{thread_id}/messages").await?;
    if let Some(first) = accepted_before(app, caller, request.as_ref()).await? {
        decide_rest(app, caller, trace, thread, entries).await?;
        return Ok(first);
    }
    let mut found: Vec<(Approval, DecisionBody)> = Vec::new();
    // Checked together, so that a mistake in one of them decides nothing.
    for (at, entry) in entries.into_iter().enumerate() {
        let id = entry.interrupt_id;
        if found.iter().any(|(earlier, _)| earlier.request.approval_id == id) {
            let pointer = format!("/resume/{at}/interruptId");
            return Err(invalid_entry(pointer, "an approval can be decided once".to_owned()));
        }
        match check_entry(app, caller, trace, thread, at, entry).await {
            Ok(checked) => found.push(checked),
            Err(problem) => {
                return refused_or_repeated(app, caller, trace, id, problem, request.as_ref()).await;
            }
        }
    }
    let data = app.data(caller);
    let after = data.thread(thread, caller.scope()).await?.last_seq;
    let mut continued = None;
    for (at, (approval, body)) in found.into_iter().enumerate() {
        // The key is stored with the first decision. A repetition decides the others if they are still open.
        let key = request.clone().filter(|_| at == 0);
        let id = approval.request.approval_id;
        let decided = match try_decide(app, caller, trace, id, body, key).await {
            Ok(decided) => decided,
            Err(problem) => {
                return refused_or_repeated(app, caller, trace, id, problem, request.as_ref()).await;
            }
        };
        continued = continued.or(Some(decided.answer_run_id.unwrap_or(decided.run_id)));
    }
    let Some(run_id) = continued else { return Err(missing()) };
    let number = data.run(run_id).await?.message_number;
    let query = MessageQuery {
        before: Some(number + 1),
        include_internal: true,
        include_system: true,
        ..MessageQuery::last(1)
    };
    let message = data.messages(thread, query).await?.pop().ok_or_else(missing)?;
    Ok(AcceptedRun { run_id, message_id: message.message.id, is_new: true, behind: None, after })
}

/// The run of the same request, if it was accepted before.
async fn accepted_before(
    app: &App,
    caller: &Principal,
    request: Option<&Idempotency>,
) -> ApiResult<Option<AcceptedRun>> {
    let Some(request) = request else { return Ok(None) };
    Ok(app.data(caller).accepted_before(caller.user.clone(), request.clone()).await?)
}

/// A refusal, unless the same request was accepted meanwhile.
async fn refused_or_repeated(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    approval_id: Uuid,
    problem: Problem,
    request: Option<&Idempotency>,
) -> ApiResult<AcceptedRun> {
    if let Some(first) = accepted_before(app, caller, request).await? {
        return Ok(first);
    }
    record_refusal(app, caller, trace, approval_id, &problem).await?;
    Err(problem)
}

/// Decides the entries of a repeated request that are still open.
async fn decide_rest(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    thread: ThreadId,
    entries: Vec<ResumeEntry>,
) -> ApiResult<()> {
    for (at, entry) in entries.into_iter().enumerate() {
        let id = entry.interrupt_id;
        if visible(app, caller, id).await?.outcome.status == ApprovalStatus::Pending {
            let (_, body) = check_entry(app, caller, trace, thread, at, entry).await?;
            decide(app, caller, trace, id, body).await?;
        }
    }
    Ok(())
}

/// Checks an entry of `resume` without deciding.
async fn check_entry(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    thread: ThreadId,
    at: usize,
    entry: ResumeEntry,
) -> ApiResult<(Approval, DecisionBody)> {
    let approval = visible(app, caller, entry.interrupt_id).await?;
    if approval.thread_id != thread {
        return Err(missing());
    }
    let payload = format!("/resume/{at}/payload");
    let body =
        entry.decision(approval.request.kind).map_err(|detail| invalid_entry(payload.clone(), detail))?;
    let input = body.clone().input(trace.0.trace_id());
    match check_decision(&approval, &caller.user, input) {
        Ok(_) => Ok((approval, body)),
        Err(DecideError::Invalid { pointer, detail }) => {
            // The payload of a question is its answer.
            let inner = pointer.strip_prefix("/answer").unwrap_or(&pointer);
            Err(invalid_entry(format!("{payload}{inner}"), detail))
        }
        Err(error) => Err(refused(error)),
    }
}

fn invalid_entry(pointer: String, detail: String) -> Problem {
    Problem::new(Code::InvalidRequest, "an entry of `resume` is invalid").at(pointer, detail)
}

fn refused(error: DecideError) -> Problem {
    let detail = error.to_string();
    match error {
        DecideError::Store(error) => gone(error),
        DecideError::Invalid { pointer, detail } => {
            Problem::new(Code::InvalidRequest, "the decision is invalid").at(pointer, detail)
        }
        DecideError::NotTheUser => Problem::new(Code::PermissionDenied, detail),
        DecideError::Message(failure) => failure.into(),
        DecideError::Changed(approval) => settled(Code::ApprovalChanged, detail, &approval),
        DecideError::Settled(approval) => {
            let code = match approval.outcome.status {
                ApprovalStatus::Expired => Code::ApprovalExpired,
                _ => Code::ApprovalDecided,
            };
            settled(code, detail, &approval)
        }
    }
}

fn settled(code: Code, detail: String, approval: &Approval) -> Problem {
    Problem::new(code, detail).with("approval_status", approval.outcome.status.word())
}

fn missing() -> Problem {
    Problem::not_found("approval")
}

/// Hides whose it is.
fn gone(error: StoreError) -> Problem {
    match error {
        StoreError::NotFound(_) | StoreError::ThreadNotFound => missing(),
        other => other.into(),
    }
}
