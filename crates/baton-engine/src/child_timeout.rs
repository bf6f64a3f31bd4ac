//! Time limits for child agents.

use baton_core::HumanDuration;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::input::Input;
use crate::outcome::Outcome;
use crate::run;
use crate::scope::Scope;

/// Runs a child with a time limit. On expiry the child is cancelled and awaited, so that its usage is in the ledger and no task
/// of it is left. Time spent before a crash counts.
pub(crate) async fn run_with_timeout(
    child: Scope,
    input: Input,
    limit: HumanDuration,
) -> Result<Outcome, Failure> {
    run_until(child, input, limit, None).await
}

/// Like [`run_with_timeout`], with a deadline that several children share.
pub(crate) async fn run_with_deadline(
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
    let child = child.with_time_limit();
    let scope = child.clone();
    let until =
        Instant::now() + limit.get().saturating_sub(child.run.recorder.prior_durations.at(child.path()));
    let until = latest.map_or(until, |latest| latest.min(until));
    let mut work = run::run(child, input);
    tokio::select! {
        biased;
        result = &mut work => result,
        () = tokio::time::sleep_until(until) => {
            scope.cancel.time_out(limit);
            // The recorded result counts: a child that finishes at the moment of expiry has succeeded.
            work.await.map_err(|failure| scope.or_timeout(failure))
        }
    }
}
