//! The events of a thread or a run from any number on: first what is stored, then what is published, without a gap and without
//! anything twice.
//!
//! The subscription begins first and reading second. What is published is committed before, so everything up to the number that the
//! channel had when the subscription began can be read, and everything after it is received. If the channel has no number, the store's
//! last one is the bound, asked for after the subscription began; events between the two may be received as well and are dropped by
//! their number, and so are the pieces of texts that they end ([`ahead`]). When items were lost, or when the store has events that
//! are not published here, it is the same again from the current position.

mod ahead;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use baton_core::event::{Event, EventKind, Growing};
use baton_core::store::Pending;
use baton_core::{RunId, StoreError, TenantStore, ThreadId};
use baton_engine::{Interest, Live, Published, StreamItem, Subscription};

use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::metrics::Metrics;
use ahead::Ahead;

/// Events that are read at once.
const PAGE: u32 = 100;
/// What is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All runs of the thread, without an end.
    Thread,
    /// One run, to its end.
    Run(RunId),
}

#[derive(Debug)]
pub enum Item {
    Event(Published),
    /// A text of which pieces were missed, with all of it so far.
    Growing(Box<Growing>),
}

/// What is read of the store.
pub trait EventLog: Debug + Send + Sync {
    /// The number of the thread's last event.
    fn last_seq(&self, thread: ThreadId) -> Pending<'_, u64>;

    /// Events with a number above `after`, in order.
    fn page(&self, thread: ThreadId, of: Of, after: u64, limit: u32) -> Pending<'_, Vec<Event>>;
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
}

#[derive(Debug)]
pub struct Follow<L = Arc<dyn TenantStore>> {
    log: L,
    metrics: Option<Arc<Metrics>>,
    subscription: Subscription,
    thread: ThreadId,
    of: Of,
    /// The number of the last event that was passed on, or passed over.
    position: u64,
    ready: VecDeque<Item>,
    ahead: Ahead,
    /// A run of which every event was received, and none read: what it is encoded as is the same for all who have.
    received_from_start: Option<RunId>,
    stage: Stage,
    glances: Option<Interval>,
}

#[derive(Debug)]
enum Stage {
    Reading(Reading),
    Receiving,
    Over,
}

/// Reading the store from the position on.
#[derive(Debug)]
struct Reading {
    /// The last number to read; `None` until the store was asked for it.
    until: Option<u64>,
    /// The number up to which events were published when the subscription began. Later ones may be received too.
    published: u64,
    /// Texts that were growing then; they come after what is read.
    growing: Vec<Growing>,
}

impl Follow {
    /// From the first event after `position` on.
    pub fn new(
        live: &Arc<Live>,
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
    /// From the first event after `position` on, of any log of events.
    pub fn with_log(log: L, subscription: Subscription, thread: ThreadId, of: Of, position: u64) -> Self {
        let mut follow = Self::receiving(log, subscription, thread, of, position);
        follow.read_from_here();
        follow
    }

    /// A run that was accepted after the subscription began: every event of it is received, so nothing is read.
    pub fn of_new_run(log: L, mut subscription: Subscription, thread: ThreadId, run: RunId) -> Self {
        // The texts of another run.
        drop(subscription.snapshot());
        Self::receiving(log, subscription, thread, Of::Run(run), 0)
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
            stage: Stage::Receiving,
            glances: None,
        }
    }

    /// Looks into the store now and then, for a process in which [`super::glance`] does not.
    #[must_use]
    pub fn glancing(self, every: Duration) -> Self {
        let mut glances = tokio::time::interval_at(Instant::now() + every, every);
        glances.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { glances: Some(glances), ..self }
    }

    /// Counts when it falls behind.
    #[must_use]
    pub fn counted(self, metrics: &Arc<Metrics>) -> Self {
        Self { metrics: Some(Arc::clone(metrics)), ..self }
    }

    /// The number of the last event that was passed on.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next item; `None` after the end of a run. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Item>, StoreError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.pass(&item);
                return Ok(Some(item));
            }
            match self.stage {
                Stage::Reading(_) => self.read().await?,
                Stage::Receiving => self.receive().await,
                Stage::Over => return Ok(None),
            }
        }
    }

    /// Reads again from the current position, as far as the store goes.
    pub fn rejoin(&mut self) {
        self.catch_up();
        if let Stage::Reading(reading) = &mut self.stage {
            // The channel's number says nothing about what others have written.
            reading.until = None;
        }
    }

    /// Reads again from the current position, as far as the channel goes.
    fn catch_up(&mut self) {
        self.subscription.rejoin();
        self.read_from_here();
    }

    fn read_from_here(&mut self) {
        self.received_from_start = None;
        let snapshot = self.subscription.snapshot();
        let published = snapshot.published.unwrap_or(0);
        self.stage =
            Stage::Reading(Reading { until: snapshot.published, published, growing: snapshot.growing });
    }

    fn concerns(&self, event: &Event) -> bool {
        match self.of {
            Of::Thread => true,
            Of::Run(run) => event.run_id == run,
        }
    }

    fn pass(&mut self, item: &Item) {
        if let Item::Event(Published { event, .. }) = item
            && event.kind.is_kept()
        {
            self.position = event.seq;
            if matches!(self.of, Of::Run(_)) && event.kind.is_end() {
                self.ready.clear();
                self.stage = Stage::Over;
            }
        }
    }

    /// One page of what is stored.
    async fn read(&mut self) -> Result<(), StoreError> {
        let Stage::Reading(reading) = &mut self.stage else { return Ok(()) };
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
        self.ready.extend(wanted.into_iter().map(|event| Item::Event(Published::alone(event))));
        if is_last {
            self.receive_from_here();
        }
        Ok(())
    }

    /// Remembers what may be received although it was read.
    fn note_ahead(&mut self, read: &[Arc<Event>]) {
        let Stage::Reading(Reading { published, .. }) = self.stage else { return };
        if !self.subscription.is_silent() {
            self.ahead.extend(read.iter().filter(|event| event.seq > published));
        }
    }

    fn receive_from_here(&mut self) {
        if let Stage::Reading(reading) = std::mem::replace(&mut self.stage, Stage::Receiving) {
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

    fn take(&mut self, published: Published) {
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
        if matches!(event.kind, EventKind::RunStarted { .. }) {
            self.received_from_start = Some(event.run_id);
        }
        let is_shared = self.received_from_start == Some(event.run_id);
        let published = if is_shared { published } else { Published::alone(published.event) };
        self.ready.push_back(Item::Event(published));
    }
}
