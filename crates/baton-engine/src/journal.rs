//! What a run writes down, and in which order others hear of it.
//!
//! One future per run, the scribe, takes what its branches hand in, writes all that waits with one append, and only then passes
//! the events on: nothing is announced that is not kept, and numbers rise for everyone who listens. Text that grows is not
//! kept. It overtakes the scribe unless an event waits that comes before it, because it comes hundreds of times a second.
//!
//! There are two kinds of records. The run waits for one that is kept *now*; it is written at once, with everything before it.
//! One that is kept *soon* is written with the next of those, or after some milliseconds ([`Desk::flush`]): it may be lost in a crash, and
//! then happens again.

mod batch;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_core::event::Event;
use baton_core::ledger::LedgerRow;
use baton_core::message::Message;
use baton_core::store::work::{RunEnd, SessionChange};
use baton_core::store::{Append, Appended, AuditEntry, Claim, Claimed, HandoffChange, Hop, NewEvent, Step};
use baton_core::{AgentName, StoreError, TenantId, TenantStore};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::lease::Lease;
use crate::ledger::Ledger;
use crate::listener::Listener;
use crate::live::Publisher;
use crate::observer::Observer;
use batch::{Batch, Line, Versions};

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
    pub(crate) hops: Vec<Hop>,
    /// The whole record is refused if one of them was changed by another writer.
    pub(crate) handoffs: Vec<HandoffChange>,
    pub(crate) agent: Option<AgentName>,
    pub(crate) holder: Option<AgentName>,
    pub(crate) end: Option<RunEnd>,
    /// With `end`: the same write claims the thread's next run.
    pub(crate) claim_next: bool,
    /// Nothing depends on its handoffs: if it is refused, it is left out and the run goes on.
    pub(crate) is_note: bool,
}

impl Record {
    /// As the first append of a claim.
    pub(crate) fn first_append(self) -> Append {
        let mut append = Append { number: 1, ..Append::default() };
        self.add_to(&mut append, &Versions::default());
        append
    }

    /// Both as one.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self.events.extend(other.events);
        self.messages.extend(other.messages);
        self.rows.extend(other.rows);
        self.sessions.extend(other.sessions);
        self.audit.extend(other.audit);
        self.hops.extend(other.hops);
        self.handoffs.extend(other.handoffs);
        self.agent = other.agent.or(self.agent);
        self.holder = other.holder.or(self.holder);
        self.end = other.end.or(self.end);
        self.claim_next |= other.claim_next;
        self.is_note &= other.is_note;
        self
    }
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
    /// Entries with something to announce that were handed in and not passed on.
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
        (journal, Scribe { waiting, hearers, shared, appended: 0, next: None, versions: Versions::default() })
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

    /// Returns when everything that was handed in before is kept.
    pub(crate) async fn flush(&self) -> Result<(), Failure> {
        self.keep(Record::default()).await
    }

    async fn hand_in(&self, entry: Entry) {
        self.shared.pending.fetch_add(entry.announces().into(), Ordering::AcqRel);
        let _ = self.entries.send(entry).await;
    }

    fn failure(&self) -> Failure {
        self.shared.broken.get().cloned().unwrap_or(Failure::Cancelled)
    }
}

impl Entry {
    /// Whether listeners hear something of it.
    fn announces(&self) -> bool {
        match self {
            Self::Passing(_) => true,
            Self::Kept { record, .. } => !record.events.is_empty(),
        }
    }

    /// Whether it cannot wait for others.
    fn is_urgent(&self) -> bool {
        matches!(self, Self::Passing(_) | Self::Kept { done: Some(_), .. })
    }
}

/// Whose run is written down, and until when that makes sense.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) store: &'a dyn TenantStore,
    pub(crate) claim: &'a Claim,
    pub(crate) ledger: &'a Ledger,
    pub(crate) lease: &'a Lease,
    /// How long a *soon* record may stay unwritten.
    pub(crate) flush: Duration,
    /// Ends the run.
    pub(crate) cancel: &'a CancellationToken,
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Scribe {
    waiting: mpsc::Receiver<Entry>,
    hearers: Arc<Hearers>,
    shared: Arc<Shared>,
    appended: u64,
    /// The run that the last append has claimed.
    next: Option<Box<Claimed>>,
    versions: Versions,
}

impl Scribe {
    /// The run has begun with an append that was written when it was accepted.
    pub(crate) async fn begun(&mut self, claim: &Claim, append: &Append, appended: &Appended) {
        self.appended = append.number;
        let events = (appended.first_seq..).zip(append.events.iter().cloned());
        let events = events.map(|(seq, event)| numbered(claim, seq, event)).collect::<Vec<_>>();
        self.tell(vec![Line::Kept(events.len())], events).await;
    }

