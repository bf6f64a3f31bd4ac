//! The operator's policy for how agents invoke each other. Agents' files can only restrict it.

use std::path::PathBuf;
use std::time::Duration;

use baton_core::agent::ToolPattern;
use baton_core::budget::{BudgetLimit, Budgets};
use baton_core::hash::fnv1a_32;
use baton_core::{TenantId, choices};

/// Turns of a sub-agent if `sub_agent_tools` is set.
const CONFINED_STEPS: u32 = 20;

/// The policy for all runs of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Whether agents may call others as tools.
    pub agent_tool: Switch,
    /// Whether `call_agent` tells models that they can define an agent for one mission and choose its planning strategy.
    pub offer_custom_agents: bool,
    /// Whether agents may pass the baton to another agent.
    pub transfers: Switch,
    /// Whether prompts of routers and main agents get hints from experience.
    pub learning: Switch,
    /// Sub-agents that one call of `delegate` runs at the same time.
    pub max_concurrent_delegations: u32,
    /// Live children of one session, however they were invoked.
    pub max_live_children: u32,
    /// Maximum turns of a sub-agent.
    pub sub_agent_max_steps: u32,
    /// Tools that sub-agents may use if their files allow them too. Empty: no restriction.
    pub sub_agent_tools: Vec<ToolPattern>,
    /// Limits of each sub-agent, besides those of its file and of its callers.
    pub sub_agent_budget: BudgetLimit,
    /// The folder of sub-agents' files: below the workspace of the thread, or below the work folder if threads have no workspaces.
    pub sub_agent_work_dir: Option<PathBuf>,
    pub summarize_results: bool,
    /// Maximum length of a summary, in characters.
    pub summary_max_length: u32,
    /// How long a result may be reused if the agent's file does not say.
    pub result_cache: Option<Duration>,
    /// Whether the user's stream shows when sub-agents start and end.
    pub stream_sub_agent_events: bool,
    /// Maximum transfers in one run.
    pub max_transfers: u32,
    /// Characters of the giver's work that are passed on with the baton.
    pub context_max_chars: usize,
    /// How many of the most recent messages the receiver of a thread sees.
    pub recent_messages: u32,
    /// Threads of one tenant that one agent holds at the same time.
    pub max_open_handoffs: u32,
    /// How a message sets text from other agents apart.
    pub enrich_format: EnrichFormat,
    /// Limits of cost and tokens.
    pub budgets: Budgets,
    /// Bytes of long tool output that are kept for the threads of one tenant.
    pub max_spooled_bytes: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            agent_tool: Switch::On,
            offer_custom_agents: false,
            transfers: Switch::On,
            learning: Switch::Off,
            max_concurrent_delegations: 5,
            max_live_children: 16,
            sub_agent_max_steps: 30,
            sub_agent_tools: Vec::new(),
            sub_agent_budget: BudgetLimit::default(),
            sub_agent_work_dir: None,
            summarize_results: false,
            summary_max_length: 2000,
            result_cache: None,
            stream_sub_agent_events: true,
            max_transfers: 5,
            context_max_chars: 2000,
            recent_messages: 5,
            max_open_handoffs: 1000,
            enrich_format: EnrichFormat::Fenced,
            budgets: Budgets::default(),
            max_spooled_bytes: u64::MAX,
        }
    }
}

impl Policy {
    /// Maximum turns of a sub-agent.
    pub(crate) fn sub_agent_steps(&self) -> u32 {
        let confined = if self.sub_agent_tools.is_empty() { u32::MAX } else { CONFINED_STEPS };
        self.sub_agent_max_steps.min(confined)
    }
}

choices! {
    /// How a message shows the request and what other agents wrote about it.
    pub enum EnrichFormat {
        /// Headings between marks.
        Fenced = "fenced",
        /// One tag for each text.
        Tags = "tags",
    }
}

/// Whether a feature is on: for all tenants, for none or for some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
    For { percent: u8, tenants: Vec<String> },
}

impl Switch {
    /// Whether the feature is on for a tenant. The result is the same on every server.
    pub fn is_on(&self, tenant: &TenantId) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            Self::For { percent, tenants } => {
                let share = fingerprint(tenant.as_str()) % 100;
                tenants.iter().any(|name| name == tenant.as_str()) || share < u32::from(*percent)
            }
        }
    }
}

/// The 32-bit FNV-1a hash of a text. It is the same on every machine.
pub(crate) fn fingerprint(text: &str) -> u32 {
    fnv1a_32(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_stable_and_grows() {
        let tenant = |n: u32| TenantId::parse(&format!("tenant-{n}")).unwrap();
        let part = |percent| Switch::For { percent, tenants: vec!["tenant-0".into()] };
        assert!(part(0).is_on(&tenant(0)) && !part(0).is_on(&tenant(1)));
        let on = |percent| (0..1000).filter(|n| part(percent).is_on(&tenant(*n))).count();
        assert!((200..400).contains(&on(30)), "{}", on(30));
        assert!((0..1000).all(|n| !part(10).is_on(&tenant(n)) || part(30).is_on(&tenant(n))));
        assert_eq!(on(100), 1000);
    }

    /// X22
    #[test]
    fn confined_sub_agents_get_fewer_steps() {
        let mut policy = Policy::default();
        assert_eq!(policy.sub_agent_steps(), 30);
        policy.sub_agent_tools = vec![ToolPattern::parse("read_file").unwrap()];
        assert_eq!(policy.sub_agent_steps(), 20);
    }
}
