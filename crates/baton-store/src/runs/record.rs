//! Stored runs, each with its cost so far.

use baton_core::store::{Page, PageRequest, RunQuery, RunRecord, RunStatus};
use baton_core::{RunId, StoreError};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::ledger::sums;
use super::{NOT_FOUND, ledger};
use crate::once;
use crate::page::{self, PageCursor};
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

/// The runs selected by `$page`, each with the sum of its ledger rows, in one statement.
///
/// `CROSS JOIN` keeps SQLite from scanning the whole ledger first.
macro_rules! runs {
    ($($page:tt)+) => {
        concat!(
            "WITH page AS (",
            $($page)+,
            ")
            SELECT r.run_id, r.thread_id, r.user_id, r.agent, r.status, r.created_at, r.started_at,
                r.finished_at, r.attempts, r.message_number, r.request, r.result, r.cancel,
                u.input_tokens, u.output_tokens, u.cached_tokens, u.cache_write_tokens, u.reasoning_tokens, u.cost,
                u.known, u.estimated, m.parts
            FROM page JOIN runs AS r ON r.tenant = $1 AND r.run_id = page.run_id
            LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_number = r.thread_number AND m.number = r.text_of
            LEFT JOIN (
                SELECT l.run_id,
                    ",
            sums!(),
            "
                FROM page CROSS JOIN ledger AS l
                WHERE l.tenant = $1 AND l.run_id = page.run_id
                GROUP BY l.run_id
            ) AS u ON u.run_id = r.run_id
            ORDER BY r.run_id DESC"
        )
    };
}

const ONE: &str = runs!("SELECT run_id FROM runs WHERE tenant = $1 AND run_id = $2");

/// A page of a list. One SQL text per filter, so that the planner chooses its index; the remaining filters are checked per row.
/// PostgreSQL drops a filter whose parameter is null only when it is written in this form.
macro_rules! piece {
    ($which:literal) => {
        runs!(
            "SELECT run_id FROM runs
            WHERE tenant = $1 AND run_id < $2 AND run_id >= $3 AND created_at >= $4",
            $which,
            "
            ORDER BY run_id DESC
            LIMIT $5"
        )
    };
    // Runs with `$6` in a column. Both bounds include the column, so that SQLite uses its index and not the primary key.
    ($column:literal, $which:literal) => {
        runs!(
            "SELECT run_id FROM runs
            WHERE tenant = $1 AND (",
            $column,
            ", run_id) < ($6, $2) AND (",
            $column,
            ", run_id) >= ($6, $3) AND created_at >= $4",
            $which,
            "
            ORDER BY ",
            $column,
            " DESC, run_id DESC
            LIMIT $5"
        )
    };
}

const ALL: &str = piece!("");

/// Most runs are completed, so skipping the others is cheap.
const COMPLETED: &str = piece!(" AND status = 'completed'");

const OF_THREAD: &str = piece!(
    "thread_number",
    " AND (CAST($7 AS TEXT) IS NULL OR user_id = $7) AND (CAST($8 AS TEXT) IS NULL OR agent = $8)
        AND (CAST($9 AS TEXT) IS NULL OR status = $9)"
);

const OF_USER: &str = piece!(
    "user_id",
    " AND (CAST($7 AS TEXT) IS NULL OR agent = $7) AND (CAST($8 AS TEXT) IS NULL OR status = $8)"
);

const OF_AGENT: &str = piece!("agent", " AND (CAST($7 AS TEXT) IS NULL OR status = $7)");

const UNSUCCESSFUL: &str = piece!("status", " AND finished_at IS NOT NULL AND status <> 'completed'");

/// Few runs are open at a time: all are read, in index order, and then sorted.
const OPEN: &str = runs!(
    "SELECT run_id FROM (
        SELECT run_id, status, user_id, agent, created_at FROM runs
        WHERE tenant = $1 AND finished_at IS NULL AND status <> 'waiting'
        ORDER BY thread_number, ordinal
        LIMIT 1000000
    ) AS open
    WHERE run_id < $2 AND run_id >= $3 AND created_at >= $4 AND status = $6
        AND (CAST($7 AS TEXT) IS NULL OR user_id = $7) AND (CAST($8 AS TEXT) IS NULL OR agent = $8)
    ORDER BY run_id DESC
    LIMIT $5"
);

const WAITING: &str = piece!(
    "status",
    " AND status = 'waiting' AND (CAST($7 AS TEXT) IS NULL OR user_id = $7) AND (CAST($8 AS TEXT) IS NULL OR agent = $8)"
);

pub(crate) async fn one(tx: &Tx<'_>, run: RunId) -> Result<RunRecord, StoreError> {
    let row = tx.first(ONE, params![run]).await?.ok_or(NOT_FOUND)?;
    read(&row)
}

