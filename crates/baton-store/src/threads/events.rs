//! Events of a thread, read from its [`journal`].

use baton_core::{Event, RunId, StoreError, ThreadId};

use super::must_exist;
use crate::approvals;
use crate::journal;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

/// Rows per query. Most have several events. Those without any follow, with the same number, the row with the event before them.
const ROWS: u32 = 64;

/// The columns of [`journal::events`].
macro_rules! columns {
    () => {
        "j.last_seq, j.run_id, j.content, m.parts"
    };
}

const OF_THREAD: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM journal AS j
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_number = j.thread_number AND m.number = j.text_of
    WHERE j.tenant = $1 AND j.thread_number = $2 AND j.last_seq > $3
    ORDER BY j.last_seq, j.record
    LIMIT $4"
);

const OF_RUN: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM journal AS j
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_number = j.thread_number AND m.number = j.text_of
    WHERE j.tenant = $1 AND j.thread_number = $2 AND j.last_seq > $3 AND j.last_seq <= $5
        AND j.run_id = $6
    ORDER BY j.last_seq, j.record
    LIMIT $4"
);

pub(super) async fn of_thread(
    tx: &Tx<'_>,
    thread: ThreadId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    let number = must_exist(tx, thread).await?;
    collect(tx, OF_THREAD, (thread, number), &[], after, limit).await
}

/// Scans the numbers between the run's first and last event, which may include events of other runs.
pub(crate) async fn of_run(
    tx: &Tx<'_>,
    run: RunId,
    after: u64,
    limit: u32,
) -> Result<Option<Vec<Event>>, StoreError> {
    let sql =
        "SELECT thread_id, first_seq, last_seq, thread_number FROM runs WHERE tenant = $1 AND run_id = $2";
    let Some(found) = tx.first(sql, params![run]).await? else { return Ok(None) };
    let Some(first) = found.optional(1, Row::count)? else { return Ok(Some(Vec::new())) };
    let last = found.optional(2, Row::int)?.unwrap_or(i64::MAX);
    let after = after.max(first.saturating_sub(1));
    let thread = (found.parse(0)?, found.count(3)?);
    collect(tx, OF_RUN, thread, params![last, run], after, limit).await.map(Some)
}

/// Returns up to `limit` events of a thread, given by id and number, with a number above `after`. `further` are the parameters of `sql` from `$5` on.
async fn collect(
    tx: &Tx<'_>,
    sql: &'static str,
    (thread, number): (ThreadId, u64),
    further: &[SqlValue],
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    let most = limit as usize;
    let (mut events, mut position) = (Vec::new(), after);
    while events.len() < most {
        let asked = ROWS.min(limit);
        let rows = tx.query(sql, &[params![number, position, asked], further].concat()).await?;
        for row in &rows {
            position = row.count(0)?;
            // The first row may begin before the position.
            events.extend(journal::events(thread, row)?.into_iter().filter(|event| event.seq > after));
        }
        if rows.len() < asked as usize {
            break;
        }
    }
    events.truncate(most);
    approvals::with_interrupts(tx, &mut events).await?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::plan;
    use super::*;

    #[test]
    fn events_are_found_by_their_numbers() {
        let search =
            "SEARCH j USING INDEX sqlite_autoindex_journal_1 (thread_number=? AND tenant=? AND last_seq>?";
        let text = "SEARCH m USING INDEX sqlite_autoindex_messages_1 (thread_number=? AND tenant=? AND number=?) LEFT-JOIN";
        assert_eq!(plan(OF_THREAD), [&format!("{search})"), text]);
        assert_eq!(plan(OF_RUN), [&format!("{search} AND last_seq<?)"), text]);
    }
}
