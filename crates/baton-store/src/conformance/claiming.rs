//! Processes take runs, and lose them.

use baton_core::store::{Append, Claimed, RunStatus, StepState};
use baton_core::{Store, StoreError, ThreadId};
use futures_util::future::join_all;
use uuid::Uuid;

use super::fixture::{
    LEASE, NO_LEASE, TestWorker, a_moment, call, happened, new_run, now, owner, step, tenant,
};
use super::runs::is_queued;

pub async fn one_of_many_claimants_wins(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    assert_eq!(tenant.claim(thread, &owner("a")).await, Ok(None), "there is no such thread");
    let run = new_run(thread, "Hello");
    tenant.accept(run.clone()).await.unwrap();
    for round in 1..=3 {
        let owners: Vec<_> = (0..10).map(|_| owner(&format!("process-{}", Uuid::new_v4()))).collect();
        join_all(owners.iter().map(|owner| store.beat(owner, LEASE))).await;
        let claims = join_all(owners.iter().map(|owner| tenant.claim(thread, owner))).await;
        let won: Vec<Claimed> = claims.into_iter().filter_map(|claim| claim.unwrap()).collect();
        assert_eq!(won.len(), 1);
        assert_eq!((won[0].run.run_id, won[0].claim.epoch), (run.run_id, round));
        let again = tenant.claim(thread, &won[0].claim.owner).await;
        assert_eq!(again, Ok(None), "not twice by the same process either");
        store.beat(&won[0].claim.owner, NO_LEASE).await.unwrap();
        a_moment().await;
    }
}

pub async fn runs_are_claimed_in_order_one_at_a_time(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let runs: Vec<_> = ["one", "two"].map(|text| new_run(thread, text)).into();
    for run in &runs {
        tenant.accept(run.clone()).await.unwrap();
        assert!(is_queued(&tenant.run(run.run_id).await.unwrap()));
    }
    for run in &runs {
        let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
        assert_eq!(worker.run, run.run_id);
        let record = &worker.claimed.run;
        assert_eq!((record.status, record.attempts), (RunStatus::Running, 1));
        assert!(record.started_at.is_some_and(|at| at >= record.created_at && at <= now()));
        assert_eq!(&record.request, &run.request);
        assert_eq!((&worker.claimed.steps, &worker.claimed.rows), (&Vec::new(), &Vec::new()));
        assert_eq!(tenant.claim(thread, &owner("other")).await, Ok(None));
        worker.end(RunStatus::Completed).await;
    }
    assert_eq!(tenant.claim(thread, &owner("other")).await, Ok(None), "nothing is left");
}

/// Steps in the order of their beginning, and what it has spent.
pub async fn a_run_is_taken_over_with_all_it_did(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let run = worker.run;
    let paths: Vec<String> = (1..=12).rev().map(|n| format!("assistant/turn:{n}")).collect();
    let at = now();
    let steps = paths.iter().map(|path| {
        let mut step = step(run, path, StepState::Started);
        step.at = at;
        step
    });
    worker.append(Append { steps: steps.collect(), ..Append::default() }).await;
    let finished = step(run, &paths[3], StepState::Finished);
    let rows = vec![call(run, &paths[3])];
    let append = Append { steps: vec![finished.clone()], rows: rows.clone(), ..Append::default() };
    worker.append(append).await;
    worker.die().await;
    let taken = worker.tenant.claim(worker.thread, &owner("other")).await.unwrap().unwrap();
    assert_eq!((taken.claim.epoch, taken.claim.run_id), (2, run));
    assert_eq!((taken.run.attempts, taken.run.status), (2, RunStatus::Running));
    assert_eq!(taken.run.started_at, worker.claimed.run.started_at, "when it was claimed first");
    let kept: Vec<&String> = taken.steps.iter().map(|step| &step.path).collect();
    assert_eq!(kept, paths.iter().collect::<Vec<_>>());
    assert_eq!(taken.steps[3], finished);
    assert_eq!(taken.rows, rows);
    assert_eq!(taken.run.usage, rows[0].usage());
    assert_eq!(worker.tenant.steps(run).await.unwrap(), taken.steps);
}

/// One beat for all claims of a process. A claim without a lease is anybody's.
pub async fn a_beat_extends_the_lease_of_every_claim(store: &dyn Store) {
    let tenant = tenant(store);
    let process = owner(&format!("process-{}", Uuid::new_v4()));
    let threads = [ThreadId::random(), ThreadId::random()];
    for thread in threads {
        tenant.accept(new_run(thread, "Hello")).await.unwrap();
        tenant.claim(thread, &process).await.unwrap().unwrap();
    }
    store.beat(&process, LEASE).await.unwrap();
    for thread in threads {
        assert_eq!(tenant.claim(thread, &owner("other")).await, Ok(None), "it is still there");
    }
    store.beat(&process, NO_LEASE).await.unwrap();
    a_moment().await;
    for thread in threads {
        assert_eq!(tenant.claim(thread, &owner("other")).await.unwrap().unwrap().claim.epoch, 2);
    }
}

/// Every write names its claim, and a claim ends with the next one.
pub async fn whoever_lost_a_thread_cannot_write(store: &dyn Store) {
    let mut slow = TestWorker::start(store).await;
    slow.tell(&["one"]).await;
    slow.die().await;
    let mut next = TestWorker::claim(&slow.tenant, slow.thread, LEASE).await;
    let late = |number| Append { number, events: vec![happened("late")], ..Append::default() }.into();
    for number in [1, 2, 3] {
        let outcome = slow.tenant.append(&slow.claimed.claim, late(number)).await;
        assert_eq!(outcome, Err(StoreError::Fenced), "also what it wrote before is not its own any more");
    }
    assert_eq!(next.tell(&["two"]).await, 2);
    let mut forged = next.claimed.claim.clone();
    forged.owner = owner("other");
    assert_eq!(next.tenant.append(&forged, late(2)).await, Err(StoreError::Fenced));
    next.end(RunStatus::Completed).await;
    assert_eq!(next.tenant.append(&next.claimed.claim, late(3)).await, Err(StoreError::Fenced));
    assert_eq!(next.tenant.events(next.thread, 0, 10).await.unwrap().len(), 2);
}

/// Nobody works on it, and it is in nobody's way.
pub async fn a_waiting_run_is_not_claimed(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    worker.end(RunStatus::Waiting).await;
    let record = worker.tenant.run(worker.run).await.unwrap();
    assert_eq!((record.status, record.finished_at, record.end), (RunStatus::Waiting, None, None));
    assert_eq!(worker.tenant.claim(worker.thread, &owner("other")).await, Ok(None));
    let next = new_run(worker.thread, "next");
    assert_eq!(worker.tenant.accept(next.clone()).await.unwrap().behind, None);
    assert_eq!(TestWorker::claim(&worker.tenant, worker.thread, LEASE).await.run, next.run_id);
}
