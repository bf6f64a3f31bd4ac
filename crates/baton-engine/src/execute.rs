//! Executes one run, from its claim to its end.
//!
//! A run that was started before is replayed from the beginning. Recorded steps are not executed again, so the replay reaches the
//! point of the crash and continues from there.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{Cancel, Claimed, RunRecord, RunStatus};
use baton_core::{HandoffId, RunId, StoreError, TenantStore};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::approvals::parking;
use crate::audit;
use crate::cancellation::CancelTokens;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::handoff::holder_run;
use crate::heartbeat;
use crate::history::{self, ThreadHistory};
use crate::hops;
use crate::input::{Input, text_of};
use crate::invocation;
use crate::journal::{EventSink, Journal, Record, WriterContext};
use crate::lease::HandoffLease;
use crate::listener::Listener;
use crate::outcome::Outcome;
use crate::outcome::RunResult;
use crate::patterns::delegation::request as delegating;
use crate::registry::{AcceptedHere, Assignment, Waiter, WorkerLifetime};
use crate::request::StoredRequest;
use crate::retry::{MAX_RETRIES, RETRY_DELAY, retry};
use crate::routing::RoutingDecision;
use crate::run as walking;
use crate::run_end::last_record;
use crate::run_start::first_record;
use crate::run_state::{Before, RunState};
use crate::scope::Scope;
use crate::task::RunTask;
use crate::telemetry;
use crate::turn;
use crate::workflow::question;

/// Maximum claims of one run. A run that exceeds it probably crashes its process.
const MAX_ATTEMPTS: u32 = 10;

/// Executes a claimed run until it ends or its claim is lost. Returns the thread's next run, if the last append has claimed it.
pub(crate) async fn run(
    engine: &Arc<Engine>,
    store: &Arc<dyn TenantStore>,
    assignment: Assignment,
    worker_lifetime: WorkerLifetime,
) -> Option<Box<Claimed>> {
    let (run_id, claim) = (assignment.claimed.run.run_id, assignment.claimed.claim.clone());
    let waiting = engine.workers.take(run_id);
    let listener = waiting.as_ref().map_or_else(Listener::detached, |waiting| waiting.listener.clone());
    let span = telemetry::run(store.tenant(), &assignment.claimed.run);
    let execution = Execution {
        engine,
        store,
        listener: &listener,
        claims_next: worker_lifetime == WorkerLifetime::UntilDone,
    };
    let attending = execution.supervise(assignment).instrument(span.clone());
    // Boxed: the future is large, and the worker outlives the run.
    let attending = AssertUnwindSafe(Box::pin(attending)).catch_unwind();
    // A panic outside of the agents leaves the run to the next claim. The number of claims is limited.
    let (finished, next) =
        attending.await.unwrap_or_else(|_| (RunResult::without_end(Failure::Superseded), None));
    telemetry::run_ended(&span, &finished);
    drop(span);
    if next.is_none() && matches!(finished.failure, Some(Failure::Superseded | Failure::Store(_))) {
        engine.lease.abandon(store, &claim);
    }
    if let Some(waiting) = waiting {
        notify_waiter(engine, store, run_id, waiting, finished);
    }
    next
}

/// What executing a claimed run needs of this process.
struct Execution<'a> {
    engine: &'a Arc<Engine>,
    store: &'a Arc<dyn TenantStore>,
    listener: &'a Listener,
    /// Whether the last append claims the thread's next run.
    claims_next: bool,
}

