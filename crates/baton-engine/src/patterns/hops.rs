//! Every pass of the baton is remembered: from whom to whom, why, how well and at what price.

use std::time::Duration;

use baton_core::store::Hop;

use crate::again::again;
use crate::bounds::Edge;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::run::Sent;
use crate::scope::Scope;

const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(300);

/// Remembers how a pass to `scope` ended. The same pass is remembered once, also when it ends again after a crash.
pub(crate) async fn remember(
    scope: &Scope,
    sent: &Sent,
    result: &Result<Outcome, Failure>,
) -> Result<(), Failure> {
    let Some(kind) = scope.bounds.edge.and_then(Edge::hop) else { return Ok(()) };
    let hop = Hop {
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
    };
    let store = &scope.run.store;
    Ok(again(TRIES, PAUSE, || store.record_hop(hop.clone())).await?)
}
