//! How agents look to people.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::{Agent, AgentName};

/// How one agent is called and drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Face {
    pub display_name: String,
    pub color: Option<String>,
    /// Whether the person can leave it while it holds their thread.
    pub exitable: bool,
}

impl Face {
    fn of(agent: &Agent) -> Self {
        Self {
            display_name: agent.display_name.clone(),
            color: Some(agent.badge.color.clone()),
            exitable: agent.accepts_handoff.is_some(),
        }
    }
}

/// All of them. Made once for each roster and shared by all streams.
#[derive(Debug, Default)]
pub struct Faces {
    faces: BTreeMap<AgentName, Face>,
    id: u64,
}

impl FromIterator<(AgentName, Face)> for Faces {
    fn from_iter<I: IntoIterator<Item = (AgentName, Face)>>(faces: I) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self { faces: faces.into_iter().collect(), id }
    }
}

impl Faces {
    pub fn of<'a>(agents: impl IntoIterator<Item = &'a Agent>) -> Self {
        agents.into_iter().map(|agent| (agent.name.clone(), Face::of(agent))).collect()
    }

    /// Different for different faces, within a process. 0 where there are none.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn get(&self, agent: &AgentName) -> Option<&Face> {
        self.faces.get(agent)
    }

    /// An agent without a name for people is called by its id.
    pub fn name_of<'a>(&'a self, agent: &'a AgentName) -> &'a str {
        self.get(agent).map_or(agent.as_str(), |face| &face.display_name)
    }
}
