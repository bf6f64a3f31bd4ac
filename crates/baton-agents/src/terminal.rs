//! Who owns the answer: the end of the chain, the router's choice, or the agent itself.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::AgentName;
use baton_core::agent::Agent;

use crate::check::walk;
use crate::roster::Draft;

/// For every agent, those whose words can be the answer when it is asked.
#[derive(Debug)]
pub struct Owners(BTreeMap<AgentName, BTreeSet<AgentName>>);

impl Owners {
    /// Walks each agent after everything it leads to, so that each is looked at once. In a cycle, which is an
    /// error of its own, the agents met first have no owners yet and contribute none.
    pub fn of(draft: &Draft) -> Self {
        let mut owners = Self(BTreeMap::new());
        for name in walk::walk(draft).order {
            if let Some(entry) = draft.agent(&name) {
                let set = owners.resolve(&entry.agent);
                owners.0.insert(name, set);
            }
        }
        owners
    }

    pub fn of_agent(&self, name: &AgentName) -> &BTreeSet<AgentName> {
        static NOBODY: BTreeSet<AgentName> = BTreeSet::new();
        self.0.get(name).unwrap_or(&NOBODY)
    }

    fn resolve(&self, agent: &Agent) -> BTreeSet<AgentName> {
        let chain = agent.handoff.iter().flat_map(|destination| self.of_agent(&destination.to));
        let mut owners: BTreeSet<AgentName> = chain.cloned().collect();
        if agent.always_hands_off() {
            return owners;
        }
        match &agent.router {
            None => {
                owners.insert(agent.name.clone());
            }
            Some(router) => {
                let chosen = router.destinations.iter().chain(&router.fallback);
                owners.extend(chosen.flat_map(|name| self.of_agent(name)).cloned());
                if router.may_answer {
                    owners.insert(agent.name.clone());
                }
            }
        }
        owners
    }
}
