//! Threads: one, a list of them, and their deletion ([`delete`]). Messages are in [`history`], events in [`events`]. [`find`]
//! searches titles, [`last_seqs`] reads the last event numbers of many threads.

mod delete;
pub(crate) mod events;
mod find;
pub(crate) mod history;
mod last_seqs;

use baton_core::store::{
    Lifecycle as _, MessageQuery, Page, PageRequest, Pending, Thread, ThreadMessage, Threads, micros,
};
use baton_core::{Event, StoreError, ThreadId, UserId};
pub(crate) use delete::{delete_expired, delete_part, is_deletion_left};
use uuid::Uuid;

use crate::closing::know_tenant;
use crate::insert::{ColumnKind, Insert};
use crate::job::JobSubject;
use crate::page::{self, PageCursor};
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;
use crate::value::{Row, params};

/// Maximum length in characters.
const TITLE: usize = 80;

impl Threads for Tenant {
    fn thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, Thread> {
        self.read((thread, user.cloned()), |tx, (thread, user)| Box::pin(one(tx, *thread, user.as_ref())))
    }

    fn threads(&self, user: Option<&UserId>, page: PageRequest) -> Pending<'_, Page<Thread>> {
        let after = match PageCursor::from_newest(&page) {
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
        let after = match PageCursor::from_newest(&page) {
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
        self.write(JobSubject::Thread(thread), input, |tx, (thread, user, title)| {
            Box::pin(rename(tx, *thread, user.as_ref(), title))
        })
    }

    fn delete_thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, ()> {
        let input = (thread, user.cloned());
        let deletion = self.write(JobSubject::Thread(thread), input, |tx, (thread, user)| {
            Box::pin(delete::delete(tx, *thread, user.as_ref()))
        });
        Box::pin(async move {
            if deletion.await? {
                // Without the entry of an audited store: it belongs to the deletion, not to each of its parts.
                let plain =
                    Self { database: self.database.clone(), tenant: self.tenant.clone(), audit: None };
                plain.finish_deletions().await?;
            }
            Ok(())
        })
    }

    fn messages(&self, thread: ThreadId, query: MessageQuery) -> Pending<'_, Vec<ThreadMessage>> {
        self.read((thread, query), |tx, (thread, query)| Box::pin(history::messages(tx, *thread, *query)))
    }

    fn last_seqs(&self, threads: &[ThreadId]) -> Pending<'_, Vec<(ThreadId, u64)>> {
        let threads: Vec<Uuid> = threads.iter().map(|thread| thread.as_uuid()).collect();
        self.read(threads, |tx, threads| Box::pin(last_seqs::read(tx, threads)))
    }

    fn events(&self, thread: ThreadId, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        self.read((thread, after, limit), |tx, (thread, after, limit)| {
            Box::pin(events::of_thread(tx, *thread, *after, *limit))
        })
    }
}

/// The columns of [`read`].
macro_rules! columns {
    () => {
        "t.thread_id, t.user_id, t.title, t.created_at, t.updated_at, w.holder, w.handoff_id, w.messages, w.last_seq,
            w.active_run, w.queued"
    };
}

use columns;

const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM thread_work AS w JOIN threads AS t ON t.tenant = $1 AND t.thread_number = w.thread_number
    WHERE w.tenant = $1 AND w.thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR w.user_id = $3)"
);

const ALL: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM threads AS t JOIN thread_work AS w ON w.tenant = $1 AND w.thread_id = t.thread_id
    WHERE t.tenant = $1 AND (t.updated_at, t.thread_id) < ($2, $3)
    ORDER BY t.updated_at DESC, t.thread_id DESC
    LIMIT $4"
);

const OF_USER: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM threads AS t JOIN thread_work AS w ON w.tenant = $1 AND w.thread_id = t.thread_id
    WHERE t.tenant = $1 AND t.user_id = $5 AND (t.updated_at, t.thread_id) < ($2, $3)
    ORDER BY t.updated_at DESC, t.thread_id DESC
    LIMIT $4"
);

const HOLD: &str = "
    UPDATE thread_work SET records = records
    WHERE tenant = $1 AND thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)
    RETURNING thread_number";

