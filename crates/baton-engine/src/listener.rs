//! Delivers the events of a run to the caller that waits for it.
//!
//! A run waits for a slow listener for 5 s in total. Then it continues alone, and the listener gets the stored events after the
//! run has ended. Only text deltas are lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use baton_core::event::Event;
use baton_core::store::{RunRecord, RunStatus};
use baton_core::{RunId, StoreError, TenantStore};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::retry::retry;

/// How long a run waits for its listener in total.
const MAX_TOTAL_WAIT: Duration = Duration::from_secs(5);
/// Retries and their delay while the store is unavailable at the end of a run.
const MAX_ATTEMPTS: u32 = 60;
const RETRY_DELAY: Duration = Duration::from_secs(1);
const PAGE_SIZE: u32 = 200;

/// The sender of a run's events to the caller that waits for it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Listener(Arc<ListenerInner>);

#[derive(Debug)]
struct ListenerInner {
    events: mpsc::Sender<Event>,
    /// Cancels the run. A cancelled run does not wait for its listener.
    cancel: CancellationToken,
    /// The sequence number of the last stored event that was delivered.
    last_seq: AtomicU64,
    is_behind: AtomicBool,
    /// How long the run has waited for the listener, in milliseconds.
    waited: AtomicU64,
}

impl Listener {
    pub(crate) fn new(events: mpsc::Sender<Event>, cancel: CancellationToken) -> Self {
        let (last_seq, waited) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(ListenerInner { events, cancel, last_seq, is_behind: AtomicBool::new(false), waited }))
    }

    /// A listener for runs that no caller waits for.
    pub(crate) fn detached() -> Self {
        // Shared by all, because every channel preallocates room for some events.
        static CLOSED: LazyLock<mpsc::Sender<Event>> = LazyLock::new(|| mpsc::channel(1).0);
        Self::new(CLOSED.clone(), CancellationToken::new())
    }

    /// Delivers only events with a number above `seq`.
    pub(crate) fn start_after(&self, seq: u64) {
        self.0.last_seq.store(seq, Ordering::Release);
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Delivers an event, unless the listener is behind or gone.
    pub(crate) async fn send(&self, event: Arc<Event>) {
        if self.0.is_behind.load(Ordering::Acquire) || self.0.events.is_closed() {
            return self.mark_behind();
        }
        let last_seq = event.kind.is_kept().then_some(event.seq);
        // There is usually room, and then nothing is awaited.
        let is_told = match self.0.events.try_send(Arc::unwrap_or_clone(event)) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(event)) => self.wait(event).await,
        };
        match last_seq {
            _ if !is_told => self.0.is_behind.store(true, Ordering::Release),
            Some(seq) => self.0.last_seq.store(seq, Ordering::Release),
            None => {}
        }
    }

    /// Waits for room in the queue. Returns `false` when the run is cancelled, the listener is gone, or its 5 s are used up.
    async fn wait(&self, event: Event) -> bool {
        let begun = Instant::now();
        let remaining =
            MAX_TOTAL_WAIT.saturating_sub(Duration::from_millis(self.0.waited.load(Ordering::Acquire)));
        let is_told = tokio::select! {
            sent = self.0.events.send(event) => sent.is_ok(),
            () = self.0.cancel.cancelled() => false,
            () = tokio::time::sleep(remaining) => false,
        };
        let waited = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.waited.fetch_add(waited, Ordering::AcqRel);
        is_told
    }

    /// From now on the listener gets no events until the run has ended.
    pub(crate) fn mark_behind(&self) {
        self.0.is_behind.store(true, Ordering::Release);
    }

    /// Delivers the stored events since the last one. Returns the record if the run has ended or waits, even if the listener falls
    /// behind.
    pub(crate) async fn catch_up(
        &self,
        store: &dyn TenantStore,
        run: RunId,
    ) -> Result<Option<RunRecord>, StoreError> {
        // Read before the events: if it is final, all events are stored.
        let record = store.run(run).await?;
        loop {
            let events = store.run_events(run, self.0.last_seq.load(Ordering::Acquire), PAGE_SIZE).await?;
            let is_last = events.len() < PAGE_SIZE as usize;
            for event in events {
                self.send(Arc::new(event)).await;
            }
            if is_last || self.0.is_behind.load(Ordering::Acquire) {
                let is_at_rest = record.status.is_final() || record.status == RunStatus::Waiting;
                return Ok(is_at_rest.then_some(record));
            }
        }
    }

    /// Delivers the rest of an ended run's events, without a time limit. Stops when the listener is gone. Returns `false` if the
    /// store cannot be read.
    pub(crate) async fn send_rest(&self, store: &dyn TenantStore, run: RunId) -> bool {
        loop {
            let last_seq = self.0.last_seq.load(Ordering::Acquire);
            let rest = retry(MAX_ATTEMPTS, RETRY_DELAY, || store.run_events(run, last_seq, PAGE_SIZE));
            let Ok(events) = rest.await else { return false };
            if events.is_empty() {
                return true;
            }
            for event in events {
                let seq = event.seq;
                if self.0.events.send(event).await.is_err() {
                    return true;
                }
                self.0.last_seq.store(seq, Ordering::Release);
            }
        }
    }

    /// Delivers the final event of a run whose end cannot be stored or read.
    pub(crate) async fn send_last(&self, event: Event) {
        let _ = self.0.events.send(event).await;
    }
}
