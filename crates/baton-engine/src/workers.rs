//! Who works on which thread.
//!
//! A message is accepted first: written down, its run queued. Then the thread's worker, one per thread and process, claims run
//! after run until none is left. Whether it is this process that gets a run or another one, whoever waits for it hears of it.

mod assignment;
mod places;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use baton_core::message::{Message, Role, Visibility};
use baton_core::store::{Accepted, Cancel, Claimed, NewRun, OnBusy, RunRecord, RunStart, RunStatus, Started};
use baton_core::{MessageId, RunId, StoreError, TenantId, TenantStore, ThreadId, Usage, UserId};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::again::again;
use crate::beginning::beginning;
use crate::engine::{Engine, Finished, Request, Run, RunRequest, Terms};
use crate::execute;
use crate::failure::Failure;
use crate::handoff::outside;
use crate::handoff::way::{Begun, NewRoute};
use crate::journal::Record;
use crate::listener::Listener;
use crate::run::words;
pub(crate) use assignment::{AcceptedHere, Assignment};
pub(crate) use places::{Ends, Workers};
use places::{Idle, Place};
pub(crate) use waiting::Waiting;
use waiting::finished;

/// How many events may wait for a listener before the run waits for it.
const EVENT_QUEUE: usize = 256;
/// How often a thread is looked at that another process works on.
const GLANCE: Duration = Duration::from_millis(250);
/// A message whose acceptance has an unknown outcome is accepted again: the store recognises it.
const START_TRIES: u32 = 2;
const START_PAUSE: Duration = Duration::from_millis(50);
/// How long a message is looked for whose acceptance has an unknown outcome.
const LATE_COMMIT: Duration = Duration::from_secs(30);

type Key = (TenantId, ThreadId);

/// How long a worker stays with its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Until every run has ended, whoever asked for it.
    UntilDone,
    /// While somebody in this process waits. Runs of others are left to them, unless they come first.
    WhileAwaited,
}

impl Engine {
    /// Accepts a message and sees to it that it is worked on. When this returns, the message is kept and its run will end,
    /// whatever happens to this process.
    pub async fn start(self: &Arc<Self>, request: RunRequest) -> Result<Run, Failure> {
        self.check(&request)?;
        self.leave_at_once(&request).await?;
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let key = (request.caller.tenant.clone(), request.caller.thread_id);
        let new = new_run(run_id, request, Terms::default())?;
        let (events, heard) = mpsc::channel(EVENT_QUEUE);
        let (end, ended) = oneshot::channel();
        let cancel = CancellationToken::new();
        let listener = Listener::new(events, cancel.clone());
        // Known before it is accepted: another worker of this process may claim it at once.
        let waiting = Waiting { key: key.clone(), listener, end, is_accepted: false, is_cancel_asked: false };
        self.workers.wait_again(run_id, waiting);
        let engine = Arc::clone(self);
        // By itself: whoever asked may go away, but what is accepted has to be worked on.
        let accepting = self.workers.tasks.spawn(async move { engine.accept(key, new).await });
        accepting.await.unwrap_or(Err(Failure::Cancelled))?;
        Ok(Run { id: run_id, events: heard, cancel, end: ended })
    }

    /// The same for somebody who does not wait for it: they hear of the thread by joining it ([`crate::live`]). With an idempotency
    /// key that was used before, the run is the one that it was used for.
    pub async fn submit(self: &Arc<Self>, request: RunRequest, terms: Terms) -> Result<Accepted, Failure> {
        self.check(&request)?;
        self.leave_at_once(&request).await?;
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let key = (request.caller.tenant.clone(), request.caller.thread_id);
        let new = new_run(run_id, request, terms)?;
        let engine = Arc::clone(self);
        let accepting = self.workers.tasks.spawn(async move { engine.accept(key, new).await });
        accepting.await.unwrap_or(Err(Failure::Cancelled))
    }

    /// What can be said before anything is kept.
    fn check(&self, request: &RunRequest) -> Result<(), Failure> {
        let agents = self.agents();
        if !agents.contains_key(&request.agent) {
            return Err(Failure::NoAgent(request.agent.clone()));
        }
        request.task.check(&agents, &request.rights)
    }

