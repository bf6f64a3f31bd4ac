//! `router:`: an agent that selects the agent to handle the request. [`destinations`] has the candidates, [`route_to`] the tool,
//! [`routing_words`] a hint for small models.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{Agent, PlanningStrategy, Router, RoutingMode};
use baton_core::message::Part;

use self::destinations::Destinations;
use self::route_to::RouteTo;
use self::routing_words::RoutingWords;
use crate::engine_tool::{CallSite, EngineTool};
use crate::failure::Failure;
use crate::input::Input;
use crate::learning;
use crate::outcome::Outcome;
use crate::patterns;
use crate::scope::Scope;
use crate::session::{self, SessionEnd, SessionSpec};

mod destinations;
mod route_to;
mod routing_words;

/// A pure router needs one turn; two more are for mistakes.
const PURE_TURNS: u32 = 3;

/// Lets the router choose and the chosen agent answer. `input` is the request, `advised_input` the same with advice. Falls back
/// to the declared fallback if the router's model fails or makes no choice.
pub(crate) async fn route(
    scope: &Scope,
    router: &Router,
    input: &Input,
    advised_input: &Input,
) -> Result<Outcome, Failure> {
    let destinations = Arc::new(Destinations::of(scope, router, input));
    if destinations.is_empty() && !router.may_answer {
        return destinations.without_choice(scope, "no agent is left to choose from".to_owned()).await;
    }
    let ended = match choose(scope, router, &destinations, advised_input).await {
        // The fallback may use another model.
        Err(Failure::Model(error)) if destinations.has_fallback() => SessionEnd::Undecided(error.to_string()),
        other => other?,
    };
    match ended {
        SessionEnd::Undecided(said) => destinations.without_choice(scope, said).await,
        ended => Ok(ended.outcome(scope)),
    }
}

/// Runs the router's own session.
async fn choose(
    scope: &Scope,
    router: &Router,
    destinations: &Arc<Destinations>,
    advised_input: &Input,
) -> Result<SessionEnd, Failure> {
    let (session_scope, mut spec) = router_session(scope, router, destinations, advised_input);
    let candidates: Vec<AgentName> = destinations.all().iter().map(|agent| agent.name.clone()).collect();
    learning::add_hint(scope, &candidates, &mut spec.input).await?;
    session::run_session(&session_scope, spec).await
}

/// Scope and session of a router's choice, without running it.
pub(crate) fn preview_choice(
    scope: &Scope,
    router: &Router,
    input: &Input,
    advised_input: &Input,
) -> (Scope, SessionSpec) {
    router_session(scope, router, &Arc::new(Destinations::of(scope, router, input)), advised_input)
}

/// The input that the agent at this site would pass to a chosen agent.
pub(crate) async fn destination_input(site: &CallSite<'_>, input: &Input) -> Result<Input, Failure> {
    Destinations::none(&site.scope, input).destination_input(&site.scope, Some(site), "").await
}

fn router_session(
    scope: &Scope,
    router: &Router,
    destinations: &Arc<Destinations>,
    advised_input: &Input,
) -> (Scope, SessionSpec) {
    let words = RoutingWords::of(scope, destinations);
    let mut engine_tools: Vec<Arc<dyn EngineTool>> = match router.mode {
        RoutingMode::Pure => Vec::new(),
        RoutingMode::Full => patterns::tools(scope, destinations.input()),
    };
    if !destinations.is_empty() {
        engine_tools.push(Arc::new(RouteTo::new(scope, destinations, router.mode, words.clone())));
    }
    let session_scope = router_scope(scope, router);
    let mut spec = SessionSpec::new(&session_scope, advised_input, engine_tools);
    if let Some(hint) = words.and_then(|words| words.hint()) {
        Arc::make_mut(&mut spec.input.parts).push(Part::text(hint));
    }
    if router.mode == RoutingMode::Pure {
        spec.own_tools = false;
        spec.max_turns = Some(PURE_TURNS);
    }
    if !router.may_answer {
        spec.input.output_schema = None;
        spec.insist = Some(format!(
            "You do not answer yourself. Call `route_to` now, with one of these agents: {}.",
            destinations.names()
        ));
    }
    (session_scope, spec)
}

/// A pure router does not plan. A router that must not answer has no output schema.
fn router_scope(scope: &Scope, router: &Router) -> Scope {
    let mut agent = Agent::clone(scope.agent());
    if router.mode == RoutingMode::Pure {
        agent.planning_strategy = PlanningStrategy::NativeReact;
    }
    if !router.may_answer {
        agent.output_schema = None;
    }
    scope.clone().with_session(|session| session.agent = Arc::new(agent))
}
