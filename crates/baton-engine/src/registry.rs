//! The threads that have a worker in this process, its active runs, and their waiters.

mod assignment;
mod waiter;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::RunId;
use baton_core::store::Cancel;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cancellation::CancelTokens;
use crate::live::ThreadKey;
pub(crate) use assignment::{AcceptedHere, Assignment};
pub(crate) use waiter::{Waiter, finished};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a worker serves its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerLifetime {
    /// Until every run of the thread has ended.
    UntilDone,
    /// While a caller in this process waits for a run. Other runs are left to other processes, unless they are queued first.
    WhileAwaited,
}

/// The registry of this process's workers.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    state: Mutex<RegistryState>,
    pub(crate) tasks: TaskTracker,
    /// Set at shutdown: no further run starts.
    pub(crate) draining: CancellationToken,
    /// Notified when a caller begins to wait.
    arrived: Notify,
}

/// The state of the registry, under its lock.
#[derive(Debug, Default)]
struct RegistryState {
    /// Threads with a worker in this process.
    at_work: HashMap<ThreadKey, WorkerSlot>,
    waiting: HashMap<RunId, Waiter>,
    /// Runs that this process executes, and their cancellation tokens.
    active: HashMap<RunId, (ThreadKey, CancelTokens)>,
    /// When dead processes were last looked for.
    last_poll: Option<Instant>,
}

/// What is passed to the worker of a thread.
#[derive(Debug, Default)]
struct WorkerSlot {
    /// Set if there may be more runs than the worker knows of.
    is_woken: bool,
    /// A run that was claimed for the worker.
    assignment: Option<Assignment>,
}

