//! What a run writes down, and in which order others hear of it.
//!
//! One future per run, the scribe, takes what its branches hand in, writes all that waits with one append, and only then passes
//! the events on: nothing is announced that is not kept, and numbers rise for everyone who listens. Text that grows is not
//! kept. It overtakes the scribe when nothing waits, because it comes hundreds of times a second.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_core::event::Event;
use baton_core::ledger::LedgerRow;
use baton_core::message::Message;
use baton_core::store::work::{RunEnd, SessionChange};
use baton_core::store::{Append, AuditEntry, Claim, NewEvent, Step};
use baton_core::{AgentName, StoreError, TenantId, TenantStore};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::lease::Lease;
use crate::ledger::Ledger;
use crate::listener::Listener;
use crate::live::Publisher;
use crate::observer::Observer;

/// Entries that may wait for the scribe.
const QUEUE: usize = 256;
/// How long the store is tried again when the run is to end anyway.
const LAST_TRIES: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Something to be kept as a whole.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) steps: Vec<Step>,
    pub(crate) events: Vec<NewEvent>,
    pub(crate) messages: Vec<Message>,
    /// Those that have to be kept with this and not before, beside what waits in the ledger.
    pub(crate) rows: Vec<LedgerRow>,
    pub(crate) sessions: Vec<SessionChange>,
    pub(crate) audit: Vec<AuditEntry>,
    pub(crate) agent: Option<AgentName>,
    pub(crate) holder: Option<AgentName>,
    pub(crate) end: Option<RunEnd>,
}

type Promise = oneshot::Sender<Result<(), Failure>>;

/// Small, because the queue of every run has room for some of them from its beginning.
#[derive(Debug)]
enum Entry {
    /// An event that is not kept, in its place among those that are.
    Passing(Box<Event>),
    Kept {
        record: Box<Record>,
        done: Option<Promise>,
    },
}

/// The branches' end.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: mpsc::Sender<Entry>,
    hearers: Arc<Hearers>,
    shared: Arc<Shared>,
}

