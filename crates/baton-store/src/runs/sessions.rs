//! The loops of a run's agents.

use baton_core::store::work::SessionChange;
use baton_core::store::{Page, PageRequest, RunStatus, SessionRecord};
use baton_core::{RunId, SessionId, StoreError, ThreadId};

use super::ledger::{self, sums};
use crate::page::{self, Place};
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, params};

/// Sessions of the runs that `$page` chooses, each with the sum of its own calls. A session's id begins with that of its
/// parent, so parents come first.
///
/// `CROSS JOIN` keeps SQLite from beginning with the ledger, which is as old as the tenant.
macro_rules! sessions {
    ($page:literal) => {
        concat!(
            "WITH page AS (",
            $page,
            ")
            SELECT s.session_id, s.run_id, s.thread_id, s.agent, s.path, s.status, s.started_at, s.finished_at,
                u.input_tokens, u.output_tokens, u.cached_tokens, u.cache_write_tokens, u.reasoning_tokens, u.cost,
                u.known, u.estimated,
                page.created_at
            FROM page JOIN sessions AS s ON s.tenant = $1 AND s.run_id = page.run_id
            LEFT JOIN (
                SELECT l.session_id,
                    ",
            sums!(),
            "
                FROM page CROSS JOIN ledger AS l
                WHERE l.tenant = $1 AND l.run_id = page.run_id
                GROUP BY l.session_id
            ) AS u ON u.session_id = s.session_id
            ORDER BY page.created_at DESC, page.run_id DESC, s.session_id"
        )
    };
}

const ALL: &str = sessions!(
    "SELECT run_id, created_at FROM runs
    WHERE tenant = $1 AND (created_at, run_id) < ($2, $3)
        AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.tenant = $1 AND s.run_id = runs.run_id)
    ORDER BY created_at DESC, run_id DESC
    LIMIT $4"
);

const OF_THREAD: &str = sessions!(
    "SELECT run_id, created_at FROM runs
    WHERE tenant = $1 AND (created_at, run_id) < ($2, $3) AND thread_id = $5
        AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.tenant = $1 AND s.run_id = runs.run_id)
    ORDER BY created_at DESC, run_id DESC
    LIMIT $4"
);

const OF_RUN: &str = sessions!("SELECT run_id, created_at FROM runs WHERE tenant = $1 AND run_id = $2");

/// A piece has as many runs as were asked for, and all their sessions.
pub(super) async fn list(
    tx: &Tx<'_>,
    thread: Option<ThreadId>,
    page: &PageRequest,
    after: &Place,
) -> Result<Page<SessionRecord>, StoreError> {
    let (at, id, limit) = (after.at, after.id.as_str(), page::with_next(page));
    let rows = match thread {
        Some(thread) => {
            threads::must_exist(tx, thread).await?;
            tx.query(OF_THREAD, params![at, id, limit, thread]).await?
        }
        None => tx.query(ALL, params![at, id, limit]).await?,
    };
    let runs = by_run(&rows)?;
    let piece = page::cut(runs, page.size(), |last| Place::cursor(last.created_at, last.run_id));
    let data = piece.data.into_iter().flat_map(|run| run.sessions).collect();
    Ok(Page { data, next_cursor: piece.next_cursor })
}

struct OfRun {
    run_id: RunId,
    created_at: i64,
    sessions: Vec<SessionRecord>,
}

fn by_run(rows: &[Row]) -> Result<Vec<OfRun>, StoreError> {
    let mut runs: Vec<OfRun> = Vec::new();
    for row in rows {
        let session = read(row)?;
        let (run_id, created_at) = (session.run_id, row.int(16)?);
        match runs.last_mut() {
            Some(run) if run.run_id == run_id => run.sessions.push(session),
            _ => runs.push(OfRun { run_id, created_at, sessions: vec![session] }),
        }
    }
    Ok(runs)
}

pub(super) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<SessionRecord>, StoreError> {
    tx.query(OF_RUN, params![run]).await?.iter().map(read).collect()
}

/// All sessions of its run are read: their costs are added up together, and there are not many.
pub(super) async fn one(tx: &Tx<'_>, session: &SessionId) -> Result<SessionRecord, StoreError> {
    const NOT_FOUND: StoreError = StoreError::NotFound("session");
    let sql = "SELECT run_id FROM sessions WHERE tenant = $1 AND session_id = $2";
    let run: RunId = tx.first(sql, params![session]).await?.ok_or(NOT_FOUND)?.parse(0)?;
    let rows = tx.query(OF_RUN, params![run]).await?;
    let row = rows.iter().find(|row| row.text(0) == Ok(session.as_str())).ok_or(NOT_FOUND)?;
    read(row)
}

fn read(row: &Row) -> Result<SessionRecord, StoreError> {
    Ok(SessionRecord {
        session_id: row.parse(0)?,
        run_id: row.parse(1)?,
        thread_id: row.parse(2)?,
        agent: row.parse(3)?,
        path: row.text(4)?.to_owned(),
        status: row.choice(5)?,
        started_at: row.time(6)?,
        finished_at: row.optional(7, Row::time)?,
        usage: ledger::sum(row, 8)?,
    })
}

const UPSERT: &str = "
    INSERT INTO sessions
        (tenant, session_id, run_id, thread_id, agent, path, status, started_at, finished_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (tenant, session_id) DO UPDATE
    SET status = excluded.status, finished_at = excluded.finished_at";

pub(crate) async fn write(
    tx: &Tx<'_>,
    (thread, run): (ThreadId, RunId),
    changes: &[SessionChange],
) -> Result<(), StoreError> {
    let rows = changes.iter().map(|change| {
        let SessionChange { session_id, agent, path, status, at } = change;
        let finished_at = status.is_final().then_some(*at);
        params![session_id, run, thread, agent, path.as_str(), *status, *at, finished_at].to_vec()
    });
    tx.execute_each(UPSERT, rows).await
}

/// No session outlives its run.
pub(crate) async fn end(tx: &Tx<'_>, run: RunId, status: RunStatus) -> Result<(), StoreError> {
    let sql = "
        UPDATE sessions SET status = $3, finished_at = $4
        WHERE tenant = $1 AND run_id = $2 AND finished_at IS NULL";
    let finished_at = status.is_final().then_some(tx.now());
    tx.execute(sql, params![run, status, finished_at]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn what_a_session_has_cost_is_read_from_the_rows_of_its_run() {
        for sql in [ALL, OF_THREAD, OF_RUN] {
            let plan = plan(sql);
            let ledger = plan.iter().find(|line| line.starts_with("SEARCH l ")).expect("a search");
            assert!(ledger.contains("(tenant=? AND run_id=?)"), "{plan:#?}");
            let sessions = plan.iter().rfind(|line| line.starts_with("SEARCH s ")).expect("a search");
            assert!(sessions.contains("run_id=?)"), "{plan:#?}");
        }
    }
}
