//! Counts repetitions within a time, for a bounded number of keys.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Window<K> {
    length: Duration,
    most: usize,
    begun: Instant,
    counts: HashMap<K, u64>,
    /// Events of keys for which there was no room.
    beyond: u64,
}

/// What a window knew about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    /// The first with its key.
    First,
    Repeated,
    /// There is no room for its key.
    Beyond,
}

impl<K: Eq + Hash> Window<K> {
    pub(super) fn new(length: Duration, most: usize, now: Instant) -> Self {
        Self { length, most, begun: now, counts: HashMap::new(), beyond: 0 }
    }

    /// Counts an event. If the window is over and [`Self::take_over`] was not called yet, it still belongs to it.
    pub(super) fn note(&mut self, key: K, now: Instant) -> Noted {
        if self.counts.is_empty() && self.beyond == 0 {
            self.begun = now;
        }
        if let Some(count) = self.counts.get_mut(&key) {
            *count += 1;
            return Noted::Repeated;
        }
        if self.counts.len() >= self.most {
            self.beyond += 1;
            return Noted::Beyond;
        }
        self.counts.insert(key, 1);
        Noted::First
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.counts.remove(key);
    }

    /// Ends the window and returns its counts, if its time is over.
    pub(super) fn take_over(&mut self, now: Instant) -> Option<(HashMap<K, u64>, u64)> {
        (now.saturating_duration_since(self.begun) >= self.length).then(|| self.take())
    }

    /// Ends the window and returns its counts: of each key, and of the events for which there was no room.
    pub(super) fn take(&mut self) -> (HashMap<K, u64>, u64) {
        (std::mem::take(&mut self.counts), std::mem::take(&mut self.beyond))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_of_a_key_is_told_from_repetitions() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut window = Window::new(Duration::from_mins(1), 2, start);
        assert_eq!(window.note("a", after(10)), Noted::First);
        assert_eq!(window.note("a", after(69)), Noted::Repeated);
        assert_eq!(window.note("b", after(69)), Noted::First);
        assert_eq!(
            (window.note("c", after(69)), window.note("c", after(69))),
            (Noted::Beyond, Noted::Beyond)
        );
        assert_eq!(window.take_over(after(69)), None, "it began with its first event");
        assert_eq!(window.take_over(after(70)), Some((HashMap::from([("a", 2), ("b", 1)]), 2)));
        assert_eq!(window.note("a", after(71)), Noted::First, "the next window");
        window.forget(&"a");
        assert_eq!(window.note("a", after(71)), Noted::First);
    }
}
