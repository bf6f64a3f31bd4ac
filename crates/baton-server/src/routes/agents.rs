//! Who there is.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use baton_agents::{Graph, Roster};
use baton_core::agent::Agent;
use baton_core::{AgentName, ThreadId};
use baton_engine::{Failure, Via};
use http::HeaderMap;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::segment::Segment;
use crate::a2a;
use crate::app::App;
use crate::identity::Caller;
use crate::named;
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::Params;
use crate::trail;
use crate::wire::agent::{
    AgentDetail, AgentParams, AgentView, DiagnosticView, PromptParams, PromptView, RemoteView, definition,
    within,
};
use crate::wire::graph::{GraphBody, GraphParams};
use crate::wire::page::{self, Listed};
use crate::wire::problem::ProblemBody;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_agents))
        .routes(routes!(get_agent))
        .routes(routes!(get_prompt))
        .routes(routes!(get_card))
        .routes(routes!(get_graph))
}

/// All agents, by name. Those that are not offered to people are left out, unless `all` is true.
#[utoipa::path(get, path = "/api/v1/agents", tag = "agents", params(AgentParams),
    responses((status = 200, body = Listed<AgentView>)),
    extensions(("x-permission" = json!("agent:read"))))]
async fn list_agents(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<AgentParams>,
) -> ApiResult<Json<Listed<AgentView>>> {
    let (agents, graph) = (app.agents(&caller), graph(&app, &caller));
    let is_wanted = |agent: &&Arc<Agent>| params.all == Some(true) || !agent.badge.hidden;
    let is_name = |text: &str| AgentName::parse(text).is_ok();
    let wanted = agents.values().filter(is_wanted);
    let page =
        page::cut(wanted, |agent| agent.name.as_str(), is_name, &page::request(params.limit, params.cursor))?;
    Ok(Json(Listed::of(page, |agent| AgentView::of(agent, &graph))))
}

/// One agent: its definition with every default filled in, and what is worth knowing about its file.
#[utoipa::path(get, path = "/api/v1/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "The agent's id", example = "assistant")),
    responses((status = 200, body = AgentDetail),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`agent_not_found`; `nearest` lists the names that may have been meant.")),
    extensions(("x-permission" = json!("agent:read"))))]
async fn get_agent(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment,
) -> ApiResult<Json<AgentDetail>> {
    let agent = named::newest_agent(&app, &caller, &name).await?;
    let roster = newest(&app, &caller);
    let root = &app.engine.parts.extensions.work_dir;
    let diagnostics = roster.problems_of(&agent.name).map(|problem| DiagnosticView::of(problem, root));
    Ok(Json(AgentDetail {
        agent: AgentView::of(&agent, &graph(&app, &caller)),
        file: roster.file(&agent.name).map(|file| within(root, file)),
        definition: definition(&agent),
        diagnostics: diagnostics.collect(),
        remote: RemoteView::of(&app.engine.parts.extensions, &agent).await,
    }))
}

/// The agent's A2A card, with everything that an authenticated caller sees. It is there even if A2A is not served.
#[utoipa::path(get, path = "/api/v1/agents/{agent}/card", tag = "agents",
    params(("agent" = String, Path, description = "The agent's id", example = "assistant")),
    responses((status = 200, body = Object, description = "An agent card, in the version that `a2a.card` selects."),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`agent_not_found`; `nearest` lists the names that may have been meant.")),
    extensions(("x-permission" = json!("agent:read"))))]
async fn get_card(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment,
    headers: HeaderMap,
) -> ApiResult<Json<serde_json::Value>> {
    let agent = named::newest_agent(&app, &caller, &name).await?;
    Ok(Json(a2a::native_card(&app, &caller, &agent, &headers)))
}

/// Said where the caller does not say what the person asks.
const SOMETHING: &str = "What should I do next?";
const LONGEST_MESSAGE: usize = 4000;

