//! Who works on which thread, and who waits for which run.
//!
//! A message is accepted first: written down, its run queued. Then the thread's worker, one per thread and process, claims run
//! after run until none is left. Whether it is this process that gets a run or another one, whoever waits for it hears of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::event::{Event, EventKind, Outcome};
use baton_core::message::{Message, Role, Visibility};
use baton_core::store::{Cancel, Claimed, NewRun, RunRecord};
use baton_core::{AgentName, LedgerRow, MessageId, RunId, StoreError, TenantId, TenantStore, ThreadId};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::engine::{Engine, Finished, Run, RunRequest};
use crate::execute;
use crate::failure::Failure;
use crate::listener::Listener;
use crate::session::Answer;

/// How many events may wait for a listener before the run waits for it.
const EVENT_QUEUE: usize = 256;
/// How often a thread is looked at that another process works on.
const GLANCE: Duration = Duration::from_millis(250);
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

type Key = (TenantId, ThreadId);

#[derive(Debug, Default)]
pub(crate) struct Workers {
    state: Mutex<State>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that have a worker here, each with whether somebody woke it since it last looked.
    at_work: HashMap<Key, bool>,
    waiting: HashMap<RunId, Waiting>,
    /// When somebody last looked for processes that are gone.
    looked: Option<Instant>,
}

/// Somebody who wants to hear of a run.
#[derive(Debug)]
pub(crate) struct Waiting {
    key: Key,
    pub(crate) listener: Listener,
    end: oneshot::Sender<Finished>,
    /// Whether the store has the run. Until then nobody else can know of it.
    is_accepted: bool,
    /// Whether whoever works on the run was told that it is to end.
    is_cancel_asked: bool,
}

impl Workers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self, run: RunId) -> Option<Waiting> {
        self.lock().waiting.remove(&run)
    }

    pub(crate) fn wait_again(&self, run: RunId, waiting: Waiting) {
        self.lock().waiting.insert(run, waiting);
    }

    /// Tells whoever waits how it ended, after all that was kept. Takes as long as they do, so nobody waits for it here.
    pub(crate) fn end(&self, store: Arc<dyn TenantStore>, run: RunId, waiting: Waiting, finished: Finished) {
        self.tasks.spawn(async move {
            if waiting.listener.tell_rest(&*store, run).await {
                let _ = waiting.end.send(finished);
            } else {
                end_without_record(run, waiting, finished).await;
            }
        });
    }

    /// The same when the store cannot say it.
    pub(crate) fn end_without_record(&self, run: RunId, waiting: Waiting, finished: Finished) {
        self.tasks.spawn(end_without_record(run, waiting, finished));
    }

    /// Runs of a thread that the store has and somebody here waits for.
    fn waiting_for(&self, key: &Key) -> Vec<RunId> {
        let state = self.lock();
        let meant = state.waiting.iter().filter(|(_, waiting)| waiting.key == *key && waiting.is_accepted);
        meant.map(|(run, _)| *run).collect()
    }

    /// Of these, those that are to end.
    fn unwanted(&self, key: &Key) -> Vec<RunId> {
        let mut runs = self.waiting_for(key);
        let state = self.lock();
        runs.retain(|run| {
            state.waiting.get(run).is_some_and(|waiting| waiting.listener.cancel().is_cancelled())
        });
        runs
    }

    fn is_accepted(&self, run: RunId) {
        if let Some(waiting) = self.lock().waiting.get_mut(&run) {
            waiting.is_accepted = true;
        }
    }

    /// Once in a while, however many workers wait.
    fn is_time_to_look(&self) -> bool {
        let mut state = self.lock();
        let is_time = state.looked.is_none_or(|looked| looked.elapsed() >= BETWEEN_LOOKS);
        if is_time {
            state.looked = Some(Instant::now());
        }
        is_time
    }

    /// Whether a worker has to be started.
    fn wake(&self, key: &Key) -> bool {
        self.lock().at_work.insert(key.clone(), true).is_none()
    }

    /// Whether a worker that is there for those who wait may go, because nobody does.
    fn is_dismissed(&self, place: &mut Place<'_>) -> bool {
        let mut state = self.lock();
        if place.stays == Stays::UntilDone || state.waiting.values().any(|waiting| waiting.key == *place.key)
        {
            return false;
        }
        state.at_work.remove(place.key);
        place.is_left = true;
        true
    }

    /// What a worker does that found nothing to claim.
    fn idle(&self, place: &mut Place<'_>) -> Idle {
        let mut state = self.lock();
        let is_needed = state.waiting.values().any(|waiting| waiting.key == *place.key);
        match state.at_work.get_mut(place.key) {
            Some(woken) if *woken => {
                *woken = false;
                Idle::LookAgain
            }
            Some(_) if is_needed => Idle::Wait,
            _ => {
                state.at_work.remove(place.key);
                place.is_left = true;
                Idle::Leave
            }
        }
    }
}

enum Idle {
    LookAgain,
    Wait,
    Leave,
}

/// How long a worker stays with its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Until every run has ended, whoever asked for it.
    UntilDone,
    /// While somebody in this process waits. Runs of others are left to them, unless they come first.
    WhileAwaited,
}

