//! Conversations: one, a list of them, and their end. What was said in them is in [`history`].

pub(crate) mod history;

use baton_core::store::{MessageQuery, Page, PageRequest, Pending, Thread, ThreadMessage, Threads, micros};
use baton_core::{Event, StoreError, ThreadId, UserId};

use crate::audit;
use crate::job::About;
use crate::page::{self, Place};
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;
use crate::value::{Row, params};

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

    fn delete_thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, ()> {
        self.write(About::Thread(thread), (thread, user.cloned()), |tx, (thread, user)| {
            Box::pin(delete(tx, *thread, user.as_ref()))
        })
    }

    fn messages(&self, thread: ThreadId, query: MessageQuery) -> Pending<'_, Vec<ThreadMessage>> {
        self.read((thread, query), |tx, (thread, query)| Box::pin(history::messages(tx, *thread, *query)))
    }

    fn events(&self, thread: ThreadId, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        self.read((thread, after, limit), |tx, (thread, after, limit)| {
            Box::pin(history::events(tx, *thread, *after, *limit))
        })
    }
}

macro_rules! columns {
    () => {
        "thread_id, user_id, title, created_at, updated_at, holder, handoff_id, messages, last_seq, active_run"
    };
}

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

const DELETE: &str = "
    DELETE FROM threads
    WHERE tenant = $1 AND thread_id = $2 AND (CAST($3 AS TEXT) IS NULL OR user_id = $3)";

async fn one(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<Thread, StoreError> {
    let row = tx.first(ONE, params![thread, user]).await?.ok_or(StoreError::ThreadNotFound)?;
    read(&row)
}

/// Whoever asks for something in a thread hears first whether there is one.
pub(crate) async fn must_exist(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    let sql = "SELECT thread_id FROM threads WHERE tenant = $1 AND thread_id = $2";
    tx.first(sql, params![thread]).await?.map(drop).ok_or(StoreError::ThreadNotFound)
}

/// Marks a thread as used. Until the transaction ends, nobody else can change or delete it.
pub(crate) async fn touch(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    let sql = "UPDATE threads SET updated_at = $3 WHERE tenant = $1 AND thread_id = $2";
    match tx.execute(sql, params![thread, tx.now()]).await? {
        0 => Err(StoreError::ThreadNotFound),
        _ => Ok(()),
    }
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
    let threads = rows.iter().map(read).collect::<Result<Vec<Thread>, _>>()?;
    Ok(page::cut(threads, page.size(), |last| Place::cursor(micros(last.updated_at), last.thread_id)))
}

async fn delete(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<(), StoreError> {
    if tx.execute(DELETE, params![thread, user]).await? == 0 {
        return Err(StoreError::ThreadNotFound);
    }
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
