//! Accepts messages, and runs one worker per thread and process.
//!
//! A message is accepted first: it is stored, and its run is queued. If the thread is idle, the same write claims the run. The
//! thread's worker then claims run after run until none is left. A caller that waits for a run receives its events, whether this process or another one executes it.

use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::message::{Message, Role, Visibility};
use baton_core::store::{
    AcceptedRun, ApprovalRequest, ApprovalStatus, Cancel, Claimed, NewRun, OnBusy, RunRecord, RunStart,
    RunStatus, StartedRun,
};
use baton_core::{
    MessageId, Part, Rights, RunId, StoreError, TenantId, TenantStore, ThreadId, UserId, Workspaces,
};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agents::Agents;
use crate::approvals::remote_question;
use crate::bounds::InvocationError;
use crate::engine::{Engine, RunHandle};
use crate::execute;
use crate::failure::Failure;
use crate::handoff::external;
use crate::input::text_of;
use crate::journal::Record;
use crate::listener::Listener;
use crate::live::ThreadKey;
use crate::outcome::RunResult;
use crate::registry::{AcceptedHere, Assignment, IdleAction, Waiter, WorkerGuard, WorkerLifetime, finished};
use crate::request::{RunRequest, StoredRequest, SubmitOptions};
use crate::retry::retry;
use crate::routing::{NewRoute, RoutingDecision};
use crate::run_start::first_record;
use crate::task::{DELEGATE_PERMISSION, RunTask};

/// Events that may wait for a listener before the run waits for it.
pub(crate) const EVENT_QUEUE: usize = 256;
/// How often a thread is checked that another process works on.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// An acceptance with an unknown outcome is retried: the store recognizes the message.
const MAX_START_RETRIES: u32 = 2;
const START_RETRY_DELAY: Duration = Duration::from_millis(50);
/// How long a message with an unknown outcome is looked for.
const LATE_COMMIT_WINDOW: Duration = Duration::from_secs(30);

impl Engine {
    /// Accepts a message and executes its run. When this returns, the message is stored, and its run ends even if this process
    /// dies: another process then continues it.
    pub async fn start(self: &Arc<Self>, request: RunRequest) -> Result<RunHandle, Failure> {
        self.check_newest(&request).await?;
        self.leave_at_once(&request).await?;
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let key = (request.caller.tenant.clone(), request.caller.thread_id);
        let new = new_run(run_id, request, SubmitOptions::default())?;
        let (events, heard) = mpsc::channel(EVENT_QUEUE);
        let (end, ended) = oneshot::channel();
        let cancel = CancellationToken::new();
        let listener = Listener::new(events, cancel.clone());
        // Registered before the run is accepted, because another worker of this process may claim it at once.
        let waiting = Waiter { key: key.clone(), listener, end, is_accepted: false, is_cancel_asked: false };
        self.workers.wait_again(run_id, waiting);
        let accepted = self.accept_and_work(key, new).await.unwrap_or(Err(Failure::Cancelled))?;
        Ok(RunHandle { id: accepted.run_id, events: heard, cancel, end: ended })
    }

    /// Like [`Engine::start`], for a caller that does not wait for the run. Events are available by subscribing to the thread
    /// ([`crate::live`]). An idempotency key that was used before returns the run that it was used for.
    pub async fn submit(
        self: &Arc<Self>,
        request: RunRequest,
        terms: SubmitOptions,
    ) -> Result<AcceptedRun, Failure> {
        self.check_newest(&request).await?;
        self.leave_at_once(&request).await?;
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let key = (request.caller.tenant.clone(), request.caller.thread_id);
        let new = new_run(run_id, request, terms)?;
        self.accept_and_work(key, new).await.unwrap_or(Err(Failure::Cancelled))
    }

