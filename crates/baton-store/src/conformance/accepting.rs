//! Messages come in.

use baton_core::store::{AcceptedRun, Cancel, MessageQuery, NewRun, OnBusy, RunStatus};
use baton_core::{Store, StoreError, ThreadId};
use futures_util::future::join_all;

use super::fixture::{LEASE, TestWorker, a_moment, in_seconds, new_run, now, once, tenant, user};

fn new(run: &NewRun, behind: Option<&NewRun>) -> AcceptedRun {
    let behind = behind.map(|run| run.run_id);
    AcceptedRun { run_id: run.run_id, message_id: run.message.id, is_new: true, behind, after: 0 }
}

pub async fn runs_of_a_thread_wait_for_each_other(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let [first, second, third] = ["one", "two", "three"].map(|text| new_run(thread, text));
    assert_eq!(tenant.accept(first.clone()).await, Ok(new(&first, None)));
    assert_eq!(tenant.accept(second.clone()).await, Ok(new(&second, Some(&first))));
    let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
    assert_eq!(tenant.accept(third.clone()).await, Ok(new(&third, Some(&second))));
    worker.end(RunStatus::Completed).await;
    let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
    worker.end(RunStatus::Completed).await;
    let fourth = new_run(thread, "four");
    assert_eq!(tenant.accept(fourth.clone()).await, Ok(new(&fourth, Some(&third))));
    TestWorker::claim(&tenant, thread, LEASE).await.end(RunStatus::Failed).await;
    TestWorker::claim(&tenant, thread, LEASE).await;
    let fifth = new_run(thread, "five");
    assert_eq!(tenant.accept(fifth.clone()).await, Ok(new(&fifth, Some(&fourth))), "the one at work");
    assert_eq!(tenant.run(third.run_id).await.unwrap().message_number, 3);
}

pub async fn a_busy_thread_refuses_when_asked_to(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let reject = |text: &str| NewRun { on_busy: OnBusy::Reject, ..new_run(thread, text) };
    let first = reject("one");
    assert_eq!(tenant.accept(first.clone()).await, Ok(new(&first, None)), "it is idle");
    let busy = Err(StoreError::ThreadBusy(first.run_id));
    assert_eq!(tenant.accept(reject("two")).await, busy, "while it is queued");
    let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
    assert_eq!(tenant.accept(reject("three")).await, busy, "while it is worked on");
    let with_key = NewRun { idempotency: Some(once("key", "print")), ..reject("four") };
    assert_eq!(tenant.accept(with_key.clone()).await, busy);
    worker.end(RunStatus::Completed).await;
    let with_key = AcceptedRun { behind: None, ..new(&with_key, None) }
        == tenant.accept(with_key.clone()).await.unwrap();
    assert!(with_key, "what was refused did not use up its key");
    assert_eq!(tenant.thread(thread, None).await.unwrap().total_messages, 2, "refused messages are not kept");
}

pub async fn an_interrupting_message_cancels_the_run_at_work(store: &dyn Store) {
    let worker = TestWorker::start(store).await;
    let (tenant, thread) = (&worker.tenant, worker.thread);
    assert_eq!(worker.beat(LEASE).await, None);
    let next = NewRun { on_busy: OnBusy::Interrupt, ..new_run(thread, "Stop, rather this") };
    assert_eq!(tenant.accept(next.clone()).await.unwrap().behind, Some(worker.run));
    assert_eq!(worker.beat(LEASE).await, Some(Cancel::Abort));
    assert_eq!(tenant.run(worker.run).await.unwrap().status, RunStatus::Running);
    worker.die().await;
    let again = TestWorker::claim(tenant, thread, LEASE).await;
    assert_eq!(
        (again.run, again.claimed.run.cancel),
        (worker.run, Some(Cancel::Abort)),
        "also after a crash"
    );
}