    /// Writes the message down and, if its thread is idle, begins its run with the same write.
    async fn accept(self: &Arc<Self>, key: Key, new: Accepting) -> Result<Accepted, Failure> {
        let Accepting { run, request } = new;
        let (run_id, on_busy) = (run.run_id, run.on_busy);
        let store = self.parts.store.tenant(&key.0);
        let (begun, start) = self.beginning(&key.0, &run, &request);
        // Looked up before: later the thread's run may be another one, even this one.
        let interrupted = if on_busy == OnBusy::Interrupt { self.workers.active(&key) } else { None };
        let (accepted, started) = match self.start_in(&*store, &run, &start).await {
            Ok(started) => started,
            Err(failure) => {
                self.workers.take(run_id);
                if matches!(&failure, Failure::Store(error) if error.is_passing()) {
                    let resolving = Arc::clone(self).resolve(key, run, request, begun, start);
                    self.workers.tasks.spawn(resolving);
                }
                return Err(failure);
            }
        };
        self.workers.accepted(run_id);
        if let Some(active) = interrupted.filter(|_| accepted.behind.is_some()) {
            self.workers.cancel(active, Cancel::Abort);
        }
        let assignment = started.map(|started| assignment(started, request, begun, start));
        if assignment.is_some() || !self.workers.has_worker(&key) {
            drop(self.wake(key, self.parts.stays, assignment));
        }
        Ok(accepted)
    }

    async fn start_in(
        self: &Arc<Self>,
        store: &dyn TenantStore,
        run: &NewRun,
        start: &RunStart,
    ) -> Result<(Accepted, Option<Started>), Failure> {
        self.hold_lease().await?;
        let accept = |run: &NewRun| {
            let run = run.clone();
            again(START_TRIES, START_PAUSE, move || store.start(run.clone(), start.clone()))
        };
        match accept(run).await {
            // Another agent was named, and the holder may allow that.
            Err(StoreError::HandoffActive(open)) if run.unless_held => {
                self.must_be_reachable(store, open, run).await?;
                Ok(accept(&NewRun { unless_held: false, ..run.clone() }).await?)
            }
            started => Ok(started?),
        }
    }

    /// Whether a message was accepted is not known. If it was, its run may be claimed by this process, so it has to be executed here.
    async fn resolve(
        self: Arc<Self>,
        key: Key,
        run: NewRun,
        request: Request,
        begun: Option<Begun>,
        start: RunStart,
    ) {
        let store = self.parts.store.tenant(&key.0);
        let since = Instant::now();
        while !self.workers.is_draining() {
            tokio::time::sleep(GLANCE).await;
            let started = match store.run(run.run_id).await {
                Ok(_) => store.start(run.clone(), start.clone()).await,
                Err(error) => Err(error),
            };
            match started {
                Ok((_, Some(started))) => {
                    let assignment = assignment(started, request, begun, start);
                    drop(self.wake(key, self.parts.stays, Some(assignment)));
                    return;
                }
                Err(error) if error.is_passing() => {}
                // A commit may arrive after its connection has broken.
                Err(StoreError::NotFound(_)) if since.elapsed() < LATE_COMMIT => {}
                Ok((_, None)) | Err(_) => return,
            }
        }
    }

    /// How the run begins if its thread is idle and never had a handoff.
    fn beginning(&self, tenant: &TenantId, run: &NewRun, request: &Request) -> (Option<Begun>, RunStart) {
        let agents = self.agents();
        let route = NewRoute { engine: self, agents: &agents, tenant };
        let begun = route.decide(&run.agent, &request.task, &words(&run.message.parts));
        let first = match &begun {
            Some(begun) => beginning(&as_record(run), request, begun),
            None => Record::default(),
        };
        let append = Arc::new(first.first_append());
        (begun, RunStart { owner: self.parts.identity.owner.clone(), append })
    }

    /// Asks for the end of a run, wherever it is worked on. Returns its status after that.
    pub async fn cancel(&self, tenant: &TenantId, run: RunId, how: Cancel) -> Result<RunStatus, StoreError> {
        let store = self.parts.store.tenant(tenant);
        let status = store.cancel_run(run, how).await?;
        self.workers.cancel(run, how);
        // One that was queued has ended here and now, and nobody has said so.
        if status.is_final() {
            let thread = store.run(run).await?.thread_id;
            self.parts.live.changed(tenant, thread);
        }
        Ok(status)
    }

    /// Deletes a thread with all it owns. A run of it that this process executes ends at once; one of another process when it
    /// writes next.
    pub async fn delete_thread(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        user: Option<&UserId>,
    ) -> Result<(), StoreError> {
        let active = self.workers.active(&(tenant.clone(), thread));
        self.parts.store.tenant(tenant).delete_thread(thread, user).await?;
        if let Some(active) = active {
            self.workers.cancel(active, Cancel::Abort);
        }
        Ok(())
    }

