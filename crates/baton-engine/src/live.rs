//! Who hears of a thread while something happens in it.
//!
//! Whoever works on a run speaks into the thread's channel; anybody may join it, at any time, as often as they like. Nobody is waited
//! for: a listener that is too slow learns that it missed something, and reads what was kept. The channel also knows the texts
//! that are growing, so that whoever joins in the middle gets them from their beginning.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use baton_core::event::{Event, Growing};
use baton_core::{RunId, TenantId, ThreadId};
use tokio::sync::broadcast;

/// Events that a listener may be behind. Text comes some hundred times a second.
const BEHIND: usize = 128;

type Key = (TenantId, ThreadId);

/// The channels of all threads that somebody speaks in or listens to.
#[derive(Debug, Default)]
pub struct Live {
    channels: Mutex<HashMap<Key, Weak<Channel>>>,
}

/// One thread's. Goes when nobody is left.
#[derive(Debug)]
struct Channel {
    key: Key,
    live: Weak<Live>,
    now: Mutex<Now>,
    sender: broadcast::Sender<Heard>,
}

/// What can be heard.
#[derive(Debug, Clone)]
pub enum Heard {
    Event(Arc<Event>),
    /// Something was written by somebody who does not speak here: read what was kept.
    Look,
}

/// How things stand in a thread: what is behind and what is open.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// The number of the last kept event that was said here; `None` while nobody works on the thread in this process.
    pub head: Option<u64>,
    pub run: Option<RunId>,
    /// Texts and thoughts that are growing, in the order of their beginning.
    pub growing: Vec<Growing>,
}

impl Live {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Listens to a thread from now on.
    pub fn join(self: &Arc<Self>, tenant: &TenantId, thread: ThreadId) -> Ear {
        let channel = self.channel((tenant.clone(), thread));
        let now = channel.now();
        // Under the same lock as every word, so that nothing is missed and nothing heard twice.
        let heard = channel.sender.subscribe();
        let joined = now.clone();
        drop(now);
        Ear { channel, heard, joined: Some(joined) }
    }

    /// Tells whoever listens that something was written that nobody said.
    pub fn look(&self, tenant: &TenantId, thread: ThreadId) {
        let channel = self.lock().get(&(tenant.clone(), thread)).and_then(Weak::upgrade);
        if let Some(channel) = channel {
            let _now = channel.now();
            let _ = channel.sender.send(Heard::Look);
        }
    }

    /// Speaks for a run.
    pub(crate) fn speak(self: &Arc<Self>, tenant: &TenantId, thread: ThreadId, run: RunId) -> Voice {
        let channel = self.channel((tenant.clone(), thread));
        channel.now().run = Some(run);
        Voice { channel }
    }

    fn channel(self: &Arc<Self>, key: Key) -> Arc<Channel> {
        let mut channels = self.lock();
        if let Some(channel) = channels.get(&key).and_then(Weak::upgrade) {
            return channel;
        }
        let (now, sender) = (Mutex::default(), broadcast::Sender::new(BEHIND));
        let channel = Arc::new(Channel { key: key.clone(), live: Arc::downgrade(self), now, sender });
        channels.insert(key, Arc::downgrade(&channel));
        channel
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Weak<Channel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let Some(live) = self.live.upgrade() else { return };
        // Somebody may have opened a new one in the meantime.
        if let Entry::Occupied(entry) = live.lock().entry(self.key.clone())
            && entry.get().strong_count() == 0
        {
            entry.remove();
        }
    }
}

/// The end of a channel that a run speaks into.
#[derive(Debug)]
pub(crate) struct Voice {
    channel: Arc<Channel>,
}

impl Voice {
    /// Says it to all that listen. What is kept has to be kept already.
    pub(crate) fn say(&self, event: &Arc<Event>) {
        let mut now = self.channel.now();
        now.hear(event);
        if self.channel.sender.receiver_count() > 0 {
            let _ = self.channel.sender.send(Heard::Event(Arc::clone(event)));
        }
    }
}

impl Drop for Voice {
    /// Whoever goes on with a run that has not ended may be another process.
    fn drop(&mut self) {
        let mut now = self.channel.now();
        let left = std::mem::take(&mut *now);
        if left.run.is_some() {
            let _ = self.channel.sender.send(Heard::Look);
        }
    }
}

impl Now {
    fn hear(&mut self, event: &Event) {
        if event.kind.is_kept() {
            self.head = Some(event.seq);
        }
        if event.kind.is_end() {
            self.run = None;
        }
        Growing::follow(&mut self.growing, event);
    }
}

/// The end of a channel that somebody listens at.
#[derive(Debug)]
pub struct Ear {
    channel: Arc<Channel>,
    heard: broadcast::Receiver<Heard>,
    joined: Option<Now>,
}

impl Ear {
    /// How things stood when it was joined; once.
    pub fn joined(&mut self) -> Now {
        self.joined.take().unwrap_or_default()
    }

    /// The next that is said. `None` when something was missed: join again and read what was kept.
    pub async fn hear(&mut self) -> Option<Heard> {
        // Never closed: the channel is ours too.
        self.heard.recv().await.ok()
    }

    /// Whether a run of the thread is at work in this process.
    pub fn is_spoken(&self) -> bool {
        self.channel.now().run.is_some()
    }

    /// The same channel from now on, when something was missed.
    pub fn rejoin(&mut self) {
        let now = self.channel.now();
        self.heard = self.channel.sender.subscribe();
        self.joined = Some(now.clone());
    }
}
