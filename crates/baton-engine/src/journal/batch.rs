//! Journal entries that are written with one append.

use std::collections::HashMap;
use std::ops::Range;

use baton_core::event::Event;
use baton_core::store::work::InterruptedCall;
use baton_core::store::{Append, HandoffChange, StepData};
use baton_core::{HandoffId, StoreError};

use super::{CommitAck, JournalEntry, Record};
use crate::failure::Failure;

/// An event or events to publish after the append.
pub(super) enum Announcement {
    Transient(Box<Event>),
    /// The next events of the append, this many.
    Committed(usize),
}

/// The versions of the handoffs that this claim has written.
#[derive(Debug, Default)]
pub(super) struct HandoffVersions(HashMap<HandoffId, u64>);

impl HandoffVersions {
    pub(super) fn written(&mut self, changes: &[HandoffChange]) {
        for HandoffChange { session, .. } in changes {
            self.0.insert(session.handoff_id, session.version + 1);
        }
    }

    /// Whether the change creates a handoff that is not stored yet.
    fn opens(&self, change: &HandoffChange) -> bool {
        change.session.version == 0 && !self.0.contains_key(&change.session.handoff_id)
    }

    /// Rebases the change on the version that this claim wrote last.
    fn based(&self, mut change: HandoffChange) -> HandoffChange {
        if let Some(version) = self.0.get(&change.session.handoff_id) {
            change.session.version = *version;
        }
        change
    }
}

/// One append, the events to publish after it, and the commits to acknowledge.
#[derive(Default)]
pub(super) struct AppendBatch {
    pub(super) append: Append,
    pub(super) announcements: Vec<Announcement>,
    pub(super) acks: Vec<CommitAck>,
    /// How many of its entries publish events.
    pub(super) announces: usize,
    conditional: Vec<ConditionalRecord>,
}

/// A record with a handoff. It is left out if another writer has changed the handoff.
struct ConditionalRecord {
    opens: bool,
    is_note: bool,
    rows: RowRanges,
    line: usize,
    done: Option<CommitAck>,
}

/// The positions of a record's rows in an append.
struct RowRanges {
    steps: Range<usize>,
    events: Range<usize>,
    messages: Range<usize>,
    outputs: Range<usize>,
    artifacts: Range<usize>,
    sessions: Range<usize>,
    audit: Range<usize>,
    hops: Range<usize>,
    approvals: Range<usize>,
    closed_approvals: Range<usize>,
}

impl RowRanges {
    /// The positions of the rows of `record` once they are added to `append`.
    fn of(record: &Record, append: &Append) -> Self {
        let after = |kept: usize, added: usize| kept..kept + added;
        Self {
            steps: after(append.steps.len(), record.steps.len()),
            events: after(append.events.len(), record.events.len()),
            messages: after(append.messages.len(), record.messages.len()),
            outputs: after(append.outputs.len(), record.outputs.len()),
            artifacts: after(append.artifacts.len(), record.artifacts.len()),
            sessions: after(append.sessions.len(), record.sessions.len()),
            audit: after(append.audit.len(), record.audit.len()),
            hops: after(append.hops.len(), record.hops.len()),
            approvals: after(append.approvals.len(), record.approvals.len()),
            closed_approvals: after(append.closed_approvals.len(), record.closed_approvals.len()),
        }
    }

    /// Shifts the positions after the rows of `earlier` were removed.
    fn move_up(&mut self, earlier: &Self) {
        let up = |range: &mut Range<usize>, gone: usize| *range = range.start - gone..range.end - gone;
        up(&mut self.steps, earlier.steps.len());
        up(&mut self.events, earlier.events.len());
        up(&mut self.messages, earlier.messages.len());
        up(&mut self.outputs, earlier.outputs.len());
        up(&mut self.artifacts, earlier.artifacts.len());
        up(&mut self.sessions, earlier.sessions.len());
        up(&mut self.audit, earlier.audit.len());
        up(&mut self.hops, earlier.hops.len());
        up(&mut self.approvals, earlier.approvals.len());
        up(&mut self.closed_approvals, earlier.closed_approvals.len());
    }
}

impl AppendBatch {
    pub(super) fn new(entries: Vec<JournalEntry>, number: u64, versions: &HandoffVersions) -> Self {
        let mut batch = Self { append: Append { number, ..Append::default() }, ..Self::default() };
        let mut started = Vec::new();
        for entry in entries {
            batch.announces += usize::from(entry.announces());
            match entry {
                JournalEntry::Transient(event) => batch.announcements.push(Announcement::Transient(event)),
                JournalEntry::Durable { record, done } => batch.add(*record, done, versions),
                JournalEntry::TurnStarted(turn) => {
                    started.push((batch.append.steps.len(), turn.call));
                    batch.append.steps.push(turn.step);
                }
            }
        }
        for (at, call) in started {
            batch.describe_open(at, &call);
        }
        batch
    }

