//! Who owns the answer: the end of the chain, the router's choice, or the agent itself.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::AgentName;
use baton_core::agent::Agent;

use crate::check::walk;
use crate::roster::RosterDraft;

/// As many owners of one answer are kept by name. A chain of thousands would cost the square of its length, and
/// nobody reads further.
const MAX_NAMED: usize = 16;

/// For every agent, those whose words can be the answer when it is asked.
#[derive(Debug)]
pub struct Owners(BTreeMap<AgentName, AnswerOwners>);

/// Whose words an answer can be.
#[derive(Debug, Clone, Default)]
pub struct AnswerOwners {
    /// The alphabetically first ones.
    pub named: BTreeSet<AgentName>,
    /// Whether there are others.
    pub others: bool,
}

impl AnswerOwners {
    fn add(&mut self, name: &AgentName) {
        self.named.insert(name.clone());
        if self.named.len() > MAX_NAMED {
            self.named.pop_last();
            self.others = true;
        }
    }

    fn extend(&mut self, other: &Self) {
        other.named.iter().for_each(|name| self.add(name));
        self.others |= other.others;
    }
}

impl Owners {
    /// Walks each agent after everything it leads to, so that each is looked at once. In a cycle, which is an
    /// error of its own, the agents met first have no owners yet and contribute none.
    pub fn of(draft: &RosterDraft) -> Self {
        let mut owners = Self(BTreeMap::new());
        for name in walk::walk(draft).order {
            if let Some(entry) = draft.agent(&name) {
                let answer = owners.resolve(&entry.agent);
                owners.0.insert(name, answer);
            }
        }
        owners
    }

    pub fn of_agent(&self, name: &AgentName) -> &AnswerOwners {
        static NOBODY: AnswerOwners = AnswerOwners { named: BTreeSet::new(), others: false };
        self.0.get(name).unwrap_or(&NOBODY)
    }

    fn resolve(&self, agent: &Agent) -> AnswerOwners {
        let mut answer = AnswerOwners::default();
        for destination in &agent.handoff {
            answer.extend(self.of_agent(&destination.to));
        }
        if agent.always_hands_off() {
            return answer;
        }
        match &agent.router {
            None => answer.add(&agent.name),
            Some(router) => {
                for name in router.destinations.iter().chain(&router.fallback) {
                    answer.extend(self.of_agent(name));
                }
                if router.may_answer {
                    answer.add(&agent.name);
                }
            }
        }
        answer
    }
}
