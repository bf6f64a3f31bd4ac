//! How many runs of a tenant may be open at once.

use baton_core::store::{AcceptedRun, AuditQuery, Cancel, NewRun, OnBusy, RunQuery, RunStatus};
use baton_core::{Store, StoreError, TenantStore, ThreadId, UserId};
use futures_util::future::join_all;

use super::fixture::{LEASE, TestWorker, new_run, once, page, tenant, user};

fn limited(thread: ThreadId, most: u32) -> NewRun {
    NewRun { max_active: Some(most), ..new_run(thread, "Hello") }
}

async fn is_full(tenant: &dyn TenantStore, most: u32) -> bool {
    match tenant.accept(limited(ThreadId::random(), most)).await {
        Ok(accepted) => {
            tenant.cancel_run(accepted.run_id, Cancel::Abort).await.unwrap();
            false
        }
        Err(error) => {
            assert_eq!(error, StoreError::TooManyRuns(most));
            true
        }
    }
}

/// However many come at once; of another tenant none counts.
pub async fn as_many_runs_are_open_as_may_be(store: &dyn Store) {
    let (tenant, other) = (tenant(store), tenant(store));
    join_all((0..9).map(|_| other.accept(new_run(ThreadId::random(), "Hello")))).await;
    for round in 1..=3 {
        let most = round * 10;
        let accepted = join_all((0..40).map(|n| {
            let mut run = limited(ThreadId::random(), most);
            run.idempotency = (n % 2 == 0).then(|| once(&format!("key {round} {n}"), "print"));
            tenant.accept(run)
        }));
        let (open, refused): (Vec<_>, Vec<_>) = accepted.await.into_iter().partition(Result::is_ok);
        assert_eq!(open.len(), 10, "so many more");
        assert!(refused.into_iter().all(|refused| refused == Err(StoreError::TooManyRuns(most))));
    }
    let unlimited = tenant.accept(new_run(ThreadId::random(), "Hello")).await;
    assert!(unlimited.is_ok(), "whoever sets no limit is not refused");
    assert!(is_full(&*tenant, 31).await, "but counts");
    assert!(!is_full(&*tenant, 32).await);
    assert!(is_full(&*tenant, 0).await);
}

/// A user's limit counts only their own runs, and those that have ended do not count.
pub async fn runs_of_one_user_are_limited(store: &dyn Store) {
    let tenant = tenant(store);
    let of = |name: &str, all: Option<u32>| {
        let user_id = UserId::parse(name).unwrap();
        NewRun {
            user_id,
            max_active: all,
            max_active_of_user: Some(3),
            ..new_run(ThreadId::random(), "Hello")
        }
    };
    // Also when the tenant's own limit makes counting unnecessary most of the time.
    for all in [None, Some(1000), Some(8)] {
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(tenant.accept(of("ann", all)).await.unwrap().run_id);
        }
        let refused = tenant.accept(of("ann", all)).await;
        assert_eq!(refused, Err(StoreError::TooManyRunsOfUser(3)), "{all:?}");
        open.push(tenant.accept(of("bob", all)).await.unwrap().run_id);
        tenant.cancel_run(open[0], Cancel::Abort).await.unwrap();
        open.push(tenant.accept(of("ann", all)).await.unwrap().run_id);
        for run in open {
            tenant.cancel_run(run, Cancel::Abort).await.unwrap();
        }
    }
}

