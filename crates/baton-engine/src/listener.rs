//! Somebody who hears of a run while it happens.
//!
//! A run waits a little for whoever is slow, but not for long: then it goes on alone, and they get what was kept when it has
//! ended. What is kept can be read at any time; only the growing of a text is missed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use baton_core::event::Event;
use baton_core::store::RunRecord;
use baton_core::{RunId, StoreError, TenantStore};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::again::again;

/// How long a run waits for a listener, altogether.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often and how long a store is waited for that is away when the rest is to be told.
const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);
const PAGE: u32 = 200;

#[derive(Debug, Clone)]
pub(crate) struct Listener(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    events: mpsc::Sender<Event>,
    /// Wants the run to end. A run that is to end waits for nobody.
    cancel: CancellationToken,
    /// The number of the last kept event that arrived.
    heard: AtomicU64,
    is_behind: AtomicBool,
    /// How long the run has waited for them, in milliseconds.
    waited: AtomicU64,
}

impl Listener {
    pub(crate) fn new(events: mpsc::Sender<Event>, cancel: CancellationToken) -> Self {
        let (heard, waited) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(Inner { events, cancel, heard, is_behind: AtomicBool::new(false), waited }))
    }

    /// For runs that nobody waits for.
    pub(crate) fn nobody() -> Self {
        // One for all: every channel has room for some events from its beginning.
        static CLOSED: LazyLock<mpsc::Sender<Event>> = LazyLock::new(|| mpsc::channel(1).0);
        Self::new(CLOSED.clone(), CancellationToken::new())
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Tells them, unless they are behind.
    pub(crate) async fn tell(&self, event: Arc<Event>) {
        if self.0.is_behind.load(Ordering::Acquire) || self.0.events.is_closed() {
            return self.leave_behind();
        }
        let heard = event.kind.is_kept().then_some(event.seq);
        // Mostly there is room, and then nothing has to be waited for.
        let is_told = match self.0.events.try_send(Arc::unwrap_or_clone(event)) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(event)) => self.wait(event).await,
        };
        match heard {
            _ if !is_told => self.0.is_behind.store(true, Ordering::Release),
            Some(seq) => self.0.heard.store(seq, Ordering::Release),
            None => {}
        }
    }

    /// False when patience is at its end. There is so much of it for a listener, not for an event.
    async fn wait(&self, event: Event) -> bool {
        let begun = Instant::now();
        let patience = PATIENCE.saturating_sub(Duration::from_millis(self.0.waited.load(Ordering::Acquire)));
        let is_told = tokio::select! {
            sent = self.0.events.send(event) => sent.is_ok(),
            () = self.0.cancel.cancelled() => false,
            () = tokio::time::sleep(patience) => false,
        };
        let waited = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.waited.fetch_add(waited, Ordering::AcqRel);
        is_told
    }

    /// From now on they get what was kept when the run has ended.
    pub(crate) fn leave_behind(&self) {
        self.0.is_behind.store(true, Ordering::Release);
    }

    /// Passes on what was kept since they last heard. The record once the run has ended, whether or not they heard it all.
    pub(crate) async fn catch_up(
        &self,
        store: &dyn TenantStore,
        run: RunId,
    ) -> Result<Option<RunRecord>, StoreError> {
        // Before the events: when it is final here, they are all there.
        let record = store.run(run).await?;
        loop {
            let events = store.run_events(run, self.0.heard.load(Ordering::Acquire), PAGE).await?;
            let is_last = events.len() < PAGE as usize;
            for event in events {
                self.tell(Arc::new(event)).await;
            }
            if is_last || self.0.is_behind.load(Ordering::Acquire) {
                return Ok(record.status.is_final().then_some(record));
            }
        }
    }

    /// Everything of an ended run that they have not heard, however long they take. Ends when they have gone; false when the store
    /// could not say it all.
    pub(crate) async fn tell_rest(&self, store: &dyn TenantStore, run: RunId) -> bool {
        loop {
            let heard = self.0.heard.load(Ordering::Acquire);
            let rest = again(TRIES, PAUSE, || store.run_events(run, heard, PAGE));
            let Ok(events) = rest.await else { return false };
            if events.is_empty() {
                return true;
            }
            for event in events {
                let seq = event.seq;
                if self.0.events.send(event).await.is_err() {
                    return true;
                }
                self.0.heard.store(seq, Ordering::Release);
            }
        }
    }

    /// The last word about a run whose end cannot be kept or read.
    pub(crate) async fn tell_last(&self, event: Event) {
        let _ = self.0.events.send(event).await;
    }
}
