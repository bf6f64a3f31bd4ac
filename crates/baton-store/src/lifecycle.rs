//! The end of data: expired threads and events ([`events`]), the erasure of a user ([`erasure`]), and how much is stored.
//!
//! Everything here is a sequence of short writes, so that other writers never wait for long, and can be repeated after a crash.

mod erasure;
mod events;

use baton_core::store::{AuditEntry, Erasure, Lifecycle, Pending};
use baton_core::{RunId, StoreError, ThreadId, UserId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::audit::truncation;
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::params;

impl Lifecycle for Tenant {
    fn expired_threads(&self, before: Timestamp, limit: u32) -> Pending<'_, Vec<ThreadId>> {
        self.read((before, limit), |tx, (before, limit)| Box::pin(expired(tx, *before, *limit)))
    }

    fn delete_expired_thread(&self, thread: ThreadId, before: Timestamp) -> Pending<'_, bool> {
        Box::pin(async move {
            let deletion =
                self.write(JobSubject::Thread(thread), (thread, before), |tx, (thread, before)| {
                    Box::pin(threads::delete_expired(tx, *thread, *before))
                });
            let deleted = deletion.await?;
            if deleted == Some(true) {
                self.finish_deletions().await?;
            }
            Ok(deleted.is_some())
        })
    }

    fn finish_deletions(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            while self.read((), |tx, ()| Box::pin(threads::is_deletion_left(tx))).await? {
                self.write(JobSubject::Tenant, (), |tx, ()| Box::pin(threads::delete_part(tx))).await?;
            }
            Ok(())
        })
    }

    fn delete_events(
        &self,
        before: Timestamp,
        after: Option<RunId>,
        limit: u32,
    ) -> Pending<'_, Option<RunId>> {
        self.write(JobSubject::Tenant, (before, after, limit), |tx, (before, after, limit)| {
            Box::pin(events::delete(tx, *before, *after, *limit))
        })
    }

    fn expired_audit(&self, before: Timestamp) -> Pending<'_, Option<u64>> {
        self.read(before, |tx, before| Box::pin(truncation::expired(tx, *before)))
    }

    fn truncate_audit(&self, before: Timestamp, seal: u64) -> Pending<'_, bool> {
        self.write(JobSubject::Tenant, (before, seal), |tx, (before, seal)| {
            Box::pin(truncation::remove_batch(tx, *before, *seal))
        })
    }

    fn begin_erasure(&self, user: &UserId, entry: AuditEntry) -> Pending<'_, Erasure> {
        self.write(JobSubject::Tenant, (user.clone(), entry), |tx, (user, entry)| {
            Box::pin(erasure::begin(tx, user, entry))
        })
    }

    fn open_erasures(&self) -> Pending<'_, Vec<Erasure>> {
        self.read((), |tx, ()| Box::pin(erasure::open(tx)))
    }

    fn finish_erasure(&self, erasure: Uuid) -> Pending<'_, ()> {
        Box::pin(erasure::finish(self, erasure))
    }

    fn set_file_bytes(&self, thread: ThreadId, bytes: u64) -> Pending<'_, ()> {
        self.write(JobSubject::Thread(thread), (thread, bytes), |tx, (thread, bytes)| {
            Box::pin(set_file_bytes(tx, *thread, *bytes))
        })
    }

    fn stored_bytes(&self, user: Option<&UserId>) -> Pending<'_, u64> {
        self.read(user.cloned(), |tx, user| Box::pin(stored_bytes(tx, user.as_ref())))
    }
}

/// Those on which nothing is open. `CROSS JOIN` keeps SQLite from scanning all threads.
const EXPIRED: &str = "SELECT t.thread_id FROM threads AS t CROSS JOIN thread_work AS w
    WHERE t.tenant = $1 AND t.updated_at < $2 AND w.tenant = $1 AND w.thread_id = t.thread_id
        AND w.active_run IS NULL AND w.queued = 0 AND w.handoff_id IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM approvals AS a WHERE a.tenant = $1 AND a.thread_id = t.thread_id AND a.status = 'pending')
    ORDER BY t.updated_at, t.thread_id
    LIMIT $3";

async fn expired(tx: &Tx<'_>, before: Timestamp, limit: u32) -> Result<Vec<ThreadId>, StoreError> {
    tx.query(EXPIRED, params![before, limit]).await?.iter().map(|row| row.parse(0)).collect()
}

const BYTES: &str =
    "SELECT CAST(coalesce(sum(bytes + file_bytes), 0) AS BIGINT) FROM thread_work WHERE tenant = $1";

const BYTES_OF_USER: &str =
    "SELECT CAST(coalesce(sum(w.bytes + w.file_bytes), 0) AS BIGINT) FROM threads AS t CROSS JOIN thread_work AS w
    WHERE t.tenant = $1 AND t.user_id = $2 AND w.tenant = $1 AND w.thread_id = t.thread_id";

const SET_FILE_BYTES: &str =
    "UPDATE thread_work SET file_bytes = $3 WHERE tenant = $1 AND thread_id = $2 AND file_bytes <> $3";

async fn set_file_bytes(tx: &Tx<'_>, thread: ThreadId, bytes: u64) -> Result<(), StoreError> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
    tx.execute(SET_FILE_BYTES, params![thread, bytes]).await.map(drop)
}

async fn stored_bytes(tx: &Tx<'_>, user: Option<&UserId>) -> Result<u64, StoreError> {
    let row = match user {
        Some(user) => tx.first(BYTES_OF_USER, params![user]).await?,
        None => tx.first(BYTES, &[]).await?,
    };
    // Spooled outputs that are swept are subtracted, never below zero.
    row.map_or(Ok(0), |row| Ok(u64::try_from(row.int(0)?).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn threads_are_found_by_their_use_and_their_user() {
        let expired = plan(EXPIRED);
        assert!(
            expired[0]
                .starts_with("SEARCH t USING COVERING INDEX threads_by_use (tenant=? AND updated_at<?)"),
            "{expired:?}"
        );
        let bytes = plan(BYTES_OF_USER);
        assert!(bytes[0].contains("threads_of_user (tenant=? AND user_id=?)"), "{bytes:?}");
        assert!(!plan(BYTES).iter().any(|line| line.starts_with("SCAN")), "{:?}", plan(BYTES));
    }
}
