//! A child that has only so much time.

use baton_core::HumanDuration;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::run::{self, Input};
use crate::scope::Scope;

/// Runs a child until its time is over. Then it is told to end, and waited for: its answer is late and not used, but all that it
/// spent is on the books, and nothing of it goes on. Time before a crash counts.
pub(crate) async fn within(child: Scope, input: Input, limit: HumanDuration) -> Result<Outcome, Failure> {
    let cancel = child.cancel.clone();
    let scope = child.clone();
    let until = Instant::now() + limit.get().saturating_sub(child.run.spent_before(child.path()));
    let mut work = run::run(child, input);
    tokio::select! {
        biased;
        result = &mut work => result,
        () = tokio::time::sleep_until(until) => {
            cancel.cancel();
            match work.await {
                Err(failure) if failure.ends_the_run(&scope) => Err(failure),
                _ => Err(Failure::Late(limit)),
            }
        }
    }
}
