//! One message to several agents.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_core::message::Part;
use baton_core::store::OnBusy;
use baton_core::{AgentName, HumanDuration};
use baton_engine::{
    DelegationPlan, Overrides, RunCaller as OnBehalfOf, RunRequest, RunTask, SubmitOptions, results,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::handoff;
use crate::app::App;
use crate::await_end::await_end;
use crate::identity::{Caller, Principal};
use crate::named;
use crate::problem::{ApiResult, Code, Problem};
use crate::response_format::ResponseFormat;
use crate::stream::resume::join_accepted;
use crate::stream::sse;
use crate::strict::{Repeatable, ThreadPath};
use crate::trace::Trace;
use crate::wire::delegation::{DelegationRequest, DelegationView, StrategyWord, SynthesisWord};
use crate::wire::event::SentEvent;
use crate::wire::problem::ProblemBody;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(delegate))
}

const MOST_AGENTS: usize = 100;
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const LONGEST_TIMEOUT_MS: u64 = 600_000;

/// Asks several agents the same, without a model that decides who is asked. It is a run like any other: it can be joined, cancelled
/// and read later. With `Accept: application/json` the answer comes when it has ended; closing the connection does not cancel it.
#[utoipa::path(post, path = "/api/v1/threads/{thread_id}/delegations", tag = "orchestration",
    params(("thread_id" = String, Path, format = "uuid", description = "A UUID version 4. The thread begins if there is none."),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and body within 24 hours: the same run")),
    request_body = DelegationRequest,
    responses(
        (status = 200, description = "What each agent brought, and one text of it; or the run's events",
            content((SentEvent = "text/event-stream"), (DelegationView = "application/json"))),
        (status = 400, body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
        (status = 406, body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, body = ProblemBody, content_type = "application/problem+json"),
    ),
    extensions(("x-permission" = json!("orchestration:delegate")), ("x-work" = json!("run"))))]
async fn delegate(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    ThreadPath(thread_id): ThreadPath,
    form: ResponseFormat,
    Repeatable { body, idempotency }: Repeatable<DelegationRequest>,
) -> ApiResult<Response> {
    let message = body.message.clone();
    let delegation = meant(&app, &caller, &body)?;
    let (agent, entry) = app.first_agent(&caller, &message).map_err(handoff::no_main)?;
    let request = RunRequest {
        caller: OnBehalfOf { tenant: caller.tenant.clone(), user: caller.user.clone(), thread_id },
        agent,
        input: vec![Part::text(message)],
        overrides: Overrides::default(),
        on_busy: OnBusy::Enqueue,
        entry,
        task: RunTask::Delegate(delegation),
        rights: caller.rights.clone(),
        trace: Some((*trace.0).clone()),
        metadata: None,
    };
    let terms = SubmitOptions { idempotency, limits: app.run_limits(&caller) };
    let permit = (form == ResponseFormat::Events).then(|| app.streams.open(&caller)).transpose()?;
    let subscription = app.subscribe(&caller, thread_id, form.interest());
    let accepted = app.engine.submit(request, terms).await?;
    match permit {
        Some(permit) => {
            let joined = join_accepted(&app, &caller, thread_id, &accepted, subscription, permit).await?;
            Ok(sse::respond(&app, joined))
        }
        None => {
            let record = await_end(&app, &caller.tenant, &accepted, subscription).await?;
            let results = results(&*app.data(&caller), record.run_id).await?;
            Ok(Json(DelegationView::of(record, results)).into_response())
        }
    }
}

/// What the caller means, or what is wrong with it.
fn meant(app: &App, caller: &Principal, body: &DelegationRequest) -> ApiResult<DelegationPlan> {
    let wrong = |pointer: &str, detail: &str| {
        Problem::new(Code::InvalidRequest, "the body is not what this route takes").at(pointer, detail)
    };
    if body.agents.is_empty() || body.agents.len() > MOST_AGENTS {
        return Err(wrong("/agents", "name 1 to 100 agents"));
    }
    if body.message.trim().is_empty() {
        return Err(wrong("/message", "say what they are to do"));
    }
    let timeout = body.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    if !(1..=LONGEST_TIMEOUT_MS).contains(&timeout) {
        return Err(wrong("/timeout_ms", "1 to 600000 milliseconds"));
    }
    Ok(DelegationPlan {
        agents: agents(app, caller, &body.agents)?,
        strategy: body.strategy.unwrap_or(StrategyWord::Parallel).into(),
        timeout: HumanDuration::from_millis(timeout),
        synthesis: body.synthesis.unwrap_or(SynthesisWord::Concat).into(),
    })
}

/// All of them exist and let others ask them.
fn agents(app: &App, caller: &Principal, names: &[String]) -> ApiResult<Vec<AgentName>> {
    let mut agents = Vec::new();
    for (at, text) in names.iter().enumerate() {
        let pointer = format!("/agents/{at}");
        let agent = named::agent(app, caller, text)
            .map_err(|problem| problem.at(&pointer, "there is no such agent"))?;
        if !agent.can_be_orchestrated {
            let detail = format!(
                "`{}` may not be involved by others; its file says `can_be_orchestrated: false`",
                agent.name
            );
            return Err(
                Problem::new(Code::InvalidRequest, &detail).at(&pointer, "ask it directly, with a message")
            );
        }
        agents.push(agent.name.clone());
    }
    Ok(agents)
}
