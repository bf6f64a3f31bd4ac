//! Asks an agent to take a thread.

use std::fmt::Display;

use axum::Json;
use axum::extract::State;
use baton_core::{AgentName, ThreadId};
use baton_engine::{HandoffStarted, OnConflict};
use http::StatusCode;
use serde_json::Value;

use super::audited_action::AuditedAction;
use super::own;
use crate::app::App;
use crate::identity::{Caller, Principal};
use crate::named;
use crate::problem::{ApiResult, Code, Problem};
use crate::routes::messages::engine_caller;
use crate::strict::{Strict, ThreadPath};
use crate::trace::Trace;
use crate::wire::handoff::HandoffAccept;
use crate::wire::handoff::request::HandoffRequest;
use crate::wire::problem::ProblemBody;

/// Gives a thread to another agent, which answers in it until it gives it back. The agent is asked first; the answer comes when it
/// has the thread, and the run in which it greets the person has started. `handoff:initiate`, and whatever the agent's own file
/// demands, such as `skill:create`.
#[utoipa::path(post, path = "/api/v1/threads/{thread_id}/handoff", tag = "handoffs",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4. The thread has to be there.")),
    request_body = HandoffRequest,
    responses((status = 201, body = HandoffAccept, description = "The agent has the thread."),
        (status = 202, body = HandoffAccept, description = "It gets the thread when the one that has it gives it back."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user. `agent_not_found`: with the nearest names."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`handoff_active`: another handoff is active, and `detail` is the sentence for the person. `handoff_rejected`: the agent \
                does not take it, and `detail` says why."),
        (status = 503, body = ProblemBody, content_type = "application/problem+json",
            description = "`agent_unavailable`: the agent cannot be reached, and `detail` offers what can be done instead. Or any of the \
                others that mean: not now.")),
    extensions(("x-permission" = json!("handoff:initiate")), ("x-work" = json!("run"))))]
pub(super) async fn start_handoff(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    Strict(body): Strict<HandoffRequest>,
) -> ApiResult<(StatusCode, Json<HandoffAccept>)> {
    own(&app, &caller, thread_id).await?;
    let request = meant(&app, &caller, &trace, thread_id, body)?;
    let (source, target) = (request.source.clone(), request.target.clone());
    match start(&app, &caller, &trace, request).await? {
        HandoffStarted::Now { handoff, run_id } => {
            Ok((StatusCode::CREATED, Json(HandoffAccept::now(&handoff, run_id))))
        }
        HandoffStarted::Queued => {
            let source = match source {
                Some(source) => source,
                None => giver(&app, &caller, thread_id).await?.unwrap_or_else(|| target.clone()),
            };
            Ok((StatusCode::ACCEPTED, Json(HandoffAccept::queued(thread_id, source, target))))
        }
    }
}

/// Asks the target, for every protocol by which a handoff can be requested. The engine records a started handoff, this a refusal.
pub(crate) async fn start(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    request: baton_engine::StartHandoff,
) -> ApiResult<HandoffStarted> {
    let action = AuditedAction::new(app, caller, trace, request.caller.thread_id, "handoff.request");
    action.finish(app.engine.start_handoff(request).await).await
}

/// What the caller means, or what is wrong with it.
fn meant(
    app: &App,
    caller: &Caller,
    trace: &Trace,
    thread_id: ThreadId,
    body: HandoffRequest,
) -> ApiResult<baton_engine::StartHandoff> {
    let untrue = body.untruths(thread_id, &caller.tenant, &caller.user);
    if !untrue.is_empty() {
        let detail = "the credential and the path say whose thread it is; the body may only say the same";
        let problem = Problem::new(Code::InvalidRequest, detail);
        return Err(untrue.into_iter().fold(problem, |problem, at| problem.at(at.pointer, at.detail)));
    }
    let agent = |text: &str, pointer: &str| {
        let found = named::agent(app, caller, text).map(|agent| agent.name.clone());
        found.map_err(|problem| problem.at(pointer, "there is no such agent"))
    };
    Ok(baton_engine::StartHandoff {
        caller: engine_caller(caller, thread_id),
        source: body.source_agent_id.as_deref().map(|text| agent(text, "/source_agent_id")).transpose()?,
        fallback: main(app, caller)?,
        target: agent(&body.target_agent_id, "/target_agent_id")?,
        context_summary: body.context_summary.unwrap_or_default(),
        reason: body.handoff_reason,
        recent_messages: body.recent_message_count,
        preserve_state: body.preserve_state,
        return_expected: body.return_expected,
        metadata: body.handoff_metadata.map_or(Value::Null, Value::Object),
        on_conflict: body.on_conflict.unwrap_or(OnConflict::Reject),
        rights: caller.rights.clone(),
        trace: Some((*trace.0).clone()),
        address: trace.address(),
    })
}

/// Who answers in a thread without a holder.
pub(crate) fn main(app: &App, caller: &Principal) -> ApiResult<AgentName> {
    let (main, _) = app.first_agent(caller, "").map_err(no_main)?;
    Ok(main)
}

pub(crate) fn no_main(reason: impl Display) -> Problem {
    Problem::new(Code::AgentUnavailable, format!("there is no main agent: {reason}"))
}

/// Who gets the thread back from the one that has it now, and so gives it to the next.
async fn giver(app: &App, caller: &Caller, thread_id: ThreadId) -> ApiResult<Option<AgentName>> {
    let open = app.engine.open_handoff(&caller.tenant, thread_id).await?;
    Ok(open.map(|open| open.source_agent_id))
}
