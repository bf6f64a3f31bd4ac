//! The journal of a run: what it stores, and in which order its events are published.
//!
//! A [`JournalWriter`] is one future per run. It takes the records that the branches of the run enqueue, writes all pending ones
//! with one append, and only then publishes their events. So no stored kind of event is published before it is stored, and
//! sequence numbers rise for every listener. Text deltas are not stored. They bypass the writer unless a pending event has to
//! precede them, because hundreds of them arrive per second.
//!
//! [`Journal::commit`] waits for its record, which is written at once, together with everything before it. A record of
//! [`Journal::commit_soon`] is written with the next of those or after [`WriterContext::flush`]. A crash may lose it, and the run
//! then repeats its step.

mod batch;
mod queue;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_core::event::Event;
use baton_core::ledger::LedgerRow;
use baton_core::message::{Message, Visibility};
use baton_core::store::work::{InterruptedCall, RunEnd, SessionChange};
use baton_core::store::{
    Append, Appended, ApprovalOutcome, ApprovalRequest, AuditEntry, Claim, Claimed, HandoffChange, Hop,
    NewArtifact, NewEvent, SpooledOutput, Step,
};
use baton_core::{AgentName, StoreError, TenantId, TenantStore};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::failure::Failure;
use crate::heartbeat::ClaimHeartbeat;
use crate::ledger::Ledger;
use crate::listener::Listener;
use crate::live::Publisher;
use crate::observer::Observer;
use batch::{Announcement, AppendBatch, HandoffVersions};
use queue::JournalQueue;

/// How long an append is retried once the run is cancelled.
const FINAL_RETRY_WINDOW: Duration = Duration::from_secs(5);
const MIN_RETRY_DELAY: Duration = Duration::from_millis(20);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Changes that are stored together or not at all.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) steps: Vec<Step>,
    pub(crate) events: Vec<NewEvent>,
    pub(crate) messages: Vec<Message>,
    /// Rows that must not be stored before this record. Every append also stores the unsaved rows of the ledger.
    pub(crate) rows: Vec<LedgerRow>,
    pub(crate) outputs: Vec<SpooledOutput>,
    pub(crate) artifacts: Vec<NewArtifact>,
    pub(crate) sessions: Vec<SessionChange>,
    pub(crate) audit: Vec<AuditEntry>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) approvals: Vec<ApprovalRequest>,
    pub(crate) closed_approvals: Vec<(Uuid, ApprovalOutcome)>,
    /// With an end: the approvals that the run waits for.
    pub(crate) waits_for: Vec<Uuid>,
    /// The whole record is rejected if another writer has changed one of these handoffs.
    pub(crate) handoffs: Vec<HandoffChange>,
    pub(crate) agent: Option<AgentName>,
    pub(crate) holder: Option<AgentName>,
    pub(crate) end: Option<RunEnd>,
    /// With `end`: the same append claims the thread's next run.
    pub(crate) claim_next: bool,
    /// The run does not depend on the handoffs: if they are rejected, the record is left out and the run continues.
    pub(crate) is_note: bool,
}

impl Record {
    /// The record as the first append of a claim.
    pub(crate) fn first_append(self) -> Append {
        let mut append = Append { number: 1, ..Append::default() };
        self.add_to(&mut append, &HandoffVersions::default());
        append
    }

    /// Merges two records. The agent, holder and end of `other` win.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self.events.extend(other.events);
        self.messages.extend(other.messages);
        self.rows.extend(other.rows);
        self.outputs.extend(other.outputs);
        self.artifacts.extend(other.artifacts);
        self.sessions.extend(other.sessions);
        self.audit.extend(other.audit);
        self.hops.extend(other.hops);
        self.approvals.extend(other.approvals);
        self.closed_approvals.extend(other.closed_approvals);
        self.waits_for.extend(other.waits_for);
        self.handoffs.extend(other.handoffs);
        self.agent = other.agent.or(self.agent);
        self.holder = other.holder.or(self.holder);
        self.end = other.end.or(self.end);
        self.claim_next |= other.claim_next;
        self.is_note &= other.is_note;
        self
    }
}

