//! What a session may spend: turns, time, tokens, money. Checked here and nowhere else.

use std::time::Duration;

use baton_core::agent::Limits;
use baton_core::{Usage, choices};
use tokio::time::Instant;

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
pub struct Budget {
    limits: Limits,
    deadline: Instant,
    turns: u32,
    /// The limit after which only the closing turn is left.
    closing_at: Option<Limit>,
}

impl Budget {
    /// `spent` is the time that was used before the session's process died.
    pub fn new(limits: Limits, spent: Duration) -> Self {
        let deadline = Instant::now() + limits.timeout.get().saturating_sub(spent);
        Self { limits, deadline, turns: 0, closing_at: None }
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    pub fn max_parallel_tools(&self) -> usize {
        self.limits.max_parallel_tools.max(1) as usize
    }

    pub fn closing_at(&self) -> Option<Limit> {
        self.closing_at
    }

    pub fn turns(&self) -> u32 {
        self.turns
    }

    pub fn count_turn(&mut self) {
        self.turns += 1;
    }

    /// The first limit that does not allow another turn.
    pub fn met(&self, spent: Usage) -> Option<Limit> {
        let tokens = self.limits.max_tokens.is_some_and(|most| spent.tokens.total() >= most);
        let cost = self.limits.max_cost_usd.is_some_and(|most| spent.cost.known_part() >= most);
        match () {
            () if Instant::now() >= self.deadline => Some(Limit::Time),
            () if cost => Some(Limit::Cost),
            () if tokens => Some(Limit::Tokens),
            () if self.turns >= self.limits.max_turns => Some(Limit::Turns),
            () => None,
        }
    }

    /// The same budget with time for one closing turn, which comes when the time may be over already.
    #[must_use]
    pub fn closing(&self, limit: Limit) -> Self {
        let quarter = self.limits.timeout.get() / 4;
        let grace = quarter.clamp(Duration::from_secs(5), Duration::from_mins(1));
        Self { deadline: Instant::now() + grace, closing_at: Some(limit), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use baton_core::usage::{Cost, Tokens};
    use baton_core::{HumanDuration, Usd};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_limit_is_met() {
        let limits = Limits {
            max_turns: 2,
            max_tokens: Some(100),
            max_cost_usd: Some(Usd::from_nanos(50)),
            timeout: HumanDuration::from_secs(10),
            ..Limits::default()
        };
        let spent = |tokens, nanos| Usage {
            tokens: Tokens { input_tokens: tokens, ..Tokens::default() },
            cost: Cost::Unknown(Usd::from_nanos(nanos)),
            estimated: false,
        };
        let mut budget = Budget::new(limits, Duration::ZERO);
        assert_eq!(budget.met(spent(99, 49)), None);
        assert_eq!(budget.met(spent(100, 0)), Some(Limit::Tokens));
        assert_eq!(budget.met(spent(0, 50)), Some(Limit::Cost));
        budget.count_turn();
        budget.count_turn();
        assert_eq!(budget.met(spent(0, 0)), Some(Limit::Turns));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(budget.met(spent(0, 0)), Some(Limit::Time));
        assert!(budget.closing(Limit::Time).deadline() > Instant::now());
    }
}