async fn one(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<Thread, StoreError> {
    let row = tx.first(ONE, params![thread, user]).await?.ok_or(StoreError::ThreadNotFound)?;
    read(&row)
}

/// Returns the number of a thread. Fails with `ThreadNotFound` if there is no such thread.
pub(crate) async fn must_exist(tx: &Tx<'_>, thread: ThreadId) -> Result<u64, StoreError> {
    must_be_of(tx, thread, None).await
}

/// Like [`must_exist`]. With a user, the thread must also belong to that user.
pub(crate) async fn must_be_of(
    tx: &Tx<'_>,
    thread: ThreadId,
    user: Option<&UserId>,
) -> Result<u64, StoreError> {
    let sql = "SELECT thread_number FROM thread_work
        WHERE tenant = $1 AND thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)";
    tx.first(sql, params![thread, user]).await?.ok_or(StoreError::ThreadNotFound)?.count(0)
}

/// Locks the thread until the transaction ends: no other transaction can change or delete it. Returns its number.
pub(crate) async fn hold(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<u64, StoreError> {
    tx.first(HOLD, params![thread, user]).await?.ok_or(StoreError::ThreadNotFound)?.count(0)
}

/// Marks a thread as used, and locks it until the transaction ends.
pub(crate) async fn touch(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    let number = hold(tx, thread, None).await?;
    tx.execute(USED, params![number, tx.now()]).await.map(drop)
}

/// Moves the thread to the top of lists. A thread that was moved less than a second ago stays where it is: two indexes would be
/// changed for a difference that no list shows.
pub(crate) const USED: &str = "
    UPDATE threads SET updated_at = $3
    WHERE tenant = $1 AND thread_number = $2 AND updated_at < CAST($3 AS BIGINT) - 1000000";

/// Creates a thread, or marks it as used.
pub(crate) const USE: &str = "
    INSERT INTO threads (tenant, thread_number, thread_id, user_id, title, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6)
    ON CONFLICT (tenant, thread_number) DO UPDATE SET updated_at = excluded.updated_at";

/// Creates a thread that is certainly not there.
pub(crate) static INSERT: Insert = Insert::new(
    "threads",
    &[
        ("thread_number", ColumnKind::Int),
        ("thread_id", ColumnKind::Uuid),
        ("user_id", ColumnKind::Text),
        ("title", ColumnKind::Text),
        ("created_at", ColumnKind::Int),
        ("updated_at", ColumnKind::Int),
    ],
    "",
);

const BEGIN: &str = "
    INSERT INTO thread_work (tenant, thread_id, user_id) VALUES ($1, $2, $3)
    ON CONFLICT (tenant, thread_id) DO UPDATE SET records = thread_work.records
    WHERE thread_work.user_id = excluded.user_id
    RETURNING thread_number";

/// Creates a thread, or marks it as used. Fails with `ThreadNotFound` if it belongs to another user.
pub(crate) async fn begin(
    tx: &Tx<'_>,
    thread: ThreadId,
    user: &UserId,
    text: &str,
) -> Result<(), StoreError> {
    let begun = tx.first(BEGIN, params![thread, user]).await?.ok_or(StoreError::ThreadNotFound)?;
    tx.execute(USE, params![begun.count(0)?, thread, user, title(text), tx.now()]).await?;
    know_tenant(tx).await
}

/// The first [`TITLE`] characters of a text, on one line.
pub(crate) fn title(text: &str) -> String {
    let text = text.trim();
    let end = text.char_indices().nth(TITLE).map_or(text.len(), |(at, _)| at);
    let mut title = text[..end].replace(char::is_control, " ");
    title.truncate(title.trim_end().len());
    title
}

async fn list(
    tx: &Tx<'_>,
    user: Option<&UserId>,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Page<Thread>, StoreError> {
    let (at, id, limit) = (after.at, after.id, page::with_next(page));
    let rows = match user {
        Some(user) => tx.query(OF_USER, params![at, id, limit, user]).await?,
        None => tx.query(ALL, params![at, id, limit]).await?,
    };
    cut(&rows, page)
}

fn cut(rows: &[Row], page: &PageRequest) -> Result<Page<Thread>, StoreError> {
    let threads = rows.iter().map(read).collect::<Result<Vec<Thread>, _>>()?;
    Ok(page::cut(threads, page.size(), |last| PageCursor::cursor(micros(last.updated_at), last.thread_id)))
}

const RENAME: &str = "
    UPDATE threads SET title = $4
    WHERE tenant = $1
        AND thread_number = (SELECT w.thread_number FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2)
        AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)";

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
            assert!(plan[0].starts_with(&format!("SEARCH t USING INDEX {index} ")), "{plan:?}");
            let by_id = "SEARCH w USING INDEX sqlite_autoindex_thread_work_1 (tenant=? AND thread_id=?)";
            assert_eq!(plan[1..], [by_id]);
        }
    }
}
