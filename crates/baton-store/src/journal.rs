//! The journal: what an append recorded, as one row of its thread.
//!
//! A run writes its events, steps and changes of sessions together, and they are read by thread or by run, so each append is one
//! row with three JSON arrays, compressed together ([`content`]). A row per record would cost a statement and a page each.

mod content;

use std::borrow::Cow;

use baton_core::event::EventKind;
use baton_core::store::work::SessionChange;
use baton_core::store::{Append, Claim, NewEvent, RunStatus, Step, StepData, StepKind, StepState, micros};
use baton_core::{AgentName, Event, RunId, SessionId, StoreError, ThreadId, Visibility};
use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer as _};

use crate::insert::{ColumnKind, Insert};
use crate::once::{self, StoredTexts};
use crate::value::{Row, SqlValue, row_values};
use crate::work::Numbers;
use content::{Arrays, Content};

pub(crate) static INSERT: Insert = Insert::new(
    "journal",
    &[
        ("thread_number", ColumnKind::Int),
        ("last_seq", ColumnKind::Int),
        ("record", ColumnKind::Int),
        ("run_id", ColumnKind::Uuid),
        ("content", ColumnKind::Bytes),
        ("text_of", ColumnKind::Int),
    ],
    "",
);

/// Joins the rows `j` of a run `r` that has started: those between its first and last event, which may include rows of other runs.
macro_rules! rows_of_run {
    () => {
        "LEFT JOIN journal AS j ON j.tenant = $1 AND j.thread_number = r.thread_number AND j.run_id = r.run_id
            AND j.last_seq >= r.first_seq - 1 AND j.last_seq <= coalesce(r.last_seq, 9223372036854775807)"
    };
}
pub(crate) use rows_of_run;

/// A path or session id without the prefix that it shares with the previous one of its column: the number of shared bytes, and the
/// rest. In nested runs they are long, and neighbours are almost equal.
#[derive(Debug, Serialize, Deserialize)]
struct PrefixCompressed<'a>(usize, Cow<'a, str>);

/// The previous text of a column, for compression or for decompression.
#[derive(Debug, Default)]
struct PrefixCompressor(String);

impl PrefixCompressor {
    fn compress<'a>(&mut self, text: &'a str) -> PrefixCompressed<'a> {
        let same = self.0.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
        let shared = (0..=same).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.clone_into(&mut self.0);
        PrefixCompressed(shared, text[shared..].into())
    }

    fn decompress(
        &mut self,
        PrefixCompressed(shared, rest): &PrefixCompressed<'_>,
    ) -> Result<&str, StoreError> {
        if !self.0.is_char_boundary(*shared) {
            return Err(StoreError::Unreadable("a record continues a path that is not there".to_owned()));
        }
        self.0.truncate(*shared);
        self.0.push_str(rest);
        Ok(&self.0)
    }
}

/// An event as it is stored: its time in nanoseconds, so that a reader gets exactly what subscribers received, its agent, path,
/// visibility and kind. Its number, thread and run are columns.
#[derive(Debug, Serialize)]
struct EventRow<'a>(i64, &'a AgentName, PrefixCompressed<'a>, Visibility, Cow<'a, EventKind>);

/// An [`EventRow`] as it is read.
#[derive(Debug, Deserialize)]
struct StoredEvent(i64, AgentName, PrefixCompressed<'static>, Visibility, EventKind);

/// A step as it is stored: path, session, kind, state, time in microseconds, data.
#[derive(Debug, Serialize)]
struct StepRow<'a>(PrefixCompressed<'a>, PrefixCompressed<'a>, StepKind, StepState, i64, &'a StepData);

/// A [`StepRow`] as it is read.
#[derive(Debug, Deserialize)]
struct StoredStep(PrefixCompressed<'static>, PrefixCompressed<'static>, StepKind, StepState, i64, StepData);

/// A change of a session as it is stored: session, agent, path, status, time in microseconds.
#[derive(Debug, Serialize)]
struct SessionRow<'a>(PrefixCompressed<'a>, &'a AgentName, PrefixCompressed<'a>, RunStatus, i64);

/// A [`SessionRow`] as it is read.
#[derive(Debug, Deserialize)]
struct StoredSession(PrefixCompressed<'static>, AgentName, PrefixCompressed<'static>, RunStatus, i64);

