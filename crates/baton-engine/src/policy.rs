//! What the operator allows agents to do with each other. Agents' files can only ask for less.

use std::time::Duration;

use baton_core::agent::ToolPattern;
use baton_core::{TenantId, choices};

/// Steps that a sub-agent gets when its tools are confined by a list for all sub-agents.
const CONFINED_STEPS: u32 = 20;

/// One set of rules for all runs of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Whether agents may call others as tools.
    pub agent_tool: Switch,
    /// Whether agents may pass the baton to a colleague.
    pub transfers: Switch,
    /// Sub-agents that one call of `delegate` has at work at once.
    pub max_concurrent_delegations: u32,
    /// Children of one session that are at work at once, whatever involved them.
    pub max_live_children: u32,
    /// Turns of a sub-agent.
    pub sub_agent_max_steps: u32,
    /// Tools that sub-agents may use, whatever their files say. Empty: what their files say.
    pub sub_agent_tools: Vec<ToolPattern>,
    pub summarize_results: bool,
    /// In characters.
    pub summary_max_length: u32,
    /// How long a result may be used again when an agent's file says nothing about it.
    pub result_cache: Option<Duration>,
    /// Whether the person's stream says which sub-agents are at work.
    pub stream_sub_agent_events: bool,
    /// Transfers in one run.
    pub max_transfers: u32,
    /// What is passed on of a giver's work, in characters.
    pub context_max_chars: usize,
    /// How many of the last messages somebody sees who gets a thread.
    pub recent_messages: u32,
    /// Threads of one tenant that one agent has at the same time.
    pub max_open_handoffs: u32,
    /// How what others wrote is set apart in a message.
    pub enrich_format: EnrichFormat,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            agent_tool: Switch::On,
            transfers: Switch::On,
            max_concurrent_delegations: 5,
            max_live_children: 16,
            sub_agent_max_steps: 30,
            sub_agent_tools: Vec::new(),
            summarize_results: false,
            summary_max_length: 2000,
            result_cache: None,
            stream_sub_agent_events: true,
            max_transfers: 5,
            context_max_chars: 2000,
            recent_messages: 5,
            max_open_handoffs: 1000,
            enrich_format: EnrichFormat::Fenced,
        }
    }
}

impl Policy {
    /// Turns that a sub-agent gets at most.
    pub(crate) fn sub_agent_steps(&self) -> u32 {
        let confined = if self.sub_agent_tools.is_empty() { u32::MAX } else { CONFINED_STEPS };
        self.sub_agent_max_steps.min(confined)
    }
}

choices! {
    /// How a message shows what was asked and what others wrote about it.
    pub enum EnrichFormat {
        /// Headings between marks.
        Fenced = "fenced",
        /// One tag for each text.
        Tags = "tags",
    }
}

/// Whether something is on: for all, for none, or for a part of the tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
    For { percent: u8, tenants: Vec<String> },
}

impl Switch {
    /// The same tenant always gets the same answer, on every server.
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

/// A number that is the same for the same text on every machine (FNV-1a).
pub(crate) fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
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