    /// The thread's next run, if the end of this one has claimed it.
    pub(crate) fn next(self) -> Option<Claimed> {
        self.next.map(|next| *next)
    }

    /// Writes until something cannot be kept, and says why.
    pub(crate) async fn work(&mut self, desk: Desk<'_>) -> Failure {
        let mut entries = Vec::new();
        while !entries.is_empty() || self.waiting.recv_many(&mut entries, QUEUE).await > 0 {
            self.gather(&mut entries, desk.flush).await;
            let batch = Batch::take(&mut entries, self.appended + 1, &self.versions);
            if let Err(failure) = self.write(&desk, batch).await {
                return failure;
            }
        }
        Failure::Superseded
    }

    /// Waits for something that cannot wait, but not for long.
    async fn gather(&mut self, entries: &mut Vec<Entry>, flush: Duration) {
        if flush.is_zero() || entries.iter().any(Entry::is_urgent) {
            return;
        }
        let over = tokio::time::sleep(flush);
        tokio::pin!(over);
        loop {
            let known = entries.len();
            tokio::select! {
                biased;
                more = self.waiting.recv_many(entries, QUEUE) => {
                    if more == 0 || entries[known..].iter().any(Entry::is_urgent) {
                        return;
                    }
                }
                () = &mut over => return,
            }
        }
    }

    /// Writes a batch and publishes its events. Records based on an outdated handoff are left out.
    async fn write(&mut self, desk: &Desk<'_>, mut batch: Batch) -> Result<(), Failure> {
        let (announced, ends) = (batch.announces, batch.append.end.is_some());
        batch.append.rows.extend(desk.ledger.take_unsaved());
        let events = loop {
            if batch.is_empty() {
                break Vec::new();
            }
            let (failure, append) = match self.keep(desk, std::mem::take(&mut batch.append)).await {
                Ok(events) => break events,
                Err(refused) => refused,
            };
            batch.append = append;
            let refused = match &failure {
                Failure::Store(refusal) if refusal.is_about_handoff() => batch.refuse(refusal),
                _ => None,
            };
            match refused {
                Some(refused) if refused.is_handled => {}
                // The handoff was changed from outside, and no part of the run waits for the outcome.
                Some(_) => desk.cancel.cancel(),
                None => return Err(self.break_off(failure, batch.promised())),
            }
        };
        // A run waits for the store, not for listeners, until its end: this future is dropped with the run.
        let (now, at_the_end) =
            if ends { (Vec::new(), batch.promised()) } else { (batch.promised(), Vec::new()) };
        fulfil(now, &Ok(()));
        self.tell(batch.lines, events).await;
        self.shared.pending.fetch_sub(announced, Ordering::AcqRel);
        fulfil(at_the_end, &Ok(()));
        Ok(())
    }

    fn break_off(&self, failure: Failure, promised: Vec<Promise>) -> Failure {
        let _ = self.shared.broken.set(failure.clone());
        fulfil(promised, &Err(failure.clone()));
        failure
    }

    /// The events with their numbers, once they are kept; or why not, and what was not.
    async fn keep(&mut self, desk: &Desk<'_>, append: Append) -> Result<Vec<Event>, (Failure, Append)> {
        let append = Arc::new(append);
        let kept = persist(desk, &append, self.hearers.observer.as_deref()).await;
        let appended = match kept {
            Ok(appended) => appended,
            Err(failure) => return Err((failure, Arc::unwrap_or_clone(append))),
        };
        self.appended += 1;
        self.versions.written(&append.handoffs);
        self.next = appended.next;
        if let Some(observer) = &self.hearers.observer {
            observer.paid(&self.hearers.tenant, &append.rows);
        }
        let events = Arc::unwrap_or_clone(append).events;
        let numbers = appended.first_seq..;
        Ok(numbers.zip(events).map(|(seq, event)| numbered(desk.claim, seq, event)).collect())
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

fn fulfil(promised: Vec<Promise>, outcome: &Result<(), Failure>) {
    for done in promised {
        let _ = done.send(outcome.clone());
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
) -> Result<Appended, Failure> {
    let mut pause = FIRST_PAUSE;
    let mut ends = None;
    loop {
        let error = match desk.store.append(desk.claim, Arc::clone(append)).await {
            Ok(appended) => return Ok(appended),
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
