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
use baton_core::store::{Cancel, Claimed, RunRecord, RunStatus, StepKind, StepState};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::audit;
use crate::ending::{ending, session_change};
use crate::engine::{Engine, Finished, Request};
use crate::entry::Classification;
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
use crate::workers::{Ends, Waiting};

/// A run that was begun this often and never ended probably ends its processes.
const MOST_ATTEMPTS: u32 = 10;

/// Works on a claimed run until it ends or is taken away. `asked` is when the claim was asked for.
pub(crate) async fn run(
    engine: &Arc<Engine>,
    store: &Arc<dyn TenantStore>,
    claimed: Claimed,
    asked: Instant,
) {
    let waiting = engine.workers.take(claimed.run.run_id);
    let listener = waiting.as_ref().map_or_else(Listener::nobody, |waiting| waiting.listener.clone());
    let record = claimed.run.clone();
    let span = telemetry::run(store.tenant(), &record);
    let attending = attend(engine, store, claimed, &listener, asked).instrument(span.clone());
    let attending = AssertUnwindSafe(attending).catch_unwind();
    // What breaks beside the walk leaves the run to whoever claims it next; that is limited, and those who wait hear of it.
    let finished = attending.await.unwrap_or_else(|_| Finished::without_end(Failure::Superseded));
    telemetry::run_ended(&span, &finished);
    drop(span);
    if let Some(waiting) = waiting {
        conclude(engine, store, &record, waiting, finished);
    }
}

/// The walk, the writing and the heartbeat, until one of them ends.
async fn attend(
    engine: &Arc<Engine>,
    store: &Arc<dyn TenantStore>,
    claimed: Claimed,
    listener: &Listener,
    asked: Instant,
) -> Finished {
    let (stop, cancel) = (CancellationToken::new(), listener.cancel().clone());
    match claimed.run.cancel {
        None => {}
        Some(Cancel::Stop) => stop.cancel(),
        Some(Cancel::Abort) => cancel.cancel(),
    }
    let record = claimed.run.clone();
    let ends = Ends { stop: stop.clone(), cancel: cancel.clone() };
    let _under_way = engine.workers.under_way(record.run_id, ends);
    let hearers = Hearers {
        listener: listener.clone(),
        publisher: engine.parts.live.publisher(store.tenant(), record.thread_id, record.run_id),
        tenant: store.tenant().clone(),
        observer: engine.parts.observer.clone(),
    };
    let (journal, mut scribe) = Journal::open(hearers);
    let lease = lease::Lease::new(engine.parts.lease, asked, stop.clone(), cancel.clone());
    let state = RunState::new(Arc::clone(engine), Arc::clone(store), claimed, journal, stop, cancel);
    let state = Arc::new(state);
    let desk = Desk { store: &**store, claim: &state.claim, ledger: &state.ledger, lease: &lease };
    let failure = tokio::select! {
        biased;
        finished = work(&state, &record, listener) => return finished,
        failure = scribe.work(desk) => failure,
        failure = lease.hold(&**store, &state.claim) => failure,
    };
    // Nothing of it is at work any more when somebody else begins.
    state.at_rest().await;
    Finished { rows: state.ledger.rows(), ..Finished::without_end(failure) }
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

async fn work(state: &Arc<RunState>, record: &RunRecord, listener: &Listener) -> Finished {
    if record.attempts > 1 && listener.catch_up(&*state.store, record.run_id).await.is_err() {
        // What others did before this claim comes first, or everything at the end.
        listener.leave_behind();
    }
    let (mut record, mut begun) = (record.clone(), Begun::default());
    let result = AssertUnwindSafe(Box::pin(walk(state, &mut record, &mut begun))).catch_unwind().await;
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
    let record = &record;
    // Under a handoff the thread goes where the handoff goes.
    let keeps = begun.is_own() && Request::is_answered(&record.request);
    let end =
        ending(record, keeps, status, &state.ledger, state.sources(), outcome.as_ref(), failure.as_ref());
    let usage = state.ledger.spent("");
    if let Err(failure) = state.journal.keep(end).await {
        return Finished { usage, rows: state.ledger.rows(), ..Finished::without_end(failure) };
    }
    let (answer, answered_by) = outcome.map(|outcome| (outcome.answer, outcome.agent)).unzip();
    Finished { status, answer, answered_by, failure, usage, rows: state.ledger.rows() }
}

async fn walk(
    state: &Arc<RunState>,
    record: &mut RunRecord,
    begun: &mut Begun,
) -> Result<Option<Outcome>, Failure> {
    // First of all, whether or not the run can go on: what was under way was paid for.
    let settled = turn::settle_interrupted(state);
    if !settled.steps.is_empty() {
        state.journal.keep(settled).await?;
    }
    let request: Request = serde_json::from_value(record.request.clone())
        .map_err(|error| Failure::Interrupted(format!("its request cannot be read: {error}")))?;
    let said = history::load(&*state.store, record, request.task.is_said()).await?;
    let lease;
    (*begun, lease) = Begun::of(state, record, &request, &walking::words(&said.parts)).await?;
    if let Some(agent) = &begun.agent {
        record.agent = agent.clone();
    }
    let agent = agent(state, record)?;
    let scope = Scope::root(Arc::clone(state), agent, &request.overrides);
    answer(scope, record, request, begun, lease, said).await
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
    record: &RunRecord,
    request: Request,
    begun: &Begun,
    lease: Option<Lease>,
    said: Said,
) -> Result<Option<Outcome>, Failure> {
    announce(&scope, record, &request, begun).await?;
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
    let started = EventKind::SessionStarted { session_id: scope.session_id.clone(), parent: None, why: None };
    let chosen = request.entry.as_ref().map(|Classification { domain, confidence, .. }| EventKind::Status {
        text: format!("`{}` was chosen: about {domain}, confidence {confidence:.2}", scope.name()),
    });
    let mut events = vec![
        scope.event(EventKind::RunStarted { is_held: begun.is_held() }),
        scope.event_as(Visibility::Internal, started),
    ];
    events.extend(chosen.map(|chosen| scope.event_as(Visibility::Internal, chosen)));
    let begun = Record {
        steps: vec![scope.step(StepKind::Session, StepState::Started, begun)?],
        agent: begun.agent.clone(),
        events,
        sessions: vec![session_change(scope.session_id.clone(), record, RunStatus::Running)],
        audit: vec![audit::start(record, &request.task)],
        ..Record::default()
    };
    scope.run.journal.keep_soon(begun).await;
    Ok(())
}
