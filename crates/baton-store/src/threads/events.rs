//! Events of a thread. The envelope is stored in columns; the body is the event's kind.

use std::sync::Arc;

use baton_core::store::{Claim, NewEvent};
use baton_core::{AgentName, Event, RunId, StoreError, ThreadId, Visibility};
use jiff::Timestamp;

use super::must_exist;
use crate::insert::{ColumnKind, Insert};
use crate::once::{self, StoredTexts};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};

pub(crate) static INSERT: Insert = Insert::new(
    "events",
    &[
        ("thread_id", ColumnKind::Uuid),
        ("seq", ColumnKind::Int),
        ("run_id", ColumnKind::Uuid),
        ("at", ColumnKind::Int),
        ("agent", ColumnKind::Text),
        ("path", ColumnKind::Text),
        ("visibility", ColumnKind::Text),
        ("body", ColumnKind::Text),
        ("text_of", ColumnKind::Int),
    ],
    "",
);

/// The columns of [`read`].
macro_rules! columns {
    () => {
        "e.thread_id, e.seq, e.run_id, e.at, e.agent, e.path, e.visibility, e.body, m.parts"
    };
}

const OF_THREAD: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM events AS e
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_id = e.thread_id AND m.number = e.text_of
    WHERE e.tenant = $1 AND e.thread_id = $2 AND e.seq > $3
    ORDER BY e.seq
    LIMIT $4"
);

const OF_RUN: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM events AS e
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_id = e.thread_id AND m.number = e.text_of
    WHERE e.tenant = $1 AND e.thread_id = $2 AND e.seq > $3 AND e.seq <= $4 AND e.run_id = $5
    ORDER BY e.seq
    LIMIT $6"
);

/// Returns rows for [`INSERT`]. The first event gets the number `first`.
pub(crate) fn rows(
    claim: &Claim,
    first: u64,
    events: &[NewEvent],
    texts: &StoredTexts,
) -> Result<Vec<Vec<SqlValue>>, StoreError> {
    let row = |(seq, new): (u64, &NewEvent)| {
        let envelope =
            Envelope { at: new.at, agent: &new.agent, path: &new.path, visibility: new.visibility };
        Ok(envelope.row(claim.thread_id, seq, claim.run_id, texts.refer(SqlValue::json(&new.kind)?)))
    };
    (first..).zip(events).map(row).collect()
}

pub(crate) fn row(event: &Event) -> Result<Vec<SqlValue>, StoreError> {
    let (at, agent, path) = (event.at, &event.agent, &*event.path);
    let envelope = Envelope { at, agent, path, visibility: event.visibility };
    Ok(envelope.row(event.thread_id, event.seq, event.run_id, (SqlValue::json(&event.kind)?, None)))
}

struct Envelope<'e> {
    at: Timestamp,
    agent: &'e AgentName,
    path: &'e str,
    visibility: Visibility,
}

impl Envelope<'_> {
    fn row(
        self,
        thread: ThreadId,
        seq: u64,
        run: RunId,
        (body, text_of): (SqlValue, Option<u64>),
    ) -> Vec<SqlValue> {
        let path = Some(self.path).filter(|path| *path != self.agent.as_str());
        let (at, agent) = (nanos(self.at), self.agent);
        row_values![thread, seq, run, at, agent, path, self.visibility, body, text_of]
    }
}

pub(super) async fn of_thread(
    tx: &Tx<'_>,
    thread: ThreadId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    must_exist(tx, thread).await?;
    tx.query(OF_THREAD, params![thread, after, limit]).await?.iter().map(read).collect()
}

/// Scans the numbers between the run's first and last event, which may include events of other runs.
pub(crate) async fn of_run(
    tx: &Tx<'_>,
    run: RunId,
    after: u64,
    limit: u32,
) -> Result<Option<Vec<Event>>, StoreError> {
    let sql = "SELECT thread_id, first_seq, last_seq FROM runs WHERE tenant = $1 AND run_id = $2";
    let Some(found) = tx.first(sql, params![run]).await? else { return Ok(None) };
    let Some(first) = found.optional(1, Row::count)? else { return Ok(Some(Vec::new())) };
    let thread: ThreadId = found.parse(0)?;
    let last = found.optional(2, Row::int)?.unwrap_or(i64::MAX);
    let params = params![thread, after.max(first.saturating_sub(1)), last, run, limit];
    tx.query(OF_RUN, params).await?.iter().map(read).collect::<Result<_, _>>().map(Some)
}

fn read(row: &Row) -> Result<Event, StoreError> {
    let agent: AgentName = row.parse(4)?;
    let path: Arc<str> = row.optional(5, Row::text)?.unwrap_or(agent.as_str()).into();
    let run_id = row.parse(2)?;
    let out_of_range = |_| StoreError::Unreadable("an event has a time that does not exist".to_owned());
    Ok(Event {
        thread_id: row.parse(0)?,
        seq: row.count(1)?,
        run_id,
        at: Timestamp::from_nanosecond(row.int(3)?.into()).map_err(out_of_range)?,
        agent,
        path,
        visibility: row.choice(6)?,
        kind: once::json(run_id, row, 7, 8)?,
    })
}

/// Event times keep the precision of their clock, so that a reader gets exactly what subscribers received.
fn nanos(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::plan;
    use super::*;

    #[test]
    fn events_are_found_by_their_numbers() {
        let search = "SEARCH e USING PRIMARY KEY (tenant=? AND thread_id=? AND seq>?";
        let text = "SEARCH m USING INDEX sqlite_autoindex_messages_1 (tenant=? AND thread_id=? AND number=?) LEFT-JOIN";
        assert_eq!(plan(OF_THREAD), [&format!("{search})"), text]);
        assert_eq!(plan(OF_RUN), [&format!("{search} AND seq<?)"), text]);
    }
}
