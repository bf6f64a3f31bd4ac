//! Entries of a journal that are written together.

use std::collections::HashMap;
use std::ops::Range;

use baton_core::event::Event;
use baton_core::store::{Append, HandoffChange};
use baton_core::{HandoffId, StoreError};

use super::{Entry, Promise, Record};
use crate::failure::Failure;

/// What is to be said after a write, in order.
pub(super) enum Line {
    Passing(Box<Event>),
    /// This many events of the append.
    Kept(usize),
}

/// The versions of handoffs that this claim has written.
#[derive(Debug, Default)]
pub(super) struct Versions(HashMap<HandoffId, u64>);

impl Versions {
    pub(super) fn written(&mut self, changes: &[HandoffChange]) {
        for HandoffChange { session, .. } in changes {
            self.0.insert(session.handoff_id, session.version + 1);
        }
    }

    /// Whether the change begins a handoff that is not stored.
    fn opens(&self, change: &HandoffChange) -> bool {
        change.session.version == 0 && !self.0.contains_key(&change.session.handoff_id)
    }

    /// The change as one of what is stored.
    fn based(&self, mut change: HandoffChange) -> HandoffChange {
        if let Some(version) = self.0.get(&change.session.handoff_id) {
            change.session.version = *version;
        }
        change
    }
}

/// One append of all that is to be kept; what is to be said then, and to whom it is promised.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) append: Append,
    pub(super) lines: Vec<Line>,
    pub(super) promised: Vec<Promise>,
    /// How many of its entries announce something.
    pub(super) announces: usize,
    conditional: Vec<Conditional>,
}

/// A record with a handoff: left out if another writer has changed the handoff.
struct Conditional {
    opens: bool,
    is_note: bool,
    rows: Rows,
    line: usize,
    done: Option<Promise>,
}

/// Where in an append the rows of a record are.
struct Rows {
    steps: Range<usize>,
    events: Range<usize>,
    messages: Range<usize>,
    sessions: Range<usize>,
    audit: Range<usize>,
}

impl Rows {
    /// Where those of `record` will be once they are added.
    fn of(record: &Record, append: &Append) -> Self {
        let after = |kept: usize, added: usize| kept..kept + added;
        Self {
            steps: after(append.steps.len(), record.steps.len()),
            events: after(append.events.len(), record.events.len()),
            messages: after(append.messages.len(), record.messages.len()),
            sessions: after(append.sessions.len(), record.sessions.len()),
            audit: after(append.audit.len(), record.audit.len()),
        }
    }

    /// Those of `earlier` are gone.
    fn move_up(&mut self, earlier: &Self) {
        let up = |range: &mut Range<usize>, gone: usize| *range = range.start - gone..range.end - gone;
        up(&mut self.steps, earlier.steps.len());
        up(&mut self.events, earlier.events.len());
        up(&mut self.messages, earlier.messages.len());
        up(&mut self.sessions, earlier.sessions.len());
        up(&mut self.audit, earlier.audit.len());
    }
}

impl Batch {
    pub(super) fn take(entries: &mut Vec<Entry>, number: u64, versions: &Versions) -> Self {
        let mut batch = Self { append: Append { number, ..Append::default() }, ..Self::default() };
        for entry in entries.drain(..) {
            batch.announces += usize::from(entry.announces());
            match entry {
                Entry::Passing(event) => batch.lines.push(Line::Passing(event)),
                Entry::Kept { record, done } => batch.add(*record, done, versions),
            }
        }
        batch
    }

    fn add(&mut self, record: Record, done: Option<Promise>, versions: &Versions) {
        let line = self.lines.len();
        self.lines.push(Line::Kept(record.events.len()));
        if record.handoffs.is_empty() {
            self.promised.extend(done);
            return record.add_to(&mut self.append, versions);
        }
        let opens = record.handoffs.iter().any(|change| versions.opens(change));
        let rows = Rows::of(&record, &self.append);
        self.conditional.push(Conditional { opens, is_note: record.is_note, rows, line, done });
        record.add_to(&mut self.append, versions);
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.append == Append { number: self.append.number, ..Append::default() }
    }

    /// Leaves out the records whose handoff is not as they expect it, except for what was paid, and tells those who wait for them.
    /// `None` when there is none of that kind.
    pub(super) fn refuse(&mut self, refusal: &StoreError) -> Option<Refused> {
        let opens = *refusal != StoreError::HandoffChanged;
        let (meant, others) = self.conditional.drain(..).partition::<Vec<_>, _>(|one| one.opens == opens);
        self.conditional = others;
        if meant.is_empty() {
            return None;
        }
        self.append.handoffs.retain(|change| (change.session.version == 0) != opens);
        let is_handled = meant.iter().all(|one| one.done.is_some() || one.is_note);
        for one in meant.into_iter().rev() {
            self.leave_out(one, refusal);
        }
        Some(Refused { is_handled })
    }

    fn leave_out(&mut self, one: Conditional, refusal: &StoreError) {
        for later in self.conditional.iter_mut().filter(|later| later.line > one.line) {
            later.rows.move_up(&one.rows);
        }
        let append = &mut self.append;
        append.steps.drain(one.rows.steps);
        append.events.drain(one.rows.events);
        append.messages.drain(one.rows.messages);
        append.sessions.drain(one.rows.sessions);
        append.audit.drain(one.rows.audit);
        self.lines[one.line] = Line::Kept(0);
        if let Some(done) = one.done {
            let _ = done.send(Err(failure(refusal)));
        }
    }

    /// All that is kept is kept.
    pub(super) fn promised(&mut self) -> Vec<Promise> {
        let conditional = self.conditional.drain(..).filter_map(|one| one.done);
        self.promised.drain(..).chain(conditional).collect()
    }
}

/// What was left out.
pub(super) struct Refused {
    /// Whether the run waits for each record, or does not depend on it.
    pub(super) is_handled: bool,
}

/// What a run makes of it.
fn failure(refusal: &StoreError) -> Failure {
    match refusal {
        StoreError::HandoffChanged => Failure::NoHandoff("the handoff has ended meanwhile"),
        other => Failure::Store(other.clone()),
    }
}

impl Record {
    pub(super) fn add_to(self, append: &mut Append, versions: &Versions) {
        append.steps.extend(self.steps);
        append.events.extend(self.events);
        append.messages.extend(self.messages);
        append.rows.extend(self.rows);
        append.sessions.extend(self.sessions);
        append.audit.extend(self.audit);
        append.hops.extend(self.hops);
        for change in self.handoffs {
            replace(&mut append.handoffs, versions.based(change));
        }
        append.agent = self.agent.or(append.agent.take());
        append.holder = self.holder.or(append.holder.take());
        append.end = self.end.or(append.end.take());
        append.claim_next |= self.claim_next;
    }
}

/// The last state of a handoff is all that is written of it.
fn replace(changes: &mut Vec<HandoffChange>, change: HandoffChange) {
    let same = |known: &&mut HandoffChange| known.session.handoff_id == change.session.handoff_id;
    match changes.iter_mut().find(same) {
        Some(known) => known.session = change.session,
        None => changes.push(change),
    }
}