    /// Accepts a message in its own task, because the caller may be dropped while an accepted run has to be executed. If the
    /// thread has no worker, the same task becomes it, which saves a second task per message.
    pub(crate) fn accept_and_work(
        self: &Arc<Self>,
        key: ThreadKey,
        new: PendingRun,
    ) -> oneshot::Receiver<Result<AcceptedRun, Failure>> {
        let (sender, accepted) = oneshot::channel();
        let (engine, worker_lifetime) = (Arc::clone(self), self.parts.worker_lifetime);
        let new = Box::new(new);
        self.workers.tasks.spawn(async move {
            // Both futures are boxed, one after the other, to keep the task small, and so is what the first one consumes.
            let outcome = Box::pin(engine.accept(&key, *new)).await;
            let is_worker = matches!(outcome, Ok((_, true)));
            let _ = sender.send(outcome.map(|(accepted, _)| accepted));
            if is_worker {
                Box::pin(engine.work_on(&key, worker_lifetime)).await;
            }
        });
        accepted
    }

    /// Checks a request before anything is stored.
    pub(crate) fn check(&self, request: &RunRequest) -> Result<(), Failure> {
        let agents = self.agents(&request.caller.tenant);
        let agent = agents.get(&request.agent).ok_or_else(|| Failure::NoAgent(request.agent.clone()))?;
        check_task(&request.task, agent, &agents, &request.rights)
    }

    /// Like [`Engine::check`]. Reads the created agents again only if an agent is unknown.
    async fn check_newest(&self, request: &RunRequest) -> Result<(), Failure> {
        match self.check(request) {
            Err(Failure::NoAgent(agent)) => {
                self.look_for_agent(&request.caller.tenant, &agent).await?;
                self.check(request)
            }
            checked => checked,
        }
    }

    /// Stores the message and, if its thread is idle, starts its run with the same write. Also returns whether the caller is now
    /// the thread's worker.
    async fn accept(
        self: &Arc<Self>,
        key: &ThreadKey,
        new: PendingRun,
    ) -> Result<(AcceptedRun, bool), Failure> {
        let PendingRun { mut run, request } = new;
        let (run_id, on_busy) = (run.run_id, run.on_busy);
        let bytes = run.message.parts.iter().map(Part::bytes).sum();
        if let Err(error) = self.check_storage(&key.0, &run.user_id, bytes).await {
            self.workers.take(run_id);
            return Err(error.into());
        }
        let store = self.parts.store.tenant(&key.0);
        let (routing, start) = self.beginning(&key.0, &mut run, &request);
        // Looked up first: after the write, the thread's active run may be another one, even this one.
        let interrupted = if on_busy == OnBusy::Interrupt { self.workers.active(key) } else { None };
        let mut started = self.start_in(&*store, &run, &start).await;
        if matches!(started, Err(Failure::Store(StoreError::QuestionOpen))) {
            if let Some(accepted) = Box::pin(self.accept_answer(key, &run)).await? {
                return Ok((accepted, self.workers.wake(key, None)));
            }
            run.unless_asked = false;
            started = self.start_in(&*store, &run, &start).await;
        }
        let (accepted, started) = match started {
            Ok(started) => started,
            Err(failure) => {
                self.workers.take(run_id);
                if matches!(&failure, Failure::Store(error) if error.is_transient()) {
                    let resolving = Arc::clone(self).resolve(key.clone(), run, request, routing, start);
                    self.workers.tasks.spawn(resolving);
                }
                return Err(failure);
            }
        };
        self.workers.accepted(run_id);
        if let Some(active) = interrupted.filter(|_| accepted.behind.is_some()) {
            self.workers.cancel(active, Cancel::Abort);
        }
        let assignment = started.map(|started| assignment(started, request, routing, start));
        let needs_worker = assignment.is_some() || !self.workers.has_worker(key);
        Ok((accepted, needs_worker && self.workers.wake(key, assignment)))
    }

    /// Accepts a message for a thread with an open question as its answer. The caller then waits for the run that asked. Returns
    /// `None` if the question was settled meanwhile.
    async fn accept_answer(
        self: &Arc<Self>,
        key: &ThreadKey,
        run: &NewRun,
    ) -> Result<Option<AcceptedRun>, Failure> {
        let answered = self.answer_question(key, run).await;
        if !matches!(answered, Ok(None))
            && let Some(waiter) = self.workers.take(run.run_id)
            && let Ok(Some(accepted)) = &answered
        {
            waiter.listener.start_after(accepted.after);
            self.workers.wait_again(accepted.run_id, Waiter { is_accepted: true, ..waiter });
        }
        answered
    }

