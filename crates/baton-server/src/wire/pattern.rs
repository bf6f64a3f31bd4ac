//! Which ways batons take between agents.

use std::collections::BTreeMap;

use baton_core::learning::{Evidence, Experience};
use baton_core::store::{HopKind, Pattern};
use baton_core::{AgentName, Usd};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::{moment, words};

/// All passes of the baton from one agent to another for the same kind of question.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Way {
    #[schema(schema_with = words::<HopKind>)]
    pub kind: HopKind,
    #[schema(value_type = String)]
    pub from: AgentName,
    #[schema(value_type = String)]
    pub to: AgentName,
    /// What the questions were about.
    pub query_class: String,
    pub count: u64,
    pub successes: u64,
    /// From 0 to 1.
    pub success_rate: f64,
    pub average_latency_ms: u64,
    /// Of what is known.
    #[schema(value_type = f64)]
    pub average_cost_usd: Usd,
    /// Ratings of answers in whose runs it was taken.
    pub liked: u64,
    pub disliked: u64,
    #[schema(schema_with = moment)]
    pub last_at: Timestamp,
}

/// What was learnt, across all threads. There is one page.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PatternsView {
    /// Most frequent first.
    pub data: Vec<Way>,
    pub next_cursor: Option<String>,
    /// How well agents serve kinds of requests, those with most evidence first.
    pub insights: Vec<Insight>,
}

/// How well agents serve one kind of request. Evidence counts half after a week.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Insight {
    /// What the requests are about: the agent whose description they match best, or `general`.
    pub query_class: String,
    /// The best first.
    pub agents: Vec<ServedView>,
    /// `billing questions: billing 94% of 31, support 62% of 40`
    pub text: String,
}

/// How well an agent serves a kind of request.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ServedView {
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// From 0 to 1. A request is served if it was completed, not rated badly more often than well, and not asked again soon.
    pub success_rate: f64,
    /// How often the agent was chosen, decayed and rounded.
    pub of: u64,
    /// Of what is known.
    #[schema(value_type = f64)]
    pub average_cost_usd: Usd,
}

pub fn document(patterns: &[Pattern], known: &[Experience], now: Timestamp) -> PatternsView {
    let data = patterns.iter().map(Way::from).collect();
    PatternsView { data, next_cursor: None, insights: insights(known, now) }
}

fn insights(known: &[Experience], now: Timestamp) -> Vec<Insight> {
    let mut classes: BTreeMap<&str, Vec<Evidence>> = BTreeMap::new();
    for one in known {
        let evidence = Evidence::of(&one.agent, &one.tally.decayed(now));
        if evidence.of > 0 {
            classes.entry(&one.query_class).or_default().push(evidence);
        }
    }
    let mut insights: Vec<(u64, Insight)> = classes
        .into_iter()
        .map(|(class, mut agents)| {
            agents.sort_by(|left, right| right.success.total_cmp(&left.success));
            (agents.iter().map(|one| one.of).sum(), Insight::of(class, &agents))
        })
        .collect();
    insights.sort_by_key(|(tries, _)| std::cmp::Reverse(*tries));
    insights.into_iter().map(|(_, insight)| insight).collect()
}

impl Insight {
    fn of(class: &str, agents: &[Evidence]) -> Self {
        let known = agents.iter().map(Evidence::text).collect::<Vec<_>>().join(", ");
        let view = |one: &Evidence| ServedView {
            agent: one.agent.clone(),
            success_rate: (one.success * 10_000.0).round() / 10_000.0,
            of: one.of,
            average_cost_usd: one.average_cost,
        };
        let text = format!("{class} questions: {known}");
        Self { query_class: class.to_owned(), agents: agents.iter().map(view).collect(), text }
    }
}

impl From<&Pattern> for Way {
    #[allow(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
    fn from(pattern: &Pattern) -> Self {
        // Counted when it was first seen, so never nothing.
        let count = pattern.count.max(1);
        let average_nanos = pattern.total_cost.nanos() / i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            kind: pattern.kind,
            from: pattern.from.clone(),
            to: pattern.to.clone(),
            query_class: pattern.query_class.clone(),
            count: pattern.count,
            successes: pattern.successes,
            success_rate: pattern.successes as f64 / count as f64,
            average_latency_ms: pattern.total_latency_ms / count,
            average_cost_usd: Usd::from_nanos(average_nanos),
            liked: pattern.liked,
            disliked: pattern.disliked,
            last_at: pattern.last_at,
        }
    }
}
