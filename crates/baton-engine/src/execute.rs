//! One run, from its claim to its end: a walk over recorded steps.
//!
//! A run that was begun before is walked again from the start. What it has recorded is not done again, so it arrives where it
//! was, and goes on from there.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use baton_core::TenantStore;
use baton_core::agent::Agent;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{Cancel, Claimed, RunRecord, RunStatus};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::audit;
use crate::beginning::beginning;
use crate::ending::ending;
use crate::engine::{Engine, Finished, Request};
use crate::failure::Failure;
use crate::handoff::holding;
use crate::handoff::lease::Lease;
use crate::handoff::way::Begun;
use crate::history::{self, Said};
use crate::journal::{Desk, Hearers, Journal, Record};
use crate::lease;
use crate::listener::Listener;
use crate::outcome::Outcome;
use crate::patterns::delegation::request as delegating;
use crate::run::{self as walking, Input};
use crate::scope::{RunState, Scope};
use crate::task::Task;
use crate::telemetry;
use crate::turn;
use crate::workers::{AcceptedHere, Assignment, Ends, Stays, Waiting};

/// A run that was begun this often and never ended probably ends its processes.
const MOST_ATTEMPTS: u32 = 10;

/// Works on a claimed run until it ends or is taken away. Returns the thread's next run, if the last write has claimed it.
pub(crate) async fn run(
    engine: &Arc<Engine>,
    store: &Arc<dyn TenantStore>,
    assignment: Assignment,
    stays: Stays,
) -> Option<Claimed> {
    let (record, claim) = (assignment.claimed.run.clone(), assignment.claimed.claim.clone());
    let waiting = engine.workers.take(record.run_id);
    let listener = waiting.as_ref().map_or_else(Listener::nobody, |waiting| waiting.listener.clone());
    let span = telemetry::run(store.tenant(), &record);
    let execution = Execution { engine, store, listener: &listener, claims_next: stays == Stays::UntilDone };
    let attending = execution.attend(assignment).instrument(span.clone());
    // On the heap: it is large, and the worker lives longer than one run.
    let attending = AssertUnwindSafe(Box::pin(attending)).catch_unwind();
    // A panic outside of the recursion leaves the run to the next claim; the number of claims is limited.
    let (finished, next) =
        attending.await.unwrap_or_else(|_| (Finished::without_end(Failure::Superseded), None));
    telemetry::run_ended(&span, &finished);
    drop(span);
    if next.is_none() && matches!(finished.failure, Some(Failure::Superseded | Failure::Store(_))) {
        engine.lease.abandon(store, &claim);
    }
    if let Some(waiting) = waiting {
        conclude(engine, store, &record, waiting, finished);
    }
    next
}

/// A claimed run in this process.
struct Execution<'a> {
    engine: &'a Arc<Engine>,
    store: &'a Arc<dyn TenantStore>,
    listener: &'a Listener,
    /// Whether the last write takes the thread's next run.
    claims_next: bool,
}

