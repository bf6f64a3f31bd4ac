//! Which threads have a worker in this process, and who waits for which run.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::RunId;
use baton_core::store::Cancel;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::assignment::Assignment;
use super::waiting::Waiting;
use super::{Key, Stays};

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Workers {
    state: Mutex<State>,
    pub(super) tasks: TaskTracker,
    /// No run is begun any more.
    pub(super) draining: CancellationToken,
    /// Told whenever a caller begins to wait.
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that have a worker here.
    at_work: HashMap<Key, Slot>,
    waiting: HashMap<RunId, Waiting>,
    /// Runs that are executed here, and how to end them.
    under_way: HashMap<RunId, (Key, Ends)>,
    /// When somebody last looked for processes that are gone.
    looked: Option<Instant>,
}

/// The worker of a thread, seen from outside.
#[derive(Debug, Default)]
struct Slot {
    /// Set when there may be more to do than it knows of.
    is_woken: bool,
    /// A run that was claimed for it.
    assignment: Option<Assignment>,
}

impl Workers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Knows how to end a run while what this returns is held.
    pub(crate) fn under_way(&self, key: Key, run: RunId, ends: Ends) -> UnderWay<'_> {
        self.lock().under_way.insert(run, (key, ends));
        UnderWay { workers: self, run }
    }

    pub(crate) fn cancel(&self, run: RunId, how: Cancel) {
        let ends = self.lock().under_way.get(&run).map(|(_, ends)| ends.clone());
        match (ends, how) {
            (Some(ends), Cancel::Stop) => ends.stop.cancel(),
            (Some(ends), Cancel::Abort) => ends.cancel.cancel(),
            (None, _) => {}
        }
    }

    /// The run of a thread that is executed here.
    pub(super) fn active(&self, key: &Key) -> Option<RunId> {
        self.lock().under_way.iter().find(|(_, (of, _))| of == key).map(|(run, _)| *run)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(super) fn at_work(&self) -> usize {
        self.lock().at_work.len()
    }

    pub(crate) fn take(&self, run: RunId) -> Option<Waiting> {
        self.lock().waiting.remove(&run)
    }

    pub(crate) fn wait_again(&self, run: RunId, waiting: Waiting) {
        self.lock().waiting.insert(run, waiting);
        self.arrived.notify_waiters();
    }

    /// Returns when a caller of this process waits for a run of the thread.
    pub(super) async fn others_wait(&self, key: &Key) {
        loop {
            // Created before the check, so that no notification is missed.
            let arrived = self.arrived.notified();
            if !self.waiting_for(key).is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Takes it out to do something with it. It is put back unless that comes to an end.
    pub(super) fn hold(&self, run: RunId) -> Option<Held<'_>> {
        self.take(run).map(|waiting| Held { workers: self, run, waiting: Some(waiting) })
    }

    /// Runs of a thread that the store has and somebody here waits for.
    pub(super) fn waiting_for(&self, key: &Key) -> Vec<RunId> {
        let state = self.lock();
        let meant = state.waiting.iter().filter(|(_, waiting)| waiting.key == *key && waiting.is_accepted);
        meant.map(|(run, _)| *run).collect()
    }

    /// Of these, those that are to end.
    pub(super) fn unwanted(&self, key: &Key) -> Vec<RunId> {
        let mut runs = self.waiting_for(key);
        let state = self.lock();
        runs.retain(|run| {
            state.waiting.get(run).is_some_and(|waiting| waiting.listener.cancel().is_cancelled())
        });
        runs
    }

    /// The store has it now.
    pub(super) fn accepted(&self, run: RunId) {
        if let Some(waiting) = self.lock().waiting.get_mut(&run) {
            waiting.is_accepted = true;
            self.arrived.notify_waiters();
        }
    }

    /// Once in a while, however many workers wait.
    pub(super) fn is_time_to_look(&self) -> bool {
        let mut state = self.lock();
        let is_time = state.looked.is_none_or(|looked| looked.elapsed() >= BETWEEN_LOOKS);
        if is_time {
            state.looked = Some(Instant::now());
        }
        is_time
    }

    pub(super) fn has_worker(&self, key: &Key) -> bool {
        self.lock().at_work.contains_key(key)
    }

    /// Whether a worker has to be started. One that is there gets the assignment as soon as it has ended its run.
    pub(super) fn wake(&self, key: &Key, assignment: Option<Assignment>) -> bool {
        let mut state = self.lock();
        let is_new = !state.at_work.contains_key(key);
        let slot = state.at_work.entry(key.clone()).or_default();
        slot.is_woken |= assignment.is_none();
        if assignment.is_some() {
            slot.assignment = assignment;
        }
        is_new
    }

    /// The run that was claimed for the worker of the thread.
    pub(super) fn assigned(&self, key: &Key) -> Option<Assignment> {
        self.lock().at_work.get_mut(key)?.assignment.take()
    }

    /// The run that was claimed for a worker that is about to go; without one it has gone.
    pub(super) fn assigned_or_leave(&self, place: &mut Place<'_>) -> Option<Assignment> {
        if place.is_left {
            return None;
        }
        let mut state = self.lock();
        let assignment = state.at_work.get_mut(place.key).and_then(|slot| slot.assignment.take());
        if assignment.is_none() {
            state.at_work.remove(place.key);
            // Nothing would answer them; their runs are kept, and other workers take them up.
            state.waiting.retain(|_, waiting| waiting.key != *place.key);
            place.is_left = true;
        }
        assignment
    }

    /// Whether a worker may go whose last run left nothing in the queue: it was not woken, and no caller waits here.
    pub(super) fn leave(&self, place: &mut Place<'_>) -> bool {
        let mut state = self.lock();
        let slot = state.at_work.get(place.key);
        let is_needed = slot.is_some_and(|slot| slot.is_woken || slot.assignment.is_some())
            || state.waiting.values().any(|waiting| waiting.key == *place.key);
        if !is_needed {
            state.at_work.remove(place.key);
            place.is_left = true;
        }
        !is_needed
    }

    /// Whether a worker that is there for those who wait may go, because nobody does.
    pub(super) fn is_dismissed(&self, place: &mut Place<'_>) -> bool {
        let mut state = self.lock();
        let is_assigned = state.at_work.get(place.key).is_some_and(|slot| slot.assignment.is_some());
        let is_awaited = || state.waiting.values().any(|waiting| waiting.key == *place.key);
        if place.stays == Stays::UntilDone || is_assigned || is_awaited() {
            return false;
        }
        state.at_work.remove(place.key);
        place.is_left = true;
        true
    }

    /// What a worker does that found nothing to claim.
    pub(super) fn idle(&self, place: &mut Place<'_>) -> Idle {
        let mut state = self.lock();
        // Whoever is not accepted yet wakes somebody when they are.
        let is_needed =
            state.waiting.values().any(|waiting| waiting.is_accepted && waiting.key == *place.key);
        match state.at_work.get_mut(place.key) {
            Some(slot) if slot.is_woken || slot.assignment.is_some() => {
                slot.is_woken = false;
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

/// How a run is ended: with a closing turn, or at once.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    pub(crate) stop: CancellationToken,
    pub(crate) cancel: CancellationToken,
}

/// A run that is walked here.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    workers: &'a Workers,
    run: RunId,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.workers.lock().under_way.remove(&self.run);
    }
}

/// What a worker does that found nothing to claim.
pub(super) enum Idle {
    LookAgain,
    Wait,
    Leave,
}

/// A worker's place. Freed also when the worker stops in the middle.
pub(super) struct Place<'a> {
    pub(super) workers: &'a Workers,
    pub(super) key: &'a Key,
    pub(super) stays: Stays,
    pub(super) is_left: bool,
    /// Whether the outcome of the last claim is unknown.
    pub(super) is_unsure: bool,
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

/// Somebody's wish to hear of a run, in somebody's hands.
pub(super) struct Held<'a> {
    workers: &'a Workers,
    run: RunId,
    waiting: Option<Waiting>,
}

impl Held<'_> {
    pub(super) fn waiting(&mut self) -> &mut Waiting {
        self.waiting.as_mut().expect("there until it is released")
    }

    /// Not to be put back.
    pub(super) fn release(mut self) -> Waiting {
        self.waiting.take().expect("there until it is released")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.workers.wait_again(self.run, waiting);
        }
    }
}
