//! How an agent works with others: delegation, advisors, routing, chains, teams and transfers.

use serde::Serialize;

use crate::choices;
use crate::duration::HumanDuration;
use crate::id::AgentName;

/// Settings of `delegate` and `call_agent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delegation {
    pub strategy: Strategy,
    /// The strategies that a model or a client may choose instead. Always has `strategy`.
    #[serde(skip_serializing_if = "are_default")]
    pub strategies: Vec<Strategy>,
    pub synthesis: Synthesis,
    pub timeout: HumanDuration,
    pub max_concurrent: u32,
    pub summarize_results: bool,
    pub summary_max_length: u32,
    /// `None` uses the server's setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Caching>,
    /// Whether a later call of the same agent in the thread continues its session. Otherwise each call has a new one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
}

/// The strategies of an agent whose file lists none.
const DEFAULT_STRATEGIES: [Strategy; 2] = [Strategy::Parallel, Strategy::Sequential];

fn are_default(strategies: &[Strategy]) -> bool {
    strategies == DEFAULT_STRATEGIES
}

impl Default for Delegation {
    fn default() -> Self {
        Self {
            strategy: Strategy::Parallel,
            strategies: DEFAULT_STRATEGIES.to_vec(),
            synthesis: Synthesis::Model,
            timeout: HumanDuration::from_secs(30),
            max_concurrent: 5,
            summarize_results: false,
            summary_max_length: 2000,
            cache: None,
            resume: false,
        }
    }
}

choices! {
    pub enum Strategy {
        Parallel = "parallel",
        Sequential = "sequential",
        FirstSuccess = "first_success",
    }
}

choices! {
    /// How several results are combined into one answer.
    pub enum Synthesis {
        Model = "model",
        Concat = "concat",
        None = "none",
    }
}

/// Whether, and for how long, the result of an identical task is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    Off,
    #[serde(untagged)]
    For(HumanDuration),
}

/// Agents that are consulted before each answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advisors {
    pub agents: Vec<Advisor>,
    pub min_success: u32,
    pub deadline: HumanDuration,
    pub on_quorum_fail: OnQuorumFail,
}

impl Default for Advisors {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            min_success: 0,
            deadline: HumanDuration::from_secs(60),
            on_quorum_fail: OnQuorumFail::Proceed,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advisor {
    pub agent: AgentName,
    /// If `true`, a failure of this advisor fails the run. Otherwise the failure is reported beside the other advice.
    pub required: bool,
    pub timeout: HumanDuration,
}

choices! {
    pub enum OnQuorumFail {
        Proceed = "proceed",
        Refuse = "refuse",
    }
}

/// Settings of an agent that chooses which agent handles a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Router {
    pub mode: RoutingMode,
    pub destinations: Vec<AgentName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<AgentName>,
    /// The router may answer by itself instead of choosing.
    pub may_answer: bool,
}

choices! {
    pub enum RoutingMode {
        /// One turn with `route_to` as the only tool.
        Pure = "pure",
        /// The router keeps its own tools and may use them before it chooses.
        Full = "full",
    }
}

/// A link of a chain: the next agent, if the condition holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Destination {
    pub to: AgentName,
    /// A minijinja expression over `output`, `input` and `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// A team: this agent coordinates, and the members discuss in rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Team {
    pub members: Vec<AgentName>,
    pub termination_mode: TerminationMode,
    pub max_rounds: u32,
    pub quorum: Quorum,
    pub member_timeout: HumanDuration,
}

choices! {
    pub enum TerminationMode {
        Consensus = "consensus",
        MaxRounds = "max_rounds",
        CoordinatorDecides = "coordinator_decides",
    }
}

/// Number of members that must be ready before the discussion ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quorum {
    All,
    Majority,
    #[serde(untagged)]
    AtLeast(u32),
}

/// An agent that this one may transfer to, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collaboration {
    pub agent: AgentName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// How often the agent may be entered again while it is in the run's transfer chain.
    #[serde(skip_serializing_if = "is_zero")]
    pub allow_revisit: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A button below the answer that starts a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Button {
    pub label: String,
    pub agent: AgentName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Sends the prompt immediately instead of placing it in the composer.
    pub send: bool,
}