impl Execution<'_> {
    /// Polls the run, its journal writer and the process's lease until one of them ends.
    async fn supervise(&self, assignment: Assignment) -> (RunResult, Option<Box<Claimed>>) {
        let Assignment { claimed, accepted } = assignment;
        let Claimed { claim, run: record, steps, rows, handoff } = *claimed;
        let tokens = CancelTokens { stop: CancellationToken::new(), cancel: self.listener.cancel().clone() };
        match record.cancel {
            None => {}
            Some(Cancel::Stop) => tokens.stop.cancel(),
            Some(Cancel::Abort) => tokens.cancel.cancel(),
        }
        let key = (self.store.tenant().clone(), record.thread_id);
        let _under_way = self.engine.workers.track_active(key, record.run_id, tokens.clone());
        let (journal, mut writer) = Journal::open(self.event_sink(&record));
        let lease = heartbeat::ClaimHeartbeat::of(&self.engine.lease, tokens.cancel.clone());
        let before = Before { steps, rows, handoff };
        if accepted.is_none() {
            Box::pin(self.look_for_agent(&record)).await;
        }
        let state = self.run_state(&record, before, journal, tokens);
        let Engine { parts, .. } = &**self.engine;
        let context = WriterContext {
            store: &**self.store,
            claim: &claim,
            ledger: &state.recorder.ledger,
            shares_budgets: state.policy.budgets.has_shared(),
            lease: &lease,
            flush: parts.flush,
            cancel: &state.control.cancel,
        };
        if let Some((append, appended)) = accepted.as_ref().and_then(|accepted| accepted.appended.as_ref()) {
            writer.adopt_first_append(&claim, append, appended).await;
        }
        let failure = tokio::select! {
            biased;
            finished = self.work(&state, record, accepted) => Ok(finished),
            failure = writer.run(context) => Err(failure),
            failure = lease.lost() => Err(failure),
        };
        let finished = match failure {
            Ok(finished) => finished,
            Err(failure) => {
                // Another process may claim the run now, so none of its tasks may be left here.
                state.control.children_finished().await;
                RunResult { rows: state.recorder.ledger.rows(), ..RunResult::without_end(failure) }
            }
        };
        (finished, writer.next())
    }

    /// The agent of a run that another process accepted may have been created a moment ago.
    async fn look_for_agent(&self, record: &RunRecord) {
        if let Err(error) = self.engine.look_for_agent(self.store.tenant(), &record.agent).await {
            tracing::warn!(run = %record.run_id, %error, "created agents cannot be read");
        }
    }

    fn event_sink(&self, record: &RunRecord) -> EventSink {
        let Engine { parts, .. } = &**self.engine;
        EventSink {
            listener: self.listener.clone(),
            publisher: parts.live.publisher(self.store.tenant(), record.thread_id, record.run_id),
            tenant: self.store.tenant().clone(),
            observer: parts.observer.clone(),
        }
    }

    fn run_state(
        &self,
        record: &RunRecord,
        before: Before,
        journal: Journal,
        tokens: CancelTokens,
    ) -> Arc<RunState> {
        let (resources, store) = (self.engine.run_resources(self.store.tenant()), Arc::clone(self.store));
        Arc::new(RunState::new(resources, store, record, before, journal, tokens))
    }

    /// Starts the handoff that is queued behind `ended`. Flushes the journal first, so that the end is durable before the next
    /// handoff begins. A request that is queued later starts after the run.
    async fn start_queued_handoff(&self, state: &RunState, ended: HandoffId) -> Result<(), Failure> {
        if state.store.handoff(ended).await.is_ok_and(|handoff| handoff.next.is_some()) {
            state.recorder.journal.flush().await?;
            self.engine.start_next(&state.store, ended).await;
        }
        Ok(())
    }

    async fn work(
        &self,
        state: &Arc<RunState>,
        mut record: RunRecord,
        accepted: Option<Box<AcceptedHere>>,
    ) -> RunResult {
        // Boxed, like every large future that most runs never await: a future is as large as the largest one it awaits.
        let is_again = record.attempts > 1;
        if is_again && Box::pin(self.listener.catch_up(&*state.store, record.run_id)).await.is_err() {
            // Events of earlier attempts precede new ones. If they cannot be read now, the listener gets all events at the end.
            self.listener.mark_behind();
        }
        let mut routing = RoutingDecision::default();
        let walking = AssertUnwindSafe(Box::pin(execute_run(state, &mut record, &mut routing, accepted)));
        let result = walking.catch_unwind().await;
        let mut result = result.unwrap_or_else(|_| Err(Failure::Panicked(record.agent.clone())));
        if let Some(ended) = state.progress.ended_handoff.get()
            && let Err(failure) = Box::pin(self.start_queued_handoff(state, *ended)).await
        {
            result = Err(failure);
        }
        state.control.children_finished().await;
        if matches!(result, Err(Failure::Waiting)) && !state.control.cancel.is_cancelled() {
            return Box::pin(self.park(state, &record)).await;
        }
        Box::pin(self.finish(state, &record, &routing, result)).await
    }

    /// Records the end of the run, and returns its result.
    async fn finish(
        &self,
        state: &RunState,
        record: &RunRecord,
        routing: &RoutingDecision,
        result: Result<Option<Outcome>, Failure>,
    ) -> RunResult {
        let RunState { recorder, progress, .. } = state;
        let rows = || recorder.ledger.rows();
        let (status, outcome, failure) = match result {
            Ok(outcome) => match outcome.as_ref().and_then(Outcome::budget_exhausted) {
                Some(failure) => (RunStatus::Failed, outcome, Some(failure)),
                None => (RunStatus::Completed, outcome, None),
            },
            // The claim is lost or the store is unavailable: this process cannot end the run.
            Err(failure @ (Failure::Superseded | Failure::Store(_))) => {
                return RunResult { rows: rows(), ..RunResult::without_end(failure) };
            }
            // A run that waits and is cancelled does not park.
            Err(Failure::Cancelled | Failure::Waiting) => {
                (RunStatus::Cancelled, None, Some(Failure::Cancelled))
            }
            Err(failure @ Failure::Interrupted(_)) => (RunStatus::Interrupted, None, Some(failure)),
            Err(failure) => (RunStatus::Failed, None, Some(failure)),
        };
        let outcome = outcome.map(|mut outcome| {
            outcome.answer.files = recorder.files.of_answer();
            outcome
        });
        // While a handoff is active, it decides which agent holds the thread.
        let keeps = routing.is_requested() && StoredRequest::is_answered(&record.request);
        let (outcome, why) = (outcome.as_ref(), failure.as_ref());
        let end = last_record(record, keeps, status, &recorder.ledger, progress.sources(), outcome, why);
        let end = parking::close(state, record).and(hops::unfinished(state, status)).and(end);
        if let Err(failure) = question::ask(state, record).await {
            return RunResult { rows: rows(), ..RunResult::without_end(failure) };
        }
        let end = Record { claim_next: self.claims_next(), ..end };
        let usage = recorder.ledger.spent("");
        if let Err(failure) = recorder.journal.commit(end).await {
            return RunResult { usage, rows: rows(), ..RunResult::without_end(failure) };
        }
        if let Some(ended) = progress.ended_handoff.get() {
            Box::pin(self.engine.start_next(&state.store, *ended)).await;
        }
        let (answer, answered_by) =
            outcome.map(|outcome| (outcome.answer.clone(), outcome.agent.clone())).unzip();
        RunResult { status, answer, answered_by, failure, waits_for: Vec::new(), usage, rows: rows() }
    }

    /// Parks the run: only waits are left. A decision continues it, here or in another process.
    async fn park(&self, state: &RunState, record: &RunRecord) -> RunResult {
        let recorder = &state.recorder;
        let (parked, waits_for) = parking::park(state, record);
        let parked = Record { claim_next: self.claims_next(), ..parked };
        let (usage, rows) = (recorder.ledger.spent(""), recorder.ledger.rows());
        if let Err(failure) = recorder.journal.commit(parked).await {
            return RunResult { usage, rows, ..RunResult::without_end(failure) };
        }
        let (answer, answered_by, failure) = (None, None, None);
        RunResult { status: RunStatus::Waiting, answer, answered_by, failure, waits_for, usage, rows }
    }

    /// Whether the last append claims the thread's next run.
    fn claims_next(&self) -> bool {
        self.claims_next && !self.engine.workers.is_draining()
    }
}