    /// Adds the data of a started turn, unless the turn ends in the same append: the store keeps the last state of a step.
    fn describe_open(&mut self, at: usize, call: &InterruptedCall) {
        let (before, later) = self.append.steps.split_at_mut(at + 1);
        let step = &mut before[at];
        if !later.iter().any(|one| one.path == step.path) {
            step.data = StepData::of(call);
        }
    }

    fn add(&mut self, record: Record, done: Option<CommitAck>, versions: &HandoffVersions) {
        let line = self.announcements.len();
        self.announcements.push(Announcement::Committed(record.events.len()));
        if record.handoffs.is_empty() {
            self.acks.extend(done);
            return record.add_to(&mut self.append, versions);
        }
        // These are not rows, so a record that is left out could not take them back.
        debug_assert!(record.agent.is_none() && record.holder.is_none() && record.end.is_none());
        debug_assert!(record.waits_for.is_empty());
        let opens = record.handoffs.iter().any(|change| versions.opens(change));
        let rows = RowRanges::of(&record, &self.append);
        self.conditional.push(ConditionalRecord { opens, is_note: record.is_note, rows, line, done });
        record.add_to(&mut self.append, versions);
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.append == Append { number: self.append.number, ..Append::default() }
    }

    /// Leaves out the records that `refusal` is about, and fails the commits that wait for them. Their ledger rows stay, because
    /// the calls were made. Returns `None` if no record is meant.
    pub(super) fn reject_conflicting(&mut self, refusal: &StoreError) -> Option<RejectedRecords> {
        let opens = *refusal != StoreError::HandoffChanged;
        let (meant, others) = self.conditional.drain(..).partition::<Vec<_>, _>(|one| one.opens == opens);
        self.conditional = others;
        if meant.is_empty() {
            return None;
        }
        self.append.handoffs.retain(|change| (change.session.version == 0) != opens);
        let is_handled = meant.iter().all(|one| one.done.is_some() || one.is_note);
        for one in meant.into_iter().rev() {
            self.drop_record(one, refusal);
        }
        Some(RejectedRecords { is_handled })
    }

    fn drop_record(&mut self, one: ConditionalRecord, refusal: &StoreError) {
        for later in self.conditional.iter_mut().filter(|later| later.line > one.line) {
            later.rows.move_up(&one.rows);
        }
        let append = &mut self.append;
        append.steps.drain(one.rows.steps);
        append.events.drain(one.rows.events);
        append.messages.drain(one.rows.messages);
        append.outputs.drain(one.rows.outputs);
        append.artifacts.drain(one.rows.artifacts);
        append.sessions.drain(one.rows.sessions);
        append.audit.drain(one.rows.audit);
        append.hops.drain(one.rows.hops);
        append.approvals.drain(one.rows.approvals);
        append.closed_approvals.drain(one.rows.closed_approvals);
        self.announcements[one.line] = Announcement::Committed(0);
        if let Some(done) = one.done {
            let _ = done.send(Err(failure(refusal)));
        }
    }

    /// Takes the acknowledgements of all records that are not left out.
    pub(super) fn take_acks(&mut self) -> Vec<CommitAck> {
        let conditional = self.conditional.drain(..).filter_map(|one| one.done);
        self.acks.drain(..).chain(conditional).collect()
    }
}

/// The outcome of [`AppendBatch::reject_conflicting`].
pub(super) struct RejectedRecords {
    /// Whether each record is awaited by the run, or is a note that the run does not depend on.
    pub(super) is_handled: bool,
}

/// The failure of a commit whose record was left out.
fn failure(refusal: &StoreError) -> Failure {
    match refusal {
        StoreError::HandoffChanged => Failure::NoHandoff("the handoff has ended meanwhile"),
        other => Failure::Store(other.clone()),
    }
}

impl Record {
    pub(super) fn add_to(self, append: &mut Append, versions: &HandoffVersions) {
        append.steps.extend(self.steps);
        append.events.extend(self.events);
        append.messages.extend(self.messages);
        append.rows.extend(self.rows);
        append.outputs.extend(self.outputs);
        append.artifacts.extend(self.artifacts);
        append.sessions.extend(self.sessions);
        append.audit.extend(self.audit);
        append.hops.extend(self.hops);
        append.approvals.extend(self.approvals);
        append.closed_approvals.extend(self.closed_approvals);
        append.waits_for.extend(self.waits_for);
        for change in self.handoffs {
            replace(&mut append.handoffs, versions.based(change));
        }
        append.agent = self.agent.or(append.agent.take());
        append.holder = self.holder.or(append.holder.take());
        append.end = self.end.or(append.end.take());
        append.claim_next |= self.claim_next;
    }
}

/// Only the last state of a handoff is written.
fn replace(changes: &mut Vec<HandoffChange>, change: HandoffChange) {
    let same = |known: &&mut HandoffChange| known.session.handoff_id == change.session.handoff_id;
    match changes.iter_mut().find(same) {
        Some(known) => known.session = change.session,
        None => changes.push(change),
    }
}
