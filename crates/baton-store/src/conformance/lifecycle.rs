//! The end of data.

use std::collections::BTreeMap;

use baton_core::store::{
    Append, AuditEntry, AuditScope, AuditVerdict, Owner, Rating, RunStatus, UsageBy, UsageLine, UsageQuery,
};
use baton_core::store::{Feedback, MessageQuery};
use baton_core::{Store, StoreError, ThreadId};
use jiff::Timestamp;
use serde_json::Value;

use super::belongings::fill;
use super::fixture::{
    Home, LEASE, NO_LEASE, TestWorker, a_moment, call, happened, in_seconds, new_run, page, tenant, user,
};

async fn usage(tenant: &Home<'_>) -> Vec<Vec<UsageLine>> {
    let mut all = Vec::new();
    for by in [UsageBy::Agent, UsageBy::User, UsageBy::Model, UsageBy::Day] {
        all.push(tenant.usage(UsageQuery { by, user_id: None, since: None, until: None }).await.unwrap());
    }
    all
}

/// A thread of this user with a run of `calls` calls.
async fn finished_thread(tenant: &Home<'_>, of: &str, calls: usize) -> ThreadId {
    let thread = ThreadId::random();
    let mut run = new_run(thread, "Hello");
    run.user_id = user(of);
    tenant.accept(run).await.unwrap();
    let mut worker = TestWorker::claim(tenant, thread, LEASE).await;
    let rows = (0..calls).map(|_| call(worker.run, "small")).collect();
    worker.append(Append { rows, events: vec![happened("one"), happened("two")], ..Append::default() }).await;
    worker.end(RunStatus::Completed).await;
    thread
}

/// Also those of a thread that is deleted in parts.
pub async fn h9_costs_outlive_their_thread(store: &dyn Store) {
    let tenant = tenant(store);
    let short = finished_thread(&tenant, "ada", 3).await;
    let long = finished_thread(&tenant, "ada", 1500).await;
    finished_thread(&tenant, "bob", 2).await;
    let before = usage(&tenant).await;
    for thread in [short, long] {
        tenant.delete_thread(thread, None).await.unwrap();
        assert_eq!(usage(&tenant).await, before);
        assert_eq!(tenant.thread(thread, None).await, Err(StoreError::ThreadNotFound));
        assert_eq!(tenant.delete_thread(thread, None).await, Err(StoreError::ThreadNotFound));
    }
    let again = finished_thread(&tenant, "ada", 1).await;
    let messages = tenant.messages(again, MessageQuery::default()).await.unwrap();
    assert_eq!(messages.len(), 1, "the number of a deleted thread is used again with nothing left");
}

/// By its last use, and never while something is open.
pub async fn h9_an_expired_thread_is_deleted_unless_something_is_open(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let idle = finished_thread(&tenant, "ada", 1).await;
    let queued = ThreadId::random();
    tenant.accept(new_run(queued, "Hello")).await.unwrap();
    a_moment().await;
    let all = in_seconds(60);
    assert_eq!(tenant.expired_threads(Timestamp::UNIX_EPOCH, 10).await, Ok(Vec::new()));
    assert_eq!(tenant.expired_threads(all, 10).await, Ok(vec![idle]));
    assert_eq!(tenant.delete_expired_thread(idle, Timestamp::UNIX_EPOCH).await, Ok(false), "used since");
    assert_eq!(tenant.delete_expired_thread(idle, all).await, Ok(true));
    assert_eq!(tenant.delete_expired_thread(idle, all).await, Ok(false), "it is gone");
    for open in [owned.thread, queued] {
        assert_eq!(tenant.delete_expired_thread(open, all).await, Ok(false), "something is open");
        assert!(tenant.thread(open, None).await.is_ok());
    }
}

/// Its messages, costs and result stay.
pub async fn h9_events_of_old_runs_are_removed(store: &dyn Store) {
    let tenant = tenant(store);
    let threads = [finished_thread(&tenant, "ada", 2).await, finished_thread(&tenant, "bob", 2).await];
    let open = ThreadId::random();
    tenant.accept(new_run(open, "Hello")).await.unwrap();
    let mut worker = TestWorker::claim(&tenant, open, LEASE).await;
    worker.append(Append { events: vec![happened("one")], ..Append::default() }).await;
    let late = finished_thread(&tenant, "ada", 2).await;
    a_moment().await;
    let before = usage(&tenant).await;
    assert_eq!(tenant.delete_events(Timestamp::UNIX_EPOCH, None, 10).await, Ok(None));
    assert_eq!(tenant.events(threads[0], 0, 10).await.unwrap().len(), 2);
    let mut after = None;
    loop {
        after = tenant.delete_events(in_seconds(60), after, 1).await.unwrap();
        if after.is_none() {
            break;
        }
    }
    for thread in [threads[0], threads[1], late] {
        assert_eq!(tenant.events(thread, 0, 10).await, Ok(Vec::new()));
        assert_eq!(tenant.messages(thread, MessageQuery::default()).await.unwrap().len(), 1);
    }
    assert_eq!(tenant.events(open, 0, 10).await.unwrap().len(), 1, "it has not ended");
    assert_eq!(usage(&tenant).await, before);
    worker.end(RunStatus::Completed).await;
    a_moment().await;
    tenant.delete_events(in_seconds(60), None, 10).await.unwrap();
    assert_eq!(tenant.events(open, 0, 10).await, Ok(Vec::new()), "the next sweep finds it");
    finished_thread(&tenant, "ada", 1).await;
    assert_eq!(tenant.thread(late, None).await.unwrap().last_seq, 2, "numbers go on");
}