/// Delivers the end of the run to its waiter. If the run continues, here or in another process, the waiter is registered again.
fn notify_waiter(
    engine: &Arc<Engine>,
    store: &Arc<dyn TenantStore>,
    run_id: RunId,
    waiting: Waiter,
    finished: RunResult,
) {
    let is_given_up = waiting.listener.cancel().is_cancelled();
    match &finished.failure {
        Some(Failure::Superseded) => engine.workers.wait_again(run_id, waiting),
        // The store may recover. This or another process then continues the run.
        Some(Failure::Store(error)) if error.is_transient() && !is_given_up => {
            engine.workers.wait_again(run_id, waiting);
        }
        Some(Failure::Store(_)) => engine.end_without_record(run_id, waiting, finished),
        _ => engine.end(store, run_id, waiting, finished),
    }
}

async fn execute_run(
    state: &Arc<RunState>,
    record: &mut RunRecord,
    routing: &mut RoutingDecision,
    accepted: Option<Box<AcceptedHere>>,
) -> Result<Option<Outcome>, Failure> {
    // Interrupted calls are billed first, whether or not the run can continue.
    let settled = turn::settle_interrupted(state);
    if !settled.steps.is_empty() {
        Box::pin(state.recorder.journal.commit(settled)).await?;
    }
    if record.attempts > 1 && state.policy.budgets.has_shared() {
        // Calls that the last process reserved and did not announce were never made, or are not known to have been.
        retry(MAX_RETRIES, RETRY_DELAY, || state.store.release_reservations(state.run_id)).await?;
    }
    if record.attempts > MAX_ATTEMPTS {
        let reason = format!("its process ended {MAX_ATTEMPTS} times during the run");
        return Err(Failure::Interrupted(reason));
    }
    let (request, thread_history, known) = match accepted.map(|accepted| *accepted) {
        Some(AcceptedHere { request, recent, routing, .. }) => {
            let thread_history = history::from_messages(recent, record, request.task.is_said())?;
            (request, thread_history, routing)
        }
        None => {
            let request: StoredRequest = serde_json::from_value(record.request.clone())
                .map_err(|error| Failure::Interrupted(format!("its request cannot be read: {error}")))?;
            let thread_history = history::load(&*state.store, record, request.task.is_said());
            let thread_history = Box::pin(thread_history).await.map_err(unreadable)?;
            (request, thread_history, None)
        }
    };
    let is_announced = known.is_some();
    let lease;
    (*routing, lease) = match known {
        Some(routing) => (routing, None),
        None => {
            let words = text_of(&thread_history.parts);
            let deciding = RoutingDecision::decide(state, record, &request, &words);
            Box::pin(deciding).await.map_err(unreadable)?
        }
    };
    if let Some(agent) = &routing.agent {
        record.agent = agent.clone();
    }
    let agent = resolve_agent(state, record)?;
    let mut bounds = invocation::root_bounds(state, &agent, &request.overrides);
    if matches!(request.task, RunTask::Delegate(_)) {
        bounds = bounds.for_dispatcher();
    }
    let scope = Scope::root(Arc::clone(state), agent, bounds);
    if !is_announced {
        Box::pin(announce(&scope, record, &request, routing)).await?;
    }
    // A run that had parked has settled it before. Another one may have asked since.
    if let (true, Some(lease)) = (routing.is_for_holder() && !state.waits.is_resumed(), &lease) {
        Box::pin(question::settle(&scope, record, lease, &thread_history.parts)).await?;
    }
    run_root(scope, request, routing, lease, thread_history).await
}

