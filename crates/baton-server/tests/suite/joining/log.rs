//! A log of events that answers a read when the test lets it.

use std::sync::{Arc, Mutex};

use baton_core::event::{Event, EventKind};
use baton_core::store::Pending;
use baton_core::{RunId, ThreadId};
use baton_server::stream::follow::{EventLog, Of};
use tokio::sync::Semaphore;

#[derive(Debug, Clone)]
pub struct GatedLog {
    committed: Arc<Mutex<Vec<Event>>>,
    gate: Arc<Semaphore>,
}

impl Default for GatedLog {
    fn default() -> Self {
        Self { committed: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }
}

impl GatedLog {
    pub fn commit(&self, events: Vec<Event>) {
        self.committed.lock().unwrap().extend(events);
    }

    /// Lets that many more reads be answered, with what is committed when they are.
    pub fn answer(&self, reads: usize) {
        self.gate.add_permits(reads);
    }

    fn read<T: Send + 'static>(&self, answer: impl FnOnce(&[Event]) -> T + Send + 'static) -> Pending<'_, T> {
        Box::pin(async {
            self.gate.acquire().await.expect("never closed").forget();
            Ok(answer(&self.committed.lock().unwrap()))
        })
    }
}

impl EventLog for GatedLog {
    fn last_seq(&self, _: ThreadId) -> Pending<'_, u64> {
        self.read(|committed| committed.last().map_or(0, |event| event.seq))
    }

    fn page(&self, _: ThreadId, of: Of, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        self.read(move |committed| {
            let is_of = |event: &&Event| of == Of::Thread || of == Of::Run(event.run_id);
            let later = committed.iter().filter(|event| event.seq > after).filter(is_of);
            later.take(limit as usize).cloned().collect()
        })
    }

    fn is_waiting(&self, run: RunId) -> Pending<'_, bool> {
        let committed = self.committed.lock().unwrap();
        let last = committed.iter().rev().find(|event| event.run_id == run);
        let is_waiting = last.is_some_and(|event| matches!(event.kind, EventKind::RunWaiting { .. }));
        Box::pin(async move { Ok(is_waiting) })
    }
}
