//! An agent as its file defines it: every key of the contract, as a type that says what it means.
//!
//! Values here are resolved: names point to agents that exist, globs and templates have been checked, and
//! defaults are filled in. `baton-agents` makes them from Markdown files.

mod mcp;
mod model;
mod patterns;
mod remote;
mod skill;
mod takeover;
mod tool;
mod workflow;

use indexmap::IndexMap;
use semver::Version;
use serde::Serialize;
use serde_json::Value;

use crate::choices;
use crate::duration::HumanDuration;
use crate::id::AgentName;
use crate::money::Usd;

pub use mcp::McpServer;
pub use model::{Effort, InvalidModel, ModelName, Sampling};
pub use patterns::{
    Advisor, Advisors, Button, Caching, Collaboration, Delegation, Destination, OnQuorumFail, Quorum, Router,
    RoutingMode, Strategy, Synthesis, Team, TerminationMode,
};
pub use remote::{InvalidSecret, Kind, RemoteAuth, RemoteCard, SecretName};
pub use skill::{InvalidSkillName, SkillName, Skills};
pub use takeover::{AcceptsHandoff, EXIT_WORDS, Return, TriggerMode};
pub use tool::{Approvals, BUILT_IN_TOOLS, ENGINE_TOOLS, InvalidToolPattern, ToolAccess, ToolPattern};
pub use workflow::{Slot, State, StateName, Workflow};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agent {
    pub name: AgentName,
    pub display_name: String,
    pub description: String,
    pub version: Version,
    #[serde(flatten)]
    pub kind: Kind,

    /// In order of preference; empty means the configured default.
    pub model: Vec<ModelName>,
    #[serde(flatten)]
    pub sampling: Sampling,
    pub planning_strategy: PlanningStrategy,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,

    pub tools: ToolAccess,
    pub mcp_servers: IndexMap<String, McpServer>,
    pub skills: Skills,
    pub approvals: Approvals,

    /// Whom it may call while it keeps the baton.
    pub agents: Vec<AgentName>,
    pub delegation: Delegation,
    pub advisors: Advisors,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Router>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Team>,
    /// Who gives the final answer after it; the first whose condition holds.
    pub handoff: Vec<Destination>,
    /// Whom it may pass the baton to.
    pub collaborations: Vec<Collaboration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepts_handoff: Option<AcceptsHandoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    pub can_be_orchestrated: bool,

    pub history: History,
    pub sanitize: bool,
    pub limits: Limits,

    pub badge: Badge,
    pub handoffs: Vec<Button>,

    /// The body of the file, a minijinja template.
    pub prompt: String,
}

impl Agent {
    /// An agent whose file says nothing but this; everything else is as if left out.
    pub fn plain(name: AgentName, description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            display_name: name.to_string(),
            description: description.into(),
            version: Version::new(1, 0, 0),
            kind: Kind::Local,
            model: Vec::new(),
            sampling: Sampling::default(),
            planning_strategy: PlanningStrategy::NativeReact,
            output_schema: None,
            tools: ToolAccess::default(),
            mcp_servers: IndexMap::new(),
            skills: Skills::default(),
            approvals: Approvals::default(),
            agents: Vec::new(),
            delegation: Delegation::default(),
            advisors: Advisors::default(),
            router: None,
            team: None,
            handoff: Vec::new(),
            collaborations: Vec::new(),
            accepts_handoff: None,
            workflow: None,
            can_be_orchestrated: true,
            history: History::Conversation,
            sanitize: true,
            limits: Limits::default(),
            badge: Badge { color: Badge::derived_color(&name), icon: None, hidden: false },
            handoffs: Vec::new(),
            prompt: prompt.into(),
            name,
        }
    }

    /// Whether some entry of `handoff` applies whatever the output is.
    pub fn always_hands_off(&self) -> bool {
        self.handoff.iter().any(|destination| destination.when.is_none())
    }
}

choices! {
    /// How a session goes about its task.
    pub enum PlanningStrategy {
        NativeReact = "native_react",
        PlanAndExecute = "plan_and_execute",
        PlanAndReact = "plan_and_react",
        Spar = "spar",
    }
}

/// How much of the conversation a receiver of this agent's baton sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// What the person and agents said, without tool traffic.
    Conversation,
    Full,
    Last(u32),
    Summary,
    Brief,
}

/// What one session of the agent may spend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    pub max_turns: u32,
    pub max_depth: u32,
    pub max_transfers: u32,
    pub timeout: HumanDuration,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    pub max_parallel_tools: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 10,
            max_depth: 3,
            max_transfers: 5,
            timeout: HumanDuration::from_mins(5),
            max_cost_usd: None,
            max_tokens: None,
            max_parallel_tools: 4,
        }
    }
}

/// How people recognise the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Badge {
    pub color: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Not offered to people in pickers, though other agents may use it.
    pub hidden: bool,
}

impl Badge {
    /// The same name always gets the same colour, on every server.
    pub fn derived_color(name: &AgentName) -> String {
        const PALETTE: [&str; 12] = [
            "#2563eb", "#7c3aed", "#db2777", "#dc2626", "#ea580c", "#b45309", "#4d7c0f", "#15803d",
            "#0f766e", "#0e7490", "#4338ca", "#86198f",
        ];
        let sum = name.as_str().bytes().fold(0_usize, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()));
        PALETTE[sum % PALETTE.len()].to_owned()
    }
}
