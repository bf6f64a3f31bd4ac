//! Who answers first when nobody was named: the message is compared with what agents say about themselves.
//!
//! Words are compared, nothing is guessed: a whole trigger in the message is strong evidence, a word that few agents use
//! weighs more than one that many do. The same message and roster always give the same answer, and it costs no call.

mod words;

use std::collections::{BTreeMap, BTreeSet};

use baton_core::AgentName;
use baton_core::agent::Agent;
use serde::{Deserialize, Serialize};

use crate::engine::Agents;
use words::Words;

/// What a message is about when no agent's words are in it.
pub const GENERAL: &str = "general";

/// How much of a message is looked at, in bytes. People say at the beginning what they want.
const LOOKED_AT: usize = 16 * 1024;
/// What a word of an agent's name weighs, against one of its description.
const NAMED: f64 = 1.5;
/// What a whole trigger weighs, against its words one by one.
const TRIGGER: f64 = 4.0;

/// What a message seems to be about, and who should answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    pub agent: AgentName,
    /// The name of the agent whose subject it is, or [`GENERAL`].
    pub domain: String,
    /// From 0 to 1: how much of the message speaks for the agent, and how little for the next one.
    pub confidence: f64,
}

/// The agent whose subject the message is. `None` when no word of it points to any. Hidden agents are not offered; one
/// that others may not call can still answer people.
pub fn classify(agents: &Agents, message: &str) -> Option<Classification> {
    let message = Words::of(&message[..message.floor_char_boundary(LOOKED_AT)]);
    let profiles: Vec<Profile> =
        agents.values().filter(|agent| !agent.badge.hidden).map(|agent| Profile::of(agent)).collect();
    let rarity = Rarity::among(&profiles);
    let mut ranked: Vec<(f64, &Profile)> =
        profiles.iter().map(|profile| (profile.score(&message, &rarity), profile)).collect();
    // Stable: those with the same score stay in the order of their names.
    ranked.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let (best, profile) = *ranked.first().filter(|(score, _)| *score > 0.0)?;
    let next = ranked.get(1).map_or(0.0, |(score, _)| *score);
    let confidence = profile.coverage(&message, &rarity) * best / (best + next);
    let agent = profile.agent.clone();
    Some(Classification { domain: agent.to_string(), agent, confidence: confidence.clamp(0.0, 1.0) })
}

/// The same, with somebody who answers whatever cannot be told.
pub fn choose(agents: &Agents, message: &str, fallback: &AgentName, threshold: f64) -> Classification {
    let unknown = || Classification { agent: fallback.clone(), domain: GENERAL.to_owned(), confidence: 0.0 };
    let found = classify(agents, message).unwrap_or_else(unknown);
    if found.confidence < threshold { Classification { agent: fallback.clone(), ..found } } else { found }
}

/// Whether one of the triggers stands in the message.
pub(crate) fn holds_any(message: &str, triggers: &[String]) -> bool {
    let message = Words::of(&message[..message.floor_char_boundary(LOOKED_AT)]);
    triggers.iter().any(|trigger| message.holds(&Words::of(trigger)))
}

/// Whether the message has a word in common with what people call an agent, or say when they want it.
pub(crate) fn speaks_of(message: &str, agent: &Agent) -> bool {
    let triggers = agent.accepts_handoff.iter().flat_map(|terms| &terms.triggers);
    let known = triggers.chain([&agent.display_name]).map(|text| Words::of(text).telling);
    let message = Words::of(&message[..message.floor_char_boundary(LOOKED_AT)]).telling;
    known.flatten().any(|word| message.contains(&word))
}

/// What an agent says about itself.
struct Profile {
    agent: AgentName,
    named: BTreeSet<String>,
    /// Also those of its name.
    words: BTreeSet<String>,
    triggers: Vec<Words>,
}

impl Profile {
    fn of(agent: &Agent) -> Self {
        let named =
            Words::of(&format!("{} {}", agent.name.as_str().replace(['-', '_'], " "), agent.display_name));
        let triggers = agent.accepts_handoff.iter().flat_map(|terms| &terms.triggers);
        let triggers: Vec<Words> = triggers.map(|trigger| Words::of(trigger)).collect();
        let mut words = Words::of(&agent.description).telling;
        words.extend(triggers.iter().flat_map(|trigger| trigger.telling.iter().cloned()));
        words.extend(named.telling.iter().cloned());
        Self { agent: agent.name.clone(), named: named.telling, words, triggers }
    }

    fn score(&self, message: &Words, rarity: &Rarity) -> f64 {
        let shared = message.telling.intersection(&self.words);
        let words: f64 =
            shared.map(|word| rarity.of(word) * if self.named.contains(word) { NAMED } else { 1.0 }).sum();
        words + if self.is_triggered(message) { TRIGGER * rarity.highest() } else { 0.0 }
    }

    fn is_triggered(&self, message: &Words) -> bool {
        self.triggers.iter().any(|trigger| message.holds(trigger))
    }

    /// The part of the message that points to the agent. A whole trigger says it all.
    fn coverage(&self, message: &Words, rarity: &Rarity) -> f64 {
        if self.is_triggered(message) {
            return 1.0;
        }
        let weight = |word: &String| rarity.of(word);
        let all: f64 = message.telling.iter().map(weight).sum();
        let shared: f64 = message.telling.intersection(&self.words).map(weight).sum();
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

/// How much a word tells agents apart.
struct Rarity {
    agents: u32,
    users: BTreeMap<String, u32>,
}

impl Rarity {
    fn among(profiles: &[Profile]) -> Self {
        let mut users = BTreeMap::new();
        for word in profiles.iter().flat_map(|profile| &profile.words) {
            *users.entry(word.clone()).or_default() += 1;
        }
        Self { agents: u32::try_from(profiles.len()).unwrap_or(u32::MAX), users }
    }

    /// A word that nobody uses points away from everybody.
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
