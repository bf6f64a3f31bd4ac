//! What runs write.

use std::sync::Arc;

use baton_core::store::{Append, AuditQuery, MessageQuery, RunStatus, StepData, StepState};
use baton_core::{SessionId, Store, StoreError, ThreadId};
use futures_util::future::join_all;

use super::fixture::{
    TestWorker, agent, answered, call, ended, happened, new_run, page, session, step, tenant,
};
use crate::audit::entry;

fn full(worker: &TestWorker, number: u64) -> Arc<Append> {
    let path = format!("assistant/turn:{number}");
    Arc::new(Append {
        number,
        steps: vec![step(worker.run, &path, StepState::Finished)],
        events: vec![happened("one"), happened("two")],
        messages: vec![answered(worker.run, "assistant", "Hi")],
        rows: vec![call(worker.run, &path)],
        audit: vec![entry("assistant", "tool.call", "allowed")],
        ..Append::default()
    })
}

/// Its outcome may be unknown, so it can be repeated: the answer is the same and nothing is there twice.
pub async fn a_repeated_append_is_written_once(store: &dyn Store) {
    let worker = TestWorker::start(store).await;
    let (tenant, claim) = (&worker.tenant, &worker.claimed.claim);
    for (number, seq) in [(1, 1), (2, 3)] {
        for _ in 0..3 {
            assert_eq!(
                tenant.append(claim, full(&worker, number)).await.map(|appended| appended.first_seq),
                Ok(seq)
            );
        }
    }
    let at_once = join_all((0..5).map(|_| tenant.append(claim, full(&worker, 3)))).await;
    assert!(
        at_once.iter().all(|appended| appended.clone().map(|appended| appended.first_seq) == Ok(5)),
        "{at_once:?}"
    );
    assert_eq!(tenant.events(worker.thread, 0, 100).await.unwrap().len(), 6);
    assert_eq!(tenant.messages(worker.thread, MessageQuery::default()).await.unwrap().len(), 4);
    assert_eq!(tenant.ledger(worker.run).await.unwrap().len(), 3);
    let calls = AuditQuery { action: Some("tool.call".to_owned()), ..AuditQuery::default() };
    assert_eq!(tenant.audit(calls, page(10)).await.unwrap().data.len(), 3);
}

/// Although the claim has ended with it.
pub async fn the_last_append_can_be_repeated_too(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    worker.tell(&["one"]).await;
    let events = vec![happened("end")];
    let last = Append { number: 2, events, end: Some(ended(RunStatus::Completed)), ..Append::default() };
    let last = Arc::new(last);
    let (tenant, claim) = (&worker.tenant, &worker.claimed.claim);
    assert_eq!(tenant.append(claim, Arc::clone(&last)).await.map(|appended| appended.first_seq), Ok(2));
    let finished_at = tenant.run(worker.run).await.unwrap().finished_at;
    assert_eq!(tenant.append(claim, Arc::clone(&last)).await.map(|appended| appended.first_seq), Ok(2));
    assert_eq!(tenant.run(worker.run).await.unwrap().finished_at, finished_at);
    assert_eq!(tenant.events(worker.thread, 0, 10).await.unwrap().len(), 2);
    tenant.accept(new_run(worker.thread, "next")).await.unwrap();
    assert_eq!(
        tenant.append(claim, Arc::clone(&last)).await.map(|appended| appended.first_seq),
        Ok(2),
        "as long as the thread is not claimed"
    );
    TestWorker::claim(tenant, worker.thread, super::fixture::LEASE).await;
    assert_eq!(tenant.append(claim, last).await, Err(StoreError::Fenced));
}

/// None is left out, none is written after a later one.
pub async fn appends_come_in_order(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    worker.tell(&["one"]).await;
    worker.tell(&["two"]).await;
    for number in [0, 1, 4] {
        let append = Append { number, events: vec![happened("wrong")], ..Append::default() };
        let outcome = worker.tenant.append(&worker.claimed.claim, Arc::new(append)).await;
        assert_eq!(outcome, Err(StoreError::Fenced), "{number}");
    }
    let wrong_end = Append { number: 3, end: Some(ended(RunStatus::Running)), ..Append::default() };
    assert!(worker.tenant.append(&worker.claimed.claim, Arc::new(wrong_end)).await.is_err());
    assert_eq!(worker.tell(&["three"]).await, 3);
}

