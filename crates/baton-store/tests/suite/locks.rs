//! What protects a SQLite file that is in use from other processes.

use std::os::unix::fs::MetadataExt as _;

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
