//! Who works on which thread.
//!
//! A message is accepted first: written down, its run queued. Then the thread's worker, one per thread and process, claims run
//! after run until none is left. Whether it is this process that gets a run or another one, whoever waits for it hears of it.

mod places;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use baton_core::message::{Message, Role, Visibility};
use baton_core::store::{Accepted, Cancel, Claimed, NewRun, RunStatus};
use baton_core::{MessageId, RunId, StoreError, TenantId, TenantStore, ThreadId};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::{Engine, Finished, Request, Run, RunRequest, Terms};
use crate::execute;
use crate::failure::Failure;
use crate::handoff::outside;
use crate::listener::Listener;
pub(crate) use places::{Ends, Workers};
use places::{Idle, Place};
pub(crate) use waiting::Waiting;
use waiting::finished;

/// How many events may wait for a listener before the run waits for it.
const EVENT_QUEUE: usize = 256;
/// How often a thread is looked at that another process works on.
const GLANCE: Duration = Duration::from_millis(250);

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
        self.must_be_reachable(&request).await?;
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
        let accepting = self.workers.tasks.spawn(async move { engine.accept(key, run_id, new).await });
        accepting.await.unwrap_or(Err(Failure::Cancelled))?;
        Ok(Run { id: run_id, events: heard, cancel, end: ended })
    }

    /// The same for somebody who does not wait for it: they hear of the thread by joining it ([`crate::live`]). With an idempotency
    /// key that was used before, the run is the one that it was used for.
    pub async fn submit(self: &Arc<Self>, request: RunRequest, terms: Terms) -> Result<Accepted, Failure> {
        self.check(&request)?;
        self.must_be_reachable(&request).await?;
        self.leave_at_once(&request).await?;
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let key = (request.caller.tenant.clone(), request.caller.thread_id);
        let new = new_run(run_id, request, terms)?;
        let engine = Arc::clone(self);
        let accepting = self.workers.tasks.spawn(async move { engine.accept(key, run_id, new).await });
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

    async fn accept(self: &Arc<Self>, key: Key, run_id: RunId, new: NewRun) -> Result<Accepted, Failure> {
        let store = self.parts.store.tenant(&key.0);
        let message_id = new.message.id;
        let accepted = match store.accept(new).await {
            Ok(accepted) => accepted,
            // The answer may have been lost, not the message.
            Err(error) if error.is_passing() && store.run(run_id).await.is_ok() => {
                Accepted { run_id, message_id, is_new: true, behind: None }
            }
            Err(error) => {
                self.workers.take(run_id);
                return Err(error.into());
            }
        };
        self.workers.accepted(run_id);
        drop(self.wake(key, self.parts.stays));
        Ok(accepted)
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

    /// Sees to it that a thread is worked on. `None` when somebody in this process is already at it.
    pub(crate) fn wake(self: &Arc<Self>, key: Key, stays: Stays) -> Option<JoinHandle<()>> {
        if !self.workers.wake(&key) {
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
        if tokio::time::timeout(patience, self.workers.tasks.wait()).await.is_ok() {
            return Ok(0);
        }
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
        let mut place = Place { workers: &self.workers, key, stays, is_left: false };
        let store = self.parts.store.tenant(&key.0);
        while !self.workers.is_dismissed(&mut place) && !self.workers.draining.is_cancelled() {
            let asked = Instant::now();
            match self.claim(&*store, key.1).await {
                Ok(Some(claimed)) => Box::pin(self.execute(&store, key, claimed, asked)).await,
                Ok(None) => {
                    for run in self.workers.waiting_for(key) {
                        self.follow(&store, run).await;
                    }
                    match self.workers.idle(&mut place) {
                        Idle::LookAgain => {}
                        Idle::Wait => self.wait_for_others().await,
                        Idle::Leave => return,
                    }
                }
                Err(error) if error.is_passing() => {
                    tracing::warn!(thread = %key.1, %error, "cannot look for work; trying again");
                    self.give_up(key, &error, |waiting| waiting.listener.cancel().is_cancelled());
                    tokio::time::sleep(GLANCE).await;
                }
                Err(error) => return self.give_up(key, &error, |_| true),
            }
        }
    }

    /// Works on a run. Those who wait for a later one and do not want it any more need not wait for this one to end.
    async fn execute(
        self: &Arc<Self>,
        store: &Arc<dyn TenantStore>,
        key: &Key,
        claimed: Claimed,
        asked: Instant,
    ) {
        let watch = async {
            loop {
                tokio::time::sleep(GLANCE).await;
                for run in self.workers.unwanted(key) {
                    self.follow(store, run).await;
                }
            }
        };
        tokio::select! {
            () = execute::run(self, store, claimed, asked) => {}
            () = watch => {}
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

    async fn claim(&self, store: &dyn TenantStore, thread: ThreadId) -> Result<Option<Claimed>, StoreError> {
        store.claim(thread, &self.parts.identity.owner, self.parts.lease.length).await
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

fn new_run(run_id: RunId, request: RunRequest, terms: Terms) -> Result<NewRun, Failure> {
    let RunRequest { overrides, entry, task, rights, trace, metadata, .. } = request;
    let is_said = task.is_said();
    let kept = Request { overrides, entry, task, rights, trace, metadata };
    let kept = serde_json::to_value(&kept)
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
    Ok(NewRun {
        run_id,
        thread_id: request.caller.thread_id,
        user_id: request.caller.user,
        agent: request.agent,
        message,
        request: kept,
        on_busy: request.on_busy,
        idempotency: terms.idempotency,
        max_active: terms.max_active,
    })
}