impl Workers {
    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an active run and its tokens until the guard is dropped.
    pub(crate) fn track_active(
        &self,
        key: ThreadKey,
        run: RunId,
        tokens: CancelTokens,
    ) -> ActiveRunGuard<'_> {
        self.lock().active.insert(run, (key, tokens));
        ActiveRunGuard { workers: self, run }
    }

    pub(crate) fn cancel(&self, run: RunId, how: Cancel) {
        let tokens = self.lock().active.get(&run).map(|(_, tokens)| tokens.clone());
        match (tokens, how) {
            (Some(tokens), Cancel::Stop) => tokens.stop.cancel(),
            (Some(tokens), Cancel::Abort) => tokens.cancel.cancel(),
            (None, _) => {}
        }
    }

    /// The run of a thread that this process executes.
    pub(crate) fn active(&self, key: &ThreadKey) -> Option<RunId> {
        self.lock().active.iter().find(|(_, (of, _))| of == key).map(|(run, _)| *run)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(crate) fn active_threads(&self) -> usize {
        self.lock().at_work.len()
    }

    pub(crate) fn take(&self, run: RunId) -> Option<Waiter> {
        self.lock().waiting.remove(&run)
    }

    pub(crate) fn wait_again(&self, run: RunId, waiting: Waiter) {
        self.lock().waiting.insert(run, waiting);
        self.arrived.notify_waiters();
    }

    /// Returns when a caller of this process waits for a run of the thread. Cancel safe.
    pub(crate) async fn waiter_arrived(&self, key: &ThreadKey) {
        loop {
            // Created before the check, so that no notification is missed.
            let arrived = self.arrived.notified();
            if !self.waiting_for(key).is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Takes a waiter. The guard puts it back on drop, unless it is released.
    pub(crate) fn take_guarded(&self, run: RunId) -> Option<WaiterGuard<'_>> {
        self.take(run).map(|waiting| WaiterGuard { workers: self, run, waiting: Some(waiting) })
    }

    /// Accepted runs of a thread that callers of this process wait for.
    pub(crate) fn waiting_for(&self, key: &ThreadKey) -> Vec<RunId> {
        let state = self.lock();
        let meant = state.waiting.iter().filter(|(_, waiting)| waiting.key == *key && waiting.is_accepted);
        meant.map(|(run, _)| *run).collect()
    }

    /// Of [`Workers::waiting_for`], the runs whose callers have cancelled them.
    pub(crate) fn cancelled_waiters(&self, key: &ThreadKey) -> Vec<RunId> {
        let mut runs = self.waiting_for(key);
        let state = self.lock();
        runs.retain(|run| {
            state.waiting.get(run).is_some_and(|waiting| waiting.listener.cancel().is_cancelled())
        });
        runs
    }

    /// Marks a run as stored.
    pub(crate) fn accepted(&self, run: RunId) {
        if let Some(waiting) = self.lock().waiting.get_mut(&run) {
            waiting.is_accepted = true;
            self.arrived.notify_waiters();
        }
    }

    /// Whether dead processes are to be looked for. True at most once a second for all workers together.
    pub(crate) fn is_poll_due(&self) -> bool {
        let mut state = self.lock();
        let is_time = state.last_poll.is_none_or(|last_poll| last_poll.elapsed() >= POLL_INTERVAL);
        if is_time {
            state.last_poll = Some(Instant::now());
        }
        is_time
    }

    pub(crate) fn has_worker(&self, key: &ThreadKey) -> bool {
        self.lock().at_work.contains_key(key)
    }

    /// Wakes the thread's worker, and returns `true` if there is none and the caller has to start it. An existing worker gets the
    /// assignment after its current run.
    pub(crate) fn wake(&self, key: &ThreadKey, assignment: Option<Assignment>) -> bool {
        let mut state = self.lock();
        let is_new = !state.at_work.contains_key(key);
        let slot = state.at_work.entry(key.clone()).or_default();
        slot.is_woken |= assignment.is_none();
        if assignment.is_some() {
            slot.assignment = assignment;
        }
        is_new
    }

    /// Takes the run that was claimed for the thread's worker.
    pub(crate) fn assigned(&self, key: &ThreadKey) -> Option<Assignment> {
        self.lock().at_work.get_mut(key)?.assignment.take()
    }

    /// Takes the run that was claimed for a leaving worker. Without one, the worker is removed.
    pub(crate) fn assigned_or_leave(&self, guard: &mut WorkerGuard<'_>) -> Option<Assignment> {
        if guard.is_left {
            return None;
        }
        let mut state = self.lock();
        let assignment = state.at_work.get_mut(guard.key).and_then(|slot| slot.assignment.take());
        if assignment.is_none() {
            state.at_work.remove(guard.key);
            // No worker would answer these waiters. Their runs are stored, and other workers execute them.
            state.waiting.retain(|_, waiting| waiting.key != *guard.key);
            guard.is_left = true;
        }
        assignment
    }

    /// Removes a worker whose last run left nothing in the queue, unless it was woken or a caller waits. Returns whether it was
    /// removed.
    pub(crate) fn leave(&self, guard: &mut WorkerGuard<'_>) -> bool {
        let mut state = self.lock();
        let slot = state.at_work.get(guard.key);
        let is_needed = slot.is_some_and(|slot| slot.is_woken || slot.assignment.is_some())
            || state.waiting.values().any(|waiting| waiting.key == *guard.key);
        if !is_needed {
            state.at_work.remove(guard.key);
            guard.is_left = true;
        }
        !is_needed
    }

    /// Removes a [`WorkerLifetime::WhileAwaited`] worker if no caller waits and it has no assignment. Returns whether it was
    /// removed.
    pub(crate) fn may_leave(&self, guard: &mut WorkerGuard<'_>) -> bool {
        let mut state = self.lock();
        let is_assigned = state.at_work.get(guard.key).is_some_and(|slot| slot.assignment.is_some());
        let is_awaited = || state.waiting.values().any(|waiting| waiting.key == *guard.key);
        if guard.worker_lifetime == WorkerLifetime::UntilDone || is_assigned || is_awaited() {
            return false;
        }
        state.at_work.remove(guard.key);
        guard.is_left = true;
        true
    }

    /// Decides what a worker does that found nothing to claim.
    pub(crate) fn idle(&self, guard: &mut WorkerGuard<'_>) -> IdleAction {
        let mut state = self.lock();
        // A run that is not accepted yet wakes a worker when it is.
        let is_needed =
            state.waiting.values().any(|waiting| waiting.is_accepted && waiting.key == *guard.key);
        match state.at_work.get_mut(guard.key) {
            Some(slot) if slot.is_woken || slot.assignment.is_some() => {
                slot.is_woken = false;
                IdleAction::LookAgain
            }
            Some(_) if is_needed => IdleAction::Wait,
            _ => {
                state.at_work.remove(guard.key);
                guard.is_left = true;
                IdleAction::Leave
            }
        }
    }
}

/// RAII guard: unregisters an active run on drop.
#[derive(Debug)]
pub(crate) struct ActiveRunGuard<'a> {
    workers: &'a Workers,
    run: RunId,
}

impl Drop for ActiveRunGuard<'_> {
    fn drop(&mut self) {
        self.workers.lock().active.remove(&self.run);
    }
}

/// What a worker does that found nothing to claim.
pub(crate) enum IdleAction {
    LookAgain,
    Wait,
    Leave,
}

/// RAII guard: removes the worker from the registry, also if it panics or is dropped.
pub(crate) struct WorkerGuard<'a> {
    pub(crate) workers: &'a Workers,
    pub(crate) key: &'a ThreadKey,
    pub(crate) worker_lifetime: WorkerLifetime,
    pub(crate) is_left: bool,
    /// Whether the outcome of the last claim is unknown.
    pub(crate) is_unsure: bool,
}

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        if !self.is_left {
            let mut state = self.workers.lock();
            state.at_work.remove(self.key);
            // No worker would answer these waiters. Their runs are stored, and other workers execute them.
            state.waiting.retain(|_, waiting| waiting.key != *self.key);
        }
    }
}

/// RAII guard: puts the waiter back on drop unless [`WaiterGuard::release`]d.
pub(crate) struct WaiterGuard<'a> {
    workers: &'a Workers,
    run: RunId,
    waiting: Option<Waiter>,
}

impl WaiterGuard<'_> {
    pub(crate) fn waiting(&mut self) -> &mut Waiter {
        self.waiting.as_mut().expect("there until it is released")
    }

    /// Takes the waiter for good.
    pub(crate) fn release(mut self) -> Waiter {
        self.waiting.take().expect("there until it is released")
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.workers.wait_again(self.run, waiting);
        }
    }
}