impl Execution<'_> {
    /// The recursion, its writer and the lease, until one of them ends.
    async fn attend(&self, assignment: Assignment) -> (Finished, Option<Claimed>) {
        let Assignment { claimed, accepted } = assignment;
        let ends = Ends { stop: CancellationToken::new(), cancel: self.listener.cancel().clone() };
        match claimed.run.cancel {
            None => {}
            Some(Cancel::Stop) => ends.stop.cancel(),
            Some(Cancel::Abort) => ends.cancel.cancel(),
        }
        let record = claimed.run.clone();
        let key = (self.store.tenant().clone(), record.thread_id);
        let _under_way = self.engine.workers.under_way(key, record.run_id, ends.clone());
        let (journal, mut scribe) = Journal::open(self.hearers(&record));
        let lease = lease::Lease::of(self.engine, ends.cancel.clone());
        let state = self.state(claimed, journal, ends);
        let desk = Desk {
            store: &**self.store,
            claim: &state.claim,
            ledger: &state.ledger,
            lease: &lease,
            flush: self.engine.parts.flush,
            cancel: &state.cancel,
        };
        if let Some((append, appended)) = accepted.as_ref().and_then(|accepted| accepted.appended.as_ref()) {
            scribe.begun(&state.claim, append, appended).await;
        }
        let failure = tokio::select! {
            biased;
            finished = self.work(&state, record, accepted) => Ok(finished),
            failure = scribe.work(desk) => Err(failure),
            failure = lease.lost() => Err(failure),
        };
        let finished = match failure {
            Ok(finished) => finished,
            Err(failure) => {
                // No task of it is left when another process begins.
                state.at_rest().await;
                Finished { rows: state.ledger.rows(), ..Finished::without_end(failure) }
            }
        };
        (finished, scribe.next())
    }

    fn hearers(&self, record: &RunRecord) -> Hearers {
        let Engine { parts, .. } = &**self.engine;
        Hearers {
            listener: self.listener.clone(),
            publisher: parts.live.publisher(self.store.tenant(), record.thread_id, record.run_id),
            tenant: self.store.tenant().clone(),
            observer: parts.observer.clone(),
        }
    }

    fn state(&self, claimed: Claimed, journal: Journal, ends: Ends) -> Arc<RunState> {
        let (engine, store) = (Arc::clone(self.engine), Arc::clone(self.store));
        Arc::new(RunState::new(engine, store, claimed, journal, ends.stop, ends.cancel))
    }

    async fn work(
        &self,
        state: &Arc<RunState>,
        mut record: RunRecord,
        accepted: Option<Box<AcceptedHere>>,
    ) -> Finished {
        if record.attempts > 1 && self.listener.catch_up(&*state.store, record.run_id).await.is_err() {
            // What others did before this claim comes first, or everything at the end.
            self.listener.leave_behind();
        }
        let mut begun = Begun::default();
        let walking = AssertUnwindSafe(Box::pin(walk(state, &mut record, &mut begun, accepted)));
        let result = walking.catch_unwind().await;
        let result = result.unwrap_or_else(|_| Err(Failure::Broken(record.agent.clone())));
        state.at_rest().await;
        let (status, outcome, failure) = match result {
            Ok(outcome) => (RunStatus::Completed, outcome, None),
            // What was taken away or cannot be written is not ours to end.
            Err(failure @ (Failure::Superseded | Failure::Store(_))) => {
                return Finished { rows: state.ledger.rows(), ..Finished::without_end(failure) };
            }
            Err(failure @ Failure::Cancelled) => (RunStatus::Cancelled, None, Some(failure)),
            Err(failure @ Failure::Interrupted(_)) => (RunStatus::Interrupted, None, Some(failure)),
            Err(failure) => (RunStatus::Failed, None, Some(failure)),
        };
        // Under a handoff the thread goes where the handoff goes.
        let keeps = begun.is_own() && Request::is_answered(&record.request);
        let (outcome, why) = (outcome.as_ref(), failure.as_ref());
        let end = ending(&record, keeps, status, &state.ledger, state.sources(), outcome, why);
        let end = Record { claim_next: self.claims_next && !self.engine.workers.is_draining(), ..end };
        let usage = state.ledger.spent("");
        if let Err(failure) = state.journal.keep(end).await {
            return Finished { usage, rows: state.ledger.rows(), ..Finished::without_end(failure) };
        }
        if let Some(ended) = state.ended_handoff.get() {
            state.engine.start_next(&state.store, *ended).await;
        }
        let (answer, answered_by) =
            outcome.map(|outcome| (outcome.answer.clone(), outcome.agent.clone())).unzip();
        Finished { status, answer, answered_by, failure, usage, rows: state.ledger.rows() }
    }
}

/// Sees to it that whoever waits hears the end: from here, or from whoever goes on with the run.
fn conclude(
    engine: &Arc<Engine>,
    store: &Arc<dyn TenantStore>,
    record: &RunRecord,
    waiting: Waiting,
    finished: Finished,
) {
    let is_given_up = waiting.listener.cancel().is_cancelled();
    match &finished.failure {
        Some(Failure::Superseded) => engine.workers.wait_again(record.run_id, waiting),
        // The store may come back; then somebody, perhaps this process, takes the run up again.
        Some(Failure::Store(error)) if error.is_passing() && !is_given_up => {
            engine.workers.wait_again(record.run_id, waiting);
        }
        Some(Failure::Store(_)) => engine.end_without_record(record.run_id, waiting, finished),
        _ => engine.end(store, record.run_id, waiting, finished),
    }
}