    async fn start_in(
        self: &Arc<Self>,
        store: &dyn TenantStore,
        run: &NewRun,
        start: &RunStart,
    ) -> Result<(AcceptedRun, Option<StartedRun>), Failure> {
        self.ensure_heartbeat().await?;
        let accept = async |run: &NewRun| {
            retry(MAX_START_RETRIES, START_RETRY_DELAY, || store.start(run.clone(), start.clone())).await
        };
        match accept(run).await {
            // Another agent than the holder was named, which the holder may allow.
            Err(StoreError::HandoffActive(open)) if run.unless_held => {
                self.must_be_reachable(store, open, run).await?;
                Ok(accept(&NewRun { unless_held: false, ..run.clone() }).await?)
            }
            started => Ok(started?),
        }
    }

    /// Finds out whether a message with an unknown outcome was accepted. If it was, this process may have claimed its run and has
    /// to execute it.
    async fn resolve(
        self: Arc<Self>,
        key: ThreadKey,
        run: NewRun,
        request: StoredRequest,
        routing: Option<RoutingDecision>,
        start: RunStart,
    ) {
        let store = self.parts.store.tenant(&key.0);
        let since = Instant::now();
        while !self.workers.is_draining() {
            tokio::time::sleep(POLL_INTERVAL).await;
            let started = match store.run(run.run_id).await {
                Ok(_) => store.start(run.clone(), start.clone()).await,
                Err(error) => Err(error),
            };
            match started {
                Ok((_, Some(started))) => {
                    let assignment = assignment(started, request, routing, start);
                    drop(self.wake(key, self.parts.worker_lifetime, Some(assignment)));
                    return;
                }
                Err(error) if error.is_transient() => {}
                // A commit may take effect after its connection has broken.
                Err(StoreError::NotFound(_)) if since.elapsed() < LATE_COMMIT_WINDOW => {}
                Ok((_, None)) | Err(_) => return,
            }
        }
    }

    /// The route and the first append of the run, for a thread that is idle and never had a handoff.
    fn beginning(
        &self,
        tenant: &TenantId,
        run: &mut NewRun,
        request: &StoredRequest,
    ) -> (Option<RoutingDecision>, RunStart) {
        let agents = self.agents(tenant);
        let route = NewRoute { policy: self.policy(tenant), agents: &agents, tenant };
        let routing = route.decide(&run.agent, &request.task, &text_of(&run.message.parts));
        // The first record does not contain the request, so the run's JSON of it is not copied.
        let as_json = std::mem::take(&mut run.request);
        let first = match &routing {
            Some(routing) => first_record(&run.claimed(run.message.created_at), request, routing),
            None => Record::default(),
        };
        run.request = as_json;
        let append = Arc::new(first.first_append());
        (routing, RunStart { owner: self.parts.identity.owner.clone(), append })
    }

    /// Cancels a run in whichever process it is executed. Returns its status after that.
    pub async fn cancel(
        self: &Arc<Self>,
        tenant: &TenantId,
        run: RunId,
        how: Cancel,
    ) -> Result<RunStatus, StoreError> {
        self.cancel_audited(&*self.parts.store.tenant(tenant), run, how).await
    }

    /// Like [`Self::cancel`], with the audit entry of `store` ([`TenantStore::audited`]).
    pub async fn cancel_audited(
        self: &Arc<Self>,
        store: &dyn TenantStore,
        run: RunId,
        how: Cancel,
    ) -> Result<RunStatus, StoreError> {
        let tenant = store.tenant();
        let status = store.cancel_run(run, how).await?;
        self.workers.cancel(run, how);
        // A run that waited takes its closing turn.
        if status == RunStatus::Queued {
            let thread = store.run(run).await?.thread_id;
            self.wake_decided(tenant, thread);
        }
        // A queued run has ended at once, and no worker has published that.
        if status.is_final() {
            let thread = store.run(run).await?.thread_id;
            self.parts.live.changed(tenant, thread);
            // A run that waited had no process that could cancel what it waited for.
            let approvals = store.run_approvals(run).await?;
            remote_question::cancel_tasks(&self.parts.extensions, &self.all_agents_of(tenant), &approvals);
        }
        Ok(status)
    }

