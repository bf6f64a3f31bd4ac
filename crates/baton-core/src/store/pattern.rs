//! Which ways conversations take between agents, and how well they end.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::choices;
use crate::id::{AgentName, RunId, ThreadId};
use crate::money::Usd;
use crate::store::Pending;

choices! {
    pub enum HopKind {
        /// A model passed the baton to a colleague, for the rest of the run.
        Transfer = "transfer",
        /// A router chose.
        Route = "route",
        /// A file says who comes next.
        Chain = "chain",
        /// The thread itself was handed over.
        Handoff = "handoff",
    }
}

/// The baton went from one agent to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    pub hop_id: Uuid,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub kind: HopKind,
    pub from: AgentName,
    pub to: AgentName,
    pub reason: String,
    pub query_class: String,
    pub success: bool,
    pub latency_ms: u64,
    pub cost: Usd,
    pub at: Timestamp,
}

/// All hops of one way. Outlives the threads it was learnt from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    pub kind: HopKind,
    pub from: AgentName,
    pub to: AgentName,
    pub query_class: String,
    pub count: u64,
    pub successes: u64,
    pub total_latency_ms: u64,
    pub total_cost: Usd,
    /// How often an answer was rated as good in whose run the baton went this way,
    pub liked: u64,
    /// and how often as bad.
    pub disliked: u64,
    pub last_at: Timestamp,
}

/// What can be done with hops.
pub trait Patterns: Send + Sync {
    /// Keeps the hop and counts it. The same hop counts once.
    fn record_hop(&self, hop: Hop) -> Pending<'_, ()>;

    /// Of one thread, in order.
    fn hops(&self, thread: ThreadId) -> Pending<'_, Vec<Hop>>;

    /// The most frequent first.
    fn patterns(&self) -> Pending<'_, Vec<Pattern>>;
}
