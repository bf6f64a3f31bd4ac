//! Questions that concern all tenants. Others may use the same database, so these look for their own.

use baton_core::store::{NewRun, Owner, StoreLoad};
use baton_core::{Store, StoreError, TenantStore, ThreadId};
use futures_util::future::join_all;
use uuid::Uuid;

use super::fixture::{LEASE, TestWorker, a_moment, in_seconds, new_run, owner, tenant};

const MANY: u32 = 1_000_000;

pub async fn tenants_are_known_once_they_have_written(store: &dyn Store) {
    let (writes, keeps, silent) = (tenant(store), tenant(store), tenant(store));
    writes.accept(new_run(ThreadId::random(), "Hello")).await.unwrap();
    keeps.keep("key", true.into(), in_seconds(60)).await.unwrap();
    assert!(silent.keys().await.unwrap().is_empty());
    let tenants = store.tenants().await.unwrap();
    let count = |tenant: &dyn TenantStore| tenants.iter().filter(|known| *known == tenant.tenant()).count();
    assert_eq!((count(&*writes), count(&*keeps), count(&*silent)), (1, 1, 0));
}

/// Queued, or claimed by someone whose lease is over; not while somebody works or nothing is to be done.
pub async fn threads_without_a_worker_are_due(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let is_due = async || store.due(MANY).await.unwrap().contains(&(tenant.tenant().clone(), thread));
    assert!(!is_due().await);
    tenant.accept(new_run(thread, "Hello")).await.unwrap();
    assert!(is_due().await, "queued");
    let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
    tenant.accept(new_run(thread, "And?")).await.unwrap();
    assert!(!is_due().await, "somebody works on the one before");
    worker.die().await;
    assert!(is_due().await, "nobody does");
    worker.end(baton_core::store::RunStatus::Completed).await;
    assert!(is_due().await, "the next is queued");
    TestWorker::claim(&tenant, thread, LEASE).await.end(baton_core::store::RunStatus::Waiting).await;
    assert!(!is_due().await, "it waits for something else");
    assert!(store.due(1).await.unwrap().len() <= 1);
}

pub async fn the_claims_of_a_process_that_is_gone_can_be_released(store: &dyn Store) {
    let tenant = tenant(store);
    let gone = Owner(format!("process-{}", Uuid::new_v4()).into());
    let threads: Vec<ThreadId> = (0..3).map(|_| ThreadId::random()).collect();
    store.beat(&gone, LEASE).await.unwrap();
    for thread in &threads {
        tenant.accept(new_run(*thread, "Hello")).await.unwrap();
        tenant.claim(*thread, &gone).await.unwrap().unwrap();
    }
    let bystander = TestWorker::in_tenant(&tenant).await;
    assert!(store.owners().await.unwrap().contains(&gone));
    assert_eq!(store.release(&gone).await, Ok(3));
    a_moment().await;
    for thread in threads {
        let claimed = tenant.claim(thread, &owner("next")).await.unwrap().unwrap();
        assert_eq!((claimed.claim.epoch, claimed.run.attempts), (2, 2));
    }
    assert_eq!(tenant.claim(bystander.thread, &owner("next")).await, Ok(None));
    assert!(!store.owners().await.unwrap().contains(&gone));
}

/// Not what it reads, and not what it refuses. Needs a store of its own.
pub async fn a_store_counts_what_it_writes(store: &dyn Store) {
    let tenant = tenant(store);
    let before = store.load();
    let runs: Vec<NewRun> = (0..50).map(|_| new_run(ThreadId::random(), "Hello")).collect();
    join_all(runs.iter().map(|run| tenant.accept(run.clone()))).await;
    let after = store.load();
    assert_eq!((after.writes - before.writes, after.waiting), (50, 0));
    let batches = after.batches - before.batches;
    assert!((1..=50).contains(&batches), "{batches} batches");
    tenant.thread(runs[0].thread_id, None).await.unwrap();
    assert!(tenant.accept(runs[0].clone()).await.is_err(), "there is such a run");
    let elsewhere = tenant.delete_thread(ThreadId::random(), None).await;
    assert_eq!(elsewhere, Err(StoreError::ThreadNotFound));
    let then = store.load();
    assert_eq!((then.batches, then.writes, then.waiting), (after.batches, after.writes, 0));
    assert!(then.statements > after.statements, "what it reads is counted as well");
    tenant.delete_thread(runs[0].thread_id, None).await.unwrap();
    assert_eq!(
        store.load(),
        StoreLoad { batches: after.batches + 1, writes: after.writes + 1, ..store.load() }
    );
}

/// What was written before is kept. Needs a store of its own.
pub async fn a_closed_store_answers_that_it_is_closed(store: &dyn Store) {
    let tenant = tenant(store);
    tenant.accept(new_run(ThreadId::random(), "Hello")).await.unwrap();
    store.close().await.unwrap();
    let refused = tenant.accept(new_run(ThreadId::random(), "Hello")).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(matches!(store.tenants().await, Err(StoreError::Unavailable(_))));
}