    /// Deletes a thread with all it owns, with the audit entry of `store` ([`TenantStore::audited`]). An active run of it ends at once
    /// in this process, or with its next write in another one.
    pub async fn delete_thread(
        &self,
        store: &dyn TenantStore,
        thread: ThreadId,
        user: Option<&UserId>,
    ) -> Result<(), StoreError> {
        let tenant = store.tenant();
        let active = self.workers.active(&(tenant.clone(), thread));
        store.delete_thread(thread, user).await?;
        if let Some(active) = active {
            self.workers.cancel(active, Cancel::Abort);
        }
        self.delete_workspace(tenant, thread).await;
        Ok(())
    }

    pub(crate) fn workspaces(&self) -> Option<&dyn Workspaces> {
        self.parts.extensions.workspaces.as_deref()
    }

    /// After the thread, so that no thread loses its files. What a crash leaves behind here is swept later.
    pub(crate) async fn delete_workspace(&self, tenant: &TenantId, thread: ThreadId) {
        if let Some(workspaces) = self.workspaces()
            && let Err(error) = workspaces.delete(tenant, thread).await
        {
            tracing::warn!(%tenant, %thread, %error, "cannot delete a workspace");
        }
    }

    /// Ensures that the thread has a worker in this process. Returns `None` if it has one already.
    pub(crate) fn wake(
        self: &Arc<Self>,
        key: ThreadKey,
        worker_lifetime: WorkerLifetime,
        assignment: Option<Assignment>,
    ) -> Option<JoinHandle<()>> {
        if !self.workers.wake(&key, assignment) {
            return None;
        }
        let engine = Arc::clone(self);
        // Boxed: the future of a run is large.
        Some(self.workers.tasks.spawn(async move { Box::pin(engine.work_on(&key, worker_lifetime)).await }))
    }

    /// Shuts down: starts no further run, and leaves queued ones to other processes. Returns when the active runs have ended or
    /// `grace` is over. Runs that are still active then are released, and another process continues them.
    pub async fn drain(&self, grace: Duration) -> Result<u64, StoreError> {
        self.workers.draining.cancel();
        self.workers.tasks.close();
        let _ = tokio::time::timeout(grace, self.workers.tasks.wait()).await;
        self.lease.stop();
        self.parts.store.release(&self.parts.identity.owner).await
    }

    /// The number of threads with a worker in this process.
    pub fn active_threads(&self) -> usize {
        self.workers.active_threads()
    }

    /// Returns when no worker is left. New ones may still start.
    pub async fn idle(&self) {
        self.workers.tasks.close();
        self.workers.tasks.wait().await;
        self.workers.tasks.reopen();
    }

    /// The worker of a thread: executes run after run until none is left and no caller waits.
    async fn work_on(self: Arc<Self>, key: &ThreadKey, worker_lifetime: WorkerLifetime) {
        let mut guard =
            WorkerGuard { workers: &self.workers, key, worker_lifetime, is_left: false, is_unsure: false };
        let store = self.parts.store.tenant(&key.0);
        let mut next = self.workers.assigned(key);
        loop {
            if let Some(assignment) = next {
                let claimed = Box::pin(self.execute(&store, key, assignment, worker_lifetime)).await;
                next = claimed.map(Assignment::from).or_else(|| self.workers.assigned(key));
                if next.is_none()
                    && worker_lifetime == WorkerLifetime::UntilDone
                    && self.workers.leave(&mut guard)
                {
                    return;
                }
                continue;
            }
            if self.workers.may_leave(&mut guard) || self.workers.draining.is_cancelled() {
                return;
            }
            next = match Box::pin(self.try_claim(&store, key, &mut guard)).await {
                ClaimAttempt::Found(claimed) => Some(Assignment::from(claimed)),
                ClaimAttempt::Retry => self.workers.assigned(key),
                ClaimAttempt::Leave => match self.workers.assigned_or_leave(&mut guard) {
                    Some(assignment) => Some(assignment),
                    None => return,
                },
            };
        }
    }

    /// Claims the thread's next run. After a claim with an unknown outcome, also finds the run of that claim.
    async fn claim(
        self: &Arc<Self>,
        store: &dyn TenantStore,
        guard: &mut WorkerGuard<'_>,
    ) -> Result<Option<Claimed>, StoreError> {
        self.ensure_heartbeat().await?;
        let (thread, owner) = (guard.key.1, &self.parts.identity.owner);
        let claimed = if guard.is_unsure {
            store.claim_again(thread, owner).await
        } else {
            store.claim(thread, owner).await
        };
        guard.is_unsure = matches!(&claimed, Err(error) if error.is_transient());
        claimed
    }

