//! Helps the small model of a router: names the candidates whose descriptions share words with the request.

use baton_core::AgentName;

use super::destinations::Destinations;
use crate::classifier;
use crate::scope::Scope;

/// The words that each candidate shares with the request, the candidate with most words first.
#[derive(Debug, Clone)]
pub(super) struct RoutingWords(Vec<(AgentName, Vec<String>)>);

impl RoutingWords {
    /// `None` if the router's model needs no help.
    pub(super) fn of(scope: &Scope, destinations: &Destinations) -> Option<Self> {
        let candidates = scope.models().candidates(scope.agent()).ok()?;
        if !candidates.first()?.facts.assists.routing_words {
            return None;
        }
        let request = destinations.input().words();
        let shared = destinations.all().iter().map(|agent| {
            let words = classifier::shared_words(&request, agent);
            (agent.name.clone(), words)
        });
        let mut shared: Vec<(AgentName, Vec<String>)> =
            shared.filter(|(_, words)| !words.is_empty()).collect();
        shared.sort_by_key(|(_, words)| std::cmp::Reverse(words.len()));
        Some(Self(shared))
    }

    /// The hint that follows the request.
    pub(super) fn hint(&self) -> Option<String> {
        let agents = self.0.iter().map(|(agent, words)| format!("{agent}: {}", words.join(", ")));
        let agents = agents.collect::<Vec<_>>().join("; ");
        (!agents.is_empty()).then(|| format!("(Words of this request are in the description of {agents}.)"))
    }

    /// Why the agent was chosen, as far as it is known.
    pub(super) fn reason(&self, agent: &AgentName) -> String {
        match self.0.iter().find(|(known, _)| known == agent) {
            Some((_, words)) => format!("chosen by the model; shared words: {}", words.join(", ")),
            None => "chosen by the model".to_owned(),
        }
    }
}
