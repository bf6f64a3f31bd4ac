//! The journal: what an append recorded, as one row of its thread.
//!
//! A run writes its events, steps and changes of sessions together, and they are read by thread or by run, so each append is one
//! row with three JSON arrays. A row per record would cost a statement and a page each.

use baton_core::event::EventKind;
use baton_core::store::work::SessionChange;
use baton_core::store::{Append, Claim, NewEvent, RunStatus, Step, StepKind, StepState, micros};
use baton_core::{AgentName, Event, RunId, SessionId, StoreError, ThreadId, Visibility};
use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::insert::{ColumnKind, Insert};
use crate::once::{self, StoredTexts};
use crate::value::{Row, SqlValue, row_values};
use crate::work::Numbers;

pub(crate) static INSERT: Insert = Insert::new(
    "journal",
    &[
        ("thread_id", ColumnKind::Uuid),
        ("last_seq", ColumnKind::Int),
        ("record", ColumnKind::Int),
        ("run_id", ColumnKind::Uuid),
        ("events", ColumnKind::Text),
        ("steps", ColumnKind::Text),
        ("sessions", ColumnKind::Text),
        ("text_of", ColumnKind::Int),
    ],
    "",
);

/// Joins the rows `j` of a run `r` that has started: those between its first and last event, which may include rows of other runs.
macro_rules! rows_of_run {
    () => {
        "LEFT JOIN journal AS j ON j.tenant = $1 AND j.thread_id = r.thread_id AND j.run_id = r.run_id
            AND j.last_seq >= r.first_seq - 1 AND j.last_seq <= coalesce(r.last_seq, 9223372036854775807)"
    };
}
pub(crate) use rows_of_run;

/// An event as it is stored: its time in nanoseconds, so that a reader gets exactly what subscribers received, its agent, its path
/// unless that is the agent's name, its visibility and its kind. Its number, thread and run are columns.
#[derive(Debug, Serialize)]
struct EventRow<'a>(i64, &'a AgentName, Option<&'a str>, Visibility, &'a EventKind);

impl<'a> EventRow<'a> {
    fn new(
        at: Timestamp,
        agent: &'a AgentName,
        path: &'a str,
        visibility: Visibility,
        kind: &'a EventKind,
    ) -> Self {
        let path = Some(path).filter(|path| *path != agent.as_str());
        Self(i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX), agent, path, visibility, kind)
    }
}

/// An [`EventRow`] as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct StoredEvent(i64, AgentName, Option<String>, Visibility, EventKind);

impl StoredEvent {
    pub(crate) fn numbered(self, seq: u64, thread_id: ThreadId, run_id: RunId) -> Result<Event, StoreError> {
        let Self(at, agent, path, visibility, kind) = self;
        let out_of_range = |_| StoreError::Unreadable("an event has a time that does not exist".to_owned());
        let at = Timestamp::from_nanosecond(at.into()).map_err(out_of_range)?;
        let path = path.as_deref().unwrap_or(agent.as_str()).into();
        Ok(Event { seq, thread_id, run_id, at, agent, path, visibility, kind })
    }
}

/// A step as it is stored: path, session, kind, state, time in microseconds, data.
#[derive(Debug, Serialize)]
struct StepRow<'a>(&'a str, &'a SessionId, StepKind, StepState, i64, &'a Json);

/// A [`StepRow`] as it is read.
#[derive(Debug, Deserialize)]
struct StoredStep(String, SessionId, StepKind, StepState, i64, Json);

impl TryFrom<StoredStep> for Step {
    type Error = StoreError;

    fn try_from(StoredStep(path, session_id, kind, state, at, data): StoredStep) -> Result<Self, StoreError> {
        Ok(Self { path, session_id, kind, state, data, at: time(at)? })
    }
}

/// A change of a session as it is stored: session, agent, path, status, time in microseconds.
#[derive(Debug, Serialize)]
struct SessionRow<'a>(&'a SessionId, &'a AgentName, &'a str, RunStatus, i64);

/// A [`SessionRow`] as it is read.
#[derive(Debug, Deserialize)]
struct StoredSession(SessionId, AgentName, String, RunStatus, i64);

impl TryFrom<StoredSession> for SessionChange {
    type Error = StoreError;

    fn try_from(
        StoredSession(session_id, agent, path, status, at): StoredSession,
    ) -> Result<Self, StoreError> {
        Ok(Self { session_id, agent, path, status, at: time(at)? })
    }
}

fn time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros)
        .map_err(|_| StoreError::Unreadable("a record has a time that does not exist".to_owned()))
}

/// Reads column `at` as steps. Column `parts` is that of the message in `text_of`.
pub(crate) fn steps(run: RunId, row: &Row, at: usize, parts: usize) -> Result<Vec<Step>, StoreError> {
    let stored: Vec<StoredStep> = once::json(run, row, at, parts)?;
    stored.into_iter().map(Step::try_from).collect()
}

/// Reads column `at` as changes of sessions.
pub(crate) fn sessions(run: RunId, row: &Row, at: usize) -> Result<Vec<SessionChange>, StoreError> {
    // Changes of sessions contain no text of a message, so no column has its parts.
    let stored: Vec<StoredSession> = once::json(run, row, at, usize::MAX)?;
    stored.into_iter().map(SessionChange::try_from).collect()
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
    let events = append.events.iter().map(|new| {
        let NewEvent { at, agent, path, visibility, kind } = new;
        EventRow::new(*at, agent, path, *visibility, kind)
    });
    let steps = last_states(append.steps.iter(), |step| step).map(|step| {
        let Step { path, session_id, kind, state, data, at } = step;
        StepRow(path, session_id, *kind, *state, micros(*at), data)
    });
    let sessions = append.sessions.iter().map(|change| {
        let SessionChange { session_id, agent, path, status, at } = change;
        SessionRow(session_id, agent, path, *status, micros(*at))
    });
    let columns = [array(events)?, array(steps)?, array(sessions)?];
    let ([events, steps, sessions], text_of) = texts.refer(columns);
    let (thread, run, record) = (claim.thread_id, claim.run_id, numbers.record);
    Ok(Some(row_values![thread, last_seq, record, run, events, steps, sessions, text_of]))
}

/// Returns the row of a single event for [`INSERT`].
pub(crate) fn row_of_event(event: &Event, record: u64) -> Result<Vec<SqlValue>, StoreError> {
    let Event { seq, thread_id, run_id, at, agent, path, visibility, kind } = event;
    let events = array([EventRow::new(*at, agent, path, *visibility, kind)].into_iter())?;
    let none = SqlValue::Null;
    Ok(row_values![*thread_id, *seq, record, *run_id, events, none.clone(), none.clone(), none])
}

/// Null if there is nothing to store.
fn array<T: Serialize>(items: impl Iterator<Item = T>) -> Result<SqlValue, StoreError> {
    let items: Vec<T> = items.collect();
    if items.is_empty() { Ok(SqlValue::Null) } else { SqlValue::json(&items) }
}

/// The last state of each step, in the order in which they started. A finished step never changes.
pub(crate) fn last_states<S>(
    steps: impl Iterator<Item = S>,
    step: impl Fn(&S) -> &Step,
) -> impl Iterator<Item = S> {
    let mut last: IndexMap<String, S> = IndexMap::new();
    for state in steps {
        match last.get_mut(&step(&state).path) {
            Some(kept) if step(kept).state == StepState::Finished => {}
            Some(kept) => *kept = state,
            None => drop(last.insert(step(&state).path.clone(), state)),
        }
    }
    last.into_values()
}
