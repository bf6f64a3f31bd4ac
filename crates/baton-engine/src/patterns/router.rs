//! `router:`: an agent that picks who handles the request.

use std::sync::Arc;

use baton_core::agent::{Agent, PlanningStrategy, Router, RoutingMode};

use self::destinations::Destinations;
use self::route_to::RouteTo;
use crate::failure::Failure;
use crate::given::{Given, Site};
use crate::outcome::Outcome;
use crate::patterns;
use crate::run::Input;
use crate::scope::Scope;
use crate::session::{self, Brief, Ended};

mod destinations;
mod route_to;

/// A pure router has one turn, and two more when it makes a mistake.
const PURE_TURNS: u32 = 3;

/// Lets the router choose, and the chosen one answer. `input` is what was asked, `told` the same with advice.
pub(crate) async fn route(
    scope: &Scope,
    router: &Router,
    input: &Input,
    told: &Input,
) -> Result<Outcome, Failure> {
    let destinations = Arc::new(Destinations::of(scope, router, input));
    if destinations.is_empty() && !router.may_answer {
        return destinations.without_choice(scope, "nobody is left to choose from".to_owned()).await;
    }
    let ended = match choose(scope, router, &destinations, told).await {
        // Its own model is away; whoever answers when it cannot choose needs another one, perhaps.
        Err(Failure::Model(error)) if destinations.has_fallback() => Ended::Undecided(error.to_string()),
        other => other?,
    };
    match ended {
        Ended::Undecided(said) => destinations.without_choice(scope, said).await,
        ended => Ok(ended.outcome(scope)),
    }
}

/// The router's own session.
async fn choose(
    scope: &Scope,
    router: &Router,
    destinations: &Arc<Destinations>,
    told: &Input,
) -> Result<Ended, Failure> {
    let (seat, brief) = brief(scope, router, destinations, told);
    session::hold(&seat, brief).await
}

/// Where and on which terms a router would choose.
pub(crate) fn imagined(scope: &Scope, router: &Router, input: &Input, told: &Input) -> (Scope, Brief) {
    brief(scope, router, &Arc::new(Destinations::of(scope, router, input)), told)
}

/// What the one is told that the agent at this place chooses.
pub(crate) async fn told(site: &Site<'_>, input: &Input) -> Result<Input, Failure> {
    Destinations::none(&site.scope, input).onward(&site.scope, Some(site), "").await
}

fn brief(scope: &Scope, router: &Router, destinations: &Arc<Destinations>, told: &Input) -> (Scope, Brief) {
    let mut given: Vec<Arc<dyn Given>> = match router.mode {
        RoutingMode::Pure => Vec::new(),
        RoutingMode::Full => patterns::tools(scope, destinations.input()),
    };
    if !destinations.is_empty() {
        given.push(Arc::new(RouteTo::new(scope, destinations)));
    }
    let seat = seat(scope, router);
    let mut brief = Brief::new(&seat, told, given);
    if router.mode == RoutingMode::Pure {
        brief.own_tools = false;
        brief.max_turns = Some(PURE_TURNS);
    }
    if !router.may_answer {
        brief.input.output_schema = None;
        brief.insist = Some(format!(
            "You do not answer yourself. Call `route_to` now, with one of these agents: {}.",
            destinations.names()
        ));
    }
    (seat, brief)
}

/// A pure router does not plan, and whoever does not answer has no form to keep to.
fn seat(scope: &Scope, router: &Router) -> Scope {
    let mut agent = Agent::clone(&scope.agent);
    if router.mode == RoutingMode::Pure {
        agent.planning_strategy = PlanningStrategy::NativeReact;
    }
    if !router.may_answer {
        agent.output_schema = None;
    }
    let mut seat = scope.clone();
    seat.agent = Arc::new(agent);
    seat
}
