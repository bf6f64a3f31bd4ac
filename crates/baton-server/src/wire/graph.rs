//! The picture of a roster, as [`baton_agents::Graph`] is written. These types only describe it: there is one way to write it.

use baton_agents::graph::EdgeKind;
use baton_core::AgentName;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::schema::words;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct GraphParams {
    /// Only this agent and those it can involve.
    #[param(value_type = Option<String>, pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub agent: Option<AgentName>,
}

/// Who may call, consult, route, hand off and transfer to whom, and who owns the answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphBody {
    /// The agent that answers if none is named; absent if that depends on the message.
    #[schema(nullable = false)]
    pub main: Option<String>,
    pub agents: Vec<NodeBody>,
    pub edges: Vec<EdgeBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct NodeBody {
    pub id: String,
    pub display_name: String,
    pub description: String,
    pub remote: bool,
    /// May hold a thread across messages.
    pub holds_threads: bool,
    /// Whether its own words are the answer.
    pub terminal: bool,
    /// Whose words can be the answer when this agent is asked: the first of them, by name.
    pub answers: Vec<String>,
    /// Whether more agents than those in `answers` can. Absent means no.
    #[schema(required = false)]
    pub other_answers: bool,
    /// What happens in one run, in order.
    pub order: Vec<StageBody>,
    #[schema(required = false)]
    pub problems: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct StageBody {
    /// `advisors`, `team`, `session`, `route` or `handoff`.
    pub stage: String,
    #[schema(required = false)]
    pub agents: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct EdgeBody {
    pub from: String,
    pub to: String,
    #[schema(schema_with = words::<EdgeKind>)]
    pub kind: EdgeKind,
    /// The condition, specialty or caption that stands with it.
    #[schema(nullable = false)]
    pub label: Option<String>,
    #[schema(nullable = false)]
    pub problem: Option<String>,
}
