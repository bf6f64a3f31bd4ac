//! Chooses the agent for a message that names none, by comparing the message with what the agents' files say about them.
//!
//! The comparison is lexical and deterministic and makes no model call. A whole trigger in the message is strong evidence. A word
//! that few agents use weighs more than one that many use.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::AgentName;
use baton_core::agent::Agent;
use baton_core::learning::request_fingerprint;
use baton_core::store::GENERAL_CLASS;
use serde::{Deserialize, Serialize};

use crate::agents::Agents;
use words::Words;

/// The domain of a message that matches no agent.
pub const GENERAL: &str = GENERAL_CLASS;

/// Bytes of a message that are compared. The request is usually stated at the beginning.
const MAX_BYTES: usize = 16 * 1024;
/// Weight of a word of an agent's name, relative to one of its description.
const NAME_WEIGHT: f64 = 1.5;
/// Weight of a whole trigger, relative to the rarest word.
const TRIGGER_WEIGHT: f64 = 4.0;

/// The domain of a message and the agent to answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    pub agent: AgentName,
    /// The name of the agent that matches best, or [`GENERAL`].
    pub domain: String,
    /// From 0 to 1: the share of the message that matches the agent, lowered by the score of the second best.
    pub confidence: f64,
}

/// Returns the agent that matches the message best, or `None` if no word matches. Hidden agents are left out. Agents that other
/// agents may not call are not, because they can still answer users.
pub fn classify(agents: &Agents, message: &str) -> Option<Classification> {
    let message = Words::of(&message[..message.floor_char_boundary(MAX_BYTES)]);
    let terms = RosterTerms::of(agents);
    let RosterTerms { profiles, rarity, .. } = &*terms;
    let mut ranked: Vec<(f64, &AgentTerms)> =
        profiles.iter().map(|profile| (profile.score(&message, rarity), profile)).collect();
    // Stable sort: ties stay in the order of names.
    ranked.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let (best, profile) = *ranked.first().filter(|(score, _)| *score > 0.0)?;
    let next = ranked.get(1).map_or(0.0, |(score, _)| *score);
    let confidence = profile.coverage(&message, rarity) * best / (best + next);
    let agent = profile.agent.clone();
    Some(Classification { domain: agent.to_string(), agent, confidence: confidence.clamp(0.0, 1.0) })
}

/// Like [`classify`], but chooses `fallback` if nothing matches or the confidence is below `threshold`.
pub fn choose(agents: &Agents, message: &str, fallback: &AgentName, threshold: f64) -> Classification {
    let unknown = || Classification { agent: fallback.clone(), domain: GENERAL.to_owned(), confidence: 0.0 };
    let found = classify(agents, message).unwrap_or_else(unknown);
    if found.confidence < threshold { Classification { agent: fallback.clone(), ..found } } else { found }
}

/// The domain of a message: the name of the agent that matches it best, or [`GENERAL`].
pub fn domain(agents: &Agents, message: &str) -> String {
    classify(agents, message).map_or_else(|| GENERAL.to_owned(), |class| class.domain)
}

/// The fingerprint of the message's significant words, by which a repeated request is recognized.
pub(crate) fn fingerprint(message: &str) -> u64 {
    let words = Words::of(&message[..message.floor_char_boundary(MAX_BYTES)]).significant;
    request_fingerprint(&words.iter().map(String::as_str))
}

/// Whether the message contains one of the triggers.
pub(crate) fn contains_trigger(message: &str, triggers: &[String]) -> bool {
    let message = Words::of(&message[..message.floor_char_boundary(MAX_BYTES)]);
    triggers.iter().any(|trigger| message.contains_sequence(&Words::of(trigger)))
}

/// Whether the message shares a significant word with the agent's display name or triggers.
pub(crate) fn mentions_agent(message: &str, agent: &Agent) -> bool {
    let triggers = agent.accepts_handoff.iter().flat_map(|terms| &terms.triggers);
    let known = triggers.chain([&agent.display_name]).map(|text| Words::of(text).significant);
    let message = Words::of(&message[..message.floor_char_boundary(MAX_BYTES)]).significant;
    known.flatten().any(|word| message.contains(&word))
}

/// The words of the message that the agent's name, description or triggers have too, as the message writes them.
pub(crate) fn shared_words(message: &str, agent: &Agent) -> Vec<String> {
    let message = &message[..message.floor_char_boundary(MAX_BYTES)];
    let known = AgentTerms::of(agent).words;
    let is_known = |word: &&str| !Words::of(word).significant.is_disjoint(&known);
    let mut shared = Vec::new();
    for word in message.split(|c: char| !c.is_alphanumeric()).filter(is_known) {
        if !shared.iter().any(|seen: &String| seen.eq_ignore_ascii_case(word)) {
            shared.push(word.to_owned());
        }
    }
    shared
}

