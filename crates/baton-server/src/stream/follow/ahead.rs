//! Events that were read before they were published.

use std::sync::Arc;

use baton_core::event::{Event, Growing};

/// Events that a subscriber has read from the store and may still receive. By their numbers they are not passed on twice; a piece of
/// a text has none of its own, and is past if one of these events ends the text.
#[derive(Debug, Default)]
pub(super) struct Ahead(Vec<Arc<Event>>);

impl Ahead {
    pub(super) fn extend<'a>(&mut self, read: impl Iterator<Item = &'a Arc<Event>>) {
        for event in read {
            if event.kind.is_end() {
                // Nothing of the run follows: its end ends everything that its other events do.
                self.0.retain(|other| other.run_id != event.run_id);
            }
            self.0.push(Arc::clone(event));
        }
    }

    /// Events up to `seq` were received: so was every piece that belongs before them.
    pub(super) fn published(&mut self, seq: u64) {
        if !self.0.is_empty() {
            self.0.retain(|event| event.seq > seq);
        }
    }

    /// Whether the text or thought that a piece belongs to has ended with one of these events.
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