    /// Claims the thread's next run, or waits for other processes to finish theirs.
    async fn try_claim(
        self: &Arc<Self>,
        store: &Arc<dyn TenantStore>,
        key: &ThreadKey,
        guard: &mut WorkerGuard<'_>,
    ) -> ClaimAttempt {
        match self.claim(&**store, guard).await {
            Ok(Some(claimed)) => return ClaimAttempt::Found(Box::new(claimed)),
            Ok(None) => {}
            Err(error) if error.is_transient() => {
                tracing::warn!(thread = %key.1, %error, "cannot look for work; trying again");
                self.give_up(key, &error, |waiting| waiting.listener.cancel().is_cancelled());
                tokio::time::sleep(POLL_INTERVAL).await;
                return ClaimAttempt::Retry;
            }
            Err(error) => {
                self.give_up(key, &error, |_| true);
                return ClaimAttempt::Leave;
            }
        }
        for run in self.workers.waiting_for(key) {
            self.follow(store, run).await;
        }
        match self.workers.idle(guard) {
            IdleAction::LookAgain => ClaimAttempt::Retry,
            IdleAction::Wait => {
                self.wait_for_others().await;
                ClaimAttempt::Retry
            }
            IdleAction::Leave => ClaimAttempt::Leave,
        }
    }

    /// Executes a run. Returns the thread's next one, if the last append has claimed it. Meanwhile, queued runs whose callers
    /// have cancelled are ended without waiting for this one.
    async fn execute(
        self: &Arc<Self>,
        store: &Arc<dyn TenantStore>,
        key: &ThreadKey,
        assignment: Assignment,
        worker_lifetime: WorkerLifetime,
    ) -> Option<Box<Claimed>> {
        let watch = async {
            loop {
                self.workers.waiter_arrived(key).await;
                tokio::time::sleep(POLL_INTERVAL).await;
                for run in self.workers.cancelled_waiters(key) {
                    Box::pin(self.follow(store, run)).await;
                }
            }
        };
        tokio::select! {
            next = execute::run(self, store, assignment, worker_lifetime) => next,
            () = watch => None,
        }
    }

    /// Waits for the process that works on the thread, and releases its runs if it is gone.
    async fn wait_for_others(&self) {
        tokio::time::sleep(POLL_INTERVAL).await;
        if self.workers.is_poll_due()
            && let Err(error) = self.release_dead_owners().await
        {
            tracing::warn!(%error, "cannot look for processes that are gone");
        }
    }

    /// Delivers the events that another process has stored for a run that a caller here waits for. Cancel safe.
    async fn follow(&self, store: &Arc<dyn TenantStore>, run: RunId) {
        let Some(mut waiter_guard) = self.workers.take_guarded(run) else { return };
        let waiting = waiter_guard.waiting();
        if waiting.listener.cancel().is_cancelled() && !waiting.is_cancel_asked {
            waiting.is_cancel_asked = store.cancel_run(run, Cancel::Abort).await.is_ok();
        }
        match waiting.listener.catch_up(&**store, run).await {
            Ok(Some(record)) => {
                let rows = store.ledger(run).await.unwrap_or_default();
                let waits_for = open_requests(&**store, &record).await;
                let result = RunResult { waits_for, ..finished(&record, rows) };
                self.end(store, run, waiter_guard.release(), result);
            }
            Ok(None) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => {
                self.end_without_record(run, waiter_guard.release(), RunResult::without_end(error.into()));
            }
        }
    }

    /// Delivers the end of a run to its waiter, in a task of its own, because it takes as long as the listener does.
    pub(crate) fn end(&self, store: &Arc<dyn TenantStore>, run: RunId, waiting: Waiter, finished: RunResult) {
        self.workers.tasks.spawn(waiting.end(Arc::clone(store), run, finished));
    }

