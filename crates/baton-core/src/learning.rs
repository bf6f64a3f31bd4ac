//! What a tenant has learnt: how well each agent serves each kind of request.
//!
//! Evidence is two decayed counts for each kind of request and agent: how often the agent was chosen, and how often that served the
//! user. [`suggest`] draws from them which agent to try next (Thompson sampling), so agents with little evidence are still tried
//! sometimes, and the suggestion follows success rates that change. No user's runs alone decide what others are told: see [`run_weight`].

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::AgentName;
use crate::money::Usd;
use crate::store::{HopKind, HopOutcome};

/// The time after which evidence counts half.
pub const HALF_LIFE_DAYS: f64 = 7.0;
/// The most tries that count for one kind of request, those of all agents together. Older ones are scaled down, so that a busy tenant
/// forgets as well, also what it knows about agents that it does not choose any more.
pub const MAX_TRIES: f64 = 100.0;
/// Runs of one user on one day that count in full.
const FULL_RUNS: f64 = 5.0;
/// The first run of a user on one day that does not count.
pub const MAX_RUNS_PER_DAY: u32 = 100;
/// Agents whose drawn success differs by less than this are equally good: the cheaper one is suggested.
const EQUAL_SUCCESS: f64 = 0.05;

/// Decayed counts as of `at`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    pub tries: f64,
    /// Tries that served the user.
    pub wins: f64,
    /// The known cost of the tries, in billionths of a dollar.
    pub cost_nanos: f64,
    pub at: Timestamp,
}

impl Tally {
    pub fn new(at: Timestamp) -> Self {
        Self { tries: 0.0, wins: 0.0, cost_nanos: 0.0, at }
    }

    /// The same evidence at a later time. Not changed by an earlier one.
    #[must_use]
    pub fn decayed(self, now: Timestamp) -> Self {
        let days = now.duration_since(self.at).as_secs_f64() / 86_400.0;
        if days <= 0.0 {
            return self;
        }
        Self { at: now, ..self.scaled((-days / HALF_LIFE_DAYS).exp2()) }
    }

    /// The same evidence with another weight.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let Self { tries, wins, cost_nanos, at } = self;
        Self { tries: tries * factor, wins: wins * factor, cost_nanos: cost_nanos * factor, at }
    }

    /// Adds evidence that may be of another time.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let now = self.at.max(other.at);
        let (left, right) = (self.decayed(now), other.decayed(now));
        Self {
            tries: left.tries + right.tries,
            wins: left.wins + right.wins,
            cost_nanos: left.cost_nanos + right.cost_nanos,
            at: now,
        }
    }

    /// The share of tries that served the user. 0 without evidence.
    pub fn success(&self) -> f64 {
        if self.tries > 0.0 { (self.wins / self.tries).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The average known cost of a try, rounded to millionths of a dollar.
    #[allow(clippy::cast_possible_truncation, reason = "a cost in nanos fits")]
    pub fn average_cost(&self) -> Usd {
        let micros = if self.tries > 0.0 { self.cost_nanos / self.tries / 1000.0 } else { 0.0 };
        Usd::from_nanos(micros.round() as i64 * 1000)
    }
}

/// Adds evidence about `agent` to that about all agents for the same kind of request. Has to be called in the order of time: what
/// exceeds [`MAX_TRIES`] is taken from everything before alike.
pub fn add_evidence<K: Ord>(known: &mut BTreeMap<K, Tally>, agent: K, new: Tally) {
    let tally = known.entry(agent).or_insert_with(|| Tally::new(new.at));
    *tally = tally.and(new);
    let now = tally.at;
    let tries: f64 = known.values().map(|tally| tally.decayed(now).tries).sum();
    if tries > MAX_TRIES {
        for tally in known.values_mut() {
            *tally = tally.scaled(MAX_TRIES / tries);
        }
    }
}

/// The weight of the evidence from a user's `nth` run of a day, counted from 1. The first five count in full, those after them less and
/// less, and none from [`MAX_RUNS_PER_DAY`] on: a user with any number of runs weighs less than four users with five.
pub fn run_weight(nth: u32) -> f64 {
    if nth >= MAX_RUNS_PER_DAY { 0.0 } else { (FULL_RUNS / f64::from(nth.max(1))).min(1.0) }
}

/// Evidence about one agent for one kind of request.
#[derive(Debug, Clone, PartialEq)]
pub struct Experience {
    pub query_class: String,
    pub agent: AgentName,
    pub tally: Tally,
}

/// What happened after a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Aftermath {
    pub liked: i64,
    pub disliked: i64,
    /// Whether the user asked again about the same.
    pub is_repeated: bool,
}

/// Whether the hop served the user. `None` if it says nothing about its agent: no choice led there, or a delegation was cancelled,
/// because the caller needed it no longer.
pub fn is_win(kind: HopKind, outcome: HopOutcome, aftermath: Aftermath) -> Option<bool> {
    match (kind, outcome) {
        (HopKind::Chain | HopKind::Advice | HopKind::Team, _)
        | (HopKind::Delegation, HopOutcome::Cancelled) => None,
        (_, HopOutcome::Completed) => Some(aftermath.liked >= aftermath.disliked && !aftermath.is_repeated),
        (_, HopOutcome::Cancelled | HopOutcome::Failed | HopOutcome::Declined) => Some(false),
    }
}

/// Numbers of a fingerprint.
const MINIMA: u32 = 4;
/// How many of them two requests about the same have in common.
const SAME_MINIMA: u32 = 3;

