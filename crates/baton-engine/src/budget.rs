//! The budget of a session: turns, time, tokens and cost. The limits come from [`crate::bounds`].

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::bounds::{Bounds, LimitKind};
use crate::ledger::Ledger;

/// The limits of one session and the number of turns it has taken.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    bounds: Arc<Bounds>,
    deadline: Instant,
    max_turns: u32,
    turns: u32,
    /// The limit that was met. Only the closing turn is left.
    closing_at: Option<LimitKind>,
}

impl Budget {
    /// `max_turns` lowers the agent's own limit.
    pub(crate) fn new(bounds: &Arc<Bounds>, max_turns: Option<u32>) -> Self {
        Self {
            bounds: Arc::clone(bounds),
            deadline: bounds.deadline,
            max_turns: bounds.limits.max_turns.min(max_turns.unwrap_or(u32::MAX)),
            turns: 0,
            closing_at: None,
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn max_parallel_tools(&self) -> usize {
        self.bounds.limits.max_parallel_tools.max(1) as usize
    }

    pub(crate) fn closing_at(&self) -> Option<LimitKind> {
        self.closing_at
    }

    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    pub(crate) fn count_turn(&mut self) {
        self.turns += 1;
    }

    /// The first limit that forbids another turn: the session's own, or a token or cost limit of an ancestor.
    pub(crate) fn limit_met(&self, ledger: &Ledger) -> Option<LimitKind> {
        if Instant::now() >= self.deadline {
            return Some(LimitKind::Time);
        }
        let turns = (self.turns >= self.max_turns).then_some(LimitKind::Turns);
        self.bounds.exceeded_limit(ledger).or(turns)
    }

    /// The same budget with time for one closing turn: a quarter of the agent's timeout, at least 5 s and at most 60 s from now.
    #[must_use]
    pub(crate) fn for_closing_turn(&self, limit: LimitKind) -> Self {
        let quarter = self.bounds.limits.timeout.get() / 4;
        let grace = quarter.clamp(Duration::from_secs(5), Duration::from_mins(1));
        Self { deadline: Instant::now() + grace, closing_at: Some(limit), ..self.clone() }
    }
}