/// A worker's place. Freed also when the worker stops in the middle.
struct Place<'a> {
    workers: &'a Workers,
    key: &'a Key,
    stays: Stays,
    is_left: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_left {
            let mut state = self.workers.lock();
            state.at_work.remove(self.key);
            // Nobody would tell them anything; their runs are kept, and others take them up.
            state.waiting.retain(|_, waiting| waiting.key != *self.key);
        }
    }
}

impl Engine {
    /// Accepts a message and sees to it that it is worked on. When this returns, the message is kept and its run will end,
    /// whatever happens to this process.
    pub async fn start(self: &Arc<Self>, request: RunRequest) -> Result<Run, Failure> {
        if !self.agents().contains_key(&request.agent) {
            return Err(Failure::NoAgent(request.agent));
        }
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let key = (request.caller.tenant.clone(), request.caller.thread_id);
        let new = new_run(run_id, request)?;
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

    async fn accept(self: &Arc<Self>, key: Key, run_id: RunId, new: NewRun) -> Result<(), Failure> {
        let store = self.parts.store.tenant(&key.0);
        if let Err(error) = store.accept(new).await {
            // The answer may have been lost, not the message.
            if !error.is_passing() || store.run(run_id).await.is_err() {
                self.workers.take(run_id);
                return Err(error.into());
            }
        }
        self.workers.is_accepted(run_id);
        drop(self.wake(key, self.parts.stays));
        Ok(())
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
        while !self.workers.is_dismissed(&mut place) {
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

    /// Passes on what another process did for a run that somebody here waits for.
    async fn follow(&self, store: &Arc<dyn TenantStore>, run: RunId) {
        let Some(mut waiting) = self.workers.take(run) else { return };
        if waiting.listener.cancel().is_cancelled() && !waiting.is_cancel_asked {
            waiting.is_cancel_asked = store.cancel_run(run, Cancel::Abort).await.is_ok();
        }
        match waiting.listener.catch_up(&**store, run).await {
            Ok(Some(record)) => {
                let rows = store.ledger(run).await.unwrap_or_default();
                self.workers.end(Arc::clone(store), run, waiting, finished(&record, rows));
            }
            Ok(None) => self.workers.wait_again(run, waiting),
            Err(error) if error.is_passing() => self.workers.wait_again(run, waiting),
            Err(error) => {
                let finished = Finished::without_end(error.into());
                self.workers.end_without_record(run, waiting, finished);
            }
        }
    }

    /// Tells those who wait, and are meant, that there is nothing to wait for.
    fn give_up(&self, key: &Key, error: &StoreError, is_meant: impl Fn(&Waiting) -> bool) {
        for run in self.workers.waiting_for(key) {
            match self.workers.take(run) {
                Some(waiting) if is_meant(&waiting) => {
                    let finished = Finished::without_end(error.clone().into());
                    self.workers.end_without_record(run, waiting, finished);
                }
                Some(waiting) => self.workers.wait_again(run, waiting),
                None => {}
            }
        }
    }
}

/// Says how it ended in an event of its own.
async fn end_without_record(run: RunId, waiting: Waiting, finished: Finished) {
    let usage = finished.usage;
    let kind = match &finished.failure {
        Some(failure) => {
            EventKind::RunFailed { code: failure.code().to_owned(), message: failure.to_string(), usage }
        }
        None => EventKind::RunFinished { outcome: Outcome::Success, usage, limit: None },
    };
    waiting.listener.tell_last(last_event(&waiting.key, run, kind)).await;
    let _ = waiting.end.send(finished);
}

/// An event that nobody numbered.
fn last_event(key: &Key, run_id: RunId, kind: EventKind) -> Event {
    let agent = AgentName::parse("baton").expect("a valid name");
    let path = agent.as_str().into();
    Event {
        seq: 0,
        thread_id: key.1,
        run_id,
        at: Timestamp::now(),
        agent,
        path,
        visibility: Visibility::User,
        kind,
    }
}

fn new_run(run_id: RunId, request: RunRequest) -> Result<NewRun, Failure> {
    let overrides = serde_json::to_value(&request.overrides)
        .map_err(|error| StoreError::Failed(format!("the request cannot be kept: {error}")))?;
    let message = Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: request.input,
        created_at: Timestamp::now(),
    };
    Ok(NewRun {
        run_id,
        thread_id: request.caller.thread_id,
        user_id: request.caller.user,
        agent: request.agent,
        message,
        request: overrides,
        on_busy: request.on_busy,
        idempotency: None,
    })
}

/// The end of a run as it is kept.
fn finished(record: &RunRecord, rows: Vec<LedgerRow>) -> Finished {
    let end = record.end.clone().unwrap_or_default();
    let answer = end.answer.map(|text| Answer {
        text,
        value: end.value,
        limit: end.limit.as_deref().and_then(baton_core::choice::Choice::parse),
        turns: 0,
    });
    let failure = end.code.map(|code| Failure::Elsewhere { code, message: end.message.unwrap_or_default() });
    Finished { status: record.status, answer, failure, usage: record.usage, rows }
}