/// Turns an unreadable conversation into [`Failure::Interrupted`]. A retry cannot help, and the run would block the ones behind
/// it.
fn unreadable(failure: Failure) -> Failure {
    match failure {
        Failure::Store(StoreError::Unreadable(reason)) => {
            Failure::Interrupted(format!("its conversation cannot be read: {reason}"))
        }
        other => other,
    }
}

/// Looks up the agent that answers. Fails if a reload has removed it.
fn resolve_agent(state: &RunState, record: &RunRecord) -> Result<Arc<Agent>, Failure> {
    state
        .agents
        .get(&record.agent)
        .cloned()
        .ok_or_else(|| Failure::Interrupted(format!("there is no agent `{}` any more", record.agent)))
}

/// Runs the task of the request. Returns `None` if the task has no answer, such as a delegation with `Synthesis::None`.
async fn run_root(
    scope: Scope,
    request: StoredRequest,
    routing: &RoutingDecision,
    lease: Option<HandoffLease>,
    thread_history: ThreadHistory,
) -> Result<Option<Outcome>, Failure> {
    if scope.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    let output_schema = request.overrides.output_schema.map(Arc::new);
    let (history, parts) = (thread_history.history(), Arc::clone(&thread_history.parts));
    let input = Input { history, parts, output_schema, ..Input::default() };
    scope.run.request.asked(&input.parts, request.entry);
    match request.task {
        // Boxed: each future is large, and a run awaits only one of them.
        RunTask::Delegate(delegation) => Box::pin(delegating::answer(&scope, &input, &delegation)).await,
        // No handoff is involved: the requested agent answers.
        RunTask::Answer if lease.is_none() && routing.is_requested() => {
            walking::run(scope, input).await.map(Some)
        }
        RunTask::Answer | RunTask::Handoff { .. } => {
            Box::pin(holder_run::run(scope, routing.clone(), lease, &thread_history, input)).await
        }
    }
}

/// Records that the run has started or, after a crash, resumed. Does not wait for the append: the record precedes all others, in
/// the store and for listeners.
async fn announce(
    scope: &Scope,
    record: &RunRecord,
    request: &StoredRequest,
    routing: &RoutingDecision,
) -> Result<(), Failure> {
    if scope.run.waits.is_resumed() {
        let resumed = parking::resume(&scope.run, record, routing.is_held());
        scope.run.recorder.journal.commit_soon(resumed).await;
        return Ok(());
    }
    if scope.step().interrupted::<Value>()?.is_some() {
        let text = format!("resumed after a crash (attempt {})", record.attempts);
        tracing::info!(run = %record.run_id, attempt = record.attempts, "a run goes on after a crash");
        let events = vec![scope.event(Visibility::Internal, EventKind::Status { text })];
        let audit = vec![audit::of_run(record, "system", "run.resume", "resumed")];
        scope.run.recorder.journal.commit_soon(Record { events, audit, ..Record::default() }).await;
        return Ok(());
    }
    scope.run.recorder.journal.commit_soon(first_record(record, request, routing)).await;
    Ok(())
}