/// The words by which the agents of a roster are matched. Collected once per roster, because messages are compared much more often
/// than agents change.
struct RosterTerms {
    /// The whole roster, which identifies it: agents do not change, and a reload makes new ones.
    agents: Vec<Arc<Agent>>,
    profiles: Vec<AgentTerms>,
    rarity: TermRarity,
}

/// The terms of the roster that was used last. Runs that began before a reload use the roster before it for a while.
static LAST_TERMS: Mutex<Option<Arc<RosterTerms>>> = Mutex::new(None);

impl RosterTerms {
    fn of(agents: &Agents) -> Arc<Self> {
        if let Some(terms) = last_terms().as_ref().filter(|terms| terms.is_of(agents)) {
            return Arc::clone(terms);
        }
        // Without the lock: collecting takes long, and other messages are compared meanwhile.
        let terms = Arc::new(Self::collect(agents));
        *last_terms() = Some(Arc::clone(&terms));
        terms
    }

    fn collect(agents: &Agents) -> Self {
        let shown = agents.values().filter(|agent| !agent.badge.hidden);
        let profiles: Vec<AgentTerms> = shown.map(|agent| AgentTerms::of(agent)).collect();
        Self { agents: agents.values().cloned().collect(), rarity: TermRarity::among(&profiles), profiles }
    }

    fn is_of(&self, agents: &Agents) -> bool {
        self.agents.len() == agents.len()
            && self.agents.iter().zip(agents.values()).all(|(known, agent)| Arc::ptr_eq(known, agent))
    }
}

fn last_terms() -> MutexGuard<'static, Option<Arc<RosterTerms>>> {
    LAST_TERMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The words by which an agent is matched.
struct AgentTerms {
    agent: AgentName,
    named: BTreeSet<String>,
    /// Includes the words of its name.
    words: BTreeSet<String>,
    triggers: Vec<Words>,
}

impl AgentTerms {
    fn of(agent: &Agent) -> Self {
        let named =
            Words::of(&format!("{} {}", agent.name.as_str().replace(['-', '_'], " "), agent.display_name));
        let triggers = agent.accepts_handoff.iter().flat_map(|terms| &terms.triggers);
        let triggers: Vec<Words> = triggers.map(|trigger| Words::of(trigger)).collect();
        let mut words = Words::of(&agent.description).significant;
        words.extend(triggers.iter().flat_map(|trigger| trigger.significant.iter().cloned()));
        words.extend(named.significant.iter().cloned());
        Self { agent: agent.name.clone(), named: named.significant, words, triggers }
    }

    fn score(&self, message: &Words, rarity: &TermRarity) -> f64 {
        let shared = message.significant.intersection(&self.words);
        let words: f64 = shared
            .map(|word| rarity.of(word) * if self.named.contains(word) { NAME_WEIGHT } else { 1.0 })
            .sum();
        words + if self.is_triggered(message) { TRIGGER_WEIGHT * rarity.highest() } else { 0.0 }
    }

    fn is_triggered(&self, message: &Words) -> bool {
        self.triggers.iter().any(|trigger| message.contains_sequence(trigger))
    }

    /// The weighted share of the message that matches the agent. 1 if the message contains a trigger.
    fn coverage(&self, message: &Words, rarity: &TermRarity) -> f64 {
        if self.is_triggered(message) {
            return 1.0;
        }
        let weight = |word: &String| rarity.of(word);
        let all: f64 = message.significant.iter().map(weight).sum();
        let shared: f64 = message.significant.intersection(&self.words).map(weight).sum();
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

/// Weighs words by how few agents use them.
struct TermRarity {
    agents: u32,
    users: BTreeMap<String, u32>,
}

impl TermRarity {
    fn among(profiles: &[AgentTerms]) -> Self {
        let mut users = BTreeMap::new();
        for word in profiles.iter().flat_map(|profile| &profile.words) {
            *users.entry(word.clone()).or_default() += 1;
        }
        Self { agents: u32::try_from(profiles.len()).unwrap_or(u32::MAX), users }
    }

    /// A word that no agent uses weighs as much as one that a single agent uses: it lowers the coverage of every agent.
    fn of(&self, word: &str) -> f64 {
        let users = self.users.get(word).copied().unwrap_or(1);
        (f64::from(self.agents) / f64::from(users)).ln_1p()
    }

    fn highest(&self) -> f64 {
        f64::from(self.agents).ln_1p()
    }
}

#[cfg(test)]
mod tests;
