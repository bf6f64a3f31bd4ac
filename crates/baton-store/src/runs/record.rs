//! A run as it is kept, together with what it has cost so far.

use baton_core::store::{Page, PageRequest, RunQuery, RunRecord, micros};
use baton_core::{RunId, StoreError};

use super::ledger::sums;
use super::{NOT_FOUND, ledger};
use crate::page::{self, Place};
use crate::tx::Tx;
use crate::value::{Row, Value, params};

/// The runs that `$page` chooses, each with the sum of its ledger rows: one statement, however many there are.
///
/// `CROSS JOIN` keeps SQLite from beginning with the ledger, which is as old as the tenant.
macro_rules! runs {
    ($($page:tt)+) => {
        concat!(
            "WITH page AS (",
            $($page)+,
            ")
            SELECT r.run_id, r.thread_id, r.user_id, r.agent, r.status, r.created_at, r.started_at,
                r.finished_at, r.attempts, r.message_number, r.request, r.result, r.cancel,
                u.input_tokens, u.output_tokens, u.cached_tokens, u.cache_write_tokens, u.reasoning_tokens, u.cost,
                u.known, u.estimated
            FROM page JOIN runs AS r ON r.tenant = $1 AND r.run_id = page.run_id
            LEFT JOIN (
                SELECT l.run_id,
                    ",
            sums!(),
            "
                FROM page CROSS JOIN ledger AS l
                WHERE l.tenant = $1 AND l.run_id = page.run_id
                GROUP BY l.run_id
            ) AS u ON u.run_id = r.run_id
            ORDER BY r.created_at DESC, r.run_id DESC"
        )
    };
}

const ONE: &str = runs!("SELECT run_id FROM runs WHERE tenant = $1 AND run_id = $2");

/// A piece of a list. One text per question, so that the database sees which index answers it; what else is asked is looked at
/// row by row. PostgreSQL sees which of that is asked at all, as long as it is said like this.
macro_rules! piece {
    ($which:literal) => {
        runs!(
            "SELECT run_id FROM runs
            WHERE tenant = $1 AND (created_at, run_id) < ($2, $3) AND created_at >= $4",
            $which,
            "
            ORDER BY created_at DESC, run_id DESC
            LIMIT $5"
        )
    };
}

const ALL: &str = piece!("");

const OF_THREAD: &str = piece!(
    " AND thread_id = $6 AND (CAST($7 AS TEXT) IS NULL OR user_id = $7)
        AND (CAST($8 AS TEXT) IS NULL OR agent = $8) AND (CAST($9 AS TEXT) IS NULL OR status = $9)"
);

const OF_USER: &str = piece!(
    " AND user_id = $6 AND (CAST($7 AS TEXT) IS NULL OR agent = $7)
        AND (CAST($8 AS TEXT) IS NULL OR status = $8)"
);

const OF_AGENT: &str = piece!(" AND agent = $6 AND (CAST($7 AS TEXT) IS NULL OR status = $7)");

const OF_STATUS: &str = piece!(
    " AND status = $6 AND (CAST($7 AS TEXT) IS NULL OR user_id = $7)
        AND (CAST($8 AS TEXT) IS NULL OR agent = $8)"
);

pub(crate) async fn one(tx: &Tx<'_>, run: RunId) -> Result<RunRecord, StoreError> {
    let row = tx.first(ONE, params![run]).await?.ok_or(NOT_FOUND)?;
    read(&row)
}

pub(super) async fn list(
    tx: &Tx<'_>,
    query: &RunQuery,
    page: &PageRequest,
    after: &Place,
) -> Result<Page<RunRecord>, StoreError> {
    let rows = rows(tx, query, page, after).await?;
    let runs = rows.iter().map(read).collect::<Result<Vec<RunRecord>, _>>()?;
    Ok(page::cut(runs, page.size(), |last| Place::cursor(micros(last.created_at), last.run_id)))
}

/// By whatever leaves the fewest: a thread, runs that are not over, a user, an agent, a status.
async fn rows(
    tx: &Tx<'_>,
    query: &RunQuery,
    page: &PageRequest,
    after: &Place,
) -> Result<Vec<Row>, StoreError> {
    let RunQuery { thread_id, user_id, agent, status, since } = query;
    let since = since.map_or(Value::Int(i64::MIN), Value::from);
    let (user, agent, status) = (user_id.as_ref(), agent.as_ref(), *status);
    let is_open = status.is_some_and(|status| !status.is_final());
    let (sql, which): (_, &[Value]) = match (*thread_id, user, agent, status) {
        (Some(thread), ..) => (OF_THREAD, params![thread, user, agent, status]),
        (None, user, agent, Some(status)) if is_open => (OF_STATUS, params![status, user, agent]),
        (None, Some(user), agent, status) => (OF_USER, params![user, agent, status]),
        (None, None, Some(agent), status) => (OF_AGENT, params![agent, status]),
        (None, None, None, Some(status)) => (OF_STATUS, params![status, user, agent]),
        (None, None, None, None) => (ALL, &[]),
    };
    let piece = params![after.at, after.id.as_str(), since, page::with_next(page)];
    tx.query(sql, &[piece.as_slice(), which].concat()).await
}

fn read(row: &Row) -> Result<RunRecord, StoreError> {
    Ok(RunRecord {
        run_id: row.parse(0)?,
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
        end: row.optional(11, Row::json)?,
        cancel: row.optional(12, Row::choice)?,
        usage: ledger::sum(row, 13)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn what_a_run_has_cost_is_read_from_its_own_rows() {
        for sql in [ONE, ALL, OF_THREAD, OF_USER, OF_AGENT, OF_STATUS] {
            let plan = plan(sql);
            let ledger = plan.iter().find(|line| line.starts_with("SEARCH l ")).expect("a search");
            assert!(ledger.contains("(tenant=? AND run_id=?)"), "{plan:#?}");
        }
    }

    #[test]
    fn a_list_reads_no_more_than_its_page() {
        for (sql, index) in [
            (ALL, "runs_by_time (tenant=? AND created_at>? AND (created_at,run_id)<(?,?))"),
            (
                OF_THREAD,
                "runs_of_thread (tenant=? AND thread_id=? AND created_at>? AND (created_at,run_id)<(?,?))",
            ),
            (OF_USER, "runs_of_user (tenant=? AND user_id=? AND created_at>? AND (created_at,run_id)<(?,?))"),
            (OF_AGENT, "runs_of_agent (tenant=? AND agent=? AND created_at>? AND (created_at,run_id)<(?,?))"),
            (
                OF_STATUS,
                "runs_by_status (tenant=? AND status=? AND created_at>? AND (created_at,run_id)<(?,?))",
            ),
        ] {
            let plan = plan(sql);
            let page = plan.iter().find(|line| line.starts_with("SEARCH runs ")).expect("a search");
            assert!(page.ends_with(index), "{page}");
            assert!(
                !plan.iter().any(|line| line.contains("SCAN runs") || line.contains("SCAN l")),
                "{plan:?}"
            );
        }
    }
}