fn nanos(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros)
        .map_err(|_| StoreError::Unreadable("a record has a time that does not exist".to_owned()))
}

fn session_id(text: &str) -> Result<SessionId, StoreError> {
    text.parse().map_err(|_| StoreError::Unreadable("the id of a session cannot be read".to_owned()))
}

/// The requests that a run waits for are rows of their own, so an event refers to them by id.
/// [`with_interrupts`](crate::approvals::with_interrupts) adds them.
fn stored_kind(kind: &EventKind) -> Cow<'_, EventKind> {
    match kind {
        EventKind::RunWaiting { waits_for, usage, by_agent, .. } if !waits_for.is_empty() => {
            Cow::Owned(EventKind::RunWaiting {
                interrupts: Vec::new(),
                waits_for: waits_for.clone(),
                usage: *usage,
                by_agent: by_agent.clone(),
            })
        }
        other => Cow::Borrowed(other),
    }
}

/// Column `at`, the content, with a text replaced by another. `None` if it does not have it.
pub(crate) fn replaced(row: &Row, at: usize, from: &str, to: &str) -> Result<Option<SqlValue>, StoreError> {
    Ok(Content::read(row, at)?.replaced(from, to))
}

/// Reads the columns `last_seq, run_id, content, parts` as events of a thread. `parts` are those of the message in `text_of`.
pub(crate) fn events(thread_id: ThreadId, row: &Row) -> Result<Vec<Event>, StoreError> {
    let run_id = row.parse(1)?;
    let content = Content::read(row, 2)?;
    let Some(events) = content.events() else { return Ok(Vec::new()) };
    let stored: Vec<StoredEvent> = once::json(run_id, events, row, 3)?;
    let first = (row.count(0)? + 1).saturating_sub(stored.len() as u64);
    let mut paths = PrefixCompressor::default();
    let read = |(seq, StoredEvent(at, agent, path, visibility, kind))| {
        let at = Timestamp::from_nanosecond(i64::into(at))
            .map_err(|_| StoreError::Unreadable("an event has a time that does not exist".to_owned()))?;
        let path = paths.decompress(&path)?.into();
        Ok(Event { seq, thread_id, run_id, at, agent, path, visibility, kind })
    };
    (first..).zip(stored).map(read).collect()
}

/// Reads the columns `content, parts` as steps. `parts` are those of the message in `text_of`.
pub(crate) fn steps(run: RunId, row: &Row) -> Result<Vec<Step>, StoreError> {
    let content = Content::read(row, 0)?;
    let Some(steps) = content.steps() else { return Ok(Vec::new()) };
    let stored: Vec<StoredStep> = once::json(run, steps, row, 1)?;
    let (mut paths, mut sessions) = (PrefixCompressor::default(), PrefixCompressor::default());
    let read = |StoredStep(path, session, kind, state, at, data)| {
        let (path, session_id) =
            (paths.decompress(&path)?.to_owned(), session_id(sessions.decompress(&session)?)?);
        Ok(Step { path, session_id, kind, state, data, at: time(at)? })
    };
    stored.into_iter().map(read).collect()
}

/// Reads column `at`, the content, as changes of sessions. They contain no text of a message, so no column has its parts.
pub(crate) fn sessions(run: RunId, row: &Row, at: usize) -> Result<Vec<SessionChange>, StoreError> {
    let content = Content::read(row, at)?;
    let Some(sessions) = content.sessions() else { return Ok(Vec::new()) };
    let stored: Vec<StoredSession> = once::json(run, sessions, row, usize::MAX)?;
    let (mut paths, mut sessions) = (PrefixCompressor::default(), PrefixCompressor::default());
    let read = |StoredSession(session, agent, path, status, at)| {
        let (path, session_id) =
            (paths.decompress(&path)?.to_owned(), session_id(sessions.decompress(&session)?)?);
        Ok(SessionChange { session_id, agent, path, status, at: time(at)? })
    };
    stored.into_iter().map(read).collect()
}