/// The exact prompt, task and tools that the agent's model would get now. No model is asked, and nothing is kept. Where other agents
/// would have written something, `[what … says]` stands.
#[utoipa::path(get, path = "/api/v1/agents/{agent}/prompt", tag = "agents",
    params(("agent" = String, Path, description = "The agent's id", example = "assistant"), PromptParams),
    responses((status = 200, body = PromptView),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`agent_not_found`, or `thread_not_found`."),
        (status = 409, body = ProblemBody, content_type = "application/problem+json",
            description = "`conflict`: the agent runs elsewhere and has its own prompt, or it cannot be involved in this way.")),
    extensions(("x-permission" = json!("agent:read"))))]
async fn get_prompt(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment,
    Params(params): Params<PromptParams>,
) -> ApiResult<Json<PromptView>> {
    let agent = named::newest_agent(&app, &caller, &name).await?;
    let giver = params.from.as_ref().map(|from| named::agent(&app, &caller, from.as_str())).transpose()?;
    let from = giver.as_ref().map(|giver| (&giver.name, params.via.unwrap_or(Via::Call)));
    let message = params.message.as_deref().unwrap_or(SOMETHING);
    if message.chars().count() > LONGEST_MESSAGE {
        let detail = format!("a message to look at has at most {LONGEST_MESSAGE} characters");
        return Err(Problem::new(Code::InvalidRequest, detail.as_str()).at("message", detail));
    }
    let asker = asker(&app, &caller, params.thread_id).await?;
    let preview = baton_engine::preview(&app.engine, &asker, &agent.name, from, message).await;
    preview.map(|preview| Json(PromptView::of(&agent.name, &preview))).map_err(unseen)
}

/// The owner of the thread, whose name may be part of the prompt.
async fn asker(app: &App, caller: &Caller, thread: Option<ThreadId>) -> ApiResult<baton_engine::RunCaller> {
    let (thread_id, user) = match thread {
        Some(id) => (id, trail::visible(app, caller, id).await?.user_id),
        None => (ThreadId::random(), caller.user.clone()),
    };
    Ok(baton_engine::RunCaller { tenant: caller.tenant.clone(), user, thread_id })
}

/// An agent without a prompt is no fault of the server.
fn unseen(failure: Failure) -> Problem {
    match failure {
        Failure::Unavailable(name) => {
            let detail = format!("`{name}` runs elsewhere and has its own prompt; look at it there");
            Problem::new(Code::Conflict, detail)
        }
        Failure::Refused(_) | Failure::Prompt { .. } => Problem::new(Code::Conflict, failure.to_string()),
        other => other.into(),
    }
}

/// Who may call, consult, route, hand off and transfer to whom, and who owns the answer.
#[utoipa::path(get, path = "/api/v1/graph", tag = "agents", params(GraphParams),
    responses((status = 200, body = GraphBody),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`agent_not_found`; `nearest` lists the names that may have been meant.")),
    extensions(("x-permission" = json!("agent:read"))))]
async fn get_graph(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<GraphParams>,
) -> ApiResult<Json<Graph>> {
    let graph = graph(&app, &caller);
    let main = app.settings.main_of(&caller.tenant).filter(|main| app.agents(&caller).contains_key(*main));
    let graph = match &params.agent {
        Some(name) => graph.around(&named::agent(&app, &caller, name.as_str())?.name),
        None => graph,
    };
    Ok(Json(Graph { main: main.cloned(), ..graph }))
}

/// The graph of the agents that the caller's tenant may see.
fn graph(app: &App, caller: &Caller) -> Graph {
    let (roster, tenants) = (newest(app, caller), &app.engine.parts.tenants);
    if !tenants.is_restricted(&caller.tenant) {
        return roster.graph().clone();
    }
    roster.graph().only(|name| tenants.permits(&caller.tenant, name))
}

/// It does not change while it is looked at, whatever happens to the files.
fn newest(app: &App, caller: &Caller) -> Arc<Roster> {
    app.roster_of(caller).roster
}
