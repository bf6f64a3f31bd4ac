//! Follows a thread or a run from any number on: first stored events, then published ones, without gaps or duplicates.
//!
//! The subscription starts before the read. Events are committed before they are published, so all events up to the channel's
//! number at that time can be read, and all later ones are received. If the channel has no number, the bound is the store's
//! last number, queried after the subscription started. Events between the two may be received as well; they are dropped by
//! their number, and so are deltas of texts that they end ([`ahead`]). After lost items, or when the store has events that were
//! not published here, the same happens again from the current position.

mod ahead;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use baton_core::event::{Event, EventKind, Growing};
use baton_core::store::{Pending, RunStatus};
use baton_core::{RunId, StoreError, TenantStore, ThreadId};
use baton_engine::{Interest, PublishedEvent, StreamItem, Subscription, ThreadChannels};

use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::metrics::Metrics;
use ahead::Ahead;

/// Events per query.
const PAGE: u32 = 100;
/// What to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All runs of the thread, without an end.
    Thread,
    /// One run, until it ends.
    Run(RunId),
}

#[derive(Debug)]
pub enum Item {
    Event(PublishedEvent),
    /// An unfinished text with its content so far, for a subscriber that missed deltas.
    Growing(Box<Growing>),
}

/// The part of the store that is read here.
pub trait EventLog: Debug + Send + Sync {
    /// Number of the thread's last event.
    fn last_seq(&self, thread: ThreadId) -> Pending<'_, u64>;

    /// Events with a number above `after`, in order.
    fn page(&self, thread: ThreadId, of: Of, after: u64, limit: u32) -> Pending<'_, Vec<Event>>;

    /// Whether the run waits for a decision.
    fn is_waiting(&self, run: RunId) -> Pending<'_, bool>;
}

impl EventLog for Arc<dyn TenantStore> {
    fn last_seq(&self, thread: ThreadId) -> Pending<'_, u64> {
        Box::pin(async move { Ok(self.thread(thread, None).await?.last_seq) })
    }

    fn page(&self, thread: ThreadId, of: Of, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        match of {
            Of::Thread => self.events(thread, after, limit),
            Of::Run(run) => self.run_events(run, after, limit),
        }
    }

    fn is_waiting(&self, run: RunId) -> Pending<'_, bool> {
        Box::pin(async move { Ok(self.run(run).await?.status == RunStatus::Waiting) })
    }
}

#[derive(Debug)]
pub struct Follow<L = Arc<dyn TenantStore>> {
    log: L,
    metrics: Option<Arc<Metrics>>,
    subscription: Subscription,
    thread: ThreadId,
    of: Of,
    /// Number of the last event that was returned or skipped.
    position: u64,
    ready: VecDeque<Item>,
    ahead: Ahead,
    /// A run whose events were all received and none read, so that its shared encodings can be used.
    received_from_start: Option<RunId>,
    /// Whether the last event was that the run waits for a decision.
    is_waiting: bool,
    stage: FollowStage,
    glances: Option<Interval>,
}

#[derive(Debug)]
enum FollowStage {
    Reading(StoreReading),
    Receiving,
    Over,
}

/// A read of the store from the current position on.
#[derive(Debug)]
struct StoreReading {
    /// The last number to read; `None` until the store was queried.
    until: Option<u64>,
    /// The last published number when the subscription started. Later events may be received too.
    published: u64,
    /// Unfinished texts at that time, returned after the read.
    growing: Vec<Growing>,
}

impl Follow {
    /// Starts with the first event after `position`.
    pub fn new(
        live: &Arc<ThreadChannels>,
        store: Arc<dyn TenantStore>,
        thread: ThreadId,
        of: Of,
        position: u64,
    ) -> Self {
        let interest = if of == Of::Thread { Interest::Thread } else { Interest::Run };
        let subscription = live.subscribe(store.tenant(), thread, interest);
        Self::with_log(store, subscription, thread, of, position)
    }
}

impl<L: EventLog> Follow<L> {
    /// Starts with the first event after `position`, for any log of events.
    pub fn with_log(log: L, subscription: Subscription, thread: ThreadId, of: Of, position: u64) -> Self {
        let mut follow = Self::receiving(log, subscription, thread, of, position);
        follow.read_from_here();
        follow
    }

    /// Follows a run that was accepted after the subscription started, or continued: all its events after number `after` are
    /// received, so nothing is read.
    pub fn of_new_run(
        log: L,
        mut subscription: Subscription,
        thread: ThreadId,
        run: RunId,
        after: u64,
    ) -> Self {
        // The snapshot contains texts of other runs.
        drop(subscription.snapshot());
        Self::receiving(log, subscription, thread, Of::Run(run), after)
    }

    fn receiving(log: L, subscription: Subscription, thread: ThreadId, of: Of, position: u64) -> Self {
        Self {
            log,
            metrics: None,
            subscription,
            thread,
            of,
            position,
            ready: VecDeque::new(),
            ahead: Ahead::default(),
            received_from_start: None,
            is_waiting: false,
            stage: FollowStage::Receiving,
            glances: None,
        }
    }

    /// Polls the store, for a process in which [`super::glance`] does not run.
    #[must_use]
    pub fn glancing(self, every: Duration) -> Self {
        let mut glances = tokio::time::interval_at(Instant::now() + every, every);
        glances.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { glances: Some(glances), ..self }
    }

    /// Reports to the metrics when the subscriber falls behind.
    #[must_use]
    pub fn counted(self, metrics: &Arc<Metrics>) -> Self {
        Self { metrics: Some(Arc::clone(metrics)), ..self }
    }

