//! Files.

use baton_core::store::Artifact;
use baton_core::{Store, StoreError, ThreadId};
use uuid::Uuid;

use super::belongings::{artifact, fill};
use super::fixture::{in_seconds, run_id, tenant};

/// Every byte of them, the newest first.
pub async fn files_come_back_as_they_were(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let large = Artifact {
        artifact_id: Uuid::new_v4(),
        run_id: None,
        name: "b\u{0}ig.bin".to_owned(),
        created_at: in_seconds(1),
        ..artifact(&owned)
    };
    tenant.put_artifact(large.clone(), bytes.clone()).await.unwrap();
    let (kept, found) = tenant.artifact(large.artifact_id).await.unwrap();
    assert_eq!(kept, Artifact { size: 100_000, name: "big.bin".to_owned(), ..large.clone() });
    assert!(found == bytes);
    let all = tenant.artifacts(owned.thread).await.unwrap();
    assert_eq!(all.iter().map(|one| one.artifact_id).collect::<Vec<_>>(), [large.artifact_id, owned.id]);
    let again = tenant.put_artifact(large.clone(), Vec::new()).await;
    assert_eq!(again, Err(StoreError::Conflict("the artifact")), "a file does not change");
    let new = Artifact { artifact_id: Uuid::new_v4(), ..large };
    let elsewhere = Artifact { thread_id: ThreadId::random(), ..new.clone() };
    assert_eq!(tenant.put_artifact(elsewhere, Vec::new()).await, Err(StoreError::ThreadNotFound));
    let no_run = Artifact { run_id: Some(run_id()), ..new };
    assert_eq!(tenant.put_artifact(no_run, Vec::new()).await, Err(StoreError::NotFound("run")));
    let unknown = tenant.artifact(Uuid::new_v4()).await.map(|_| ());
    assert_eq!(unknown, Err(StoreError::NotFound("artifact")));
}
