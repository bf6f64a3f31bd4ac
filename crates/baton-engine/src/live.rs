//! Live events of a thread: one publisher, any number of subscriptions.
//!
//! The worker of a run publishes into the thread's channel: stored events after their commit, and text deltas, which have no
//! sequence number of their own. A publisher never waits. A subscription whose queue is full is closed; its owner subscribes
//! again and reads what it missed from the store. The channel holds unfinished texts, so that a subscription that begins in the
//! middle of one gets all of it.

mod published;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use baton_core::event::{Event, Growing};
use baton_core::{RunId, TenantId, ThreadId};
use tokio::sync::mpsc;

pub use published::{Encodings, PublishedEvent};

/// Items that may wait for one subscriber. Text deltas arrive some hundred times a second.
const QUEUE_CAPACITY: usize = 128;

pub(crate) type ThreadKey = (TenantId, ThreadId);

/// The channels of all threads with a publisher or a subscription in this process.
#[derive(Debug, Default)]
pub struct ThreadChannels {
    channels: Mutex<HashMap<ThreadKey, Weak<ThreadChannel>>>,
}

/// One thread's channel. Dropped with its last publisher and subscription.
#[derive(Debug)]
struct ThreadChannel {
    key: ThreadKey,
    live: Weak<ThreadChannels>,
    state: Mutex<ChannelState>,
}

/// The state of a channel, under its lock.
#[derive(Debug, Default)]
struct ChannelState {
    snapshot: ThreadSnapshot,
    /// How many publishers there have been, which is the number of the newest.
    publishers: u64,
    /// Every subscriber has, or will receive, all events up to this number; `None` while that is not known.
    seen: Option<u64>,
    subscribers: Vec<Subscriber>,
}

/// The sending end of one subscription.
#[derive(Debug)]
struct Subscriber {
    items: mpsc::Sender<StreamItem>,
    interest: Interest,
}

/// What a subscription is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// All events of the thread, for an unlimited time.
    Thread,
    /// All events, while the caller waits for a run.
    Run,
    /// The ends of runs only.
    Ends,
}

/// What a subscription receives.
#[derive(Debug, Clone)]
pub enum StreamItem {
    Event(PublishedEvent),
    /// The store has events that were not published here.
    Changed,
}

/// The state of a thread's channel at one moment.
#[derive(Debug, Clone, Default)]
pub struct ThreadSnapshot {
    /// The sequence number of the last published event; `None` while this process executes no run of the thread.
    pub published: Option<u64>,
    /// The run that is being published.
    pub run: Option<RunId>,
    /// Unfinished texts and reasoning, in the order in which they began.
    pub growing: Vec<Growing>,
}

impl ThreadChannels {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Receives what is published in a thread from now on.
    pub fn subscribe(
        self: &Arc<Self>,
        tenant: &TenantId,
        thread: ThreadId,
        interest: Interest,
    ) -> Subscription {
        let channel = self.channel((tenant.clone(), thread));
        let (items, start) = channel.subscribe(interest);
        Subscription { channel, interest, items, start }
    }

    /// Threads with subscriptions that no run of this process publishes to. Other processes may execute their runs. Without
    /// `is_all`, only threads with a subscription that waits for a run.
    pub fn unpublished(&self, is_all: bool) -> Vec<(TenantId, ThreadId)> {
        let channels: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        let those = channels.iter().filter(|channel| channel.state().is_unpublished(is_all));
        those.map(|channel| channel.key.clone()).collect()
    }

    /// Reports the last sequence number that the store has of a thread, `None` if there is no such thread. Notifies subscribers
    /// if it is new to them.
    pub fn stored(&self, tenant: &TenantId, thread: ThreadId, last_seq: Option<u64>) {
        let channel = self.lock().get(&(tenant.clone(), thread)).and_then(Weak::upgrade);
        let Some(channel) = channel else { return };
        let mut state = channel.state();
        let is_news = last_seq.is_none() || state.seen != last_seq;
        if state.snapshot.run.is_none() && is_news {
            state.seen = last_seq;
            state.send(&StreamItem::Changed);
        }
    }

    /// Tells subscribers that the store has events of a thread that are not published.
    pub fn changed(&self, tenant: &TenantId, thread: ThreadId) {
        let channel = self.lock().get(&(tenant.clone(), thread)).and_then(Weak::upgrade);
        if let Some(channel) = channel {
            channel.state().send(&StreamItem::Changed);
        }
    }

    /// Creates the publisher of a run.
    pub fn publisher(self: &Arc<Self>, tenant: &TenantId, thread: ThreadId, run: RunId) -> Publisher {
        let channel = self.channel((tenant.clone(), thread));
        let mut state = channel.state();
        state.publishers += 1;
        state.snapshot.run = Some(run);
        let number = state.publishers;
        drop(state);
        Publisher { channel, number }
    }

