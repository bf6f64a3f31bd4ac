//! Events that were read before they were published.

use std::sync::Arc;

use baton_core::event::{Event, Growing};

/// Events that a subscriber has read from the store and may still receive. Stored events are deduplicated by number. A delta
/// has no number of its own; it is outdated if one of these events ends its text.
#[derive(Debug, Default)]
pub(super) struct Ahead(Vec<Arc<Event>>);

impl Ahead {
    pub(super) fn extend<'a>(&mut self, read: impl Iterator<Item = &'a Arc<Event>>) {
        for event in read {
            if event.kind.is_end() {
                // The end of a run covers the effects of all its other events.
                self.0.retain(|other| other.run_id != event.run_id);
            }
            self.0.push(Arc::clone(event));
        }
    }

    /// Events up to `seq` were received, so all earlier deltas were too.
    pub(super) fn published(&mut self, seq: u64) {
        if !self.0.is_empty() {
            self.0.retain(|event| event.seq > seq);
        }
    }

    /// Whether one of these events ends the text or reasoning of a delta.
    pub(super) fn covers(&self, piece: &Event) -> bool {
        let later = |event: &&Arc<Event>| event.run_id == piece.run_id && event.seq > piece.seq;
        let mut later = self.0.iter().filter(later).peekable();
        if later.peek().is_none() {
            return false;
        }
        let mut growing = Vec::new();
        Growing::follow(&mut growing, piece);
        later.for_each(|event| Growing::follow(&mut growing, event));
        growing.is_empty()
    }
}
