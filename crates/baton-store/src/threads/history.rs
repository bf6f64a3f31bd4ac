//! Messages of a thread.

use baton_core::store::{MessageQuery, ThreadMessage, micros};
use baton_core::{Message, MessageId, Part, StoreError, ThreadId};
use jiff::Timestamp;

use super::must_exist;
use crate::insert::{ColumnKind, Insert};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};

macro_rules! columns {
    () => {
        "m.number, m.message_id, m.run_id, m.role, m.agent, m.visibility, m.parts, m.created_at"
    };
}

/// One SQL text per combination. Reading the end of a thread costs the same however long it is; a run has few messages that are
/// skipped.
const SEEN: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages AS m
    WHERE m.tenant = $1 AND m.thread_number = $2 AND m.number < $3 AND m.visibility = 'user' AND m.role <> 'system'
    ORDER BY m.number DESC
    LIMIT $4"
);

const WITH_INTERNAL: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages AS m
    WHERE m.tenant = $1 AND m.thread_number = $2 AND m.number < $3 AND m.role <> 'system'
    ORDER BY m.number DESC
    LIMIT $4"
);

const WITH_SYSTEM: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages AS m
    WHERE m.tenant = $1 AND m.thread_number = $2 AND m.number < $3 AND m.visibility = 'user'
    ORDER BY m.number DESC
    LIMIT $4"
);

const ALL: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages AS m
    WHERE m.tenant = $1 AND m.thread_number = $2 AND m.number < $3
    ORDER BY m.number DESC
    LIMIT $4"
);

/// Clients choose message ids, so they need not be unique; the oldest message wins.
const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    ", r.thread_id
    FROM messages AS m JOIN runs AS r ON r.tenant = $1 AND r.run_id = m.run_id
    WHERE m.tenant = $1 AND m.message_id = $2
    ORDER BY m.created_at, m.thread_number, m.number
    LIMIT 1"
);

pub(crate) static INSERT: Insert = Insert::new(
    "messages",
    &[
        ("thread_number", ColumnKind::Int),
        ("number", ColumnKind::Int),
        ("message_id", ColumnKind::Uuid),
        ("run_id", ColumnKind::Uuid),
        ("role", ColumnKind::Text),
        ("agent", ColumnKind::Text),
        ("visibility", ColumnKind::Text),
        ("parts", ColumnKind::Text),
        ("created_at", ColumnKind::Int),
    ],
    "",
);

pub(super) async fn messages(
    tx: &Tx<'_>,
    thread: ThreadId,
    query: MessageQuery,
) -> Result<Vec<ThreadMessage>, StoreError> {
    let number = must_exist(tx, thread).await?;
    last(tx, thread, number, query).await
}

/// The last messages of a thread, given by id and number.
pub(crate) async fn last(
    tx: &Tx<'_>,
    thread: ThreadId,
    number: u64,
    query: MessageQuery,
) -> Result<Vec<ThreadMessage>, StoreError> {
    let sql = match (query.include_internal, query.include_system) {
        (false, false) => SEEN,
        (true, false) => WITH_INTERNAL,
        (false, true) => WITH_SYSTEM,
        (true, true) => ALL,
    };
    let before = query.before.map_or(SqlValue::Int(i64::MAX), SqlValue::from);
    let rows = tx.query_of(thread, sql, params![number, before, query.limit]).await?;
    rows.iter().rev().map(read).collect()
}

/// A message and its thread.
pub(crate) async fn one(
    tx: &Tx<'_>,
    message: MessageId,
) -> Result<Option<(ThreadId, ThreadMessage)>, StoreError> {
    let row = tx.first(ONE, params![message]).await?;
    row.map(|row| Ok((row.parse(8)?, read(&row)?))).transpose()
}

/// Returns rows for [`INSERT`], for the thread with this number. The first message gets the number `first`.
pub(crate) fn rows(thread: u64, first: u64, messages: &[Message]) -> Result<Vec<Vec<SqlValue>>, StoreError> {
    let row = |(number, message): (u64, &Message)| {
        let parts = SqlValue::json(&message.parts)?;
        let (id, run, role, agent) = (message.id, message.run_id, message.role, message.agent.as_ref());
        let (visibility, at) = (message.visibility, message.created_at);
        Ok(row_values![thread, number, id, run, role, agent, visibility, parts, at])
    };
    (first..).zip(messages).map(row).collect()
}

/// Bytes that messages add to the sum of their thread.
pub(crate) fn bytes(messages: &[Message]) -> u64 {
    messages.iter().flat_map(|message| &message.parts).map(Part::bytes).sum()
}

/// The message as it is read back: with its time in microseconds.
pub(crate) fn stored(message: &Message) -> Message {
    let created_at = Timestamp::from_microsecond(micros(message.created_at)).unwrap_or(message.created_at);
    Message { created_at, ..message.clone() }
}

fn read(row: &Row) -> Result<ThreadMessage, StoreError> {
    let message = Message {
        id: row.parse(1)?,
        run_id: row.parse(2)?,
        role: row.choice(3)?,
        agent: row.optional(4, Row::parse)?,
        visibility: row.choice(5)?,
        parts: row.json(6)?,
        created_at: row.time(7)?,
    };
    Ok(ThreadMessage { number: row.count(0)?, message })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sqlite::SqliteConnection;

    /// SQLite's query plan of a statement, one line per node.
    pub(crate) fn plan(sql: &str) -> Vec<String> {
        let connection = SqliteConnection::open(None).unwrap();
        connection.migrate().unwrap();
        let sql: &'static str = format!("EXPLAIN QUERY PLAN {sql}").leak();
        let rows = connection.query(sql, "acme", &[]).unwrap();
        rows.iter().map(|row| row.text(3).unwrap().to_owned()).collect()
    }

    #[test]
    fn the_end_of_a_thread_costs_the_same_however_long_it_is() {
        let by_number = "USING INDEX sqlite_autoindex_messages_1 (thread_number=? AND tenant=? AND number<?)";
        for sql in [SEEN, WITH_INTERNAL, WITH_SYSTEM, ALL] {
            let search = format!("SEARCH m {by_number}");
            assert_eq!(plan(sql), [search], "one search, nothing scanned or sorted");
        }
        let one = &plan(ONE)[0];
        assert_eq!(one, "SEARCH m USING INDEX messages_by_id (tenant=? AND message_id=?)");
    }
}
