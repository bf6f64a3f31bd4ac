//! The ledger row of one message to a remote agent.

use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::remote::{RemoteEnd, RemoteState};
use baton_core::store::StepKind;
use baton_core::usage::{Cost, Usage};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::publish::StreamedReply;
use crate::call_span::CallSpan;
use crate::failure::Failure;
use crate::scope::Scope;

/// The provider of remote agents in the ledger.
pub(crate) const PROVIDER: &str = "a2a";

/// Writes the ledger row of an exchange, even if it is dropped.
pub(super) struct BillGuard<'a> {
    scope: &'a Scope,
    call: &'a CallSpan,
    billed: Usage,
    at: Timestamp,
    started: Instant,
    is_open: bool,
}

impl<'a> BillGuard<'a> {
    pub(super) fn new(scope: &'a Scope, billed: Usage, call: &'a CallSpan) -> Self {
        Self { scope, call, billed, at: Timestamp::now(), started: Instant::now(), is_open: true }
    }

    /// The row of an exchange that a crash interrupts. It costs nothing, because the task goes on and has a row of its own.
    pub(super) fn interrupted_row(&self) -> LedgerRow {
        self.row(Usage::default(), CallOutcome::Cancelled, Some("interrupted".to_owned()))
    }

    /// The row of a finished exchange, and the usage that is billed with it.
    pub(super) fn close(&mut self, end: &RemoteEnd) -> (LedgerRow, Usage) {
        self.is_open = false;
        let outcome = match end.state {
            RemoteState::Failed | RemoteState::Rejected => CallOutcome::Failed,
            RemoteState::Canceled => CallOutcome::Cancelled,
            _ => CallOutcome::Ok,
        };
        let error = (outcome == CallOutcome::Failed).then(|| end.state.word().to_owned());
        let usage = end.usage.map_or_else(unknown, |total| since(total, self.billed));
        let row = self.row(usage, outcome, error);
        self.call.record_usage(&row);
        (row, end.usage.unwrap_or(self.billed))
    }

    /// Records a failed exchange: its row, and the end of its text.
    pub(super) async fn fail<T>(
        &mut self,
        place: &Scope,
        reply: &StreamedReply,
        failure: Failure,
    ) -> Result<T, Failure> {
        self.is_open = false;
        let (outcome, error) = match &failure {
            Failure::Cancelled | Failure::DeadlineReached => (CallOutcome::Cancelled, None),
            other => (CallOutcome::Failed, Some(other.code().to_owned())),
        };
        let row = self.row(unknown(), outcome, error);
        self.call.record_usage(&row);
        let events = reply.withdraw(place).into_iter().collect();
        place.step().begin_soon(StepKind::Turn, &Value::Null, events, vec![row]).await?;
        Err(failure)
    }

    fn row(&self, usage: Usage, outcome: CallOutcome, error: Option<String>) -> LedgerRow {
        LedgerRow {
            run_id: self.scope.run.run_id,
            session_id: self.scope.session.id.clone(),
            agent: self.scope.name().clone(),
            path: self.scope.path().to_owned(),
            call: Called::Model { provider: PROVIDER.to_owned(), model: self.scope.name().to_string() },
            tokens: usage.tokens,
            estimated: usage.estimated,
            cost: usage.cost,
            started_at: self.at,
            latency_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome,
            error,
        }
    }
}

impl Drop for BillGuard<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let row = self.row(unknown(), CallOutcome::Cancelled, None);
            self.call.record_usage(&row);
            self.scope.run.recorder.ledger.write(row);
        }
    }
}

/// The usage of an agent that reports none.
fn unknown() -> Usage {
    Usage { cost: Cost::Unknown(baton_core::Usd::default()), ..Usage::default() }
}

/// What `total` has more than `billed`. Agents report the usage of a whole task, which may have had several exchanges.
fn since(total: Usage, billed: Usage) -> Usage {
    let (now, before) = (total.tokens, billed.tokens);
    let tokens = baton_core::Tokens {
        input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
        cached_tokens: now.cached_tokens.saturating_sub(before.cached_tokens),
        cache_write_tokens: now.cache_write_tokens.saturating_sub(before.cache_write_tokens),
        reasoning_tokens: now.reasoning_tokens.saturating_sub(before.reasoning_tokens),
    };
    let nanos = total.cost.known_part().nanos().saturating_sub(billed.cost.known_part().nanos()).max(0);
    let usd = baton_core::Usd::from_nanos(nanos);
    let cost = if matches!(total.cost, Cost::Known(_)) { Cost::Known(usd) } else { Cost::Unknown(usd) };
    Usage { tokens, cost, estimated: total.estimated }
}
