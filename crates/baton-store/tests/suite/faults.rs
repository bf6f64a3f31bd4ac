//! SQLite when something is wrong with its file.

use std::fs;
use std::path::Path;

use baton_core::store::{Artifact, MessageQuery};
use baton_core::{StoreError, TenantStore, ThreadId};
use jiff::Timestamp;
use rusqlite::Connection;
use uuid::Uuid;

use crate::support::{acme, append, claimed, fresh_sqlite, message, open_sqlite};

/// A file of 64 KiB.
async fn put(tenant: &dyn TenantStore, thread: ThreadId) -> Result<Uuid, StoreError> {
    let artifact = Artifact {
        artifact_id: Uuid::new_v4(),
        thread_id: thread,
        run_id: None,
        name: "noise.bin".to_owned(),
        media_type: "application/octet-stream".to_owned(),
        size: 64 * 1024,
        created_at: Timestamp::now(),
    };
    tenant.put_artifact(artifact.clone(), None, vec![7; 64 * 1024]).await.map(|()| artifact.artifact_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_and_passes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_sqlite(folder.path(), "?max_page_count=400").await.unwrap();
    let tenant = acme(&store);
    let thread = claimed(&*tenant, "one").await.thread_id;
    let spare = claimed(&*tenant, "one").await.thread_id;
    put(&*tenant, spare).await.unwrap();

    let mut kept = Vec::new();
    let refused = loop {
        match put(&*tenant, thread).await {
            Ok(artifact) => kept.push(artifact),
            Err(error) => break error,
        }
        assert!(kept.len() < 100, "it never fills");
    };
    assert!(matches!(refused, StoreError::Full(_)), "{refused}");
    assert!(refused.is_transient() && !kept.is_empty());
    let found: Vec<Uuid> =
        tenant.artifacts(thread).await.unwrap().iter().map(|kept| kept.artifact_id).collect();
    assert_eq!(found.len(), kept.len(), "the one that was refused is not there");
    for artifact in &kept {
        assert_eq!(tenant.artifact(*artifact).await.unwrap().1.len(), 64 * 1024);
    }

    tenant.delete_thread(spare, None).await.unwrap();
    kept.push(put(&*tenant, thread).await.expect("there is space again"));
    assert_eq!(tenant.artifacts(thread).await.unwrap().len(), kept.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_can_be_read_and_is_written_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_sqlite(folder.path(), "?busy_timeout=20").await.unwrap();
    let tenant = acme(&store);
    let claim = claimed(&*tenant, "one").await;

    let other = Connection::open(folder.path().join("baton.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let refused = tenant.append(&claim, append(1)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    let seen = tenant.messages(claim.thread_id, MessageQuery::default()).await.unwrap();
    assert_eq!(seen.len(), 1, "reading does not wait for who writes");

    other.execute_batch("ROLLBACK").unwrap();
    tenant.append(&claim, append(1)).await.unwrap();
    assert_eq!(tenant.events(claim.thread_id, 0, 10).await.unwrap().len(), 1, "written once");
}

/// Opens what `make` left in the folder, and returns why it cannot be.
async fn refusal(make: impl FnOnce(&Path)) -> StoreError {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baton.db");
    make(&file);
    let error = open_sqlite(folder.path(), "").await.unwrap_err();
    assert!(error.to_string().contains(&*file.to_string_lossy()), "it names the file: {error}");
    error
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_alone() {
    let text =
        refusal(|file| fs::write(file, "Dear diary, today I was no database at all.".repeat(100)).unwrap())
            .await;
    assert!(matches!(text, StoreError::Corrupt(_)), "{text}");

    let folder = refusal(|file| fs::create_dir(file).unwrap()).await;
    assert!(matches!(folder, StoreError::Failed(_)), "{folder}");

    let foreign = tempfile::tempdir().unwrap();
    let file = foreign.path().join("baton.db");
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    let before = fs::read(&file).unwrap();
    let error = open_sqlite(foreign.path(), "").await.unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), before, "not a byte was changed");
}

#[tokio::test]
async fn a_damaged_store_is_refused() {
    let (store, folder) = fresh_sqlite().await;
    drop(store);
    let file = folder.path().join("baton.db");
    let mut bytes = fs::read(&file).unwrap();
    assert!(bytes.len() > 8192);
    bytes[100..8192].fill(0xA5);
    fs::write(&file, bytes).unwrap();
    let error = open_sqlite(folder.path(), "").await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
    assert!(error.to_string().contains("baton.db"), "{error}");
}

#[tokio::test]
async fn a_path_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for path in ["missing/baton.db", "file/baton.db"] {
        let error = baton_store::open(&format!("sqlite://{path}"), folder.path()).await.unwrap_err();
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_opening_again() {
    let (store, folder) = fresh_sqlite().await;
    let thread = ThreadId::random();
    acme(&store).accept(message(thread, "hello")).await.unwrap();
    // Not closed: as if the process had been killed.
    let again = open_sqlite(folder.path(), "").await.unwrap();
    assert_eq!(acme(&again).messages(thread, MessageQuery::default()).await.unwrap().len(), 1);
}