/// Returns the row of an append for [`INSERT`], or `None` if it recorded nothing.
pub(crate) fn row(
    claim: &Claim,
    numbers: &Numbers,
    append: &Append,
    texts: &StoredTexts,
) -> Result<Option<Vec<SqlValue>>, StoreError> {
    if append.events.is_empty() && append.steps.is_empty() && append.sessions.is_empty() {
        return Ok(None);
    }
    let last_seq = numbers.event + append.events.len() as u64 - 1;
    let mut paths = PrefixCompressor::default();
    let events = append.events.iter().map(|new| {
        let NewEvent { at, agent, path, visibility, kind } = new;
        EventRow(nanos(*at), agent, paths.compress(path), *visibility, stored_kind(kind))
    });
    let events = array(events)?;
    let (mut paths, mut ids) = (PrefixCompressor::default(), PrefixCompressor::default());
    let steps = last_states(&append.steps).into_iter().map(|at| {
        let step = &append.steps[at];
        let Step { path, session_id, kind, state, data, at } = step;
        let (path, session) = (paths.compress(path), ids.compress(session_id.as_str()));
        StepRow(path, session, *kind, *state, micros(*at), data)
    });
    let steps = array(steps)?;
    let (mut paths, mut ids) = (PrefixCompressor::default(), PrefixCompressor::default());
    let sessions = append.sessions.iter().map(|change| {
        let SessionChange { session_id, agent, path, status, at } = change;
        let (session, path) = (ids.compress(session_id.as_str()), paths.compress(path));
        SessionRow(session, agent, path, *status, micros(*at))
    });
    let ([events, steps], text_of) = texts.refer([events, steps]);
    // A path may equal the text of a message, and sessions are read without messages.
    let sessions = texts.without_run(array(sessions)?);
    let content = Arrays { events, steps, sessions }.compress();
    let (thread, run, record) = (numbers.thread, claim.run_id, numbers.record);
    Ok(Some(row_values![thread, last_seq, record, run, content, text_of]))
}

/// Returns the row of a single event for [`INSERT`]. `thread` is the number of its thread.
pub(crate) fn row_of_event(thread: u64, event: &Event, record: u64) -> Result<Vec<SqlValue>, StoreError> {
    let Event { seq, run_id, at, agent, path, visibility, kind, .. } = event;
    let path = PrefixCompressor::default().compress(path);
    let events = array([EventRow(nanos(*at), agent, path, *visibility, stored_kind(kind))].into_iter())?;
    let content = Arrays { events, ..Arrays::default() }.compress();
    Ok(row_values![thread, *seq, record, *run_id, content, SqlValue::Null])
}

/// Empty if there are no items.
fn array<T: Serialize>(items: impl Iterator<Item = T>) -> Result<String, StoreError> {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Ok(String::new());
    }
    let mut json = serde_json::Serializer::new(Vec::with_capacity(USUAL_LENGTH));
    let fault =
        |error: &dyn std::fmt::Display| StoreError::Failed(format!("cannot be written as JSON: {error}"));
    (&mut json).collect_seq(items).map_err(|error| fault(&error))?;
    String::from_utf8(json.into_inner()).map_err(|error| fault(&error))
}

/// Most arrays are shorter.
const USUAL_LENGTH: usize = 1024;

/// Where the last state of each step is, in the order in which the steps started. A finished step never changes.
pub(crate) fn last_states(steps: &[Step]) -> Vec<usize> {
    let mut last: IndexMap<&str, usize> = IndexMap::with_capacity(steps.len());
    for (at, state) in steps.iter().enumerate() {
        match last.get_mut(state.path.as_str()) {
            Some(kept) if steps[*kept].state == StepState::Finished => {}
            Some(kept) => *kept = at,
            None => drop(last.insert(&state.path, at)),
        }
    }
    last.into_values().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn paths_are_read_as_they_were_written(texts in prop::collection::vec("(a|ä|ã|/turn:1){0,6}", 0..8)) {
            let (mut writing, mut reading) = (PrefixCompressor::default(), PrefixCompressor::default());
            for text in &texts {
                prop_assert_eq!(reading.decompress(&writing.compress(text)).unwrap(), text);
            }
        }
    }

    #[test]
    fn a_path_that_continues_nothing_is_unreadable() {
        let mut previous = PrefixCompressor::default();
        previous.decompress(&PrefixCompressed(0, "ä".into())).unwrap();
        for shared in [1, 3] {
            assert!(matches!(
                previous.decompress(&PrefixCompressed(shared, "".into())),
                Err(StoreError::Unreadable(_))
            ));
        }
    }
}