/// For the same user within its time; with another request it is a mistake.
pub async fn the_same_request_is_done_once(store: &dyn Store) {
    let tenant = tenant(store);
    let first = NewRun { idempotency: Some(once("key", "print")), ..new_run(ThreadId::random(), "Hello") };
    tenant.accept(first.clone()).await.unwrap();
    let again = NewRun { idempotency: Some(once("key", "print")), ..new_run(first.thread_id, "Hello") };
    let repeated = AcceptedRun { is_new: false, ..new(&first, None) };
    assert_eq!(tenant.accept(again).await, Ok(repeated));
    let elsewhere = NewRun { idempotency: Some(once("key", "other")), ..new_run(ThreadId::random(), "Bye") };
    assert_eq!(tenant.accept(elsewhere.clone()).await, Err(StoreError::IdempotencyConflict));
    assert_eq!(tenant.thread(elsewhere.thread_id, None).await, Err(StoreError::ThreadNotFound));
    let of_bob = NewRun { user_id: user("bob"), ..elsewhere };
    assert!(tenant.accept(of_bob).await.unwrap().is_new, "Bob's keys are his own");
    assert_eq!(tenant.thread(first.thread_id, None).await.unwrap().total_messages, 1);
}

pub async fn the_same_request_at_the_same_time_is_done_once(store: &dyn Store) {
    let tenant = tenant(store);
    let runs: Vec<NewRun> = (0..20)
        .map(|_| NewRun { idempotency: Some(once("key", "print")), ..new_run(ThreadId::random(), "Hello") })
        .collect();
    let accepted = join_all(runs.iter().map(|run| tenant.accept(run.clone()))).await;
    let accepted: Vec<AcceptedRun> = accepted.into_iter().map(Result::unwrap).collect();
    assert_eq!(accepted.iter().filter(|accepted| accepted.is_new).count(), 1);
    assert!(accepted.iter().all(|one| one.run_id == accepted[0].run_id));
    let threads = tenant.threads(None, super::fixture::page(50)).await.unwrap();
    assert_eq!(threads.data.len(), 1);
}

pub async fn an_idempotency_key_is_free_again_when_its_time_is_over(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let with = |fingerprint: &str, expires_at| {
        let mut idempotency = once("key", fingerprint);
        idempotency.expires_at = expires_at;
        NewRun { idempotency: Some(idempotency), ..new_run(thread, fingerprint) }
    };
    tenant.accept(with("first", now())).await.unwrap();
    a_moment().await;
    let second = with("second", in_seconds(60));
    assert!(tenant.accept(second.clone()).await.unwrap().is_new);
    assert_eq!(tenant.accept(with("second", now())).await.unwrap().run_id, second.run_id);
    assert_eq!(tenant.accept(with("first", now())).await, Err(StoreError::IdempotencyConflict));
}

/// In one order, each behind another one.
pub async fn fifty_messages_at_once_are_all_kept(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let runs: Vec<NewRun> = (0..50).map(|n| new_run(thread, &format!("{n}"))).collect();
    let accepted = join_all(runs.iter().map(|run| tenant.accept(run.clone()))).await;
    let mut behind: Vec<_> = accepted.into_iter().filter_map(|accepted| accepted.unwrap().behind).collect();
    behind.sort();
    behind.dedup();
    assert_eq!(behind.len(), 49, "no two are behind the same one");
    let query = MessageQuery { limit: 100, ..MessageQuery::default() };
    let messages = tenant.messages(thread, query).await.unwrap();
    let numbers: Vec<u64> = messages.iter().map(|message| message.number).collect();
    assert_eq!(numbers, (1..=50).collect::<Vec<u64>>());
    for message in messages {
        let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
        assert_eq!(worker.run, message.message.run_id, "runs begin in the order of their messages");
        worker.end(RunStatus::Completed).await;
    }
}

/// Writes share transactions; their failures do not.
pub async fn a_job_that_fails_after_writing_takes_no_other_with_it(store: &dyn Store) {
    let tenant = tenant(store);
    let first = new_run(ThreadId::random(), "first");
    tenant.accept(first.clone()).await.unwrap();
    let writes = (0..60).map(|n| {
        let mut run = new_run(ThreadId::random(), &format!("{n}"));
        if n % 20 == 7 {
            // There is such a run already.
            run.run_id = first.run_id;
        }
        let tenant = tenant.clone();
        async move { (n, run.thread_id, tenant.accept(run).await) }
    });
    for (n, thread, accepted) in join_all(writes).await {
        let found = tenant.thread(thread, None).await;
        if n % 20 == 7 {
            assert_eq!(accepted, Err(StoreError::Conflict("the run")));
            assert_eq!(found, Err(StoreError::ThreadNotFound), "nothing of it was kept");
        } else {
            assert!(accepted.unwrap().is_new);
            assert_eq!(found.unwrap().title, n.to_string());
        }
    }
}
