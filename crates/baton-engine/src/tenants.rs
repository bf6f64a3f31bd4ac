//! What one tenant has in place of the settings for all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::agent::AgentPattern;
use baton_core::{AgentLibrary, AgentName, TenantId};
use tokio::sync::watch;

use crate::agents::Agents;
use crate::models::ModelRegistry;
use crate::policy::Policy;

/// The settings of one tenant. `None` is as for all.
#[derive(Debug, Clone, Default)]
pub struct TenantSettings {
    /// The agents that the tenant may see and use.
    pub agents: Option<Vec<AgentPattern>>,
    /// The newest roster of a tenant with agents of its own: those for all, and its own.
    pub roster: Option<watch::Receiver<Arc<Agents>>>,
    pub policy: Option<Arc<Policy>>,
    pub models: Option<Arc<ModelRegistry>>,
}

/// The settings of all tenants that have their own.
#[derive(Debug, Default)]
pub struct Tenants {
    own: HashMap<TenantId, TenantSettings>,
    /// The roster of each tenant with `agents`, after the roster of all agents that it was made of.
    rosters: Mutex<HashMap<TenantId, TenantRoster>>,
    /// The agents that people of tenants created.
    created: Option<Arc<dyn AgentLibrary>>,
}

/// All agents, and those of them that a tenant may see and use.
type TenantRoster = (Arc<Agents>, Arc<Agents>);

impl FromIterator<(TenantId, TenantSettings)> for Tenants {
    fn from_iter<T: IntoIterator<Item = (TenantId, TenantSettings)>>(own: T) -> Self {
        Self { own: own.into_iter().collect(), rosters: Mutex::default(), created: None }
    }
}

impl Tenants {
    /// The same with the agents that people of tenants created.
    #[must_use]
    pub fn with_created(self, created: Arc<dyn AgentLibrary>) -> Self {
        Self { created: Some(created), ..self }
    }

    fn is_created(&self, tenant: &TenantId, agent: &AgentName) -> bool {
        self.created.as_ref().is_some_and(|created| created.is_created(tenant, agent))
    }

    fn patterns(&self, tenant: &TenantId) -> Option<&[AgentPattern]> {
        self.own.get(tenant)?.agents.as_deref()
    }

    /// All agents of a tenant before they are restricted: those for all, or its own roster, with those that its people created.
    pub(crate) fn all(&self, tenant: &TenantId, shared: Arc<Agents>) -> Arc<Agents> {
        if let Some(all) = self.created.as_ref().and_then(|created| created.agents(tenant)) {
            return all;
        }
        let own = self.own.get(tenant).and_then(|own| own.roster.as_ref());
        own.map_or(shared, |roster| Arc::clone(&roster.borrow()))
    }

    /// Whether the tenant sees only some of the agents.
    pub fn is_restricted(&self, tenant: &TenantId) -> bool {
        self.patterns(tenant).is_some()
    }

    /// Whether the tenant may see and use an agent. What its people created is its own.
    pub fn permits(&self, tenant: &TenantId, agent: &AgentName) -> bool {
        self.patterns(tenant).is_none_or(|patterns| is_permitted(patterns, agent))
            || self.is_created(tenant, agent)
    }

    /// Whether every tenant may see an agent, so that it is no secret of some of them.
    pub fn is_for_all(&self, agent: &AgentName) -> bool {
        self.own.keys().all(|tenant| self.permits(tenant, agent))
    }

    /// The agents that a tenant may use, without references to others. Made once per roster.
    pub(crate) fn agents(&self, tenant: &TenantId, shared: Arc<Agents>) -> Arc<Agents> {
        let all = self.all(tenant, shared);
        if !self.is_restricted(tenant) {
            return all;
        }
        let mut rosters = self.rosters.lock().unwrap_or_else(PoisonError::into_inner);
        match rosters.get(tenant) {
            Some((of, own)) if Arc::ptr_eq(of, &all) => Arc::clone(own),
            _ => {
                let own = Arc::new(restricted(&all, |agent| self.permits(tenant, agent)));
                rosters.insert(tenant.clone(), (all, Arc::clone(&own)));
                own
            }
        }
    }

    pub(crate) fn policy<'a>(&'a self, tenant: &TenantId, default: &'a Arc<Policy>) -> &'a Arc<Policy> {
        self.own.get(tenant).and_then(|own| own.policy.as_ref()).unwrap_or(default)
    }

    pub(crate) fn models<'a>(
        &'a self,
        tenant: &TenantId,
        default: &'a Arc<ModelRegistry>,
    ) -> &'a Arc<ModelRegistry> {
        self.own.get(tenant).and_then(|own| own.models.as_ref()).unwrap_or(default)
    }
}

fn is_permitted(patterns: &[AgentPattern], agent: &AgentName) -> bool {
    patterns.iter().any(|pattern| pattern.matches(agent))
}

fn restricted(all: &Agents, permits: impl Fn(&AgentName) -> bool) -> Agents {
    let own = all.iter().filter(|(name, _)| permits(name));
    own.map(|(name, agent)| {
        let own = agent.restricted(&permits);
        (name.clone(), own.map_or_else(|| Arc::clone(agent), Arc::new))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::agent::Agent;

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).unwrap()
    }

    #[test]
    fn a_roster_is_restricted_once_and_others_are_shared() {
        let agents = ["support", "billing", "secret"].map(|text| {
            let mut agent = Agent::plain(name(text), "Helps.", "You help.");
            agent.agents = vec![name("secret")];
            (name(text), Arc::new(agent))
        });
        let all: Arc<Agents> = Arc::new(agents.into_iter().collect());
        let [acme, other] = ["acme", "other"].map(|id| TenantId::parse(id).unwrap());
        let patterns = ["support", "bill*"].map(|text| AgentPattern::parse(text).unwrap());
        let own = TenantSettings { agents: Some(patterns.to_vec()), ..TenantSettings::default() };
        let tenants = Tenants::from_iter([(acme.clone(), own)]);
        let own = tenants.agents(&acme, Arc::clone(&all));
        assert_eq!(own.keys().map(AgentName::as_str).collect::<Vec<_>>(), ["billing", "support"]);
        assert!(own.values().all(|agent| agent.agents.is_empty()));
        assert!(Arc::ptr_eq(&own, &tenants.agents(&acme, Arc::clone(&all))));
        assert!(Arc::ptr_eq(&all, &tenants.agents(&other, Arc::clone(&all))));
        assert!(tenants.is_for_all(&name("support")) && !tenants.is_for_all(&name("secret")));
        let reloaded = Arc::new(Agents::clone(&all));
        assert!(!Arc::ptr_eq(&own, &tenants.agents(&acme, reloaded)));
    }
}
