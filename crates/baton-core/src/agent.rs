//! Agent definitions: every key of an agent file as a type.
//!
//! Values are resolved: names refer to existing agents, globs and templates are valid, and defaults are filled in.
//! `baton-agents` creates them from Markdown files.

mod guardrail;
mod mcp;
mod mode;
mod model;
mod name_pattern;
mod patterns;
mod remote;
mod restrict;
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

pub use guardrail::{Guard, GuardCheck, Guardrails, PATTERN_BYTES, PiiKind};
pub use mcp::{McpServer, StdioAccess};
pub use model::{Effort, InvalidModel, ModelName, Sampling};
pub use name_pattern::{AgentPattern, InvalidAgentPattern};
pub use patterns::{
    Advisor, Advisors, Button, Caching, Collaboration, Delegation, Destination, OnQuorumFail, Quorum, Router,
    RoutingMode, Strategy, Synthesis, Team, TerminationMode,
};
pub use remote::{AgentKind, InvalidSecret, RemoteAuth, RemoteCard, SecretName};
pub use skill::{InvalidSkillName, SkillName, Skills};
pub use takeover::{AcceptsHandoff, EXIT_WORDS, Return, TriggerMode};
pub use tool::{
    ApprovalRules, BUILT_IN_TOOLS, ENGINE_TOOLS, InvalidToolPattern, TOOL_ALIASES, ToolAccess, ToolPattern,
};
pub use workflow::{Slot, StateName, Workflow, WorkflowStep};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agent {
    pub name: AgentName,
    pub display_name: String,
    pub description: String,
    pub version: Version,
    #[serde(flatten)]
    pub kind: AgentKind,

    /// In order of preference; empty means the configured default.
    pub model: Vec<ModelName>,
    #[serde(flatten)]
    pub sampling: Sampling,
    pub planning_strategy: PlanningStrategy,
    #[serde(skip_serializing_if = "is_optional")]
    pub grounding: Grounding,
    /// What the agent gets: the answer of the stage before it in a chain, otherwise its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,

    pub tools: ToolAccess,
    pub mcp_servers: IndexMap<String, McpServer>,
    pub skills: Skills,
    pub approvals: ApprovalRules,
    #[serde(skip_serializing_if = "Guardrails::is_empty")]
    pub guardrails: Guardrails,

    /// Agents it may call as sub-agents, while it keeps the baton.
    pub agents: Vec<AgentName>,
    pub delegation: Delegation,
    pub advisors: Advisors,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Router>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Team>,
    /// Agents that give the final answer instead; the first whose condition holds.
    pub handoff: Vec<Destination>,
    /// Agents it may transfer the baton to.
    pub collaborations: Vec<Collaboration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepts_handoff: Option<AcceptsHandoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    pub can_be_orchestrated: bool,
    /// Whether users see that the agent takes part. `None`: they see the holder of a thread, but no sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<bool>,

    pub history: HistoryAccess,
    pub sanitize: bool,
    pub limits: AgentLimits,

    pub badge: Badge,
    pub handoffs: Vec<Button>,

    /// The body of the file: a minijinja template, unless `literal_prompt`.
    pub prompt: String,
    /// Whether the prompt is used as it is. The body of a file of another program is no template.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub literal_prompt: bool,
}

impl Agent {
    /// An agent with these values and the defaults for all other keys.
    pub fn plain(name: AgentName, description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            display_name: name.to_string(),
            description: description.into(),
            version: Version::new(1, 0, 0),
            kind: AgentKind::Local,
            model: Vec::new(),
            sampling: Sampling::default(),
            planning_strategy: PlanningStrategy::NativeReact,
            grounding: Grounding::Optional,
            input_schema: None,
            output_schema: None,
            tools: ToolAccess::default(),
            mcp_servers: IndexMap::new(),
            skills: Skills::default(),
            approvals: ApprovalRules::default(),
            guardrails: Guardrails::default(),
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
            visible: None,
            history: HistoryAccess::Conversation,
            sanitize: true,
            limits: AgentLimits::default(),
            badge: Badge { color: Badge::derived_color(&name), icon: None, hidden: false },
            handoffs: Vec::new(),
            prompt: prompt.into(),
            literal_prompt: false,
            name,
        }
    }

    /// Whether users never see that the agent takes part.
    pub fn is_hidden(&self) -> bool {
        self.visible == Some(false)
    }

    /// The name that users see. A hidden agent has a neutral one.
    pub fn public_name(&self) -> &str {
        if self.is_hidden() { "Assistant" } else { &self.display_name }
    }

    /// Whether an entry of `handoff` has no condition.
    pub fn always_hands_off(&self) -> bool {
        self.handoff.iter().any(|destination| destination.when.is_none())
    }
}

choices! {
    /// How a session plans its work.
    pub enum PlanningStrategy {
        NativeReact = "native_react",
        PlanAndExecute = "plan_and_execute",
        PlanAndReact = "plan_and_react",
        Spar = "spar",
    }
}

choices! {
    /// Whether the agent may answer without a result of one of its tools.
    pub enum Grounding {
        Optional = "optional",
        Required = "required",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_optional(grounding: &Grounding) -> bool {
    *grounding == Grounding::Optional
}

/// How much of the conversation the receiver of this agent's baton sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryAccess {
    /// Messages of the user and of agents, without tool calls.
    Conversation,
    Full,
    Last(u32),
    Summary,
    Brief,
}

/// Limits of one session of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentLimits {
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

impl Default for AgentLimits {
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

/// How the UI presents the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Badge {
    pub color: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Hidden in pickers; other agents may still use it.
    pub hidden: bool,
}

impl Badge {
    /// Derives a colour from the name. It is the same on every server.
    pub fn derived_color(name: &AgentName) -> String {
        const PALETTE: [&str; 12] = [
            "#2563eb", "#7c3aed", "#db2777", "#dc2626", "#ea580c", "#b45309", "#4d7c0f", "#15803d",
            "#0f766e", "#0e7490", "#4338ca", "#86198f",
        ];
        let sum = name.as_str().bytes().fold(0_usize, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()));
        PALETTE[sum % PALETTE.len()].to_owned()
    }
}
