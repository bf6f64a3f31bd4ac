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
    ($page:literal) => {
        concat!(
            "WITH page AS (",
            $page,
            ")
            SELECT r.run_id, r.thread_id, r.user_id, r.agent, r.status, r.created_at, r.started_at,
                r.finished_at, r.attempts, r.message_number, r.request, r.result, r.cancel,
                u.input_tokens, u.output_tokens, u.cached_tokens, u.reasoning_tokens, u.cost, u.known, u.estimated
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

const ALL: &str = runs!(
    "SELECT run_id FROM runs
    WHERE tenant = $1 AND (created_at, run_id) < ($2, $3) AND created_at >= $4
        AND (CAST($5 AS TEXT) IS NULL OR user_id = $5)
        AND (CAST($6 AS TEXT) IS NULL OR agent = $6)
        AND (CAST($7 AS TEXT) IS NULL OR status = $7)
    ORDER BY created_at DESC, run_id DESC
    LIMIT $8"
);

const OF_THREAD: &str = runs!(
    "SELECT run_id FROM runs
    WHERE tenant = $1 AND (created_at, run_id) < ($2, $3) AND created_at >= $4
        AND (CAST($5 AS TEXT) IS NULL OR user_id = $5)
        AND (CAST($6 AS TEXT) IS NULL OR agent = $6)
        AND (CAST($7 AS TEXT) IS NULL OR status = $7)
        AND thread_id = $9
    ORDER BY created_at DESC, run_id DESC
    LIMIT $8"
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
    let since = query.since.map_or(Value::Int(i64::MIN), Value::from);
    let (user, agent, status) = (query.user_id.as_ref(), query.agent.as_ref(), query.status);
    let (at, id, limit) = (after.at, after.id.as_str(), page::with_next(page));
    let rows = match query.thread_id {
        Some(thread) => {
            tx.query(OF_THREAD, params![at, id, since, user, agent, status, limit, thread]).await?
        }
        None => tx.query(ALL, params![at, id, since, user, agent, status, limit]).await?,
    };
    let runs = rows.iter().map(read).collect::<Result<Vec<RunRecord>, _>>()?;
    Ok(page::cut(runs, page.size(), |last| Place::cursor(micros(last.created_at), last.run_id)))
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
        for sql in [ONE, ALL, OF_THREAD] {
            let plan = plan(sql);
            let ledger = plan.iter().find(|line| line.starts_with("SEARCH l ")).expect("a search");
            assert!(ledger.contains("(tenant=? AND run_id=?)"), "{plan:#?}");
        }
    }

    #[test]
    fn a_list_reads_no_more_than_its_page() {
        for sql in [ONE, ALL] {
            let plan = plan(sql);
            assert!(
                !plan.iter().any(|line| line.contains("SCAN runs") || line.contains("SCAN ledger")),
                "{plan:?}"
            );
        }
        let page = plan(ALL);
        assert!(page.iter().any(|line| line.contains("SEARCH runs USING INDEX runs_by_time")), "{page:?}");
    }
}
