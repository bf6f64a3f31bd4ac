//! What was said in a thread.

use baton_core::store::{MessageQuery, ThreadMessage, micros};
use baton_core::{Message, MessageId, StoreError, ThreadId};
use jiff::Timestamp;

use super::must_exist;
use crate::insert::{Insert, Kind};
use crate::tx::Tx;
use crate::value::{Row, Value, params};

macro_rules! columns {
    () => {
        "number, message_id, run_id, role, agent, visibility, parts, created_at"
    };
}

/// One text per combination, so that the database sees which index answers it: reading the end of a thread then costs the same
/// however long it is.
const SEEN: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages
    WHERE tenant = $1 AND thread_id = $2 AND number < $3 AND visibility = 'user' AND role <> 'system'
    ORDER BY number DESC
    LIMIT $4"
);

const WITH_INTERNAL: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages
    WHERE tenant = $1 AND thread_id = $2 AND number < $3 AND role <> 'system'
    ORDER BY number DESC
    LIMIT $4"
);

const WITH_SYSTEM: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages
    WHERE tenant = $1 AND thread_id = $2 AND number < $3 AND visibility = 'user'
    ORDER BY number DESC
    LIMIT $4"
);

const ALL: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM messages
    WHERE tenant = $1 AND thread_id = $2 AND number < $3
    ORDER BY number DESC
    LIMIT $4"
);

/// Ids of messages come from outside and need not be unique; the first that had it keeps it.
const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    ", thread_id
    FROM messages
    WHERE tenant = $1 AND message_id = $2
    ORDER BY created_at, thread_id, number
    LIMIT 1"
);

pub(crate) static INSERT: Insert = Insert::new(
    "messages",
    &[
        ("thread_id", Kind::Uuid),
        ("number", Kind::Int),
        ("message_id", Kind::Uuid),
        ("run_id", Kind::Uuid),
        ("role", Kind::Text),
        ("agent", Kind::Text),
        ("visibility", Kind::Text),
        ("parts", Kind::Text),
        ("created_at", Kind::Int),
    ],
    "",
);

pub(super) async fn messages(
    tx: &Tx<'_>,
    thread: ThreadId,
    query: MessageQuery,
) -> Result<Vec<ThreadMessage>, StoreError> {
    must_exist(tx, thread).await?;
    last(tx, thread, query).await
}

/// The same for a thread that is known to exist.
pub(crate) async fn last(
    tx: &Tx<'_>,
    thread: ThreadId,
    query: MessageQuery,
) -> Result<Vec<ThreadMessage>, StoreError> {
    let sql = match (query.include_internal, query.include_system) {
        (false, false) => SEEN,
        (true, false) => WITH_INTERNAL,
        (false, true) => WITH_SYSTEM,
        (true, true) => ALL,
    };
    let before = query.before.map_or(Value::Int(i64::MAX), Value::from);
    let rows = tx.query(sql, params![thread, before, query.limit]).await?;
    rows.iter().rev().map(read).collect()
}

/// A message and the thread it stands in.
pub(crate) async fn one(
    tx: &Tx<'_>,
    message: MessageId,
) -> Result<Option<(ThreadId, ThreadMessage)>, StoreError> {
    let row = tx.first(ONE, params![message]).await?;
    row.map(|row| Ok((row.parse(8)?, read(&row)?))).transpose()
}

/// Rows for [`INSERT`]; the first message gets the number `first`.
pub(crate) fn rows(
    thread: ThreadId,
    first: u64,
    messages: &[Message],
) -> Result<Vec<Vec<Value>>, StoreError> {
    let row = |(number, message): (u64, &Message)| {
        let parts = Value::json(&message.parts)?;
        let (id, run, role, agent) = (message.id, message.run_id, message.role, message.agent.as_ref());
        let (visibility, at) = (message.visibility, message.created_at);
        Ok(params![thread, number, id, run, role, agent, visibility, parts, at].to_vec())
    };
    (first..).zip(messages).map(row).collect()
}

/// A message as it is read once it is stored.
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

    /// How SQLite goes about a statement, a line for each part.
    pub(crate) fn plan(sql: &str) -> Vec<String> {
        let connection = SqliteConnection::open(None).unwrap();
        connection.migrate().unwrap();
        let rows = connection.query(&format!("EXPLAIN QUERY PLAN {sql}"), "acme", &[]).unwrap();
        rows.iter().map(|row| row.text(3).unwrap().to_owned()).collect()
    }

    #[test]
    fn the_end_of_a_thread_costs_the_same_however_long_it_is() {
        let by_number = "USING INDEX sqlite_autoindex_messages_1 (tenant=? AND thread_id=? AND number<?)";
        let seen = "USING INDEX messages_seen (tenant=? AND thread_id=? AND number<?)";
        for (sql, index) in
            [(SEEN, seen), (WITH_INTERNAL, by_number), (WITH_SYSTEM, by_number), (ALL, by_number)]
        {
            assert_eq!(
                plan(sql),
                [format!("SEARCH messages {index}")],
                "one search, nothing scanned or sorted"
            );
        }
        let one = &plan(ONE)[0];
        assert_eq!(one, "SEARCH messages USING INDEX messages_by_id (tenant=? AND message_id=?)");
    }
}
