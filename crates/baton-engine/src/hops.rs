//! Records every way in which one agent involves another: from, to, reason, outcome, latency and cost. The hop of a thread handoff is
//! written by the store when the handoff ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::store::{Hop, HopKind, HopOutcome, RunStatus, Step, short_reason};
use baton_core::{RunId, StoreError, ThreadId, Usd};
use jiff::{SignedDuration, Timestamp};

use crate::bounds::InvocationKind;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::guard::GuardSide;
use crate::input::InputSource;
use crate::journal::Record;
use crate::outcome::Outcome;
use crate::run_state::RunState;
use crate::scope::Scope;

/// The hops of a run whose receivers have not ended, by path.
#[derive(Debug)]
pub(crate) struct OpenHops(Mutex<BTreeMap<Arc<str>, Hop>>);

impl OpenHops {
    /// Those that earlier attempts of the run began.
    pub(crate) fn after(thread: ThreadId, run: RunId, steps: &[Step]) -> Self {
        let open = Hop::unfinished(thread, run, steps).into_iter();
        Self(Mutex::new(open.map(|(path, hop)| (path.into(), hop)).collect()))
    }

    fn insert(&self, path: Arc<str>, hop: Hop) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, hop);
    }

    fn remove(&self, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }

    fn take(&self) -> BTreeMap<Arc<str>, Hop> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The kind of the hop to the scope's agent. `None` if its invocation is not a hop. A receiver with a lease has the thread.
pub(crate) fn kind(scope: &Scope) -> Option<HopKind> {
    let kind = scope.session.bounds.invocation.and_then(InvocationKind::hop)?;
    Some(if scope.session.lease.is_some() { HopKind::Handoff } else { kind })
}

/// Notes that the scope's agent begins, so that its hop is recorded however the run ends.
pub(crate) fn begin(scope: &Scope, sent: &InputSource) {
    if let Some(hop) = new_hop(scope, sent) {
        scope.run.progress.open_hops.insert(scope.shared_path(), hop);
    }
}

/// The record of the hop to `scope`, whose agent has ended. The id is derived from the path, so a hop that is recorded again after a
/// crash has the same id.
pub(crate) fn finish(scope: &Scope, sent: &InputSource, result: &Result<Outcome, Failure>) -> Option<Hop> {
    scope.run.progress.open_hops.remove(scope.path());
    let latency = scope.session.elapsed(&scope.run.recorder.prior_durations);
    Some(Hop {
        query_class: scope.run.query_class().to_owned(),
        request: scope.run.request_fingerprint(),
        outcome: outcome(result),
        latency_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
        cost: scope.run.recorder.ledger.spent(scope.path()).cost.known_part(),
        ..new_hop(scope, sent)?
    })
}

/// The hops whose receivers the end of the run cuts off.
pub(crate) fn unfinished(run: &RunState, status: RunStatus) -> Record {
    let is_failure = matches!(status, RunStatus::Failed | RunStatus::Interrupted);
    let outcome = if is_failure { HopOutcome::Failed } else { HopOutcome::Cancelled };
    let now = Timestamp::now();
    let open = run.progress.open_hops.take().into_iter();
    let hops = open.map(|(path, hop)| {
        let latency = now.duration_since(hop.at);
        Hop {
            query_class: run.query_class().to_owned(),
            request: run.request_fingerprint(),
            outcome,
            latency_ms: u64::try_from(latency.as_millis()).unwrap_or(0),
            cost: run.recorder.ledger.spent(&path).cost.known_part(),
            ..hop
        }
    });
    Record { hops: hops.collect(), ..Record::default() }
}

/// The hop of a thread that `target` did not accept. No handoff is stored for it.
pub(crate) fn declined_handoff(scope: &Scope, target: &Agent, reason: &str) -> Record {
    let hop = Hop {
        hop_id: scope.at("declined").uuid(),
        thread_id: scope.run.caller.thread_id,
        run_id: Some(scope.run.run_id),
        kind: HopKind::Handoff,
        from: scope.name().clone(),
        to: target.name.clone(),
        reason: reason.to_owned(),
        query_class: scope.run.query_class().to_owned(),
        outcome: HopOutcome::Declined,
        latency_ms: 0,
        cost: Usd::from_nanos(0),
        // The same after a crash.
        at: scope.run.request.said_at,
        request: scope.run.request_fingerprint(),
    };
    Record { hops: vec![hop], ..Record::default() }
}

/// `None` for a handoff, whose hop the store writes.
fn new_hop(scope: &Scope, sent: &InputSource) -> Option<Hop> {
    let kind = kind(scope).filter(|kind| *kind != HopKind::Handoff)?;
    Some(Hop {
        hop_id: scope.uuid(),
        thread_id: scope.run.caller.thread_id,
        run_id: Some(scope.run.run_id),
        kind,
        from: sent.by.clone(),
        to: scope.name().clone(),
        reason: short_reason(kind, &sent.reason),
        query_class: String::new(),
        outcome: HopOutcome::Cancelled,
        latency_ms: 0,
        cost: Usd::from_nanos(0),
        at: scope.session.started_at,
        request: 0,
    })
}

fn outcome(result: &Result<Outcome, Failure>) -> HopOutcome {
    match result.as_ref().map_err(Failure::cause) {
        Ok(_) => HopOutcome::Completed,
        Err(Failure::Cancelled) => HopOutcome::Cancelled,
        Err(Failure::HandoffRejected { .. } | Failure::NotAllowed(_)) => HopOutcome::Declined,
        Err(Failure::Guardrail { side, .. }) if *side == GuardSide::Input.word() => HopOutcome::Declined,
        Err(_) => HopOutcome::Failed,
    }
}

/// Settling is a duty of one process at a time.
const SETTLE_DUTY: &str = "settle";
const SETTLE_INTERVAL: Duration = Duration::from_mins(10);
/// Hops that are settled with one write.
const SETTLED_AT_ONCE: u32 = 500;

impl Engine {
    /// Adds the hops that are older than [`SETTLE_INTERVAL`] to the sums of their patterns, unless another process does. Never
    /// returns.
    pub(crate) async fn settle_regularly(self: &Arc<Self>) {
        loop {
            tokio::time::sleep(SETTLE_INTERVAL).await;
            if let Err(error) = self.settle_everywhere().await {
                tracing::warn!(%error, "cannot settle hops");
            }
        }
    }

    async fn settle_everywhere(&self) -> Result<(), StoreError> {
        let (store, owner) = (&self.parts.store, &self.parts.identity.owner);
        if !store.take_duty(SETTLE_DUTY, owner, SETTLE_INTERVAL).await? {
            return Ok(());
        }
        let age = SignedDuration::try_from(SETTLE_INTERVAL).unwrap_or_default();
        let before = Timestamp::now().saturating_sub(age).unwrap_or(Timestamp::MIN);
        for tenant in store.tenants().await? {
            let data = store.tenant(&tenant);
            while data.settle_hops(before, SETTLED_AT_ONCE).await? >= u64::from(SETTLED_AT_ONCE) {}
        }
        Ok(())
    }
}
