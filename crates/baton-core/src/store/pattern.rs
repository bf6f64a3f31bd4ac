//! Hops between agents, and statistics over them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::choices;
use crate::id::{AgentName, RunId, ThreadId};
use crate::learning::Experience;
use crate::ledger::LedgerRow;
use crate::money::Usd;
use crate::store::Pending;
use crate::store::work::{Step, StepKind, StepState};

choices! {
    /// How one agent involves another.
    pub enum HopKind {
        /// A model transferred the baton for the rest of the run.
        Transfer = "transfer",
        /// A router chose the agent.
        Route = "route",
        /// The agent file defines the next agent.
        Chain = "chain",
        /// The thread was handed off.
        Handoff = "handoff",
        /// A task was given to the agent, whose result returned to the caller.
        Delegation = "delegation",
        /// The agent advised the caller before it answered.
        Advice = "advice",
        /// A member of a team contributed to a round.
        Team = "team",
    }
}

impl HopKind {
    /// Whether the receiver answers in place of the giver.
    pub fn passes_baton(self) -> bool {
        matches!(self, Self::Transfer | Self::Route | Self::Chain | Self::Handoff)
    }

    /// The kind of hop that begins at this segment of a path, such as `call:research`, with the name of the agent.
    fn of_segment(segment: &str) -> Option<(Self, AgentName)> {
        let (word, agent) = segment.split_once(':')?;
        let kind = match word {
            "call" | "delegate" => Self::Delegation,
            "advisor" => Self::Advice,
            "member" => Self::Team,
            "handoff" => Self::Chain,
            "route" => Self::Route,
            "transfer" => Self::Transfer,
            _ => return None,
        };
        Some((kind, AgentName::parse(agent).ok()?))
    }
}

choices! {
    /// How a hop ended. Only `completed` is a success.
    pub enum HopOutcome {
        Completed = "completed",
        /// It was ended before the receiver was done: the run was cancelled, another agent was faster, or the user left.
        Cancelled = "cancelled",
        Failed = "failed",
        /// The receiver did not accept the task or returned it undone.
        Declined = "declined",
    }
}

/// One agent involved another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    pub hop_id: Uuid,
    pub thread_id: ThreadId,
    /// The run in which it began. `None` for a handoff that began outside of a run.
    pub run_id: Option<RunId>,
    pub kind: HopKind,
    pub from: AgentName,
    pub to: AgentName,
    pub reason: String,
    pub query_class: String,
    pub outcome: HopOutcome,
    pub latency_ms: u64,
    /// The known cost of the ledger rows below the hop.
    pub cost: Usd,
    /// When it began.
    pub at: Timestamp,
    /// See [`request_fingerprint`](crate::learning::request_fingerprint).
    #[serde(skip)]
    pub request: u64,
}

impl Hop {
    /// The hops to sessions of a run that began and did not end, by path, as cancelled. A thread handoff is not among them: its
    /// own row says how it ends.
    pub fn unfinished(thread: ThreadId, run: RunId, steps: &[Step]) -> Vec<(String, Self)> {
        let is_known = |path: &str| steps.iter().any(|step| step.path == path);
        let open =
            steps.iter().filter(|step| step.kind == StepKind::Session && step.state == StepState::Started);
        let hops = open.filter_map(|step| {
            let (above, segment) = step.path.rsplit_once('/')?;
            let (kind, to) = HopKind::of_segment(segment)?;
            if kind == HopKind::Transfer && is_known(&format!("{above}/lease")) {
                return None;
            }
            let from = above.rsplit('/').find_map(|segment| match segment.split_once(':') {
                Some(_) => HopKind::of_segment(segment).map(|(_, agent)| agent),
                None => AgentName::parse(segment).ok(),
            })?;
            let reason = step.data.field::<String>("why").unwrap_or_default();
            let hop = Self {
                hop_id: run.uuid_at(&step.path),
                thread_id: thread,
                run_id: Some(run),
                kind,
                from,
                to,
                reason: short_reason(kind, &reason),
                query_class: GENERAL_CLASS.to_owned(),
                outcome: HopOutcome::Cancelled,
                latency_ms: 0,
                cost: Usd::from_nanos(0),
                at: step.at,
                request: 0,
            };
            Some((step.path.clone(), hop))
        });
        hops.collect()
    }

    /// The same hop, which ended at `now` and below which `rows` were spent, those of its path.
    #[must_use]
    pub fn ended(mut self, path: &str, rows: &[LedgerRow], now: Timestamp) -> Self {
        let below = rows.iter().filter(|row| is_below(&row.path, path));
        let nanos = below.map(|row| row.cost.known_part().nanos()).fold(0, i64::saturating_add);
        self.cost = Usd::from_nanos(nanos);
        self.latency_ms = u64::try_from(now.duration_since(self.at).as_millis()).unwrap_or(0);
        self
    }
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Characters of the reason of a hop that does not pass the baton. The whole task is in the step of the session.
const MAX_TASK_CHARS: usize = 120;

/// The reason as it is stored.
pub fn short_reason(kind: HopKind, reason: &str) -> String {
    match reason.char_indices().nth(MAX_TASK_CHARS) {
        Some((end, _)) if !kind.passes_baton() => format!("{}...", &reason[..end]),
        _ => reason.to_owned(),
    }
}

/// The class of a request that matches no agent.
pub const GENERAL_CLASS: &str = "general";

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
    /// Stores a hop. Idempotent by `hop_id`.
    fn record_hop(&self, hop: Hop) -> Pending<'_, ()>;

    /// Hops of one thread that have ended, in the order in which they began.
    fn hops(&self, thread: ThreadId) -> Pending<'_, Vec<Hop>>;

    /// The newest hops of one thread, `limit` at most, in the order in which they began.
    fn last_hops(&self, thread: ThreadId, limit: u32) -> Pending<'_, Vec<Hop>>;

    /// The sums over all hops of the tenant, most frequent first.
    fn patterns(&self) -> Pending<'_, Vec<Pattern>>;

    /// How well each agent serves each kind of request. Recent hops are included, those of other tenants never.
    fn experience(&self) -> Pending<'_, Vec<Experience>>;

    /// Moves hops that began before this time to the stored sums, the oldest first and about `limit`. Returns how many. The results
    /// of [`Patterns::patterns`] and [`Patterns::experience`] stay the same, and take less to compute.
    fn settle_hops(&self, before: Timestamp, limit: u32) -> Pending<'_, u64>;
}
