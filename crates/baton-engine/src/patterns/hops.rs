//! Every pass of the baton is remembered: from whom to whom, why, how well and at what price.

use baton_core::store::Hop;

use crate::bounds::Edge;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::run::Sent;
use crate::scope::Scope;

/// How a pass to `scope` ended. The same pass has the same id, also when it ends again after a crash.
pub(crate) fn hop(scope: &Scope, sent: &Sent, result: &Result<Outcome, Failure>) -> Option<Hop> {
    let kind = scope.bounds.edge.and_then(Edge::hop)?;
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
        latency_ms: u64::try_from(scope.worked().as_millis()).unwrap_or(u64::MAX),
        cost: scope.run.ledger.spent(scope.path()).cost.known_part(),
        at: scope.began(),
    })
}
