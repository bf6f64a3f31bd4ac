//! Which ways batons take between agents.

use baton_core::store::{HopKind, Pattern};
use baton_core::{AgentName, Usd};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::page::Listed;
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
pub fn document(patterns: &[Pattern]) -> Listed<Way> {
    Listed::whole(patterns.iter().map(Way::from).collect())
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
