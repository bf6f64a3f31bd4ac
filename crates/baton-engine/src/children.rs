//! A child that has only so much time.

use std::sync::{Arc, OnceLock};

use baton_core::HumanDuration;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::run::{self, Input};
use crate::scope::Scope;

/// Whether the time of a place is over, or of a place above it: then that is why it was told to end, and is recorded so.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    late: OnceLock<HumanDuration>,
    above: Option<Arc<Self>>,
}

impl Clock {
    fn below(above: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { late: OnceLock::new(), above: Some(Arc::clone(above)) })
    }

    fn late(&self) -> Option<HumanDuration> {
        let mut line = std::iter::successors(Some(self), |clock| clock.above.as_deref());
        line.find_map(|clock| clock.late.get().copied())
    }
}

/// Runs a child until its time is over. Then it is told to end, and waited for: all that it spent is on the books, and nothing of
/// it goes on. Time before a crash counts.
pub(crate) async fn within(child: Scope, input: Input, limit: HumanDuration) -> Result<Outcome, Failure> {
    run_until(child, input, limit, None).await
}

/// The same for one of several that have to end together at the latest.
pub(crate) async fn within_both(
    child: Scope,
    input: Input,
    limit: HumanDuration,
    latest: Instant,
) -> Result<Outcome, Failure> {
    run_until(child, input, limit, Some(latest)).await
}

async fn run_until(
    child: Scope,
    input: Input,
    limit: HumanDuration,
    latest: Option<Instant>,
) -> Result<Outcome, Failure> {
    let child = child.timed();
    let scope = child.clone();
    let until = Instant::now() + limit.get().saturating_sub(child.run.spent_before(child.path()));
    let until = latest.map_or(until, |latest| latest.min(until));
    let mut work = run::run(child, input);
    tokio::select! {
        biased;
        result = &mut work => result,
        () = tokio::time::sleep_until(until) => {
            scope.run_out(limit);
            // What is recorded is what counts: one that came to its end at this very moment has come to it.
            work.await.map_err(|failure| failure.or_late(&scope))
        }
    }
}

impl Scope {
    /// The same place with a token and a clock of its own.
    #[must_use]
    pub(crate) fn timed(&self) -> Self {
        let mut timed = self.cancellable();
        timed.clock = Clock::below(&self.clock);
        timed
    }

    /// Its time is over, after so much of it: everything here and below is told to end.
    pub(crate) fn run_out(&self, limit: HumanDuration) {
        let _ = self.clock.late.set(limit);
        self.cancel.cancel();
    }
}

impl Failure {
    /// Who was told to end because its time was over was not cancelled by anybody.
    pub(crate) fn or_late(self, scope: &Scope) -> Self {
        match (self, scope.clock.late()) {
            (Self::Cancelled, Some(limit)) if !scope.run.cancel.is_cancelled() => Self::Late(limit),
            (failure, _) => failure,
        }
    }
}