/// A fingerprint of a request's significant words: of four hash functions, the smallest value each, 16 bits. Requests with mostly the
/// same words have mostly the same numbers. 0 for fewer than two words, which are too little to compare.
pub fn request_fingerprint<'a>(words: &(impl Iterator<Item = &'a str> + Clone)) -> u64 {
    if words.clone().nth(1).is_none() {
        return 0;
    }
    let mut fingerprint = 0;
    for seed in 0..MINIMA {
        let smallest = words.clone().map(|word| mixed(word, seed)).min().unwrap_or_default();
        fingerprint = fingerprint << 16 | (smallest & 0xFFFF);
    }
    fingerprint
}

fn mixed(word: &str, seed: u32) -> u64 {
    let mut hash = u64::from(crate::hash::fnv1a_32(word)) | u64::from(seed + 1) << 40;
    // The finalizer of SplitMix64.
    hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ hash >> 31
}

/// Whether two requests are about the same.
pub fn is_same_request(left: u64, right: u64) -> bool {
    let shared = (0..MINIMA).filter(|at| left >> (16 * at) & 0xFFFF == right >> (16 * at) & 0xFFFF).count();
    left != 0 && right != 0 && shared >= SAME_MINIMA as usize
}

/// A suggestion with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// What the request is about.
    pub query_class: String,
    pub agent: AgentName,
    /// Whether another agent has the higher success rate so far: this one is suggested to learn more about it.
    pub is_exploration: bool,
    /// The best first. Agents without evidence are last.
    pub evidence: Vec<Evidence>,
}

/// How well an agent has served a kind of request, as of the suggestion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub agent: AgentName,
    /// From 0 to 1.
    pub success: f64,
    /// Tries, rounded.
    pub of: u64,
    pub average_cost: Usd,
}

impl Evidence {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to MAX_TRIES")]
    pub fn of(agent: &AgentName, tally: &Tally) -> Self {
        let (success, of) = (tally.success(), tally.tries.round() as u64);
        Self { agent: agent.clone(), success, of, average_cost: tally.average_cost() }
    }

    /// `billing 94% of 31`
    pub fn text(&self) -> String {
        match self.of {
            0 => format!("{} not tried yet", self.agent),
            of => format!("{} {:.0}% of {of}", self.agent, self.success * 100.0),
        }
    }
}

/// Tries of all candidates together below which nothing is suggested.
pub const MIN_TRIES: f64 = 5.0;

/// Suggests one of the candidates for a kind of request: draws a success rate for each from its evidence, and takes the highest; among
/// those that are about equal, the one with the lowest average cost. A draw below the expected rate counts as that rate (optimistic
/// Thompson sampling): doubt is a reason to try an agent, never one to avoid the best. Deterministic by `seed`. `None` with fewer than
/// two candidates or too little evidence.
pub fn suggest(
    query_class: &str,
    candidates: &[AgentName],
    known: &[Experience],
    now: Timestamp,
    seed: u64,
) -> Option<Suggestion> {
    let tally = |agent: &AgentName| {
        let found = known.iter().find(|one| one.query_class == query_class && one.agent == *agent);
        found.map_or_else(|| Tally::new(now), |one| one.tally.decayed(now))
    };
    let tallies: Vec<(&AgentName, Tally)> = candidates.iter().map(|agent| (agent, tally(agent))).collect();
    // Rounded as they are shown: five tries are five also a minute later.
    let tries = tallies.iter().map(|(_, tally)| tally.tries).sum::<f64>().round();
    if tallies.len() < 2 || tries < MIN_TRIES {
        return None;
    }
    let mut random = Random(seed);
    let drawn: Vec<f64> = tallies.iter().map(|(_, tally)| random.optimistic_rate(tally)).collect();
    let best = drawn.iter().copied().fold(0.0, f64::max);
    let equal = tallies.iter().zip(&drawn).filter(|(_, drawn)| best - **drawn < EQUAL_SUCCESS);
    // An agent that was never tried has no cost to compare. Rounded costs: equal ones do not differ after they have decayed.
    let cost =
        |tally: &Tally| if tally.tries > 0.0 { tally.average_cost() } else { Usd::from_nanos(i64::MAX) };
    let order = |left: &(&(&AgentName, Tally), &f64), right: &(&(&AgentName, Tally), &f64)| {
        cost(&left.0.1).cmp(&cost(&right.0.1)).then(right.1.total_cmp(left.1))
    };
    let ((agent, chosen), _) = equal.min_by(order)?;
    let mut evidence: Vec<Evidence> =
        tallies.iter().map(|(agent, tally)| Evidence::of(agent, tally)).collect();
    evidence.sort_by(|left, right| {
        (right.of > 0).cmp(&(left.of > 0)).then(right.success.total_cmp(&left.success))
    });
    let most = tallies.iter().map(|(_, tally)| tally.success()).fold(0.0, f64::max);
    Some(Suggestion {
        query_class: query_class.to_owned(),
        agent: (*agent).clone(),
        is_exploration: chosen.success() < most - EQUAL_SUCCESS,
        evidence,
    })
}

/// `SplitMix64`, and the distributions drawn from it.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut hash = self.0;
        hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        hash ^ hash >> 31
    }

    /// From 0 (excluded) to 1.
    #[allow(clippy::cast_precision_loss, reason = "53 bits")]
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// By the method of Marsaglia and Tsang, for shapes of at least 1.
    fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// A success rate that the evidence makes plausible, at least the expected one.
    fn optimistic_rate(&mut self, tally: &Tally) -> f64 {
        let (won, lost) = (1.0 + tally.wins, 1.0 + tally.tries - tally.wins);
        self.beta(won, lost).max(won / (won + lost))
    }

    fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (left, right) = (self.gamma(a.max(1.0)), self.gamma(b.max(1.0)));
        left / (left + right)
    }
}

#[cfg(test)]
mod tests;