    /// Sees to it that a thread is worked on. `None` when somebody in this process is already at it.
    pub(crate) fn wake(
        self: &Arc<Self>,
        key: Key,
        stays: Stays,
        assignment: Option<Assignment>,
    ) -> Option<JoinHandle<()>> {
        if !self.workers.wake(&key, assignment) {
            return None;
        }
        let engine = Arc::clone(self);
        // On the heap: a run is a large thing to move about.
        Some(self.workers.tasks.spawn(async move { Box::pin(engine.work_on(&key, stays)).await }))
    }

    /// No run is begun here from now on; those that are queued are left to others. Returns when those at work have ended or
    /// `patience` is over. What is still at work then is given up as if this process had died: whoever comes next goes on with it.
    pub async fn drain(&self, patience: Duration) -> Result<u64, StoreError> {
        self.workers.draining.cancel();
        self.workers.tasks.close();
        let _ = tokio::time::timeout(patience, self.workers.tasks.wait()).await;
        self.lease.stop();
        self.parts.store.release(&self.parts.identity.owner).await
    }

    /// How many threads are worked on here.
    pub fn at_work(&self) -> usize {
        self.workers.at_work()
    }

    /// Returns when no worker is left. New ones may still begin.
    pub async fn idle(&self) {
        self.workers.tasks.close();
        self.workers.tasks.wait().await;
        self.workers.tasks.reopen();
    }

    /// The worker of a thread: run after run, until there is nothing left to do and nobody waits.
    async fn work_on(self: Arc<Self>, key: &Key, stays: Stays) {
        let mut place = Place { workers: &self.workers, key, stays, is_left: false, is_unsure: false };
        let store = self.parts.store.tenant(&key.0);
        let mut next = self.workers.assigned(key);
        loop {
            if let Some(assignment) = next {
                let claimed = Box::pin(self.execute(&store, key, assignment, stays)).await;
                next = claimed.map(Assignment::from).or_else(|| self.workers.assigned(key));
                if next.is_none() && stays == Stays::UntilDone && self.workers.leave(&mut place) {
                    return;
                }
                continue;
            }
            if self.workers.is_dismissed(&mut place) || self.workers.draining.is_cancelled() {
                return;
            }
            next = match self.look(&store, key, &mut place).await {
                Look::Found(claimed) => Some(Assignment::from(*claimed)),
                Look::Again => self.workers.assigned(key),
                Look::Leave => match self.workers.assigned_or_leave(&mut place) {
                    Some(assignment) => Some(assignment),
                    None => return,
                },
            };
        }
    }

    /// Claims the thread's next run. A claim whose outcome was not known the last time is looked for as well.
    async fn claim(
        self: &Arc<Self>,
        store: &dyn TenantStore,
        place: &mut Place<'_>,
    ) -> Result<Option<Claimed>, StoreError> {
        self.hold_lease().await?;
        let (thread, owner) = (place.key.1, &self.parts.identity.owner);
        let claimed = if place.is_unsure {
            store.claim_again(thread, owner).await
        } else {
            store.claim(thread, owner).await
        };
        place.is_unsure = matches!(&claimed, Err(error) if error.is_passing());
        claimed
    }

    /// Asks the store for the thread's next run.
    async fn look(self: &Arc<Self>, store: &Arc<dyn TenantStore>, key: &Key, place: &mut Place<'_>) -> Look {
        match self.claim(&**store, place).await {
            Ok(Some(claimed)) => return Look::Found(Box::new(claimed)),
            Ok(None) => {}
            Err(error) if error.is_passing() => {
                tracing::warn!(thread = %key.1, %error, "cannot look for work; trying again");
                self.give_up(key, &error, |waiting| waiting.listener.cancel().is_cancelled());
                tokio::time::sleep(GLANCE).await;
                return Look::Again;
            }
            Err(error) => {
                self.give_up(key, &error, |_| true);
                return Look::Leave;
            }
        }
        for run in self.workers.waiting_for(key) {
            self.follow(store, run).await;
        }
        match self.workers.idle(place) {
            Idle::LookAgain => Look::Again,
            Idle::Wait => {
                self.wait_for_others().await;
                Look::Again
            }
            Idle::Leave => Look::Leave,
        }
    }