pub(super) async fn list(
    tx: &Tx<'_>,
    query: &RunQuery,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Page<RunRecord>, StoreError> {
    let rows = rows(tx, query, page, after).await?;
    let runs = rows.iter().map(read).collect::<Result<Vec<RunRecord>, _>>()?;
    Ok(page::cut(runs, page.size(), |last| PageCursor::cursor(0, last.run_id)))
}

/// Chooses the most selective index: thread, open runs, user, agent, status.
async fn rows(
    tx: &Tx<'_>,
    query: &RunQuery,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Vec<Row>, StoreError> {
    let RunQuery { thread_id, user_id, agent, status, since } = query;
    let (user, agent, status) = (user_id.as_ref(), agent.as_ref(), *status);
    let is_open = status.is_some_and(|status| !status.is_final());
    let thread = match thread_id {
        Some(thread) => match threads::must_exist(tx, *thread).await {
            Err(StoreError::ThreadNotFound) => return Ok(Vec::new()),
            found => Some(found?),
        },
        None => None,
    };
    let (sql, which): (_, &[SqlValue]) = match (thread, user, agent, status) {
        (Some(thread), ..) => (OF_THREAD, params![thread, user, agent, status]),
        (None, user, agent, Some(status @ RunStatus::Waiting)) => (WAITING, params![status, user, agent]),
        (None, user, agent, Some(status)) if is_open => (OPEN, params![status, user, agent]),
        (None, Some(user), agent, status) => (OF_USER, params![user, agent, status]),
        (None, None, Some(agent), status) => (OF_AGENT, params![agent, status]),
        (None, None, None, Some(RunStatus::Completed)) => (COMPLETED, &[]),
        (None, None, None, Some(status)) => (UNSUCCESSFUL, params![status]),
        (None, None, None, None) => (ALL, &[]),
    };
    let first = since.map_or(Uuid::nil(), earliest);
    let since = since.map_or(SqlValue::Int(i64::MIN), SqlValue::from);
    let piece = params![after.id, first, since, page::with_next(page)];
    tx.query(sql, &[piece.as_slice(), which].concat()).await
}

/// A run's id begins with the clock of the process that created it. 24 h exceed any expected clock difference.
const SKEW: SignedDuration = SignedDuration::from_hours(24);

/// A lower bound for the ids of runs created at `since` or later.
fn earliest(since: Timestamp) -> Uuid {
    let millis = since.saturating_sub(SKEW).unwrap_or(Timestamp::MIN).as_millisecond();
    Uuid::from_u128(u128::from(u64::try_from(millis).unwrap_or_default()) << 80)
}

fn read(row: &Row) -> Result<RunRecord, StoreError> {
    let run_id = row.parse(0)?;
    Ok(RunRecord {
        run_id,
        thread_id: row.parse(1)?,
        user_id: row.parse(2)?,
        agent: row.parse(3)?,
        status: row.choice(4)?,
        created_at: row.time(5)?,
        started_at: row.optional(6, Row::time)?,
        finished_at: row.optional(7, Row::time)?,
        attempts: u32::try_from(row.count(8)?).unwrap_or(u32::MAX),
        message_number: row.count(9)?,
        request: row.json(10)?,
        end: row.optional(11, |row, at| once::json(run_id, row.text(at)?, row, 21))?,
        cancel: row.optional(12, Row::choice)?,
        usage: ledger::sum(row, 13)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    const LISTS: [&str; 8] = [ALL, COMPLETED, OF_THREAD, OF_USER, OF_AGENT, OPEN, WAITING, UNSUCCESSFUL];

    #[test]
    fn what_a_run_has_cost_is_read_from_its_own_rows() {
        for sql in LISTS.into_iter().chain([ONE]) {
            let plan = plan(sql);
            let ledger = plan.iter().find(|line| line.starts_with("SEARCH l ")).expect("a search");
            assert!(ledger.contains("(tenant=? AND run_id=?)"), "{plan:#?}");
        }
    }

    #[test]
    fn a_list_reads_no_more_than_its_page() {
        let by = |index: &str, column: &str| {
            format!("INDEX {index} (tenant=? AND ({column},run_id)>(?,?) AND ({column},run_id)<(?,?))")
        };
        let by_key = || "PRIMARY KEY (tenant=? AND run_id>? AND run_id<?)".to_owned();
        for (sql, index) in [
            (ALL, by_key()),
            (COMPLETED, by_key()),
            (OF_THREAD, by("runs_of_thread", "thread_number")),
            (OF_USER, by("runs_of_user", "user_id")),
            (OF_AGENT, by("runs_of_agent", "agent")),
            (UNSUCCESSFUL, by("runs_unsuccessful", "status")),
            (WAITING, "INDEX runs_waiting (tenant=? AND status=?)".to_owned()),
        ] {
            let plan = plan(sql);
            let page = plan.iter().find(|line| line.starts_with("SEARCH runs ")).expect("a search");
            assert_eq!(*page, format!("SEARCH runs USING {index}"));
            assert!(
                !plan.iter().any(|line| line.contains("SCAN runs") || line.contains("SCAN l")),
                "{plan:?}"
            );
        }
        let plan = plan(OPEN);
        assert!(plan.iter().any(|line| line == "SEARCH runs USING INDEX runs_open (tenant=?)"), "{plan:?}");
    }

    #[test]
    fn runs_since_a_moment_are_found_by_their_ids() {
        let now = Timestamp::now();
        let run = Uuid::now_v7();
        assert!(earliest(now) < run, "also with a clock that is a little behind");
        assert!(earliest(now + SignedDuration::from_hours(25)) > run);
        assert_eq!(earliest(Timestamp::MIN), Uuid::nil());
    }
}
