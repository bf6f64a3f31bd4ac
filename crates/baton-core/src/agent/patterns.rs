//! How an agent works with others: call, consult, route, chain, lead a team, transfer.

use serde::Serialize;

use crate::choices;
use crate::duration::HumanDuration;
use crate::id::AgentName;

/// How `delegate` and `call_agent` behave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delegation {
    pub strategy: Strategy,
    pub synthesis: Synthesis,
    pub timeout: HumanDuration,
    pub max_concurrent: u32,
    pub summarize_results: bool,
    pub summary_max_length: u32,
    /// What the operator says, unless the file says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Caching>,
}

impl Default for Delegation {
    fn default() -> Self {
        Self {
            strategy: Strategy::Parallel,
            synthesis: Synthesis::Model,
            timeout: HumanDuration::from_secs(30),
            max_concurrent: 5,
            summarize_results: false,
            summary_max_length: 2000,
            cache: None,
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
    /// Who makes one answer of several results.
    pub enum Synthesis {
        Model = "model",
        Concat = "concat",
        None = "none",
    }
}

/// Whether, and for how long, the result of the same mission is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    Off,
    #[serde(untagged)]
    For(HumanDuration),
}

/// Whom an agent consults before each answer.
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
    /// Its failure fails the run; otherwise the failure is reported beside the other advice.
    pub required: bool,
    pub timeout: HumanDuration,
}

choices! {
    pub enum OnQuorumFail {
        Proceed = "proceed",
        Refuse = "refuse",
    }
}

/// An agent that picks who handles the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Router {
    pub mode: RoutingMode,
    pub destinations: Vec<AgentName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<AgentName>,
    /// It may answer itself instead of choosing.
    pub may_answer: bool,
}

choices! {
    pub enum RoutingMode {
        /// One turn with `route_to` as its only tool.
        Pure = "pure",
        /// It keeps its own tools and may look before it chooses.
        Full = "full",
    }
}

/// A link of a chain: who speaks next, if the condition holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Destination {
    pub to: AgentName,
    /// A minijinja expression over `output`, `input` and `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// The declaring agent coordinates; the members discuss in rounds.
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

/// How many members must be ready to conclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quorum {
    All,
    Majority,
    #[serde(untagged)]
    AtLeast(u32),
}

/// Someone the agent may transfer to, and when it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collaboration {
    pub agent: AgentName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// A button under the answer that starts a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Button {
    pub label: String,
    pub agent: AgentName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Send the prompt at once instead of placing it in the composer.
    pub send: bool,
}
