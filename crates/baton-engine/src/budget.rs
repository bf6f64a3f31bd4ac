//! What a session may spend: turns, time, tokens, money. What that is, [`crate::bounds`] says.

use std::sync::Arc;
use std::time::Duration;

use baton_core::choices;
use tokio::time::Instant;

use crate::bounds::Bounds;
use crate::scope::RunState;

choices! {
    /// The limit that was met.
    pub enum Limit {
        Turns = "turns",
        Time = "time",
        Tokens = "tokens",
        Cost = "cost",
        /// Somebody asked for the answer now.
        Stopped = "stopped",
        /// The model's own limit for one answer.
        Length = "length",
    }
}

impl Limit {
    /// As a sentence of which it is the reason.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Stopped => "somebody asked to stop".to_owned(),
            limit => format!("the limit of {limit} was met"),
        }
    }
}

/// The limits of one session and when they are met.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    bounds: Arc<Bounds>,
    deadline: Instant,
    max_turns: u32,
    turns: u32,
    /// The limit after which only the closing turn is left.
    closing_at: Option<Limit>,
}

impl Budget {
    /// `max_turns` lowers what the agent may take.
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

    pub(crate) fn closing_at(&self) -> Option<Limit> {
        self.closing_at
    }

    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    pub(crate) fn count_turn(&mut self) {
        self.turns += 1;
    }

    /// The first limit that does not allow another turn: the session's own, or of somebody above it.
    pub(crate) fn met(&self, run: &RunState) -> Option<Limit> {
        if Instant::now() >= self.deadline {
            return Some(Limit::Time);
        }
        let turns = (self.turns >= self.max_turns).then_some(Limit::Turns);
        self.bounds.overspent(run).or(turns)
    }

    /// The same budget with time for one closing turn, which comes when the time may be over already.
    #[must_use]
    pub(crate) fn closing(&self, limit: Limit) -> Self {
        let quarter = self.bounds.limits.timeout.get() / 4;
        let grace = quarter.clamp(Duration::from_secs(5), Duration::from_mins(1));
        Self { deadline: Instant::now() + grace, closing_at: Some(limit), ..self.clone() }
    }
}
