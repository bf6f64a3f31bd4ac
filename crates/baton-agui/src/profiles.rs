//! Display names and colors of agents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::{Agent, AgentName};

/// How a client displays an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfile {
    pub display_name: String,
    pub color: Option<String>,
    /// Whether the user can leave the agent while it holds the thread.
    pub exitable: bool,
    /// The [mode](Agent::mode) of a thread that the agent holds. `None` if it cannot hold one, or if users do not see it.
    pub mode: Option<String>,
}

impl AgentProfile {
    fn of(agent: &Agent) -> Self {
        let exitable = agent.accepts_handoff.is_some() && !agent.is_hidden();
        Self {
            display_name: agent.public_name().to_owned(),
            color: (!agent.is_hidden()).then(|| agent.badge.color.clone()),
            exitable,
            mode: exitable.then(|| agent.mode()),
        }
    }
}

/// The profiles of all agents. Built once for each roster and shared by all streams.
#[derive(Debug, Default)]
pub struct AgentProfiles {
    profiles: BTreeMap<AgentName, AgentProfile>,
    id: u64,
}

impl FromIterator<(AgentName, AgentProfile)> for AgentProfiles {
    fn from_iter<I: IntoIterator<Item = (AgentName, AgentProfile)>>(profiles: I) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self { profiles: profiles.into_iter().collect(), id }
    }
}

impl AgentProfiles {
    pub fn of<'a>(agents: impl IntoIterator<Item = &'a Agent>) -> Self {
        agents.into_iter().map(|agent| (agent.name.clone(), AgentProfile::of(agent))).collect()
    }

    /// Distinguishes two instances within a process. 0 for the empty default.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn get(&self, agent: &AgentName) -> Option<&AgentProfile> {
        self.profiles.get(agent)
    }

    /// The display name, or the id of an agent without a profile.
    pub fn name_of<'a>(&'a self, agent: &'a AgentName) -> &'a str {
        self.get(agent).map_or(agent.as_str(), |face| &face.display_name)
    }
}
