//! Writes that wait at the same time share a transaction.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use baton_core::store::{MessageQuery, NewRun, StoreLoad};
use baton_core::{Store as _, StoreError, ThreadId};
use baton_store::Database;
use futures_util::future::{join, join_all, join3};
use rusqlite::Connection;
use tokio::task::unconstrained;

use crate::support::{LEASE, acme, connect, count, fresh_postgres, fresh_sqlite, message, owner};

const WRITES: usize = 256;

/// Queues all writes while `release` has not happened, so that nothing depends on who is faster.
///
/// `lanes` transactions may be in progress at once.
async fn write_at_once(store: &Database, lanes: u64, release: impl Future<Output = ()>) {
    let tenant = acme(store);
    let writes =
        (0..WRITES).map(|number| tenant.accept(message(ThreadId::random(), &format!("message {number}"))));
    // Both are polled in turn, and without a pause in between: by the time of the release every write has been handed over.
    let (outcomes, ()) = join(unconstrained(join_all(writes)), async {
        tokio::task::yield_now().await;
        assert_eq!(store.load().waiting, WRITES as u64);
        release.await;
    })
    .await;
    let runs: BTreeSet<_> = outcomes.into_iter().map(|accepted| accepted.unwrap().run_id).collect();
    assert_eq!(runs.len(), WRITES);
    let StoreLoad { batches, writes, waiting, .. } = store.load();
    assert!((1..=2 * lanes).contains(&batches), "{batches} transactions");
    assert_eq!((writes, waiting), (WRITES as u64, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    let (store, folder) = fresh_sqlite().await;
    let file = folder.path().join("baton.db");
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = commits(&file);
    write_at_once(&store, 1, async { other.execute_batch("ROLLBACK").unwrap() }).await;
    let used = commits(&file) - before;
    // One that was under way when the lock was taken, and one with all the others.
    assert!((1..=2).contains(&used), "{used} transactions");
}

/// Every message has two statements of its own, which look for its thread and create it. The rows of all of them share the others.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_transaction_share_statements_on_sqlite() {
    let (store, folder) = fresh_sqlite().await;
    let other = Connection::open(folder.path().join("baton.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = store.load().statements;
    write_at_once(&store, 1, async { other.execute_batch("ROLLBACK").unwrap() }).await;
    let statements = store.load().statements - before;
    assert!(statements <= 3 * WRITES as u64, "{statements} statements for {WRITES} messages");
}

/// Rows that wait to be inserted are there for every job that reads them. A job that missed one would fail, and all of them would
/// then run again in transactions of their own.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_one_transaction_see_each_other_on_sqlite() {
    let (store, folder) = fresh_sqlite().await;
    let tenant = acme(&store);
    store.beat(&owner("one"), LEASE).await.unwrap();
    let other = Connection::open(folder.path().join("baton.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (kept, deleted) = (ThreadId::random(), ThreadId::random());
    let runs = [kept, kept, deleted].map(|thread| message(thread, "hello"));
    let [first, _, third] = runs.clone().map(|run| run.run_id);
    let owner = owner("one");
    let before = store.load().batches;
    let accepts = join_all(runs.into_iter().map(|run| tenant.accept(run)));
    let changes = join(tenant.claim(kept, &owner), tenant.delete_thread(deleted, None));
    let (accepted, (claimed, is_deleted), ()) =
        join3(unconstrained(accepts), unconstrained(changes), async {
            tokio::task::yield_now().await;
            assert_eq!(store.load().waiting, 5);
            other.execute_batch("ROLLBACK").unwrap();
        })
        .await;
    assert_eq!(accepted[1].as_ref().unwrap().behind, Some(first));
    assert_eq!(claimed.unwrap().unwrap().run.run_id, first);
    is_deleted.unwrap();
    assert_eq!(tenant.run(third).await.unwrap_err(), StoreError::NotFound("run"));
    assert_eq!(tenant.messages(kept, MessageQuery::last(10)).await.unwrap().len(), 2);
    let used = store.load().batches - before;
    assert!((1..=2).contains(&used), "{used} transactions");
}

/// The second message has a limit of active runs, which are counted, so the rows of the first are inserted then.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_inserted_refuses_no_other_job_on_sqlite() {
    let (store, folder) = fresh_sqlite().await;
    let tenant = acme(&store);
    let known = message(ThreadId::random(), "hello");
    tenant.accept(known.clone()).await.unwrap();
    let other = Connection::open(folder.path().join("baton.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let twice = NewRun { run_id: known.run_id, ..message(ThreadId::random(), "the same run") };
    let innocent = NewRun { max_active: Some(10), ..message(ThreadId::random(), "another one") };
    let (accepted, ()) =
        join(unconstrained(join_all([twice, innocent].map(|run| tenant.accept(run)))), async {
            tokio::task::yield_now().await;
            assert_eq!(store.load().waiting, 2);
            other.execute_batch("ROLLBACK").unwrap();
        })
        .await;
    assert_eq!(accepted[0], Err(StoreError::Conflict("the run")));
    assert!(accepted[1].as_ref().unwrap().is_new);
}

/// Counted in the log itself: the last page of a transaction says how large the file is after it.
fn commits(file: &Path) -> usize {
    let log = fs::read(file.with_extension("db-wal")).unwrap();
    let (header, frames) = log.split_at(32);
    let page = u32::from_be_bytes(header[8..12].try_into().unwrap()) as usize;
    frames
        .chunks_exact(24 + page)
        .filter(|frame| frame[8..16] == header[16..24] && frame[4..8] != [0; 4])
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres() {
    let (store, url) = fresh_postgres().await;
    let other = connect(&url).await;
    other.batch_execute("BEGIN; LOCK TABLE baton.thread_work IN EXCLUSIVE MODE").await.unwrap();
    write_at_once(&store, 4, async { other.batch_execute("COMMIT").await.unwrap() }).await;
    // A row knows which transaction wrote it.
    let used = count(&other, "SELECT count(DISTINCT xmin::text) FROM baton.messages").await;
    assert!((1..=8).contains(&used), "{used} transactions");
}
