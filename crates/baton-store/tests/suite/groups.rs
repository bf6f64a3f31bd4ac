//! Writes that wait at the same time share a transaction.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use baton_core::store::StoreLoad;
use baton_core::{Store as _, ThreadId};
use baton_store::Database;
use futures_util::future::{join, join_all};
use rusqlite::Connection;
use tokio::task::unconstrained;

use crate::support::{acme, connect, count, fresh_postgres, fresh_sqlite, message};

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