fn requested() -> AuditEntry {
    crate::audit::entry("root", "user.erase", "requested")
}

/// What others own stays, and so do all sums.
pub async fn h9_an_erased_user_leaves_only_costs(store: &dyn Store) {
    let tenant = tenant(store);
    let hers = finished_thread(&tenant, "ada", 2).await;
    let his = finished_thread(&tenant, "bob", 2).await;
    let message = tenant.messages(his, MessageQuery::default()).await.unwrap().remove(0).message;
    let (rating, at) = (Rating::Good, super::fixture::now());
    let feedback = Feedback { message_id: message.id, user_id: user("ada"), rating, comment: None, at };
    tenant.put_feedback(feedback).await.unwrap();
    tenant.keep("weather", Value::Null, in_seconds(60)).await.unwrap();
    let before = usage(&tenant).await;

    let erasure = tenant.begin_erasure(&user("ada"), requested()).await.unwrap();
    assert_eq!(tenant.begin_erasure(&user("ada"), requested()).await, Ok(erasure.clone()), "once");
    assert_eq!(tenant.open_erasures().await, Ok(vec![erasure.clone()]));
    let early = tenant.finish_erasure(erasure.erasure_id).await;
    assert_eq!(early, Err(StoreError::Conflict("the erasure")), "there is a thread");
    tenant.delete_thread(hers, None).await.unwrap();
    a_moment().await;
    let new = finished_thread(&tenant, "ada", 0).await;
    tenant.finish_erasure(erasure.erasure_id).await.unwrap();
    tenant.finish_erasure(erasure.erasure_id).await.unwrap();
    assert_eq!(tenant.open_erasures().await, Ok(Vec::new()));

    assert_eq!(tenant.feedback(message.id).await, Ok(Vec::new()));
    assert_eq!(tenant.cached("weather").await, Ok(None));
    let after = usage(&tenant).await;
    let sums = |lines: &[UsageLine]| {
        let line = |line: &UsageLine| (line.key.clone(), (line.runs, line.usage));
        lines.iter().map(line).collect::<BTreeMap<_, _>>()
    };
    for (before, after) in
        before.iter().zip(&after).enumerate().filter(|(at, _)| *at != 1).map(|(_, pair)| pair)
    {
        assert_eq!(sums(before), sums(after));
    }
    let (was, is) = (sums(&before[1]), sums(&after[1]));
    assert_eq!(is["bob"], was["bob"]);
    assert!(!is.contains_key("ada"), "{is:?}");
    let erased = is.iter().find(|(key, _)| key.starts_with("erased-")).expect("a pseudonym");
    assert_eq!(*erased.1, was["ada"]);
    let left = tenant.threads(None, page(10)).await.unwrap().data;
    let mut left: Vec<ThreadId> = left.iter().map(|thread| thread.thread_id).collect();
    left.sort();
    let mut expected = vec![his, new];
    expected.sort();
    assert_eq!(left, expected, "what she sends afterwards is new data");
    assert!(matches!(tenant.verify_audit(AuditScope::Full).await.unwrap(), AuditVerdict::Intact { .. }));
}

/// Files of workspaces count until their thread is deleted.
pub async fn a15_bytes_of_files_are_stored_bytes(store: &dyn Store) {
    let tenant = tenant(store);
    let (hers, his) = (finished_thread(&tenant, "ada", 1).await, finished_thread(&tenant, "bob", 1).await);
    let [ada, bob] = ["ada", "bob"].map(user);
    let before = [tenant.stored_bytes(Some(&ada)).await.unwrap(), tenant.stored_bytes(None).await.unwrap()];
    for bytes in [7_000, 5_000, 5_000] {
        tenant.set_file_bytes(hers, bytes).await.unwrap();
        tenant.set_file_bytes(ThreadId::random(), bytes).await.unwrap();
        assert_eq!(tenant.stored_bytes(Some(&ada)).await, Ok(before[0] + bytes));
        assert_eq!(tenant.stored_bytes(None).await, Ok(before[1] + bytes));
    }
    let others = tenant.stored_bytes(Some(&bob)).await.unwrap();
    tenant.delete_thread(hers, None).await.unwrap();
    assert_eq!(tenant.stored_bytes(Some(&ada)).await, Ok(0));
    assert_eq!(tenant.stored_bytes(None).await, Ok(others));
    assert!(tenant.thread(his, None).await.is_ok());
}

pub async fn one_process_has_a_duty(store: &dyn Store) {
    let [one, other] = ["one", "other"].map(|name| Owner(format!("{name}-{}", ThreadId::random()).into()));
    let name: &'static str = format!("duty-{}", ThreadId::random()).leak();
    assert_eq!(store.take_duty(name, &one, LEASE).await, Ok(true));
    assert_eq!(store.take_duty(name, &other, LEASE).await, Ok(false));
    assert_eq!(store.take_duty(name, &one, NO_LEASE).await, Ok(true), "it renews its lease");
    a_moment().await;
    assert_eq!(store.take_duty(name, &other, LEASE).await, Ok(true), "the lease is over");
    assert_eq!(store.take_duty(name, &one, LEASE).await, Ok(false));
}
