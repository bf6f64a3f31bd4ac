//! Sending a message: it is stored, its run starts, and the response streams it, waits for it, or returns at once.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_core::message::{IncludedParts, parts_to_text};
use baton_core::store::{
    AcceptedRun, ApprovalStatus, MessageQuery, OnBusy, PageRequest, RunRecord, RunStatus, ThreadMessage,
};
use baton_core::{Role, TenantStore, ThreadId, TraceParent};
use baton_engine::{Overrides, RunRequest, RunTask, SubmitOptions, results};
use http::StatusCode;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::approvals;
use crate::app::App;
use crate::await_end::await_end;
use crate::identity::{Caller, Principal};
use crate::named;
use crate::prefer::{self, RespondAsync};
use crate::problem::{ApiResult, Code, Problem};
use crate::response_format::ResponseFormat;
use crate::stream::resume::join_accepted;
use crate::stream::sse;
use crate::strict::{Repeatable, ThreadPath};
use crate::trace::Trace;
use crate::wire::accepted::AcceptedView;
use crate::wire::answered::Answered;
use crate::wire::event::SentEvent;
use crate::wire::handoff::HeldBy;
use crate::wire::message::{MessageView, resolve};
use crate::wire::problem::ProblemBody;
use crate::wire::run::RunErrorView;
use crate::wire::send::SendMessage;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(send))
}

/// Send a message.
///
/// The thread begins with its first message. With `Accept: text/event-stream`, which is the default, the answer is the run's events
/// (AG-UI); with `application/json` it comes when the run has ended. With `Prefer: respond-async` it is 202 as soon as the message is
/// kept. The run continues if the client disconnects.
#[utoipa::path(post, path = "/api/v1/threads/{thread_id}/messages", tag = "threads", operation_id = "send_message",
    params(("thread_id" = String, Path, format = Uuid, description = "A UUID version 4, chosen by the caller"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and body within 24 hours: the same run"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: do not wait for the run. Other preferences are ignored")),
    request_body = SendMessage,
    responses(
        (status = 200, description = "The run's events, or its end",
            content((SentEvent = "text/event-stream"), (Answered = "application/json"))),
        (status = 202, description = "With `Prefer: respond-async`: the message is kept and its run is queued", body = AcceptedView,
            headers(("Preference-Applied" = String, description = "`respond-async`"))),
        (status = 402, description = "A budget is used up. `run_id` and `usage` are those of the run, `message` is the answer of its closing turn", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "The thread belongs to another user, or the agent is unknown", body = ProblemBody, content_type = "application/problem+json"),
        (status = 406, description = "Neither events nor JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "The thread is busy and `on_busy` is `reject`; or an exclusive holder has it and another `agent` was named", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
        ),
    extensions(("x-permission" = json!("thread:write")), ("x-work" = json!("run"))))]
async fn send(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread): ThreadPath,
    form: ResponseFormat,
    RespondAsync(is_async): RespondAsync,
    Repeatable { body, idempotency }: Repeatable<SendMessage>,
) -> ApiResult<Response> {
    let terms = SubmitOptions { idempotency, limits: app.run_limits(&caller) };
    let permit =
        (form == ResponseFormat::Events && !is_async).then(|| app.streams.open(&caller)).transpose()?;
    let subscription = app.subscribe(&caller, thread, form.interest());
    let accepted = submit(&app, &caller, &trace, thread, body, terms).await?;
    if is_async {
        return at_once(&app, &caller, thread, accepted).await;
    }
    match permit {
        Some(permit) => {
            let joined = join_accepted(&app, &caller, thread, &accepted, subscription, permit).await?;
            Ok(sse::respond(&app, joined))
        }
        None => {
            let record = await_end(&app, &caller.tenant, &accepted, subscription).await?;
            let answered = answered(&app, &caller, record).await?;
            match exhausted(&answered) {
                Some(problem) => Err(problem),
                None => Ok(Json(answered).into_response()),
            }
        }
    }
}

/// For callers that do not wait. With a repeated idempotency key the run may have ended long ago.
async fn at_once(
    app: &App,
    caller: &Principal,
    thread_id: ThreadId,
    accepted: AcceptedRun,
) -> ApiResult<Response> {
    let AcceptedRun { run_id, message_id, .. } = accepted;
    let status = app.data(caller).run(run_id).await?.status.into();
    let body = Json(AcceptedView { run_id, thread_id, message_id, status });
    Ok((StatusCode::ACCEPTED, [(prefer::APPLIED, prefer::RESPOND_ASYNC)], body).into_response())
}