/// Whether it was done, cancelled or deleted, and only once.
pub async fn a_run_that_has_ended_makes_room(store: &dyn Store) {
    let tenant = tenant(store);
    let mut worker = TestWorker::in_tenant(&tenant).await;
    TestWorker::in_tenant(&tenant).await.end(RunStatus::Waiting).await;
    let queued = new_run(ThreadId::random(), "Hello");
    tenant.accept(queued.clone()).await.unwrap();
    let dead = TestWorker::in_tenant(&tenant).await;
    assert!(
        is_full(&*tenant, 3).await,
        "running, queued, and one whose process is gone, but not the waiting one"
    );
    worker.end(RunStatus::Completed).await;
    assert!(!is_full(&*tenant, 3).await && is_full(&*tenant, 2).await);
    for _ in 0..2 {
        tenant.cancel_run(queued.run_id, Cancel::Abort).await.unwrap();
        assert!(!is_full(&*tenant, 2).await && is_full(&*tenant, 1).await, "it ends once");
    }
    tenant.cancel_run(dead.run, Cancel::Stop).await.unwrap();
    assert!(is_full(&*tenant, 1).await, "it is asked to end, and has not");
    dead.die().await;
    tenant.cancel_run(dead.run, Cancel::Stop).await.unwrap();
    assert!(!is_full(&*tenant, 1).await);
    let waiting = RunQuery { status: Some(RunStatus::Waiting), ..RunQuery::default() };
    let waiting = tenant.runs(waiting, page(1)).await.unwrap().data.remove(0);
    join_all((0..3).map(|_| tenant.accept(new_run(waiting.thread_id, "And?")))).await;
    assert!(is_full(&*tenant, 3).await);
    tenant.delete_thread(waiting.thread_id, None).await.unwrap();
    assert!(!is_full(&*tenant, 1).await, "all four are gone");
}

pub async fn a_repeated_request_needs_no_room(store: &dyn Store) {
    let tenant = tenant(store);
    let first = NewRun { idempotency: Some(once("key", "print")), ..limited(ThreadId::random(), 1) };
    let again = || NewRun { run_id: new_run(first.thread_id, "").run_id, ..first.clone() };
    let runs: Vec<NewRun> = (0..20)
        .map(|n| NewRun {
            // Also where the same request names another thread each time, and so waits for no other.
            thread_id: if n % 2 == 0 { first.thread_id } else { ThreadId::random() },
            on_busy: if n % 3 == 0 { OnBusy::Reject } else { OnBusy::Enqueue },
            ..again()
        })
        .collect();
    let accepted = join_all(runs.iter().map(|run| tenant.accept(run.clone()))).await;
    let accepted: Vec<AcceptedRun> = accepted.into_iter().map(Result::unwrap).collect();
    assert_eq!(accepted.iter().filter(|accepted| accepted.is_new).count(), 1);
    let known = AcceptedRun { is_new: false, behind: None, ..accepted[0] };
    assert!(accepted.iter().all(|one| one.run_id == known.run_id));
    assert!(is_full(&*tenant, 1).await);
    assert_eq!(tenant.accept(again()).await, Ok(known));
    let other = NewRun { idempotency: Some(once("other", "print")), ..limited(ThreadId::random(), 1) };
    assert_eq!(tenant.accept(other.clone()).await, Err(StoreError::TooManyRuns(1)));
    tenant.cancel_run(known.run_id, Cancel::Abort).await.unwrap();
    assert!(tenant.accept(other).await.unwrap().is_new, "what was refused did not use up its key");
}

pub async fn what_is_refused_leaves_no_trace(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = ThreadId::random();
    tenant.accept(limited(thread, 1)).await.unwrap();
    assert_eq!(tenant.accept(limited(thread, 1)).await, Err(StoreError::TooManyRuns(1)));
    let refused = limited(ThreadId::random(), 1);
    assert_eq!(tenant.accept(refused.clone()).await, Err(StoreError::TooManyRuns(1)));
    assert_eq!(tenant.thread(refused.thread_id, None).await, Err(StoreError::ThreadNotFound));
    assert_eq!(tenant.thread(thread, None).await.unwrap().total_messages, 1);
    assert_eq!(tenant.audit(AuditQuery::default(), page(10)).await.unwrap().data.len(), 1);
    let of_bob = NewRun { user_id: user("bob"), ..limited(thread, 9) };
    assert_eq!(tenant.accept(of_bob).await, Err(StoreError::ThreadNotFound));
    let busy = NewRun { on_busy: OnBusy::Reject, ..limited(thread, 9) };
    assert!(matches!(tenant.accept(busy).await, Err(StoreError::ThreadBusy(_))));
    assert!(!is_full(&*tenant, 2).await, "only the first is open");
    TestWorker::claim(&tenant, thread, LEASE).await.end(RunStatus::Failed).await;
    assert!(!is_full(&*tenant, 1).await);
}