type CommitAck = oneshot::Sender<Result<(), Failure>>;

#[derive(Debug)]
enum JournalEntry {
    /// An event that is not stored, in order with those that are.
    Transient(Box<Event>),
    Durable {
        record: Box<Record>,
        done: Option<CommitAck>,
    },
    TurnStarted(Box<StartedTurn>),
}

/// A model call that starts. Its data is only serialised if the call is still open when the step is written.
#[derive(Debug)]
struct StartedTurn {
    step: Step,
    call: InterruptedCall,
}

/// The sending end of a run's journal, which all branches of the run share.
#[derive(Debug)]
pub(crate) struct Journal {
    sink: Arc<EventSink>,
    shared: Arc<JournalShared>,
}

/// The receivers of a run's events: its waiter, the subscribers of its thread and the process's observer.
#[derive(Debug)]
pub(crate) struct EventSink {
    pub(crate) listener: Listener,
    pub(crate) publisher: Publisher,
    pub(crate) tenant: TenantId,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl EventSink {
    /// Publishes to the thread before the listener: only the listener is ever waited for.
    async fn publish(&self, event: Event) {
        if let Some(observer) = &self.observer {
            observer.on_event(&self.tenant, &event);
        }
        let event = Arc::new(event);
        self.publisher.publish(&event);
        self.listener.send(event).await;
    }
}

/// State that a journal shares with its writer.
#[derive(Debug, Default)]
struct JournalShared {
    queue: JournalQueue,
    /// Enqueued entries whose events are not published yet.
    pending: AtomicUsize,
    last_seq: AtomicU64,
    /// Why nothing can be stored any more.
    broken: OnceLock<Failure>,
}

impl Journal {
    /// Opens the journal of one claim. The caller has to poll [`JournalWriter::run`] beside the run.
    pub(crate) fn open(sink: EventSink) -> (Self, JournalWriter) {
        let sink = Arc::new(sink);
        let shared = Arc::new(JournalShared::default());
        let journal = Self { sink: Arc::clone(&sink), shared: Arc::clone(&shared) };
        let versions = HandoffVersions::default();
        (journal, JournalWriter { sink, shared, appended: 0, next: None, versions })
    }

    /// The sequence number of the last published event.
    pub(crate) fn last_seq(&self) -> u64 {
        self.shared.last_seq.load(Ordering::Acquire)
    }

    /// Publishes an event that is not stored. It waits its turn if events before it are pending.
    pub(crate) async fn publish_transient(&self, mut event: Event) {
        if self.shared.pending.load(Ordering::Acquire) > 0 {
            return self.enqueue(JournalEntry::Transient(Box::new(event))).await;
        }
        event.seq = self.last_seq();
        self.sink.publish(event).await;
    }

    /// Stores a record. Returns when it is written. A record that is enqueued is written even if the future is dropped.
    pub(crate) async fn commit(&self, record: Record) -> Result<(), Failure> {
        let (done, kept) = oneshot::channel();
        self.enqueue(JournalEntry::Durable { record: Box::new(record), done: Some(done) }).await;
        kept.await.unwrap_or_else(|_| Err(self.failure()))
    }

    /// Enqueues a record without waiting for the append. It is stored before anything that is enqueued later.
    pub(crate) async fn commit_soon(&self, record: Record) {
        self.enqueue(JournalEntry::Durable { record: Box::new(record), done: None }).await;
    }

    /// Like [`Journal::commit_soon`], for the start of a turn. The data of `step` is that of `call`.
    pub(crate) async fn turn_started(&self, step: Step, call: InterruptedCall) {
        self.enqueue(JournalEntry::TurnStarted(Box::new(StartedTurn { step, call }))).await;
    }

    /// Returns when everything that was enqueued before is stored.
    pub(crate) async fn flush(&self) -> Result<(), Failure> {
        self.commit(Record::default()).await
    }

