//! Sessions: the agent loops of a run.

use baton_core::store::work::SessionChange;
use baton_core::store::{Page, PageRequest, SessionRecord};
use baton_core::{RunId, SessionId, StoreError, ThreadId};
use indexmap::IndexMap;
use jiff::Timestamp;

use super::ledger::{self, sums};
use crate::insert::{ColumnKind, Insert};
use crate::page::{self, PageCursor};
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};

/// Sessions of the runs selected by `$page`, each with the sum of its own calls. A session's id begins with its parent's id, so
/// parents come first. A session that did not end before its run takes over the run's status and end.
///
/// `CROSS JOIN` keeps SQLite from scanning the whole ledger first.
macro_rules! sessions {
    ($page:literal) => {
        concat!(
            "WITH page AS (",
            $page,
            ")
            SELECT s.session_id, s.run_id, s.thread_id, s.agent, s.path,
                CASE WHEN s.finished_at IS NULL THEN page.status ELSE s.status END,
                s.started_at, coalesce(s.finished_at, page.finished_at),
                u.input_tokens, u.output_tokens, u.cached_tokens, u.cache_write_tokens, u.reasoning_tokens, u.cost,
                u.known, u.estimated
            FROM page JOIN sessions AS s ON s.tenant = $1 AND s.run_id = page.run_id
            LEFT JOIN (
                SELECT l.run_id, l.session_id,
                    ",
            sums!(),
            "
                FROM page CROSS JOIN ledger AS l
                WHERE l.tenant = $1 AND l.run_id = page.run_id
                GROUP BY l.run_id, l.session_id
            ) AS u ON u.run_id = s.run_id AND u.session_id = s.session_id
            ORDER BY page.run_id DESC, s.session_id"
        )
    };
}

const ALL: &str = sessions!(
    "SELECT run_id, status, finished_at FROM runs
    WHERE tenant = $1 AND run_id < $2
        AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.tenant = $1 AND s.run_id = runs.run_id)
    ORDER BY run_id DESC
    LIMIT $3"
);

const OF_THREAD: &str = sessions!(
    "SELECT run_id, status, finished_at FROM runs
    WHERE tenant = $1 AND (thread_id, run_id) < ($4, $2) AND thread_id >= $4
        AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.tenant = $1 AND s.run_id = runs.run_id)
    ORDER BY thread_id DESC, run_id DESC
    LIMIT $3"
);

const OF_RUN: &str =
    sessions!("SELECT run_id, status, finished_at FROM runs WHERE tenant = $1 AND run_id = $2");

/// A page contains as many runs as requested, with all their sessions.
pub(super) async fn list(
    tx: &Tx<'_>,
    thread: Option<ThreadId>,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Page<SessionRecord>, StoreError> {
    let (id, limit) = (after.id, page::with_next(page));
    let rows = match thread {
        Some(thread) => {
            threads::must_exist(tx, thread).await?;
            tx.query(OF_THREAD, params![id, limit, thread]).await?
        }
        None => tx.query(ALL, params![id, limit]).await?,
    };
    let runs = by_run(&rows)?;
    let piece = page::cut(runs, page.size(), |last| PageCursor::cursor(0, last.run_id));
    let data = piece.data.into_iter().flat_map(|run| run.sessions).collect();
    Ok(Page { data, next_cursor: piece.next_cursor })
}

struct RunSessions {
    run_id: RunId,
    sessions: Vec<SessionRecord>,
}

fn by_run(rows: &[Row]) -> Result<Vec<RunSessions>, StoreError> {
    let mut runs: Vec<RunSessions> = Vec::new();
    for row in rows {
        let session = read(row)?;
        let run_id = session.run_id;
        match runs.last_mut() {
            Some(run) if run.run_id == run_id => run.sessions.push(session),
            _ => runs.push(RunSessions { run_id, sessions: vec![session] }),
        }
    }
    Ok(runs)
}

pub(super) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<SessionRecord>, StoreError> {
    tx.query(OF_RUN, params![run]).await?.iter().map(read).collect()
}

/// Reads all sessions of the run: there are few, and their costs are summed together.
pub(super) async fn one(tx: &Tx<'_>, session: &SessionId) -> Result<SessionRecord, StoreError> {
    const NOT_FOUND: StoreError = StoreError::NotFound("session");
    let run =
        session.as_str().split(':').next().and_then(|run| run.parse::<RunId>().ok()).ok_or(NOT_FOUND)?;
    let found = of_run(tx, run).await?;
    found.into_iter().find(|found| found.session_id == *session).ok_or(NOT_FOUND)
}

fn read(row: &Row) -> Result<SessionRecord, StoreError> {
    let run_id = row.parse(1)?;
    Ok(SessionRecord {
        session_id: full(run_id, row.text(0)?)?,
        run_id,
        thread_id: row.parse(2)?,
        agent: row.parse(3)?,
        path: row.text(4)?.to_owned(),
        status: row.choice(5)?,
        started_at: row.time(6)?,
        finished_at: row.optional(7, Row::time)?,
        usage: ledger::sum(row, 8)?,
    })
}

pub(crate) static UPSERT: Insert = Insert::new(
    "sessions",
    &[
        ("run_id", ColumnKind::Uuid),
        ("session_id", ColumnKind::Text),
        ("thread_id", ColumnKind::Uuid),
        ("agent", ColumnKind::Text),
        ("path", ColumnKind::Text),
        ("status", ColumnKind::Text),
        ("started_at", ColumnKind::Int),
        ("finished_at", ColumnKind::Int),
    ],
    "ON CONFLICT (tenant, run_id, session_id) DO UPDATE
    SET status = excluded.status, finished_at = excluded.finished_at",
);

/// Returns rows for [`UPSERT`]. Only the last state of each session is written, with the time of its first.
pub(crate) fn rows((thread, run): (ThreadId, RunId), changes: &[SessionChange]) -> Vec<Vec<SqlValue>> {
    let mut last: IndexMap<&SessionId, (Timestamp, &SessionChange)> = IndexMap::new();
    for change in changes {
        last.entry(&change.session_id).or_insert((change.at, change)).1 = change;
    }
    let row = |(id, (begun, change)): (&SessionId, (Timestamp, &SessionChange))| {
        let SessionChange { agent, path, status, at, .. } = change;
        let finished_at = status.is_final().then_some(*at);
        row_values![run, short(run, id), thread, agent, path.as_str(), *status, begun, finished_at]
    };
    last.into_iter().map(row).collect()
}

/// The session's id without the prefix of the run's id. An id without that prefix is stored as is.
pub(crate) fn short(run: RunId, session: &SessionId) -> String {
    let run = run.to_string();
    let rest = session.as_str().strip_prefix(&run).filter(|rest| rest.is_empty() || rest.starts_with(':'));
    rest.unwrap_or(session.as_str()).to_owned()
}

/// The reverse of [`short`].
pub(crate) fn full(run: RunId, short: &str) -> Result<SessionId, StoreError> {
    let id = match short {
        "" => return Ok(SessionId::root(run)),
        rest if rest.starts_with(':') => format!("{run}{rest}"),
        whole => whole.to_owned(),
    };
    id.parse().map_err(|_| StoreError::Unreadable("the id of a session cannot be read".to_owned()))
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
            assert!(!plan.iter().any(|line| line.contains("SCAN runs")), "{plan:#?}");
            let sessions = plan.iter().rfind(|line| line.starts_with("SEARCH s ")).expect("a search");
            assert!(sessions.contains("run_id=?)"), "{plan:#?}");
        }
    }
}
