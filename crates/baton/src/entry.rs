//! Who answers first, as `[agents]` of the configuration says.

use baton_core::{AgentName, TenantId};
use baton_engine::Agents;
use baton_engine::classifier::{Classification, choose};

use crate::config::{self, Main};

/// The configured choice for one roster. Nothing in it points to an agent that is not there.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryChoice {
    Agent(AgentName),
    /// `main = "auto"`.
    ByMessage {
        fallback: AgentName,
        threshold: f64,
    },
}

/// The configuration names an agent that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("there is no agent `{0}`")]
    Main(AgentName),
    #[error("there is no agent `{0}`, which `fallback` in `[agents]` names")]
    Fallback(AgentName),
    #[error("there is no agent")]
    Anybody,
}

impl Unknown {
    /// The name that no agent has.
    pub fn name(&self) -> Option<&AgentName> {
        match self {
            Self::Main(name) | Self::Fallback(name) => Some(name),
            Self::Anybody => None,
        }
    }
}

impl EntryChoice {
    pub fn of(config: &config::AgentsConfig, agents: &Agents) -> Result<Self, Unknown> {
        if let Some(fallback) = config.fallback.as_ref().filter(|name| !agents.contains_key(*name)) {
            return Err(Unknown::Fallback(fallback.clone()));
        }
        match &config.main {
            Main::Agent(name) if agents.contains_key(name) => Ok(Self::Agent(name.clone())),
            Main::Agent(name) => Err(Unknown::Main(name.clone())),
            Main::Auto => {
                let fallback =
                    config.fallback.clone().or_else(|| fallback(agents)).ok_or(Unknown::Anybody)?;
                Ok(Self::ByMessage { fallback, threshold: config.threshold })
            }
        }
    }

    /// The same for one tenant: its own `main` wins, and a `fallback` that it may not use does not count.
    pub fn for_tenant(
        config: &config::Config,
        tenant: Option<&TenantId>,
        agents: &Agents,
    ) -> Result<Self, Unknown> {
        let Some(own) = tenant.and_then(|tenant| config.tenants.get(tenant)) else {
            return Self::of(&config.agents, agents);
        };
        let main = own.main.clone().map_or_else(|| config.agents.main.clone(), Main::Agent);
        let fallback = config.agents.fallback.clone().filter(|name| agents.contains_key(name));
        Self::of(&config::AgentsConfig { main, fallback, ..config.agents.clone() }, agents)
    }

    /// Whether every message goes to this one.
    pub fn is(&self, agent: &AgentName) -> bool {
        matches!(self, Self::Agent(name) if name == agent)
    }

    /// Who answers this message, and what it seems to be about where that was asked.
    pub fn first(&self, agents: &Agents, message: &str) -> (AgentName, Option<Classification>) {
        match self {
            Self::Agent(name) => (name.clone(), None),
            Self::ByMessage { fallback, threshold } => {
                let found = choose(agents, message, fallback, *threshold);
                let Classification { agent, domain, confidence } = &found;
                tracing::info!(%agent, %domain, confidence, "entry chosen");
                (agent.clone(), Some(found))
            }
        }
    }
}

/// The agent that projects begin with, or else the first that people are offered.
fn fallback(agents: &Agents) -> Option<AgentName> {
    let usual = agents.keys().find(|name| name.as_str() == "assistant");
    let offered = || agents.values().find(|agent| !agent.badge.hidden).map(|agent| &agent.name);
    usual.or_else(offered).or_else(|| agents.keys().next()).cloned()
}