    fn channel(self: &Arc<Self>, key: ThreadKey) -> Arc<ThreadChannel> {
        let mut channels = self.lock();
        if let Some(channel) = channels.get(&key).and_then(Weak::upgrade) {
            return channel;
        }
        let live = Arc::downgrade(self);
        let channel = Arc::new(ThreadChannel { key: key.clone(), live, state: Mutex::default() });
        channels.insert(key, Arc::downgrade(&channel));
        channel
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadKey, Weak<ThreadChannel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ThreadChannel {
    fn state(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshot and the queue begin under the lock that every publish takes: the queue holds exactly what follows the snapshot.
    fn subscribe(&self, interest: Interest) -> (mpsc::Receiver<StreamItem>, SubscriptionStart) {
        let (sender, items) = mpsc::channel(QUEUE_CAPACITY);
        let mut state = self.state();
        state.subscribers.retain(|subscriber| !subscriber.items.is_closed());
        state.subscribers.push(Subscriber { items: sender, interest });
        let quiet_since = state.snapshot.run.is_none().then_some(state.publishers);
        (items, SubscriptionStart { snapshot: Some(state.snapshot.clone()), quiet_since })
    }
}

impl Drop for ThreadChannel {
    fn drop(&mut self) {
        let Some(live) = self.live.upgrade() else { return };
        // A new channel of the thread may have replaced it.
        if let Entry::Occupied(entry) = live.lock().entry(self.key.clone())
            && entry.get().strong_count() == 0
        {
            entry.remove();
        }
    }
}

impl ChannelState {
    /// Sends to all subscribers that want the item. Removes those that are gone or whose queue is full.
    fn send(&mut self, item: &StreamItem) {
        self.subscribers
            .retain(|subscriber| !subscriber.wants(item) || subscriber.items.try_send(item.clone()).is_ok());
    }

    fn is_unpublished(&self, is_all: bool) -> bool {
        let mut open = self.subscribers.iter().filter(|subscriber| !subscriber.items.is_closed());
        self.snapshot.run.is_none() && open.any(|one| is_all || one.interest != Interest::Thread)
    }
}

impl Subscriber {
    fn wants(&self, item: &StreamItem) -> bool {
        match item {
            StreamItem::Event(published) => self.interest != Interest::Ends || published.event.kind.is_end(),
            StreamItem::Changed => true,
        }
    }
}

/// The sending end of a thread's channel, for one run.
#[derive(Debug)]
pub struct Publisher {
    channel: Arc<ThreadChannel>,
    number: u64,
}

impl Publisher {
    /// Sends an event to all subscriptions. An event with its own sequence number must be committed; any other carries the number
    /// that it follows.
    pub fn publish(&self, event: &Arc<Event>) {
        let mut state = self.channel.state();
        // The events in between were written by another process, or by this one without publishing them.
        if event.kind.is_kept() && state.seen.is_some_and(|seen| event.seq > seen + 1) {
            state.send(&StreamItem::Changed);
        }
        state.snapshot.apply(event);
        state.seen = state.seen.max(state.snapshot.published);
        let event = Arc::clone(event);
        match state.subscribers.len() {
            0 => {}
            1 => state.send(&StreamItem::Event(PublishedEvent::unshared(event))),
            _ => state.send(&StreamItem::Event(PublishedEvent::shared(event))),
        }
    }
}

impl Drop for Publisher {
    /// Notifies subscribers if the run has not ended: another process may continue it.
    fn drop(&mut self) {
        let mut state = self.channel.state();
        if state.publishers == self.number {
            let left = std::mem::take(&mut state.snapshot);
            if left.run.is_some() {
                state.send(&StreamItem::Changed);
            }
        }
    }
}

impl ThreadSnapshot {
    fn apply(&mut self, event: &Event) {
        if event.kind.is_kept() {
            self.published = Some(event.seq);
        }
        if event.kind.is_end() {
            self.run = None;
        }
        Growing::follow(&mut self.growing, event);
    }
}

/// The receiving end of a thread's channel.
#[derive(Debug)]
pub struct Subscription {
    channel: Arc<ThreadChannel>,
    interest: Interest,
    items: mpsc::Receiver<StreamItem>,
    start: SubscriptionStart,
}

/// The channel when the subscription began.
#[derive(Debug)]
struct SubscriptionStart {
    snapshot: Option<ThreadSnapshot>,
    /// How many publishers there had been, if no run was published then.
    quiet_since: Option<u64>,
}

impl Subscription {
    /// The channel's state when the subscription began. Empty on every later call.
    pub fn snapshot(&mut self) -> ThreadSnapshot {
        self.start.snapshot.take().unwrap_or_default()
    }

    /// The next item. `None` if the queue was full and items are lost: call [`Subscription::rejoin`] and read the store. Cancel
    /// safe.
    pub async fn recv(&mut self) -> Option<StreamItem> {
        self.items.recv().await
    }

    /// The next item, if it has arrived.
    pub fn try_recv(&mut self) -> Option<StreamItem> {
        self.items.try_recv().ok()
    }

    /// Whether a run of the thread is published in this process.
    pub fn is_published(&self) -> bool {
        self.channel.state().snapshot.run.is_some()
    }

    /// Whether no run was published when the subscription began, and none has been since.
    pub fn is_silent(&self) -> bool {
        self.start.quiet_since == Some(self.channel.state().publishers)
    }

    /// Subscribes again, with an empty queue and a new snapshot.
    pub fn rejoin(&mut self) {
        (self.items, self.start) = self.channel.subscribe(self.interest);
    }
}
