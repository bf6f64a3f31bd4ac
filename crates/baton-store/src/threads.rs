//! Conversations: one, a list of them, and their end. What was said in them is in [`history`]; [`find`] looks for titles; [`last_seqs`]
//! asks about many threads at once.

mod find;
pub(crate) mod history;
mod last_seqs;

use baton_core::store::{MessageQuery, Page, PageRequest, Pending, Thread, ThreadMessage, Threads, micros};
use baton_core::{Event, StoreError, ThreadId, UserId};

use crate::audit;
use crate::job::About;
use crate::page::{self, Place};
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;
use crate::value::{Row, params};

/// In characters.
const TITLE: usize = 80;

impl Threads for Tenant {
    fn thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, Thread> {
        self.read((thread, user.cloned()), |tx, (thread, user)| Box::pin(one(tx, *thread, user.as_ref())))
    }

    fn threads(&self, user: Option<&UserId>, page: PageRequest) -> Pending<'_, Page<Thread>> {
        let after = match Place::from_newest(&page) {
            Ok(after) => after,
            Err(error) => return refused(error),
        };
        self.read((user.cloned(), page, after), |tx, (user, page, after)| {
            Box::pin(list(tx, user.as_ref(), page, after))
        })
    }

    fn find_threads(
        &self,
        user: Option<&UserId>,
        text: &str,
        page: PageRequest,
    ) -> Pending<'_, Page<Thread>> {
        let after = match Place::from_newest(&page) {
            Ok(after) => after,
            Err(error) => return refused(error),
        };
        let input = (user.cloned(), find::pattern(text), page, after);
        self.read(input, |tx, (user, pattern, page, after)| {
            Box::pin(find::list(tx, user.as_ref(), pattern, page, after))
        })
    }

    fn rename_thread(&self, thread: ThreadId, user: Option<&UserId>, title: &str) -> Pending<'_, Thread> {
        let input = (thread, user.cloned(), title.to_owned());
        self.write(About::Thread(thread), input, |tx, (thread, user, title)| {
            Box::pin(rename(tx, *thread, user.as_ref(), title))
        })
    }

    fn delete_thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, ()> {
        self.write(About::Thread(thread), (thread, user.cloned()), |tx, (thread, user)| {
            Box::pin(delete(tx, *thread, user.as_ref()))
        })
    }

    fn messages(&self, thread: ThreadId, query: MessageQuery) -> Pending<'_, Vec<ThreadMessage>> {
        self.read((thread, query), |tx, (thread, query)| Box::pin(history::messages(tx, *thread, *query)))
    }

    fn last_seqs(&self, threads: &[ThreadId]) -> Pending<'_, Vec<(ThreadId, u64)>> {
        self.read(last_seqs::joined(threads), |tx, threads| Box::pin(last_seqs::read(tx, threads)))
    }

    fn events(&self, thread: ThreadId, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        self.read((thread, after, limit), |tx, (thread, after, limit)| {
            Box::pin(history::events(tx, *thread, *after, *limit))
        })
    }
}

/// What [`read`] reads.
macro_rules! columns {
    () => {
        "thread_id, user_id, title, created_at, updated_at, holder, handoff_id, messages, last_seq,
        active_run, queued"
    };
}

use columns;

const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM threads
    WHERE tenant = $1 AND thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)"
);

const ALL: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM threads
    WHERE tenant = $1 AND (updated_at, thread_id) < ($2, $3)
    ORDER BY updated_at DESC, thread_id DESC
    LIMIT $4"
);

const OF_USER: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM threads
    WHERE tenant = $1 AND user_id = $5 AND (updated_at, thread_id) < ($2, $3)
    ORDER BY updated_at DESC, thread_id DESC
    LIMIT $4"
);

const HOLD: &str = "
    UPDATE threads SET updated_at = updated_at
    WHERE tenant = $1 AND thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)";

const OPEN_RUNS: &str = "SELECT count(*) FROM runs
    WHERE tenant = $1 AND thread_id = $2 AND status IN ('queued', 'running', 'waiting')";

async fn one(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<Thread, StoreError> {
    let row = tx.first(ONE, params![thread, user]).await?.ok_or(StoreError::ThreadNotFound)?;
    read(&row)
}

/// Whoever asks for something in a thread hears first whether there is one.
pub(crate) async fn must_exist(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    must_be_of(tx, thread, None).await
}

/// With a user, one of another user is not there.
pub(crate) async fn must_be_of(
    tx: &Tx<'_>,
    thread: ThreadId,
    user: Option<&UserId>,
) -> Result<(), StoreError> {
    let sql = "SELECT thread_id FROM threads
        WHERE tenant = $1 AND thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)";
    tx.first(sql, params![thread, user]).await?.map(drop).ok_or(StoreError::ThreadNotFound)
}

