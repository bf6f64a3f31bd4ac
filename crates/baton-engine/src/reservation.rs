//! Reserves a model call in the budgets that it counts against, before the call is made.
//!
//! The budgets of the run and of its agents are kept in memory, in the run's [`Ledger`](crate::ledger::Ledger). Those of the thread,
//! the user and the tenant are shared with other runs and servers, and kept in the store. The ledger row of the call settles both.

use std::time::Duration;

use baton_core::budget::{Amount, BudgetKey, BudgetPeriod, BudgetScope, BudgetUnit, BudgetWarning};
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{Reservation, ReservationOutcome, StepKind, StepState};
use baton_core::usage::{Price, Tokens};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::journal::Record;
use crate::ledger::{Blocked, LocalReservation};
use crate::models::ModelCandidate;
use crate::retry::{MAX_RETRIES, RETRY_DELAY, retry};
use crate::scope::Scope;
use crate::steps::StepRecorder;

/// The longest reply that is reserved if neither the agent nor the model has a limit. With a shared budget it is the limit too.
const ASSUMED_OUTPUT_TOKENS: u32 = 8_192;
/// The shortest reply for which a call is worth making.
const LEAST_OUTPUT_TOKENS: u32 = 512;
/// How long a reservation counts after the deadline of its turn, in case that its process is gone.
const GRACE: Duration = Duration::from_mins(1);
const MIN_WAIT: Duration = Duration::from_millis(20);
const MAX_WAIT: Duration = Duration::from_millis(500);

/// A call to reserve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallRequest {
    /// Estimated tokens of the whole request.
    pub(crate) input_tokens: u64,
    pub(crate) deadline: Instant,
    /// Whether this is the closing turn of a session.
    pub(crate) is_closing: bool,
}

/// A call that may be made. Holds its reservation within the run.
#[derive(Debug)]
pub(crate) struct CallGrant {
    /// When the call starts. It identifies the call's reservations and its ledger row.
    pub(crate) at: Timestamp,
    /// The longest reply that the shared budgets allow.
    pub(crate) max_output_tokens: Option<u32>,
    _local: Option<LocalReservation>,
}

/// Reserves a call of `candidate`. Waits while calls in progress have reserved what is left of a budget.
///
/// Fails with [`Failure::BudgetExhausted`] if a budget does not allow the call. A closing turn may exceed the run's own budgets, and
/// by this one call what is left of a shared one. Cancel safe: a reservation that is made meanwhile ends with the run.
pub(crate) async fn reserve(
    scope: &Scope,
    candidate: &ModelCandidate,
    request: CallRequest,
) -> Result<CallGrant, Failure> {
    let budgets = &scope.run.policy.budgets;
    let has_local = scope.session.bounds.has_budget();
    if !has_local && !budgets.has_shared() {
        return Ok(CallGrant { at: Timestamp::now(), max_output_tokens: None, _local: None });
    }
    if candidate.facts.price.is_none() && needs_prices(scope) {
        return Err(unpriced(candidate));
    }
    let size = CallSize::of(scope, candidate, request.input_tokens);
    let local = if has_local {
        // Boxed, like what follows: most runs have no budget.
        Box::pin(warn_within_run(scope)).await?;
        Some(Box::pin(reserve_within_run(scope, request, size.most())).await?)
    } else {
        None
    };
    if !budgets.has_shared() {
        return Ok(CallGrant { at: Timestamp::now(), max_output_tokens: None, _local: local });
    }
    let (at, granted) = Box::pin(reserve_shared(scope, request, &size)).await?;
    Ok(CallGrant { at, max_output_tokens: Some(size.output_within(granted)), _local: local })
}

/// Whether a budget limits the cost, which requires models with known prices.
pub(crate) fn needs_prices(scope: &Scope) -> bool {
    scope.session.bounds.needs_prices() || scope.run.policy.budgets.limits_shared_cost()
}

/// The failure of a call whose price is not known, although a budget limits the cost.
pub(crate) fn unpriced(candidate: &ModelCandidate) -> Failure {
    Failure::Unpriced(format!("{}/{}", candidate.provider.provider(), candidate.model))
}

/// What a call can take.
struct CallSize {
    input_tokens: u64,
    max_output_tokens: u32,
    /// Free for models without a known price: only tokens are limited then.
    price: Price,
}

impl CallSize {
    fn of(scope: &Scope, candidate: &ModelCandidate, input_tokens: u64) -> Self {
        let own = scope.agent().sampling.max_output_tokens.or(candidate.facts.max_output_tokens);
        let price = candidate.facts.price.unwrap_or(Price::FREE);
        // All of the input may be written to the provider's cache.
        let price = Price { input: price.input.max(price.cache_write), ..price };
        Self { input_tokens, max_output_tokens: own.unwrap_or(ASSUMED_OUTPUT_TOKENS), price }
    }

    fn with_output(&self, output_tokens: u32) -> Amount {
        let tokens = Tokens {
            input_tokens: self.input_tokens,
            output_tokens: output_tokens.into(),
            ..Tokens::default()
        };
        Amount { nanos: self.price.of(tokens).nanos(), tokens: tokens.total() }
    }

    fn most(&self) -> Amount {
        self.with_output(self.max_output_tokens)
    }

    fn least(&self) -> Amount {
        self.with_output(self.max_output_tokens.min(LEAST_OUTPUT_TOKENS))
    }