/// All that hear of a run: whoever waits for it, whoever listens to its thread, and whoever counts.
#[derive(Debug)]
pub(crate) struct Hearers {
    pub(crate) listener: Listener,
    pub(crate) publisher: Publisher,
    pub(crate) tenant: TenantId,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Hearers {
    /// Those who listen to the thread are never waited for, so they hear it first.
    async fn tell(&self, event: Event) {
        if let Some(observer) = &self.observer {
            observer.happened(&self.tenant, &event);
        }
        let event = Arc::new(event);
        self.publisher.publish(&event);
        self.listener.tell(event).await;
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// Entries that were handed in and not passed on.
    pending: AtomicUsize,
    last_seq: AtomicU64,
    /// Why nothing can be kept any more.
    broken: OnceLock<Failure>,
}

impl Journal {
    /// The journal of one claim, and the scribe that has to be polled beside the run.
    pub(crate) fn open(hearers: Hearers) -> (Self, Scribe) {
        let hearers = Arc::new(hearers);
        let (entries, waiting) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let journal = Self { entries, hearers: Arc::clone(&hearers), shared: Arc::clone(&shared) };
        (journal, Scribe { waiting, hearers, shared, appended: 0 })
    }

    /// The number of the last event that was passed on.
    pub(crate) fn last_seq(&self) -> u64 {
        self.shared.last_seq.load(Ordering::Acquire)
    }

    /// Passes on an event that is not kept.
    pub(crate) async fn pass(&self, mut event: Event) {
        if self.shared.pending.load(Ordering::Acquire) > 0 {
            return self.hand_in(Entry::Passing(Box::new(event))).await;
        }
        event.seq = self.last_seq();
        self.hearers.tell(event).await;
    }

    /// Returns when it is kept.
    pub(crate) async fn keep(&self, record: Record) -> Result<(), Failure> {
        let (done, kept) = oneshot::channel();
        self.hand_in(Entry::Kept { record: Box::new(record), done: Some(done) }).await;
        kept.await.unwrap_or_else(|_| Err(self.failure()))
    }

    /// Kept before anything that is handed in later, without waiting for it.
    pub(crate) async fn keep_soon(&self, record: Record) {
        self.hand_in(Entry::Kept { record: Box::new(record), done: None }).await;
    }

    async fn hand_in(&self, entry: Entry) {
        self.shared.pending.fetch_add(1, Ordering::AcqRel);
        let _ = self.entries.send(entry).await;
    }

    fn failure(&self) -> Failure {
        self.shared.broken.get().cloned().unwrap_or(Failure::Cancelled)
    }
}

/// Whose run is written down, and until when that makes sense.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) store: &'a dyn TenantStore,
    pub(crate) claim: &'a Claim,
    pub(crate) ledger: &'a Ledger,
    pub(crate) lease: &'a Lease,
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Scribe {
    waiting: mpsc::Receiver<Entry>,
    hearers: Arc<Hearers>,
    shared: Arc<Shared>,
    appended: u64,
}

/// What is to be said after a write, in order.
enum Line {
    Passing(Box<Event>),
    /// This many events of the append.
    Kept(usize),
}

impl Scribe {
    /// Writes until something cannot be kept, and says why.
    pub(crate) async fn work(&mut self, desk: Desk<'_>) -> Failure {
        let mut entries = Vec::new();
        while self.waiting.recv_many(&mut entries, QUEUE).await > 0 {
            let count = entries.len();
            let (append, lines, promised) = self.gather(&desk, entries.drain(..));
            let kept = match append {
                Some(append) => self.keep(&desk, append).await,
                None => Ok(Vec::new()),
            };
            let events = match kept {
                Ok(events) => events,
                Err(failure) => return self.break_off(failure, promised),
            };
            // The run goes on before anybody has heard: it has to wait for the store, not for listeners.
            for done in promised {
                let _ = done.send(Ok(()));
            }
            self.tell(lines, events).await;
            self.shared.pending.fetch_sub(count, Ordering::AcqRel);
        }
        Failure::Superseded
    }

    fn break_off(&self, failure: Failure, promised: Vec<Promise>) -> Failure {
        let _ = self.shared.broken.set(failure.clone());
        for done in promised {
            let _ = done.send(Err(failure.clone()));
        }
        failure
    }

    /// One append of all that is to be kept, with the ledger rows that wait; what is to be said then, and to whom it is promised.
    fn gather(
        &self,
        desk: &Desk<'_>,
        entries: impl Iterator<Item = Entry>,
    ) -> (Option<Append>, Vec<Line>, Vec<Promise>) {
        let mut append = Append { number: self.appended + 1, ..Append::default() };
        let (mut lines, mut promised) = (Vec::new(), Vec::new());
        let mut is_empty = true;
        for entry in entries {
            match entry {
                Entry::Passing(event) => lines.push(Line::Passing(event)),
                Entry::Kept { record, done } => {
                    is_empty = false;
                    lines.push(Line::Kept(record.events.len()));
                    promised.extend(done);
                    record.add_to(&mut append);
                }
            }
        }
        if is_empty {
            return (None, lines, promised);
        }
        append.rows.extend(desk.ledger.take_unsaved());
        (Some(append), lines, promised)
    }

    /// The events with their numbers, once they are kept.
    async fn keep(&mut self, desk: &Desk<'_>, append: Append) -> Result<Vec<Event>, Failure> {
        let append = Arc::new(append);
        let first = persist(desk, &append, self.hearers.observer.as_deref()).await?;
        self.appended += 1;
        if let Some(observer) = &self.hearers.observer {
            observer.paid(&self.hearers.tenant, &append.rows);
        }
        let events = Arc::unwrap_or_clone(append).events;
        Ok((first..).zip(events).map(|(seq, event)| numbered(desk.claim, seq, event)).collect())
    }

    async fn tell(&self, lines: Vec<Line>, events: Vec<Event>) {
        let mut events = events.into_iter();
        for line in lines {
            match line {
                Line::Passing(mut event) => {
                    event.seq = self.shared.last_seq.load(Ordering::Acquire);
                    self.hearers.tell(*event).await;
                }
                Line::Kept(count) => {
                    for event in events.by_ref().take(count) {
                        self.shared.last_seq.store(event.seq, Ordering::Release);
                        self.hearers.tell(event).await;
                    }
                }
            }
        }
    }
}

impl Record {
    fn add_to(self, append: &mut Append) {
        append.steps.extend(self.steps);
        append.events.extend(self.events);
        append.messages.extend(self.messages);
        append.rows.extend(self.rows);
        append.sessions.extend(self.sessions);
        append.audit.extend(self.audit);
        append.agent = self.agent.or(append.agent.take());
        append.holder = self.holder.or(append.holder.take());
        append.end = self.end.or(append.end.take());
    }
}

fn numbered(claim: &Claim, seq: u64, event: NewEvent) -> Event {
    Event {
        seq,
        thread_id: claim.thread_id,
        run_id: claim.run_id,
        at: event.at,
        agent: event.agent,
        path: event.path,
        visibility: event.visibility,
        kind: event.kind,
    }
}

/// Tries until it is kept, or the run is not ours any more. While it tries, the run waits: a full disk or a database that
/// restarts costs time, not work.
async fn persist(
    desk: &Desk<'_>,
    append: &Arc<Append>,
    observer: Option<&dyn Observer>,
) -> Result<u64, Failure> {
    let mut pause = FIRST_PAUSE;
    let mut ends = None;
    loop {
        let error = match desk.store.append(desk.claim, Arc::clone(append)).await {
            Ok(first) => return Ok(first),
            Err(StoreError::Fenced) => return Err(Failure::Superseded),
            Err(error) => error,
        };
        if let Some(observer) = observer {
            observer.stumbled(&error);
        }
        if desk.lease.is_ending() && ends.is_none() {
            ends = Some(Instant::now() + LAST_TRIES);
        }
        let until = ends.unwrap_or(desk.lease.until()).min(desk.lease.until());
        if !error.is_passing() || Instant::now() + pause >= until {
            return Err(Failure::Store(error));
        }
        tracing::warn!(run = %desk.claim.run_id, %error, "the store does not take a write; trying again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