/// Until the transaction ends, nobody else can change or delete the thread.
pub(crate) async fn hold(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<(), StoreError> {
    match tx.execute(HOLD, params![thread, user]).await? {
        0 => Err(StoreError::ThreadNotFound),
        _ => Ok(()),
    }
}

/// Marks a thread as used. Until the transaction ends, nobody else can change or delete it.
pub(crate) async fn touch(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    let sql = "UPDATE threads SET updated_at = $3 WHERE tenant = $1 AND thread_id = $2";
    match tx.execute(sql, params![thread, tx.now()]).await? {
        0 => Err(StoreError::ThreadNotFound),
        _ => Ok(()),
    }
}

const BEGIN: &str = "
    INSERT INTO threads (tenant, thread_id, user_id, title, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $5)
    ON CONFLICT (tenant, thread_id) DO UPDATE SET updated_at = excluded.updated_at
    WHERE threads.user_id = excluded.user_id";

/// Begins a thread that is not there, and marks one that is as used. One of another user is not found.
pub(crate) async fn begin(
    tx: &Tx<'_>,
    thread: ThreadId,
    user: &UserId,
    text: &str,
) -> Result<(), StoreError> {
    if tx.execute(BEGIN, params![thread, user, title(text), tx.now()]).await? == 0 {
        return Err(StoreError::ThreadNotFound);
    }
    audit::know_tenant(tx).await
}

/// The beginning of what a thread begins with, on one line.
pub(crate) fn title(text: &str) -> String {
    let one_line = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    one_line.take(TITLE).collect::<String>().trim_end().to_owned()
}

async fn list(
    tx: &Tx<'_>,
    user: Option<&UserId>,
    page: &PageRequest,
    after: &Place,
) -> Result<Page<Thread>, StoreError> {
    let (at, id, limit) = (after.at, after.id.as_str(), page::with_next(page));
    let rows = match user {
        Some(user) => tx.query(OF_USER, params![at, id, limit, user]).await?,
        None => tx.query(ALL, params![at, id, limit]).await?,
    };
    cut(&rows, page)
}

fn cut(rows: &[Row], page: &PageRequest) -> Result<Page<Thread>, StoreError> {
    let threads = rows.iter().map(read).collect::<Result<Vec<Thread>, _>>()?;
    Ok(page::cut(threads, page.size(), |last| Place::cursor(micros(last.updated_at), last.thread_id)))
}

const RENAME: &str = "
    UPDATE threads SET title = $4
    WHERE tenant = $1 AND thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)";

async fn rename(
    tx: &Tx<'_>,
    thread: ThreadId,
    user: Option<&UserId>,
    title: &str,
) -> Result<Thread, StoreError> {
    match tx.execute(RENAME, params![thread, user, title]).await? {
        0 => Err(StoreError::ThreadNotFound),
        _ => one(tx, thread, user).await,
    }
}

async fn delete(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<(), StoreError> {
    hold(tx, thread, user).await?;
    // Nobody can end one of them between here and there.
    let open = tx.first(OPEN_RUNS, params![thread]).await?.map_or(Ok(0), |row| row.int(0))?;
    tx.execute("DELETE FROM threads WHERE tenant = $1 AND thread_id = $2", params![thread]).await?;
    tx.to_close().end_runs(open);
    let actor = user.map_or("system", UserId::as_str);
    tx.audit(audit::about(audit::entry(actor, "thread.delete", "deleted"), thread, None));
    Ok(())
}

fn read(row: &Row) -> Result<Thread, StoreError> {
    Ok(Thread {
        thread_id: row.parse(0)?,
        user_id: row.parse(1)?,
        title: row.text(2)?.to_owned(),
        created_at: row.time(3)?,
        updated_at: row.time(4)?,
        holder: row.optional(5, Row::parse)?,
        handoff: row.optional(6, Row::parse)?,
        total_messages: row.count(7)?,
        last_seq: row.count(8)?,
        active_run: row.optional(9, Row::parse)?,
        queued: row.count(10)?,
    })
}

#[cfg(test)]
mod tests {
    use super::history::tests::plan;
    use super::*;

    #[test]
    fn a_list_reads_no_more_than_its_page() {
        for (sql, index) in [(ALL, "threads_by_use"), (OF_USER, "threads_of_user")] {
            let plan = plan(sql);
            assert!(
                plan.len() == 1 && plan[0].starts_with(&format!("SEARCH threads USING INDEX {index} ")),
                "{plan:?}"
            );
        }
    }
}