    /// Number of the last event that was returned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next item; `None` after the end of a run.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: no item is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Option<Item>, StoreError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.pass(&item);
                return Ok(Some(item));
            }
            match self.stage {
                FollowStage::Reading(_) => self.read().await?,
                FollowStage::Receiving => match self.of {
                    Of::Run(run) if self.is_waiting => self.end_unless_decided(run).await?,
                    _ => self.receive().await,
                },
                FollowStage::Over => return Ok(None),
            }
        }
    }

    /// A run that waits has no end yet, but sends nothing more for now. If a decision was made before the run parked, it continues
    /// at once, and so does the stream.
    async fn end_unless_decided(&mut self, run: RunId) -> Result<(), StoreError> {
        if self.log.is_waiting(run).await? {
            self.stage = FollowStage::Over;
        }
        self.is_waiting = false;
        Ok(())
    }

    /// The next item, if it has arrived. `None` does not mean that the stream is over.
    pub fn try_next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.pass(&item);
                return Some(item);
            }
            if !matches!(self.stage, FollowStage::Receiving) {
                return None;
            }
            match self.subscription.try_recv()? {
                StreamItem::Event(published) => self.take(published),
                StreamItem::Changed => self.rejoin(),
            }
        }
    }

    /// Reads again from the current position, up to the store's last number.
    pub fn rejoin(&mut self) {
        self.catch_up();
        if let FollowStage::Reading(reading) = &mut self.stage {
            // The channel's number does not cover events of other processes.
            reading.until = None;
        }
    }

    /// Reads again from the current position, up to the channel's number.
    fn catch_up(&mut self) {
        self.subscription.rejoin();
        self.read_from_here();
    }

    fn read_from_here(&mut self) {
        self.received_from_start = None;
        let snapshot = self.subscription.snapshot();
        let published = snapshot.published.unwrap_or(0);
        self.stage = FollowStage::Reading(StoreReading {
            until: snapshot.published,
            published,
            growing: snapshot.growing,
        });
    }

    fn concerns(&self, event: &Event) -> bool {
        match self.of {
            Of::Thread => true,
            Of::Run(run) => event.run_id == run,
        }
    }

    fn pass(&mut self, item: &Item) {
        if let Item::Event(PublishedEvent { event, .. }) = item
            && event.kind.is_kept()
        {
            self.position = event.seq;
            self.is_waiting = matches!(event.kind, EventKind::RunWaiting { .. });
            if matches!(self.of, Of::Run(_)) && event.kind.is_end() && !self.is_waiting {
                self.ready.clear();
                self.stage = FollowStage::Over;
            }
        }
    }

    /// Reads one page.
    async fn read(&mut self) -> Result<(), StoreError> {
        let FollowStage::Reading(reading) = &mut self.stage else { return Ok(()) };
        let until = match reading.until {
            Some(until) => until,
            None => *reading.until.insert(self.log.last_seq(self.thread).await?),
        };
        let page = if until > self.position {
            self.log.page(self.thread, self.of, self.position, PAGE).await?
        } else {
            Vec::new()
        };
        let is_last = page.len() < PAGE as usize || page.last().is_some_and(|event| event.seq >= until);
        let wanted = page.into_iter().filter(|event| event.seq <= until);
        let wanted: Vec<_> = wanted.map(Arc::new).collect();
        self.note_ahead(&wanted);
        self.ready.extend(wanted.into_iter().map(|event| Item::Event(PublishedEvent::unshared(event))));
        if is_last {
            self.receive_from_here();
        }
        Ok(())
    }

    /// Remembers events that were read and may still be received.
    fn note_ahead(&mut self, read: &[Arc<Event>]) {
        let FollowStage::Reading(StoreReading { published, .. }) = self.stage else { return };
        if !self.subscription.is_silent() {
            self.ahead.extend(read.iter().filter(|event| event.seq > published));
        }
    }

    fn receive_from_here(&mut self) {
        if let FollowStage::Reading(reading) = std::mem::replace(&mut self.stage, FollowStage::Receiving) {
            let growing = reading.growing.into_iter();
            let open = growing.filter(|text| self.concerns(&text.first) && !self.ahead.covers(&text.first));
            let open: Vec<_> = open.map(|text| Item::Growing(Box::new(text))).collect();
            self.ready.extend(open);
        }
    }

    async fn receive(&mut self) {
        let received = match &mut self.glances {
            None => self.subscription.recv().await,
            Some(glances) => tokio::select! {
                received = self.subscription.recv() => received,
                _ = glances.tick() => {
                    if self.subscription.is_published() {
                        return;
                    }
                    Some(StreamItem::Changed)
                }
            },
        };
        match received {
            Some(StreamItem::Event(published)) => self.take(published),
            Some(StreamItem::Changed) => self.rejoin(),
            None => {
                if let Some(metrics) = &self.metrics {
                    metrics.stream_behind();
                }
                self.catch_up();
            }
        }
    }

    fn take(&mut self, published: PublishedEvent) {
        let event = &published.event;
        if event.kind.is_kept() {
            self.ahead.published(event.seq);
            if event.seq <= self.position || !self.concerns(event) {
                return;
            }
            if self.of == Of::Thread && event.seq != self.position + 1 {
                return self.catch_up();
            }
        } else if !self.concerns(event) || self.ahead.covers(event) {
            return;
        }
        if event.kind.is_start() {
            self.received_from_start = Some(event.run_id);
        }
        let is_shared = self.received_from_start == Some(event.run_id);
        let published = if is_shared { published } else { PublishedEvent::unshared(published.event) };
        self.ready.push_back(Item::Event(published));
    }
}