    /// Executes a run. Returns the thread's next one, if the last write has claimed it. Those who wait for a later one and do not
    /// want it any more need not wait for this one to end.
    async fn execute(
        self: &Arc<Self>,
        store: &Arc<dyn TenantStore>,
        key: &Key,
        assignment: Assignment,
        stays: Stays,
    ) -> Option<Claimed> {
        let watch = async {
            loop {
                self.workers.others_wait(key).await;
                tokio::time::sleep(GLANCE).await;
                for run in self.workers.unwanted(key) {
                    self.follow(store, run).await;
                }
            }
        };
        tokio::select! {
            next = execute::run(self, store, assignment, stays) => next,
            () = watch => None,
        }
    }

    /// Another process is at it, or was until it died.
    async fn wait_for_others(&self) {
        tokio::time::sleep(GLANCE).await;
        if self.workers.is_time_to_look()
            && let Err(error) = self.release_gone().await
        {
            tracing::warn!(%error, "cannot look for processes that are gone");
        }
    }

    /// Passes on what another process did for a run that somebody here waits for. May be dropped in the middle.
    async fn follow(&self, store: &Arc<dyn TenantStore>, run: RunId) {
        let Some(mut held) = self.workers.hold(run) else { return };
        let waiting = held.waiting();
        if waiting.listener.cancel().is_cancelled() && !waiting.is_cancel_asked {
            waiting.is_cancel_asked = store.cancel_run(run, Cancel::Abort).await.is_ok();
        }
        match waiting.listener.catch_up(&**store, run).await {
            Ok(Some(record)) => {
                let rows = store.ledger(run).await.unwrap_or_default();
                self.end(store, run, held.release(), finished(&record, rows));
            }
            Ok(None) => {}
            Err(error) if error.is_passing() => {}
            Err(error) => self.end_without_record(run, held.release(), Finished::without_end(error.into())),
        }
    }

    /// Tells whoever waits how it ended. By itself, because it takes as long as they do.
    pub(crate) fn end(&self, store: &Arc<dyn TenantStore>, run: RunId, waiting: Waiting, finished: Finished) {
        self.workers.tasks.spawn(waiting.end(Arc::clone(store), run, finished));
    }

    /// The same when the store cannot say it.
    pub(crate) fn end_without_record(&self, run: RunId, waiting: Waiting, finished: Finished) {
        self.workers.tasks.spawn(waiting.end_without_record(run, finished));
    }

    /// Tells those who wait, and are meant, that there is nothing to wait for.
    fn give_up(&self, key: &Key, error: &StoreError, is_meant: impl Fn(&Waiting) -> bool) {
        for run in self.workers.waiting_for(key) {
            let Some(mut held) = self.workers.hold(run) else { continue };
            if is_meant(held.waiting()) {
                self.end_without_record(run, held.release(), Finished::without_end(error.clone().into()));
            }
        }
    }
}

/// What a worker finds when it looks for work.
enum Look {
    Found(Box<Claimed>),
    Again,
    Leave,
}

/// A message to be accepted, and the part of it that is kept as JSON.
struct Accepting {
    run: NewRun,
    request: Request,
}

fn new_run(run_id: RunId, request: RunRequest, terms: Terms) -> Result<Accepting, Failure> {
    let RunRequest { overrides, entry, task, rights, trace, metadata, .. } = request;
    let (is_said, is_named) = (task.is_said(), overrides.is_named);
    let kept = Request { overrides, entry, task, rights, trace, metadata };
    let as_json = serde_json::to_value(&kept)
        .map_err(|error| StoreError::Failed(format!("the request cannot be kept: {error}")))?;
    let (role, visibility) = if is_said { (Role::User, Visibility::User) } else { outside::unsaid() };
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
        max_active: terms.max_active,
        unless_held: is_said && is_named,
    };
    Ok(Accepting { run, request: kept })
}

/// A run as it is in the store once it has begun, as far as its first append needs it.
fn as_record(run: &NewRun) -> RunRecord {
    RunRecord {
        run_id: run.run_id,
        thread_id: run.thread_id,
        user_id: run.user_id.clone(),
        agent: run.agent.clone(),
        status: RunStatus::Running,
        created_at: run.message.created_at,
        started_at: None,
        finished_at: None,
        usage: Usage::default(),
        attempts: 1,
        message_number: 0,
        request: run.request.clone(),
        end: None,
        cancel: None,
    }
}

fn assignment(started: Started, request: Request, begun: Option<Begun>, start: RunStart) -> Assignment {
    let Started { claimed, recent, appended } = started;
    let begun = begun.filter(|_| appended.is_some());
    let appended = appended.map(|appended| (start.append, appended));
    let accepted = AcceptedHere { request, recent, appended, begun };
    Assignment { claimed, accepted: Some(Box::new(accepted)) }
}
