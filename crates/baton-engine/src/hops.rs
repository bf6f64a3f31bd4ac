//! Records every pass of the baton: from, to, reason, success, latency and cost.

use baton_core::store::Hop;

use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::input::InputSource;
use crate::outcome::Outcome;
use crate::scope::Scope;

/// The record of a pass to `scope`, or `None` if its invocation is not a pass. The id is derived from the path, so a pass that is
/// recorded again after a crash has the same id.
pub(crate) fn hop(scope: &Scope, sent: &InputSource, result: &Result<Outcome, Failure>) -> Option<Hop> {
    let kind = scope.session.bounds.invocation.and_then(InvocationKind::hop)?;
    Some(Hop {
        hop_id: scope.uuid(),
        thread_id: scope.run.caller.thread_id,
        run_id: scope.run.run_id,
        kind,
        from: sent.by.clone(),
        to: scope.name().clone(),
        reason: sent.reason.to_string(),
        query_class: scope.run.query_class().to_owned(),
        success: result.is_ok(),
        latency_ms: u64::try_from(scope.session.elapsed(&scope.run.recorder.prior_durations).as_millis())
            .unwrap_or(u64::MAX),
        cost: scope.run.recorder.ledger.spent(scope.path()).cost.known_part(),
        at: scope.session.started_at,
    })
}