    /// Like [`Engine::end`], if the end cannot be read from the store.
    pub(crate) fn end_without_record(&self, run: RunId, waiting: Waiter, finished: RunResult) {
        self.workers.tasks.spawn(waiting.end_without_record(run, finished));
    }

    /// Ends the waiters of the thread that `is_meant` selects, with `error`.
    fn give_up(&self, key: &ThreadKey, error: &StoreError, is_meant: impl Fn(&Waiter) -> bool) {
        for run in self.workers.waiting_for(key) {
            let Some(mut waiter_guard) = self.workers.take_guarded(run) else { continue };
            if is_meant(waiter_guard.waiting()) {
                self.end_without_record(
                    run,
                    waiter_guard.release(),
                    RunResult::without_end(error.clone().into()),
                );
            }
        }
    }
}

/// What a run of another process waits for.
async fn open_requests(store: &dyn TenantStore, record: &RunRecord) -> Vec<ApprovalRequest> {
    if record.status != RunStatus::Waiting {
        return Vec::new();
    }
    let all = store.run_approvals(record.run_id).await.unwrap_or_default();
    let open = all.into_iter().filter(|one| one.outcome.status == ApprovalStatus::Pending);
    open.map(|one| one.request).collect()
}

/// Checks that the task can start now. An agent that is removed later is a failed result.
fn check_task(task: &RunTask, agent: &Agent, agents: &Agents, rights: &Rights) -> Result<(), Failure> {
    let RunTask::Delegate(delegation) = task else { return Ok(()) };
    if !rights.allow(DELEGATE_PERMISSION) {
        return Err(Failure::NotAllowed(DELEGATE_PERMISSION.to_owned()));
    }
    let (strategy, supported) = (delegation.strategy, &agent.delegation.strategies);
    if !supported.contains(&strategy) {
        let (agent, supported) = (agent.name.clone(), supported.clone());
        return Err(InvocationError::UnsupportedStrategy { agent, strategy, supported }.into());
    }
    for name in &delegation.agents {
        let agent = agents.get(name).ok_or_else(|| Failure::NoAgent(name.clone()))?;
        if !agent.can_be_orchestrated {
            return Err(InvocationError::NotOrchestrated(name.clone()).into());
        }
    }
    Ok(())
}

/// The outcome of an attempt to claim a run.
enum ClaimAttempt {
    Found(Box<Claimed>),
    Retry,
    Leave,
}

/// A message to be accepted, and its request as it is stored.
pub(crate) struct PendingRun {
    pub(crate) run: NewRun,
    request: StoredRequest,
}

pub(crate) fn new_run(
    run_id: RunId,
    request: RunRequest,
    terms: SubmitOptions,
) -> Result<PendingRun, Failure> {
    let RunRequest { overrides, entry, task, rights, trace, metadata, .. } = request;
    let (is_said, is_named) = (task.is_said(), overrides.is_named);
    let kept = StoredRequest { overrides, entry, task, rights, trace, metadata };
    let as_json = serde_json::to_value(&kept)
        .map_err(|error| StoreError::Failed(format!("the request cannot be kept: {error}")))?;
    let (role, visibility) = if is_said { (Role::User, Visibility::User) } else { external::unsaid() };
    let message = Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id,
        role,
        agent: None,
        visibility,
        parts: request.input,
        created_at: Timestamp::now(),
    };
    let run = NewRun {
        run_id,
        thread_id: request.caller.thread_id,
        user_id: request.caller.user,
        agent: request.agent,
        message,
        request: as_json,
        on_busy: request.on_busy,
        idempotency: terms.idempotency,
        max_active: terms.limits.tenant,
        max_active_of_user: terms.limits.user,
        unless_held: is_said && is_named,
        unless_asked: is_said && !is_named,
        answers: None,
    };
    Ok(PendingRun { run, request: kept })
}

fn assignment(
    started: StartedRun,
    request: StoredRequest,
    routing: Option<RoutingDecision>,
    start: RunStart,
) -> Assignment {
    let StartedRun { claimed, recent, appended } = started;
    let routing = routing.filter(|_| appended.is_some());
    let appended = appended.map(|appended| (start.append, appended));
    let accepted = AcceptedHere { request, recent, appended, routing };
    Assignment { claimed: Box::new(claimed), accepted: Some(Box::new(accepted)) }
}
