//! Published events, and the encodings that their subscribers share.

use std::sync::{Arc, OnceLock};

use baton_core::event::Event;
use bytes::Bytes;

/// Kinds of subscribers that share encodings.
const KINDS: usize = 2;

/// An event as a subscription receives it.
#[derive(Debug, Clone)]
pub struct PublishedEvent {
    pub event: Arc<Event>,
    encodings: Option<Arc<Encodings>>,
}

impl PublishedEvent {
    /// For one subscriber.
    pub fn unshared(event: Arc<Event>) -> Self {
        Self { event, encodings: None }
    }

    /// For several subscribers, which may share its encodings.
    pub(super) fn shared(event: Arc<Event>) -> Self {
        Self { event, encodings: Some(Arc::default()) }
    }

    /// The encodings that subscribers share; `None` if there is only one. Only for subscribers that have received the whole run,
    /// because an encoding depends on the events before it.
    pub fn encodings(&self) -> Option<&Encodings> {
        self.encodings.as_deref()
    }
}

/// The encodings of an event, each made by the first subscriber that needs it.
#[derive(Debug, Default)]
pub struct Encodings([OnceLock<(u64, Bytes)>; KINDS]);

impl Encodings {
    /// The encoding for a kind of subscriber, if its `version` matches. The version covers whatever else the encoding depends on.
    pub fn get(&self, (kind, version): (usize, u64)) -> Option<Bytes> {
        let (of, bytes) = self.0.get(kind)?.get()?;
        (*of == version).then(|| bytes.clone())
    }

    /// Stores an encoding. The first one of a kind stays.
    pub fn set(&self, (kind, version): (usize, u64), bytes: &Bytes) {
        if let Some(slot) = self.0.get(kind) {
            let _ = slot.set((version, bytes.clone()));
        }
    }
}