/// Keeps the message and queues its run, for every door that messages come in by.
pub async fn submit(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    thread: ThreadId,
    message: SendMessage,
    terms: SubmitOptions,
) -> ApiResult<AcceptedRun> {
    if app.is_draining() {
        return Err(Problem::draining());
    }
    let SendMessage { content, agent, on_busy, metadata, resume } = message;
    if !resume.is_empty() {
        return approvals::resume(app, caller, trace, thread, resume, terms.idempotency).await;
    }
    let input = resolve(app, caller, thread, content.0).await?;
    let overrides = Overrides { is_named: agent.is_some(), ..Overrides::default() };
    let (agent, entry) = match agent {
        Some(name) => (named::newest_agent(app, caller, &name).await?.name.clone(), None),
        None => app.first_agent(caller, &parts_to_text(&input, IncludedParts::Text)).map_err(|error| {
            tracing::error!(error, "no agent can answer");
            Problem::new(Code::AgentUnavailable, "no agent is there to answer; name one with `agent`")
        })?,
    };
    let request = RunRequest {
        caller: engine_caller(caller, thread),
        agent,
        input,
        overrides,
        on_busy: on_busy.unwrap_or(OnBusy::Enqueue),
        entry,
        task: RunTask::Answer,
        rights: caller.rights.clone(),
        trace: Some(TraceParent::clone(&trace.0)),
        metadata: metadata.map(Value::Object),
    };
    Ok(app.engine.submit(request, terms).await?)
}

pub fn engine_caller(caller: &Principal, thread_id: ThreadId) -> baton_engine::RunCaller {
    baton_engine::RunCaller { tenant: caller.tenant.clone(), user: caller.user.clone(), thread_id }
}

/// The end of a run, for a caller that waited for it.
async fn answered(app: &App, caller: &Principal, record: RunRecord) -> ApiResult<Answered> {
    let store = app.data(caller);
    let message = answer_of(&*store, &record).await?;
    let held = store.open_handoff_of(record.thread_id).await?;
    let end = record.end.clone().unwrap_or_default();
    let approvals = match record.status {
        RunStatus::Waiting => store.run_approvals(record.run_id).await?,
        _ => Vec::new(),
    };
    let open = approvals.into_iter().filter(|one| one.outcome.status == ApprovalStatus::Pending);
    Ok(Answered {
        run_id: record.run_id,
        thread_id: record.thread_id,
        status: record.status.word().to_owned(),
        message: message.map(|message| MessageView::of(message, &app.agents(caller))),
        agent: end.answered_by.unwrap_or(record.agent),
        handoff: held.map(|handoff| HeldBy::of(handoff, &app.agents(caller))),
        results: results(&*store, record.run_id).await?.into_iter().map(Into::into).collect(),
        usage: record.usage.into(),
        approvals: open.map(Into::into).collect(),
        error: end.code.map(|code| RunErrorView { code, message: end.message.unwrap_or_default() }),
    })
}

/// A run that ended because a budget is used up. What its closing turn said is part of the problem.
fn exhausted(answered: &Answered) -> Option<Problem> {
    let error = answered.error.as_ref().filter(|error| error.code == Code::BudgetExhausted.word())?;
    let problem = Problem::new(Code::BudgetExhausted, error.message.as_str())
        .with("run_id", answered.run_id.to_string())
        .with("usage", json!(answered.usage));
    Some(match &answered.message {
        Some(message) => problem.with("message", json!(message)),
        None => problem,
    })
}

/// The answer is the first message after the one that the run is about that the person sees and that is of the run.
async fn answer_of(store: &dyn TenantStore, record: &RunRecord) -> ApiResult<Option<ThreadMessage>> {
    if record.end.as_ref().is_none_or(|end| end.answer.is_none()) {
        return Ok(None);
    }
    let messages = store.messages(record.thread_id, MessageQuery::last(PageRequest::MAX_LIMIT)).await?;
    Ok(messages
        .into_iter()
        .rev()
        .find(|message| message.message.run_id == record.run_id && message.message.role == Role::Assistant))
}