pub async fn a_finished_step_is_never_replaced(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let steps = |state, note: &str| {
        let mut first = step(worker.run, "assistant/turn:1", state);
        first.data = StepData::of(note);
        vec![first]
    };
    let (begun, again) = (steps(StepState::Started, "begun"), steps(StepState::Started, "again"));
    let (done, late) = (steps(StepState::Finished, "done"), steps(StepState::Started, "late"));
    for (written, kept) in
        [(&begun, &begun), (&again, &again), (&done, &done), (&late, &done), (&begun, &done)]
    {
        worker.append(Append { steps: written.clone(), ..Append::default() }).await;
        assert_eq!(&worker.tenant.steps(worker.run).await.unwrap(), kept);
    }
    let other = step(worker.run, "assistant/turn:0", StepState::Started);
    worker.append(Append { steps: vec![other.clone(), late[0].clone()], ..Append::default() }).await;
    let kept = worker.tenant.steps(worker.run).await.unwrap();
    assert_eq!(kept, [done[0].clone(), other], "in the order of their beginning, whatever they are called");
}

/// The last state of each counts, however many changes there are.
pub async fn changes_of_one_append_are_made_in_order(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let root = SessionId::root(worker.run);
    let ids: Vec<SessionId> = (0..40).map(|n| root.child(&agent("research"), n)).collect();
    let change = |status| ids.iter().map(move |id| session(id, status));
    let sessions = change(RunStatus::Running).chain(change(RunStatus::Completed)).collect();
    let write = |state| (0..40).map(move |n| step(worker.run, &format!("assistant/turn:{n}"), state));
    let steps = write(StepState::Started).chain(write(StepState::Finished)).collect();
    worker.append(Append { sessions, steps, ..Append::default() }).await;
    let kept = worker.tenant.sessions(Some(worker.thread), page(10)).await.unwrap().data;
    assert_eq!(kept.len(), 40);
    assert!(kept.iter().all(|one| one.status == RunStatus::Completed && one.finished_at.is_some()));
    let kept = worker.tenant.steps(worker.run).await.unwrap();
    assert!(kept.iter().all(|step| step.state == StepState::Finished));
    assert!((0..40).zip(&kept).all(|(n, step)| step.path == format!("assistant/turn:{n}")));
}

pub async fn a_run_ends_with_its_last_append(store: &dyn Store) {
    for status in [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled, RunStatus::Interrupted] {
        let mut worker = TestWorker::start(store).await;
        let end = ended(status);
        let append = Append { end: Some(end.clone()), holder: Some(agent("research")), ..Append::default() };
        worker.append(append).await;
        let record = worker.tenant.run(worker.run).await.unwrap();
        assert_eq!((record.status, record.end.as_ref()), (status, Some(&end.end)));
        assert!(record.finished_at >= record.started_at);
        let thread = worker.tenant.thread(worker.thread, None).await.unwrap();
        assert_eq!((thread.active_run, thread.holder), (None, Some(agent("research"))));
    }
}

/// Whatever shares a transaction with whatever else.
pub async fn many_threads_at_once_keep_their_numbers(store: &dyn Store) {
    let tenant = tenant(store);
    let mut workers = Vec::new();
    for _ in 0..12 {
        workers.push(TestWorker::in_tenant(&tenant).await);
    }
    let writing = workers.into_iter().map(async |mut worker: TestWorker| {
        let mut next = 1;
        for round in 0..15_u64 {
            let texts = vec!["x"; usize::try_from(round % 3).unwrap()];
            assert_eq!(worker.tell(&texts).await, next);
            next += round % 3;
        }
        worker.end(RunStatus::Completed).await;
        worker.thread
    });
    let threads: Vec<ThreadId> = join_all(writing).await;
    for thread in threads {
        let events = tenant.events(thread, 0, 100).await.unwrap();
        let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=15).collect::<Vec<u64>>());
        assert!(events.iter().all(|event| event.thread_id == thread));
    }
}