    async fn enqueue(&self, entry: JournalEntry) {
        self.shared.pending.fetch_add(entry.announces().into(), Ordering::AcqRel);
        self.shared.queue.push(entry).await;
    }

    fn failure(&self) -> Failure {
        self.shared.broken.get().cloned().unwrap_or(Failure::Cancelled)
    }
}

impl JournalEntry {
    /// Whether the entry publishes events.
    fn announces(&self) -> bool {
        match self {
            Self::Transient(_) => true,
            Self::Durable { record, .. } => !record.events.is_empty(),
            Self::TurnStarted(_) => false,
        }
    }

    /// Whether the entry is processed without waiting for more. Text that only readers of traces see does not cost a commit.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Transient(event) => event.visibility == Visibility::User,
            Self::Durable { done, .. } => done.is_some(),
            Self::TurnStarted(_) => false,
        }
    }
}

/// What a [`JournalWriter`] needs to know of its run.
#[derive(Debug)]
pub(crate) struct WriterContext<'a> {
    pub(crate) store: &'a dyn TenantStore,
    pub(crate) claim: &'a Claim,
    pub(crate) ledger: &'a Ledger,
    /// Whether the run counts against budgets that it shares with others.
    pub(crate) shares_budgets: bool,
    pub(crate) lease: &'a ClaimHeartbeat,
    /// How long a record of [`Journal::commit_soon`] may stay unwritten.
    pub(crate) flush: Duration,
    /// Cancels the run.
    pub(crate) cancel: &'a CancellationToken,
}

/// The receiving end of a run's journal: appends records to the store and publishes their events.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    sink: Arc<EventSink>,
    shared: Arc<JournalShared>,
    appended: u64,
    /// The thread's next run, if the last append has claimed it.
    next: Option<Box<Claimed>>,
    versions: HandoffVersions,
}

impl JournalWriter {
    /// Continues after an append that was written when the run was accepted, and publishes its events.
    pub(crate) async fn adopt_first_append(&mut self, claim: &Claim, append: &Append, appended: &Appended) {
        self.appended = append.number;
        let events = (appended.first_seq..).zip(append.events.iter().cloned());
        let events = events.map(|(seq, event)| with_seq(claim, seq, event)).collect::<Vec<_>>();
        self.publish(vec![Announcement::Committed(events.len())], events).await;
    }

    /// The thread's next run, if the end of this one has claimed it.
    pub(crate) fn next(mut self) -> Option<Box<Claimed>> {
        self.next.take()
    }

    /// Writes until an append fails, and returns the failure.
    pub(crate) async fn run(&mut self, context: WriterContext<'_>) -> Failure {
        loop {
            let entries = self.shared.queue.take(context.flush).await;
            let batch = AppendBatch::new(entries, self.appended + 1, &self.versions);
            // Boxed: nothing is written most of the time, and this future lasts as long as the run.
            if let Err(failure) = Box::pin(self.write(&context, batch)).await {
                return failure;
            }
        }
    }

    /// Writes a batch and publishes its events. Records based on an outdated handoff are left out.
    async fn write(&mut self, context: &WriterContext<'_>, mut batch: AppendBatch) -> Result<(), Failure> {
        let (announced, ends) = (batch.announces, batch.append.end.is_some());
        batch.append.rows.extend(context.ledger.take_unsaved());
        batch.append.settles_budgets = context.shares_budgets && (ends || !batch.append.rows.is_empty());
        let events = loop {
            if batch.is_empty() {
                break Vec::new();
            }
            let (failure, append) = match self.keep(context, std::mem::take(&mut batch.append)).await {
                Ok(events) => break events,
                Err(refused) => refused,
            };
            batch.append = append;
            let refused = match &failure {
                Failure::Store(refusal) if refusal.is_about_handoff() => batch.reject_conflicting(refusal),
                _ => None,
            };
            match refused {
                Some(refused) if refused.is_handled => {}
                // The handoff was changed from outside, and no part of the run awaits the record: the run cannot continue.
                Some(_) => context.cancel.cancel(),
                None => return Err(self.fail(failure, batch.take_acks())),
            }
        };
        // Commits return before listeners have the events. The last one returns after them, because this future is dropped with
        // the run.
        let (now, at_the_end) =
            if ends { (Vec::new(), batch.take_acks()) } else { (batch.take_acks(), Vec::new()) };
        acknowledge(now, &Ok(()));
        self.publish(batch.announcements, events).await;
        self.shared.pending.fetch_sub(announced, Ordering::AcqRel);
        acknowledge(at_the_end, &Ok(()));
        Ok(())
    }

