//! Live events of a thread: one publisher, any number of subscriptions.
//!
//! The worker of a run publishes into the thread's channel: an event with a number after its commit, a piece of a growing text without
//! one. A publisher never waits. A subscription whose queue is full is closed; its owner subscribes again and reads what it missed
//! from the store. The channel holds the texts that are growing, so that a subscription that begins in the middle of one gets all of it.

mod published;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use baton_core::event::{Event, Growing};
use baton_core::{RunId, TenantId, ThreadId};
use tokio::sync::mpsc;

pub use published::{Encodings, Published};

/// Items that may wait for one subscriber. Text comes some hundred times a second.
const QUEUE: usize = 128;

type Key = (TenantId, ThreadId);

/// The channels of all threads with a publisher or a subscription in this process.
#[derive(Debug, Default)]
pub struct Live {
    channels: Mutex<HashMap<Key, Weak<Channel>>>,
}

/// One thread's channel. Dropped with its last publisher and subscription.
#[derive(Debug)]
struct Channel {
    key: Key,
    live: Weak<Live>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    snapshot: ThreadSnapshot,
    /// How many publishers there have been; the last one's number.
    publishers: u64,
    /// Every subscriber has, or will receive, all events up to this number; `None` while that is not known.
    seen: Option<u64>,
    subscribers: Vec<Subscriber>,
}

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
    /// All events, while a run is waited for.
    Run,
    /// The ends of runs only.
    Ends,
}

/// What a subscription receives.
#[derive(Debug, Clone)]
pub enum StreamItem {
    Event(Published),
    /// The store has events that were not published here.
    Changed,
}

/// The state of a thread's channel at one moment.
#[derive(Debug, Clone, Default)]
pub struct ThreadSnapshot {
    /// The number of the last event that was published; `None` while no run of the thread is worked on in this process.
    pub published: Option<u64>,
    /// The run that is being published.
    pub run: Option<RunId>,
    /// Texts and thoughts that are growing, in the order of their beginning.
    pub growing: Vec<Growing>,
}

impl Live {
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
        let (items, joined) = channel.subscribe(interest);
        Subscription { channel, interest, items, joined }
    }

    /// Threads with subscriptions that no run of this process publishes in: other processes may. Without `is_all`, only those in
    /// which a run is waited for.
    pub fn unpublished(&self, is_all: bool) -> Vec<(TenantId, ThreadId)> {
        let channels: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        let those = channels.iter().filter(|channel| channel.state().is_unpublished(is_all));
        those.map(|channel| channel.key.clone()).collect()
    }

    /// Says what the store's last number of a thread is; `None` if it has no such thread. Subscribers learn of it if it is new.
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

    /// The publisher of a run.
    pub fn publisher(self: &Arc<Self>, tenant: &TenantId, thread: ThreadId, run: RunId) -> Publisher {
        let channel = self.channel((tenant.clone(), thread));
        let mut state = channel.state();
        state.publishers += 1;
        state.snapshot.run = Some(run);
        let number = state.publishers;
        drop(state);
        Publisher { channel, number }
    }

    fn channel(self: &Arc<Self>, key: Key) -> Arc<Channel> {
        let mut channels = self.lock();
        if let Some(channel) = channels.get(&key).and_then(Weak::upgrade) {
            return channel;
        }
        let live = Arc::downgrade(self);
        let channel = Arc::new(Channel { key: key.clone(), live, state: Mutex::default() });
        channels.insert(key, Arc::downgrade(&channel));
        channel
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Weak<Channel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshot and the queue begin under the lock that every publish takes: the queue holds exactly what follows the snapshot.
    fn subscribe(&self, interest: Interest) -> (mpsc::Receiver<StreamItem>, Joined) {
        let (sender, items) = mpsc::channel(QUEUE);
        let mut state = self.state();
        state.subscribers.retain(|subscriber| !subscriber.items.is_closed());
        state.subscribers.push(Subscriber { items: sender, interest });
        let quiet_since = state.snapshot.run.is_none().then_some(state.publishers);
        (items, Joined { snapshot: Some(state.snapshot.clone()), quiet_since })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let Some(live) = self.live.upgrade() else { return };
        // A new channel of the thread may have taken its place.
        if let Entry::Occupied(entry) = live.lock().entry(self.key.clone())
            && entry.get().strong_count() == 0
        {
            entry.remove();
        }
    }
}

impl State {
    /// A subscriber that is gone or whose queue is full is removed.
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
    channel: Arc<Channel>,
    number: u64,
}

impl Publisher {
    /// Sends an event to all subscriptions. One with a number of its own must be committed; any other carries the number after
    /// which it belongs.
    pub fn publish(&self, event: &Arc<Event>) {
        let mut state = self.channel.state();
        state.snapshot.follow(event);
        state.seen = state.seen.max(state.snapshot.published);
        let event = Arc::clone(event);
        match state.subscribers.len() {
            0 => {}
            1 => state.send(&StreamItem::Event(Published::alone(event))),
            _ => state.send(&StreamItem::Event(Published::shared(event))),
        }
    }
}

impl Drop for Publisher {
    /// Another process may go on with a run that has not ended.
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
    fn follow(&mut self, event: &Event) {
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
    channel: Arc<Channel>,
    interest: Interest,
    items: mpsc::Receiver<StreamItem>,
    joined: Joined,
}

/// The channel when the subscription began.
#[derive(Debug)]
struct Joined {
    snapshot: Option<ThreadSnapshot>,
    /// How many publishers there had been, if none of them had a run then.
    quiet_since: Option<u64>,
}

impl Subscription {
    /// The channel's state when the subscription began. Empty when it was taken before.
    pub fn snapshot(&mut self) -> ThreadSnapshot {
        self.joined.snapshot.take().unwrap_or_default()
    }

    /// The next item; `None` when the queue was full and items are lost: [`Subscription::rejoin`] and read the store. Cancel safe.
    pub async fn recv(&mut self) -> Option<StreamItem> {
        self.items.recv().await
    }

    /// Whether a run of the thread is published in this process.
    pub fn is_published(&self) -> bool {
        self.channel.state().snapshot.run.is_some()
    }

    /// Whether no run was published when the subscription began, and none has been since.
    pub fn is_silent(&self) -> bool {
        self.joined.quiet_since == Some(self.channel.state().publishers)
    }

    /// Begins again from now on, with an empty queue.
    pub fn rejoin(&mut self) {
        (self.items, self.joined) = self.channel.subscribe(self.interest);
    }
}
