//! A queue of log lines for stderr. A server must not wait for the reader of its log: if the reader is stuck, lines are dropped and
//! counted, and the count is logged as soon as lines can be written again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// Lines that may wait.
const CAPACITY: usize = 8192;
/// How long the end of the program waits for the last lines.
const FLUSH: Duration = Duration::from_secs(1);
/// Between two attempts to add to a full queue.
const RETRY: Duration = Duration::from_millis(2);

/// What is written in place of dropped lines, given their number.
pub(super) type Notice = fn(u64) -> String;

enum Entry {
    Line(Vec<u8>),
    /// Confirmed once all entries before it are written.
    Flush(SyncSender<()>),
}

/// Writes lines without blocking. Each call of `write` is one line.
#[derive(Clone)]
pub(super) struct LineQueue {
    entries: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

impl LineQueue {
    /// Starts the thread that writes to `out`. It ends with the last clone of the queue; a global log keeps one until the program
    /// ends.
    pub(super) fn start(out: impl Write + Send + 'static, notice: Notice) -> io::Result<Self> {
        let (entries, received) = mpsc::sync_channel(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let queue = Self { entries, dropped: Arc::clone(&dropped) };
        let write = move || write_all(&received, out, &dropped, notice);
        std::thread::Builder::new().name("baton-logs".to_owned()).spawn(write)?;
        Ok(queue)
    }

    pub(super) fn send(&self, line: Vec<u8>) {
        if self.entries.try_send(Entry::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the lines so far are written, but not long.
    pub(super) fn flush(&self) {
        let until = Instant::now() + FLUSH;
        let (done, flushed) = mpsc::sync_channel(1);
        let mut entry = Entry::Flush(done);
        while let Err(TrySendError::Full(refused)) = self.entries.try_send(entry) {
            if Instant::now() >= until {
                return;
            }
            std::thread::sleep(RETRY);
            entry = refused;
        }
        let left = until.saturating_duration_since(Instant::now());
        let _: Result<(), RecvTimeoutError> = flushed.recv_timeout(left);
    }
}

impl Write for LineQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.send(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A failing output must not end the program.
fn write_all(entries: &Receiver<Entry>, mut out: impl Write, dropped: &AtomicU64, notice: Notice) {
    for entry in entries {
        let flushed = match entry {
            Entry::Line(line) => {
                let _ = out.write_all(&line);
                None
            }
            Entry::Flush(done) => Some(done),
        };
        let count = dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            let _ = out.write_all(notice(count).as_bytes());
        }
        if let Some(done) = flushed {
            let _ = out.flush();
            let _ = done.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Blocks each write until the gate is opened.
    struct Stuck(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn stuck_reader_stops_nothing_and_dropped_lines_are_counted() {
        let (open, gate) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let out = Stuck(gate, Arc::clone(&written));
        let queue = LineQueue::start(out, |count| format!("{count} dropped\n")).unwrap();
        let lines = CAPACITY + 100;
        for number in 0..lines {
            queue.send(format!("{number}\n").into_bytes());
        }
        drop(open);
        queue.flush();
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let dropped: Vec<u64> =
            text.lines().filter_map(|line| line.strip_suffix(" dropped")?.parse().ok()).collect();
        let kept = text.lines().filter(|line| !line.ends_with("dropped")).count();
        assert!((kept == CAPACITY || kept == CAPACITY + 1) && text.starts_with("0\n"), "{kept}");
        assert_eq!(u64::try_from(kept).unwrap() + dropped.iter().sum::<u64>(), u64::try_from(lines).unwrap());
    }
}
