//! Sessions: the agent loops of a run, read from the [`journal`](crate::journal).

use baton_core::store::work::SessionChange;
use baton_core::store::{Page, PageRequest, RunStatus, SessionRecord};
use baton_core::{RunId, SessionId, StoreError, ThreadId, Usage};
use jiff::Timestamp;

use super::ledger::{self, sums};
use crate::journal::{self, rows_of_run};
use crate::page::{self, PageCursor};
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

/// Runs that have started, by `$which`: all, those of a thread, or one.
macro_rules! page {
    (all) => {
        "SELECT run_id, thread_id, thread_number, status, finished_at, first_seq, last_seq FROM runs
        WHERE tenant = $1 AND run_id < $2 AND started_at IS NOT NULL
        ORDER BY run_id DESC
        LIMIT $3"
    };
    (of_thread) => {
        "SELECT run_id, thread_id, thread_number, status, finished_at, first_seq, last_seq FROM runs
        WHERE tenant = $1 AND (thread_number, run_id) < ($4, $2) AND thread_number >= $4 AND started_at IS NOT NULL
        ORDER BY thread_number DESC, run_id DESC
        LIMIT $3"
    };
    (one) => {
        "SELECT run_id, thread_id, thread_number, status, finished_at, first_seq, last_seq FROM runs
        WHERE tenant = $1 AND run_id = $2"
    };
}

/// What the runs of a page recorded about their sessions, in order.
macro_rules! changes {
    ($which:tt) => {
        concat!(
            "WITH r AS (",
            page!($which),
            ")
            SELECT r.run_id, r.thread_id, r.status, r.finished_at, j.content
            FROM r ",
            rows_of_run!(),
            "
            ORDER BY r.run_id DESC, j.last_seq, j.record"
        )
    };
}

/// The sum of the calls of each session of a page.
///
/// `CROSS JOIN` keeps SQLite from scanning the whole ledger first.
macro_rules! costs {
    ($which:tt) => {
        concat!(
            "WITH r AS (",
            page!($which),
            ")
            SELECT l.run_id, l.session_id,
                ",
            sums!(),
            "
            FROM r CROSS JOIN ledger AS l
            WHERE l.tenant = $1 AND l.run_id = r.run_id
            GROUP BY l.run_id, l.session_id"
        )
    };
}

/// The two statements that read the sessions of a page.
struct PageSql {
    changes: &'static str,
    costs: &'static str,
}

const ALL: PageSql = PageSql { changes: changes!(all), costs: costs!(all) };
const OF_THREAD: PageSql = PageSql { changes: changes!(of_thread), costs: costs!(of_thread) };
const ONE: PageSql = PageSql { changes: changes!(one), costs: costs!(one) };

/// A page contains as many runs as requested, with all their sessions.
pub(super) async fn list(
    tx: &Tx<'_>,
    thread: Option<ThreadId>,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Page<SessionRecord>, StoreError> {
    let (id, limit) = (after.id, page::with_next(page));
    let runs = match thread {
        Some(thread) => {
            let thread = threads::must_exist(tx, thread).await?;
            read(tx, &OF_THREAD, params![id, limit, thread]).await?
        }
        None => read(tx, &ALL, params![id, limit]).await?,
    };
    let piece = page::cut(runs, page.size(), |last| PageCursor::cursor(0, last.run_id));
    let data = piece.data.into_iter().flat_map(|run| run.sessions).collect();
    Ok(Page { data, next_cursor: piece.next_cursor })
}

pub(super) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<SessionRecord>, StoreError> {
    let runs = read(tx, &ONE, params![run]).await?;
    Ok(runs.into_iter().flat_map(|run| run.sessions).collect())
}

/// A run of a page. A session that did not end before its run has the run's status and end.
struct RunSessions {
    run_id: RunId,
    thread_id: ThreadId,
    status: RunStatus,
    finished_at: Option<Timestamp>,
    /// By session id, which begins with the parent's id, so parents come first.
    sessions: Vec<SessionRecord>,
}

async fn read(tx: &Tx<'_>, sql: &PageSql, params: &[SqlValue]) -> Result<Vec<RunSessions>, StoreError> {
    let (changes, costs) =
        futures_util::try_join!(tx.query(sql.changes, params), tx.query(sql.costs, params))?;
    let mut runs: Vec<RunSessions> = Vec::new();
    for row in &changes {
        let run_id = row.parse(0)?;
        if runs.last().is_none_or(|last| last.run_id != run_id) {
            runs.push(RunSessions::read(run_id, row)?);
        }
        if let (Some(run), false) = (runs.last_mut(), row.is_null(4)) {
            run.apply(journal::sessions(run_id, row, 4)?);
        }
    }
    for row in &costs {
        let run_id: RunId = row.parse(0)?;
        let session_id = full(run_id, row.text(1)?)?;
        let sessions = runs.iter_mut().filter(|run| run.run_id == run_id).flat_map(|run| &mut run.sessions);
        for session in sessions.filter(|session| session.session_id == session_id) {
            session.usage = ledger::sum(row, 2)?;
        }
    }
    for run in &mut runs {
        run.sessions.sort_by(|one, other| one.session_id.as_str().cmp(other.session_id.as_str()));
    }
    Ok(runs)
}

impl RunSessions {
    fn read(run_id: RunId, row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            run_id,
            thread_id: row.parse(1)?,
            status: row.choice(2)?,
            finished_at: row.optional(3, Row::time)?,
            sessions: Vec::new(),
        })
    }

    fn apply(&mut self, changes: Vec<SessionChange>) {
        for SessionChange { session_id, agent, path, status, at } in changes {
            let known = self.sessions.iter_mut().find(|session| session.session_id == session_id);
            let (status, finished_at) =
                if status.is_final() { (status, Some(at)) } else { (self.status, self.finished_at) };
            match known {
                Some(session) => (session.status, session.finished_at) = (status, finished_at),
                None => self.sessions.push(SessionRecord {
                    session_id,
                    run_id: self.run_id,
                    thread_id: self.thread_id,
                    agent,
                    path,
                    status,
                    started_at: at,
                    finished_at,
                    usage: Usage::default(),
                }),
            }
        }
    }
}

/// Reads all sessions of the run: there are few, and their costs are summed together.
pub(super) async fn one(tx: &Tx<'_>, session: &SessionId) -> Result<SessionRecord, StoreError> {
    const NOT_FOUND: StoreError = StoreError::NotFound("session");
    let run =
        session.as_str().split(':').next().and_then(|run| run.parse::<RunId>().ok()).ok_or(NOT_FOUND)?;
    let found = of_run(tx, run).await?;
    found.into_iter().find(|found| found.session_id == *session).ok_or(NOT_FOUND)
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
    fn sessions_are_read_from_the_rows_of_their_run() {
        for PageSql { changes, costs } in [ALL, OF_THREAD, ONE] {
            let (changes, costs) = (plan(changes), plan(costs));
            let ledger = costs.iter().find(|line| line.starts_with("SEARCH l ")).expect("a search");
            assert!(ledger.contains("(tenant=? AND run_id=?)"), "{costs:#?}");
            let journal = changes.iter().find(|line| line.starts_with("SEARCH j ")).expect("a search");
            assert!(
                journal.contains("thread_number=? AND tenant=? AND last_seq>? AND last_seq<?"),
                "{changes:#?}"
            );
            assert!(!changes.iter().chain(&costs).any(|line| line.contains("SCAN runs")), "{changes:#?}");
        }
    }
}