    fn fail(&self, failure: Failure, acks: Vec<CommitAck>) -> Failure {
        let _ = self.shared.broken.set(failure.clone());
        acknowledge(acks, &Err(failure.clone()));
        failure
    }

    /// Appends, and returns the events with their sequence numbers. A failure returns the append.
    async fn keep(
        &mut self,
        context: &WriterContext<'_>,
        append: Append,
    ) -> Result<Vec<Event>, (Failure, Append)> {
        let append = Arc::new(append);
        let kept = append_with_retry(context, &append, self.sink.observer.as_deref()).await;
        let appended = match kept {
            Ok(appended) => appended,
            Err(failure) => return Err((failure, Arc::unwrap_or_clone(append))),
        };
        self.appended += 1;
        self.versions.written(&append.handoffs);
        self.next = appended.next;
        if let Some(observer) = &self.sink.observer {
            observer.on_ledger_rows(&self.sink.tenant, &append.rows);
        }
        let events = Arc::unwrap_or_clone(append).events;
        let numbers = appended.first_seq..;
        Ok(numbers.zip(events).map(|(seq, event)| with_seq(context.claim, seq, event)).collect())
    }

    async fn publish(&self, announcements: Vec<Announcement>, events: Vec<Event>) {
        let mut events = events.into_iter();
        for line in announcements {
            match line {
                Announcement::Transient(mut event) => {
                    event.seq = self.shared.last_seq.load(Ordering::Acquire);
                    self.sink.publish(*event).await;
                }
                Announcement::Committed(count) => {
                    for event in events.by_ref().take(count) {
                        self.shared.last_seq.store(event.seq, Ordering::Release);
                        self.sink.publish(event).await;
                    }
                }
            }
        }
    }
}

/// Commits that are still waiting fail.
impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}

fn acknowledge(acks: Vec<CommitAck>, outcome: &Result<(), Failure>) {
    for done in acks {
        let _ = done.send(outcome.clone());
    }
}

fn with_seq(claim: &Claim, seq: u64, event: NewEvent) -> Event {
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

/// Appends, and retries transient errors until the lease expires, or for 5 s once the run is cancelled. The run waits meanwhile:
/// a full disk or a restart of the database costs time, not work.
async fn append_with_retry(
    context: &WriterContext<'_>,
    append: &Arc<Append>,
    observer: Option<&dyn Observer>,
) -> Result<Appended, Failure> {
    let mut pause = MIN_RETRY_DELAY;
    let mut ends = None;
    loop {
        let error = match context.store.append(context.claim, Arc::clone(append)).await {
            Ok(appended) => return Ok(appended),
            Err(StoreError::Fenced) => return Err(Failure::Superseded),
            Err(error) => error,
        };
        if let Some(observer) = observer {
            observer.on_store_error(&error);
        }
        if context.lease.is_ending() && ends.is_none() {
            ends = Some(Instant::now() + FINAL_RETRY_WINDOW);
        }
        let until = ends.unwrap_or(context.lease.until()).min(context.lease.until());
        if !error.is_transient() || Instant::now() + pause >= until {
            return Err(Failure::Store(error));
        }
        tracing::warn!(run = %context.claim.run_id, %error, "append failed; retrying");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_RETRY_DELAY);
    }
}
