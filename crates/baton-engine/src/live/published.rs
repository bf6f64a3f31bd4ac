//! An event on its way to subscribers.

use std::sync::{Arc, OnceLock};

use baton_core::event::Event;
use bytes::Bytes;

/// How many kinds of subscribers may share an encoding.
const KINDS: usize = 2;

/// An event as a subscription receives it.
#[derive(Debug, Clone)]
pub struct Published {
    pub event: Arc<Event>,
    encodings: Option<Arc<Encodings>>,
}

impl Published {
    /// For one subscriber.
    pub fn alone(event: Arc<Event>) -> Self {
        Self { event, encodings: None }
    }

    /// For several subscribers, who may share what they encode it as.
    pub(super) fn shared(event: Arc<Event>) -> Self {
        Self { event, encodings: Some(Arc::default()) }
    }

    /// What subscribers have encoded it as; `None` if there is no other subscriber. Only for subscribers that have received
    /// all of the run: an encoding depends on what came before it.
    pub fn encodings(&self) -> Option<&Encodings> {
        self.encodings.as_deref()
    }
}

/// The encoded forms of an event, each made by the first subscriber that needs it.
#[derive(Debug, Default)]
pub struct Encodings([OnceLock<(u64, Bytes)>; KINDS]);

impl Encodings {
    /// The form for a kind of subscriber and a version of whatever else it depends on.
    pub fn get(&self, (kind, version): (usize, u64)) -> Option<Bytes> {
        let (of, bytes) = self.0.get(kind)?.get()?;
        (*of == version).then(|| bytes.clone())
    }

    /// The first form of a kind stays.
    pub fn set(&self, (kind, version): (usize, u64), bytes: &Bytes) {
        if let Some(slot) = self.0.get(kind) {
            let _ = slot.set((version, bytes.clone()));
        }
    }
}
