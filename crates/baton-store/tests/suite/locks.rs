//! What protects a SQLite file that is in use from other processes.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use baton_core::{Store as _, ThreadId};

use crate::support::{acme, message, open_sqlite};

/// Every connection holds a shared lock on the file while it is open. Without one, the last connection of another process that closes the
/// file takes the write-ahead log for unused and removes it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_open_store_keeps_its_lock_on_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = baton_store::open("sqlite:baton.db", dir.path()).await.unwrap();
    let inode = std::fs::metadata(dir.path().join("baton.db")).unwrap().ino();
    let owner = std::process::id().to_string();
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let is_ours = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&owner.as_str()) && words.iter().any(|word| word.ends_with(&format!(":{inode}")))
    };
    assert!(locks.lines().any(|line| is_ours(&line)), "no lock on inode {inode}:\n{locks}");
    drop(store);
}

/// It uses the connection that writes, so all writes would wait with it.
#[tokio::test(flavor = "multi_thread")]
async fn emptying_the_log_does_not_wait_for_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_sqlite(dir.path(), "?busy_timeout=60000").await.unwrap();
    let reader = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let threads: i64 = reader.query_row("SELECT count(*) FROM threads", [], |row| row.get(0)).unwrap();
    assert_eq!(threads, 0);
    acme(&store).accept(message(ThreadId::random(), "Hello")).await.unwrap();
    let started = Instant::now();
    assert!(store.purge_files().await.is_err(), "a reader uses the log");
    assert!(started.elapsed() < Duration::from_secs(30));
    reader.execute_batch("COMMIT").unwrap();
    store.purge_files().await.unwrap();
    let log = std::fs::metadata(dir.path().join("baton.db-wal")).unwrap();
    assert_eq!(log.len(), 0);
}
