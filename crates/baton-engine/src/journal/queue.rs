//! The entries of a run's journal that wait for its writer.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::JournalEntry;

/// Entries that may wait for the writer. A full queue is written at once.
const CAPACITY: usize = 256;

/// A queue that wakes its receiver rarely. A run enqueues several records between two commits, often from tasks of sub-agents.
/// Only the first of them and an urgent one wake the writer, which is in the task of the run.
#[derive(Debug, Default)]
pub(super) struct JournalQueue {
    state: Mutex<QueueState>,
    /// Wakes the writer.
    arrived: Notify,
    /// Wakes senders that found the queue full.
    taken: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    entries: Vec<JournalEntry>,
    /// Whether the writer should not wait for more entries.
    is_urgent: bool,
    is_closed: bool,
}

impl JournalQueue {
    /// Adds an entry. Waits while the queue is full. An entry of a closed queue is dropped.
    pub(super) async fn push(&self, mut entry: JournalEntry) {
        loop {
            // Created before the check, so that no notification is missed.
            let taken = self.taken.notified();
            match self.try_push(entry) {
                Ok(()) => return,
                Err(refused) => entry = refused,
            }
            taken.await;
        }
    }

    fn try_push(&self, entry: JournalEntry) -> Result<(), JournalEntry> {
        let mut state = self.lock();
        if state.is_closed {
            return Ok(());
        }
        if state.entries.len() == CAPACITY {
            return Err(entry);
        }
        let is_first = state.entries.is_empty();
        let is_urgent = entry.is_urgent() || state.entries.len() + 1 == CAPACITY;
        state.is_urgent |= is_urgent;
        state.entries.push(entry);
        drop(state);
        if is_first || is_urgent {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Takes all entries as soon as one of them is urgent, or `flush` after the first one.
    pub(super) async fn take(&self, flush: Duration) -> Vec<JournalEntry> {
        while self.lock().entries.is_empty() {
            self.arrived.notified().await;
        }
        if !flush.is_zero() && !self.lock().is_urgent {
            let mut over = pin!(tokio::time::sleep(flush));
            loop {
                tokio::select! {
                    biased;
                    () = self.arrived.notified() => if self.lock().is_urgent { break },
                    () = over.as_mut() => break,
                }
            }
        }
        let mut state = self.lock();
        state.is_urgent = false;
        let entries = std::mem::take(&mut state.entries);
        drop(state);
        self.taken.notify_waiters();
        entries
    }

    /// Drops all entries, and those that follow.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let entries = std::mem::take(&mut state.entries);
        drop(state);
        drop(entries);
        self.taken.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;
    use crate::journal::Record;

    const FLUSH: Duration = Duration::from_millis(50);

    fn soon() -> JournalEntry {
        JournalEntry::Durable { record: Box::new(Record::default()), done: None }
    }

    fn urgent() -> JournalEntry {
        JournalEntry::Durable { record: Box::new(Record::default()), done: Some(oneshot::channel().0) }
    }

    #[tokio::test(start_paused = true)]
    async fn entries_wait_for_an_urgent_one_or_the_flush_interval() {
        let queue = JournalQueue::default();
        let before = Instant::now();
        queue.push(soon()).await;
        queue.push(soon()).await;
        assert_eq!(queue.take(FLUSH).await.len(), 2);
        assert_eq!(before.elapsed(), FLUSH);
        queue.push(soon()).await;
        let mut taking = pin!(queue.take(FLUSH));
        assert!(taking.as_mut().now_or_never().is_none());
        queue.push(urgent()).await;
        assert_eq!(taking.await.len(), 2);
        queue.push(soon()).await;
        assert_eq!(queue.take(Duration::ZERO).await.len(), 1);
        assert_eq!(before.elapsed(), FLUSH, "neither of them waited");
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_is_taken_at_once_and_makes_senders_wait() {
        let queue = JournalQueue::default();
        for _ in 0..CAPACITY {
            queue.push(soon()).await;
        }
        let mut next = pin!(queue.push(soon()));
        assert!(next.as_mut().now_or_never().is_none());
        let before = Instant::now();
        assert_eq!(queue.take(FLUSH).await.len(), CAPACITY);
        assert_eq!(before.elapsed(), Duration::ZERO);
        next.await;
        assert_eq!(queue.take(FLUSH).await.len(), 1);
    }

    #[tokio::test]
    async fn commits_of_a_closed_queue_fail() {
        let queue = JournalQueue::default();
        let commit = || {
            let (done, kept) = oneshot::channel();
            (JournalEntry::Durable { record: Box::new(Record::default()), done: Some(done) }, kept)
        };
        let (before, after) = (commit(), commit());
        queue.push(before.0).await;
        queue.close();
        queue.push(after.0).await;
        assert!(before.1.await.is_err() && after.1.await.is_err());
    }
}
