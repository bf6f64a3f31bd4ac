//! Files.

use std::sync::Arc;

use baton_core::store::{Append, Artifact, Claim, NewArtifact, RunStatus};
use baton_core::{Store, StoreError, ThreadId};
use uuid::Uuid;

use super::belongings::{artifact, fill};
use super::fixture::{LEASE, TestWorker, a_moment, ended, in_seconds, new_run, now, run_id, tenant, user};

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
    tenant.put_artifact(large.clone(), None, bytes.clone()).await.unwrap();
    let (kept, found) = tenant.artifact(large.artifact_id).await.unwrap();
    assert_eq!(kept, Artifact { size: 100_000, name: "big.bin".to_owned(), ..large.clone() });
    assert!(found == bytes);
    let all = tenant.artifacts(owned.thread).await.unwrap();
    assert_eq!(all.iter().map(|one| one.artifact_id).collect::<Vec<_>>(), [large.artifact_id, owned.id]);
    let again = tenant.put_artifact(large.clone(), None, Vec::new()).await;
    assert_eq!(again, Err(StoreError::Conflict("the artifact")), "a file does not change");
    let new = Artifact { artifact_id: Uuid::new_v4(), ..large };
    let elsewhere = Artifact { thread_id: ThreadId::random(), ..new.clone() };
    assert_eq!(tenant.put_artifact(elsewhere, None, Vec::new()).await, Err(StoreError::ThreadNotFound));
    let no_run = Artifact { run_id: Some(run_id()), ..new };
    assert_eq!(tenant.put_artifact(no_run, None, Vec::new()).await, Err(StoreError::NotFound("run")));
    let unknown = tenant.artifact(Uuid::new_v4()).await.map(|_| ());
    assert_eq!(unknown, Err(StoreError::NotFound("artifact")));
}

/// With a user. Whatever comes next in the thread finds it there.
pub async fn a_thread_may_begin_with_a_file(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = ThreadId::random();
    let new = || Artifact {
        artifact_id: Uuid::new_v4(),
        thread_id: thread,
        run_id: None,
        name: "plan of\nthe house.pdf".to_owned(),
        media_type: "application/pdf".to_owned(),
        size: 3,
        created_at: now(),
    };
    let put = async |artifact, of: Option<&str>| {
        tenant.put_artifact(artifact, of.map(user).as_ref(), b"pdf".to_vec()).await
    };
    assert_eq!(put(new(), None).await, Err(StoreError::ThreadNotFound));
    let no_run = Artifact { run_id: Some(run_id()), ..new() };
    assert_eq!(put(no_run.clone(), Some("ada")).await, Err(StoreError::ThreadNotFound));
    assert_eq!(tenant.thread(thread, None).await, Err(StoreError::ThreadNotFound), "nothing has begun");
    put(new(), Some("ada")).await.unwrap();
    assert!(store.tenants().await.unwrap().contains(tenant.tenant()));
    let begun = tenant.thread(thread, Some(&user("ada"))).await.unwrap();
    assert_eq!((begun.title.as_str(), begun.total_messages, begun.last_seq), ("plan of the house.pdf", 0, 0));
    assert_eq!(put(new(), Some("bob")).await, Err(StoreError::ThreadNotFound));
    assert_eq!(put(no_run.clone(), Some("bob")).await, Err(StoreError::ThreadNotFound));
    assert_eq!(put(no_run, Some("ada")).await, Err(StoreError::NotFound("run")));
    a_moment().await;
    put(Artifact { name: "another.pdf".to_owned(), ..new() }, Some("ada")).await.unwrap();
    put(new(), None).await.unwrap();
    assert_eq!(tenant.artifacts(thread).await.unwrap().len(), 3);
    let used = tenant.thread(thread, None).await.unwrap();
    assert!(used.title == begun.title && used.updated_at > begun.updated_at);
    let run = new_run(thread, "What is this?");
    assert_eq!(tenant.accept(run.clone()).await.unwrap().behind, None);
    assert_eq!(TestWorker::claim(&tenant, thread, LEASE).await.run, run.run_id);
    put(Artifact { run_id: Some(run.run_id), ..new() }, Some("ada")).await.unwrap();
}

/// D8: files are stored with the append that refers to them, once if it is repeated, and never for a lost claim. They count as
/// stored bytes and are deleted with their thread.
pub async fn d8_files_of_a_run_come_with_its_append(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let thread = worker.thread;
    let before = worker.tenant.stored_bytes(None).await.unwrap();
    let bytes: Arc<[u8]> = (0..=255).cycle().take(100_000).collect();
    let new = |name: &str| NewArtifact {
        artifact: Artifact {
            artifact_id: Uuid::now_v7(),
            // The claim decides, not what the artifact says.
            thread_id: ThreadId::random(),
            run_id: None,
            name: name.to_owned(),
            media_type: "image/png".to_owned(),
            size: 0,
            created_at: now(),
        },
        bytes: Arc::clone(&bytes),
    };
    let (chart, other) = (new("chart.png"), new("other.png"));
    let append = Append { artifacts: vec![chart.clone(), other], ..Append::default() };
    worker.append(append.clone()).await;
    let again = Append { number: 1, ..append };
    worker.tenant.append(&worker.claimed.claim, Arc::new(again)).await.unwrap();
    let (kept, found) = worker.tenant.artifact(chart.artifact.artifact_id).await.unwrap();
    let expected =
        Artifact { thread_id: thread, run_id: Some(worker.run), size: 100_000, ..chart.artifact.clone() };
    assert_eq!(kept, expected);
    assert!(*found == *bytes);
    assert_eq!(worker.tenant.artifacts(thread).await.unwrap().len(), 2);
    assert_eq!(worker.tenant.stored_bytes(None).await.unwrap(), before + 200_000);
    let lost = Claim { epoch: worker.claimed.claim.epoch + 1, ..worker.claimed.claim.clone() };
    let append = Append { number: 2, artifacts: vec![new("lost.png")], ..Append::default() };
    assert_eq!(worker.tenant.append(&lost, Arc::new(append)).await.map(drop), Err(StoreError::Fenced));
    assert_eq!(worker.tenant.artifacts(thread).await.unwrap().len(), 2);
    worker.append(Append { end: Some(ended(RunStatus::Completed)), ..Append::default() }).await;
    worker.tenant.delete_thread(thread, None).await.unwrap();
    let gone = worker.tenant.artifact(chart.artifact.artifact_id).await.map(drop);
    assert_eq!(gone, Err(StoreError::NotFound("artifact")));
}