async fn walk(
    state: &Arc<RunState>,
    record: &mut RunRecord,
    begun: &mut Begun,
    accepted: Option<Box<AcceptedHere>>,
) -> Result<Option<Outcome>, Failure> {
    // First of all, whether or not the run can go on: calls that were cut are billed.
    let settled = turn::settle_interrupted(state);
    if !settled.steps.is_empty() {
        state.journal.keep(settled).await?;
    }
    let (request, said, known) = match accepted.map(|accepted| *accepted) {
        Some(AcceptedHere { request, recent, begun, .. }) => {
            let said = history::said(recent, record, request.task.is_said())?;
            (request, said, begun)
        }
        None => {
            let request: Request = serde_json::from_value(record.request.clone())
                .map_err(|error| Failure::Interrupted(format!("its request cannot be read: {error}")))?;
            let said = history::load(&*state.store, record, request.task.is_said()).await?;
            (request, said, None)
        }
    };
    let is_announced = known.is_some();
    let lease;
    (*begun, lease) = match known {
        Some(begun) => (begun, None),
        None => Begun::of(state, record, &request, &walking::words(&said.parts)).await?,
    };
    if let Some(agent) = &begun.agent {
        record.agent = agent.clone();
    }
    let agent = agent(state, record)?;
    let scope = Scope::root(Arc::clone(state), agent, &request.overrides);
    if !is_announced {
        announce(&scope, record, &request, begun).await?;
    }
    answer(scope, request, begun, lease, said).await
}

/// Who answers, unless nobody can.
fn agent(state: &RunState, record: &RunRecord) -> Result<Arc<Agent>, Failure> {
    if record.attempts > MOST_ATTEMPTS {
        let reason = format!("its process ended {MOST_ATTEMPTS} times while it was at work");
        return Err(Failure::Interrupted(reason));
    }
    state
        .agents
        .get(&record.agent)
        .cloned()
        .ok_or_else(|| Failure::Interrupted(format!("there is no agent `{}` any more", record.agent)))
}

/// The walk itself. There is no answer where only results were wanted.
async fn answer(
    scope: Scope,
    request: Request,
    begun: &Begun,
    lease: Option<Lease>,
    said: Said,
) -> Result<Option<Outcome>, Failure> {
    if scope.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    let output_schema = request.overrides.output_schema.map(Arc::new);
    let (history, parts) = (said.history(), Arc::clone(&said.parts));
    let input = Input { history, parts, output_schema, ..Input::default() };
    scope.run.asked(&input, request.entry);
    match request.task {
        Task::Delegate(delegation) => delegating::answer(&scope.asking(), &input, &delegation).await,
        // On the heap: whoever takes it may involve others.
        Task::Answer | Task::Handoff { .. } => {
            Box::pin(holding::take(scope, begun.clone(), lease, &said, input)).await
        }
    }
}

/// Says that the run has begun; after a crash, that it goes on. Nobody waits for that to be kept: it is kept before anything else
/// is, and heard before anything else is heard.
async fn announce(
    scope: &Scope,
    record: &RunRecord,
    request: &Request,
    begun: &Begun,
) -> Result<(), Failure> {
    if scope.interrupted::<Value>()?.is_some() {
        let text =
            format!("the process that worked on this run ended; it goes on (attempt {})", record.attempts);
        tracing::info!(run = %record.run_id, attempt = record.attempts, "a run goes on after a crash");
        let events = vec![scope.event_as(Visibility::Internal, EventKind::Status { text })];
        let audit = vec![audit::of_run(record, "system", "run.resume", "resumed")];
        scope.run.journal.keep_soon(Record { events, audit, ..Record::default() }).await;
        return Ok(());
    }
    scope.run.journal.keep_soon(beginning(record, request, begun)).await;
    Ok(())
}