    /// The longest reply that `granted` pays for.
    fn output_within(&self, granted: Amount) -> u32 {
        let input = self.with_output(0);
        let by_tokens = granted.tokens.saturating_sub(input.tokens);
        let nanos = i128::from(granted.nanos.saturating_sub(input.nanos).max(0));
        let by_cost = match i128::from(self.price.output.nanos()) {
            price if price > 0 => u64::try_from(nanos * 1_000_000 / price).unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        let most = u32::try_from(by_tokens.min(by_cost)).unwrap_or(u32::MAX);
        most.clamp(1, self.max_output_tokens.max(1))
    }
}

async fn reserve_within_run(
    scope: &Scope,
    request: CallRequest,
    most: Amount,
) -> Result<LocalReservation, Failure> {
    let (ledger, bounds) = (&scope.run.recorder.ledger, &scope.session.bounds);
    let limits = bounds.budgets();
    loop {
        // Registered before the check, so that no release is missed.
        let mut freed = Box::pin(ledger.freed().notified());
        freed.as_mut().enable();
        match ledger.reserve(scope.path(), most, &limits, request.is_closing) {
            Ok(reservation) => return Ok(reservation),
            Err(Blocked::Exhausted(unit)) => {
                let message = format!("the budget of the run is used up ({unit})");
                return Err(Failure::BudgetExhausted { message, limit: unit.into() });
            }
            Err(Blocked::Busy) => wait(scope, freed, request.deadline).await?,
        }
    }
}

async fn reserve_shared(
    scope: &Scope,
    request: CallRequest,
    size: &CallSize,
) -> Result<(Timestamp, Amount), Failure> {
    let run = &scope.run;
    let mut pause = MIN_WAIT;
    loop {
        let at = Timestamp::now();
        let accounts = run.policy.budgets.accounts(Some(run.caller.thread_id), Some(&run.caller.user), at);
        let reservation = Reservation {
            thread_id: run.caller.thread_id,
            run_id: run.run_id,
            path: scope.path().to_owned(),
            started_at: at,
            wanted: size.most(),
            least: size.least(),
            is_closing: request.is_closing,
            ttl: request.deadline.saturating_duration_since(Instant::now()) + GRACE,
            recount: run.recounted.missing(&run.caller.tenant, &accounts),
            accounts,
        };
        let reserved = retry(MAX_RETRIES, RETRY_DELAY, || run.store.reserve(reservation.clone())).await?;
        run.recounted.add(&run.caller.tenant, reservation.recount.clone());
        for warning in reserved.warnings {
            scope.emit(Visibility::User, EventKind::Budget(warning)).await;
        }
        match reserved.verdict {
            ReservationOutcome::Granted(amount) => return Ok((at, amount)),
            ReservationOutcome::Exhausted { key, unit } => return Err(exhausted(&key, unit)),
            ReservationOutcome::Busy => wait_until_free(scope, request, reservation, &mut pause).await?,
        }
    }
}

/// Returns when the calls before this one have left enough of the budget for it, or have used it up. Reads only: a write for each
/// attempt would slow down the calls that are waited for.
async fn wait_until_free(
    scope: &Scope,
    request: CallRequest,
    reservation: Reservation,
    pause: &mut Duration,
) -> Result<(), Failure> {
    loop {
        wait(scope, tokio::time::sleep(*pause), request.deadline).await?;
        if retry(MAX_RETRIES, RETRY_DELAY, || scope.run.store.is_free(reservation.clone())).await? {
            return Ok(());
        }
        *pause = (*pause * 2).min(MAX_WAIT);
    }
}

fn exhausted(key: &BudgetKey, unit: BudgetUnit) -> Failure {
    let next = match key.ends_at() {
        Some(at) if key.period != BudgetPeriod::Total => format!("it starts again at {at}"),
        _ => "start a new conversation".to_owned(),
    };
    let message = format!("{key} is used up ({unit}); {next}");
    Failure::BudgetExhausted { message, limit: unit.into() }
}

async fn wait(scope: &Scope, until: impl Future<Output = ()>, deadline: Instant) -> Result<(), Failure> {
    tokio::select! {
        () = until => Ok(()),
        () = tokio::time::sleep_until(deadline) => Err(Failure::DeadlineReached),
        () = scope.cancel.cancelled() => Err(Failure::Cancelled),
    }
}

/// Publishes a warning for each budget of the run and its agents that is nearly used up, once.
async fn warn_within_run(scope: &Scope) -> Result<(), Failure> {
    let (run, bounds) = (&scope.run, &scope.session.bounds);
    for near in bounds.nearly_exhausted(&run.recorder.ledger) {
        let path = format!("{}/budget", near.path);
        if run.recorder.steps.contains_key(&path) {
            continue;
        }
        let kind = if near.is_root { BudgetScope::Run } else { BudgetScope::Agent };
        let warning = BudgetWarning::within_run(kind, near.unit, near.percent);
        // Once, also after a crash.
        let note = StepRecorder::new(run, &scope.session.id, &path);
        let steps = vec![note.build(StepKind::Note, StepState::Finished, &Value::Null)?];
        let events = vec![scope.event(Visibility::User, EventKind::Budget(warning))];
        run.recorder.journal.commit_soon(Record { steps, events, ..Record::default() }).await;
    }
    Ok(())
}
