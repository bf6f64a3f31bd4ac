//! Which threads have a worker in this process, and who waits for which run.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::RunId;
use baton_core::store::Cancel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::waiting::Waiting;
use super::{Key, Stays};

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Workers {
    state: Mutex<State>,
    pub(super) tasks: TaskTracker,
    /// No run is begun any more.
    pub(super) draining: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that have a worker here, each with whether somebody woke it since it last looked.
    at_work: HashMap<Key, bool>,
    waiting: HashMap<RunId, Waiting>,
    /// Runs that are walked here, and how to end them.
    under_way: HashMap<RunId, Ends>,
    /// When somebody last looked for processes that are gone.
    looked: Option<Instant>,
}

impl Workers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Knows how to end a run while what this returns is held.
    pub(crate) fn under_way(&self, run: RunId, ends: Ends) -> UnderWay<'_> {
        self.lock().under_way.insert(run, ends);
        UnderWay { workers: self, run }
    }

    pub(super) fn cancel(&self, run: RunId, how: Cancel) {
        let ends = self.lock().under_way.get(&run).cloned();
        match (ends, how) {
            (Some(ends), Cancel::Stop) => ends.stop.cancel(),
            (Some(ends), Cancel::Abort) => ends.cancel.cancel(),
            (None, _) => {}
        }
    }

    pub(super) fn at_work(&self) -> usize {
        self.lock().at_work.len()
    }

    pub(crate) fn take(&self, run: RunId) -> Option<Waiting> {
        self.lock().waiting.remove(&run)
    }

    pub(crate) fn wait_again(&self, run: RunId, waiting: Waiting) {
        self.lock().waiting.insert(run, waiting);
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

    /// Whether a worker has to be started.
    pub(super) fn wake(&self, key: &Key) -> bool {
        self.lock().at_work.insert(key.clone(), true).is_none()
    }

    /// Whether a worker that is there for those who wait may go, because nobody does.
    pub(super) fn is_dismissed(&self, place: &mut Place<'_>) -> bool {
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
    pub(super) fn idle(&self, place: &mut Place<'_>) -> Idle {
        let mut state = self.lock();
        // Whoever is not accepted yet wakes somebody when they are.
        let is_needed =
            state.waiting.values().any(|waiting| waiting.is_accepted && waiting.key == *place.key);
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
