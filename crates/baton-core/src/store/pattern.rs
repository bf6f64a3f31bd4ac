//! Hops between agents, and statistics over them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::choices;
use crate::id::{AgentName, RunId, ThreadId};
use crate::money::Usd;
use crate::store::Pending;

choices! {
    pub enum HopKind {
        /// A model transferred the baton for the rest of the run.
        Transfer = "transfer",
        /// A router chose the agent.
        Route = "route",
        /// The agent file defines the next agent.
        Chain = "chain",
        /// The thread was handed off.
        Handoff = "handoff",
    }
}

/// A pass of the baton from one agent to another.
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

/// Sums over all hops with the same kind, agents and query class. Kept when the threads are deleted.
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
    /// Good ratings of runs with such a hop.
    pub liked: u64,
    /// Bad ratings of runs with such a hop.
    pub disliked: u64,
    pub last_at: Timestamp,
}

/// Operations on hops.
pub trait Patterns: Send + Sync {
    /// Stores a hop and adds it to its pattern. Idempotent by `hop_id`.
    fn record_hop(&self, hop: Hop) -> Pending<'_, ()>;

    /// Hops of one thread, in order.
    fn hops(&self, thread: ThreadId) -> Pending<'_, Vec<Hop>>;

    /// Most frequent first.
    fn patterns(&self) -> Pending<'_, Vec<Pattern>>;
}
