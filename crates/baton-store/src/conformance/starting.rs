//! Runs that begin in the write that accepts them, and runs that are claimed by the end of the one before.

use std::sync::Arc;

use baton_core::store::{
    AcceptedRun, Activation, Append, Appended, HandoffNotes, MessageQuery, NewHandoff, NewRun, Owner,
    RunStart, RunStatus, StartedRun, StepState,
};
use baton_core::{HandoffId, Role, RunId, SessionId, Store, StoreError, ThreadId, Visibility};
use serde_json::Value;
use uuid::Uuid;

use super::fixture::{
    Home, LEASE, TestWorker, agent, answered, call, ended, happened, new_run, owner, session, step, tenant,
    user,
};

async fn process(store: &dyn Store) -> Owner {
    let owner = owner(&format!("process-{}", Uuid::new_v4()));
    store.beat(&owner, LEASE).await.unwrap();
    owner
}

/// As an engine begins a run.
fn first(run: RunId) -> Arc<Append> {
    Arc::new(Append {
        number: 1,
        steps: vec![step(run, "assistant", StepState::Started)],
        events: vec![happened("begun"), happened("still")],
        sessions: vec![session(&SessionId::root(run), RunStatus::Running)],
        rows: vec![call(run, "assistant")],
        agent: Some(agent("research")),
        ..Append::default()
    })
}

async fn start(tenant: &Home<'_>, owner: &Owner, run: &NewRun) -> (AcceptedRun, Option<StartedRun>) {
    let start = RunStart { owner: owner.clone(), append: first(run.run_id) };
    tenant.start(run.clone(), start).await.unwrap()
}

/// What is returned is what is stored, so nothing has to be read.
pub async fn a_run_begins_in_the_write_that_accepts_it(store: &dyn Store) {
    let (tenant, owner, run) = (tenant(store), process(store).await, new_run(ThreadId::random(), "Hello"));
    let (accepted, started) = start(&tenant, &owner, &run).await;
    assert_eq!((accepted.run_id, accepted.is_new, accepted.behind), (run.run_id, true, None));
    let StartedRun { claimed, recent, appended } = started.unwrap();
    assert_eq!((claimed.claim.epoch, &claimed.claim.owner, claimed.claim.run_id), (1, &owner, run.run_id));
    assert_eq!((&claimed.steps, &claimed.rows, &claimed.handoff), (&Vec::new(), &Vec::new(), &None));
    assert_eq!(appended, Some(Appended { first_seq: 1, queued: 0, next: None }));
    let stored = tenant.run(run.run_id).await.unwrap();
    assert_eq!((stored.status, stored.attempts, &stored.agent), (RunStatus::Running, 1, &agent("research")));
    assert_eq!(stored.usage, call(run.run_id, "").usage());
    assert_eq!(claimed.run, baton_core::store::RunRecord { usage: claimed.run.usage, ..stored });
    assert_eq!(recent, tenant.messages(run.thread_id, MessageQuery::last(10)).await.unwrap());
    let thread = tenant.thread(run.thread_id, None).await.unwrap();
    assert_eq!((thread.active_run, thread.queued, thread.last_seq), (Some(run.run_id), 0, 2));
    assert_eq!(tenant.run_events(run.run_id, 0, 10).await.unwrap().len(), 2);
    assert_eq!(tenant.steps(run.run_id).await.unwrap().len(), 1);
    assert_eq!(tenant.run_sessions(run.run_id).await.unwrap().len(), 1);
    let next = Append { number: 2, events: vec![happened("on")], ..Append::default() };
    assert_eq!(tenant.append(&claimed.claim, next.into()).await.unwrap().first_seq, 3);
    assert_eq!(tenant.claim(run.thread_id, &super::fixture::owner("other")).await, Ok(None));
}

pub async fn a_start_in_a_busy_thread_only_queues(store: &dyn Store) {
    let (tenant, owner, thread) = (tenant(store), process(store).await, ThreadId::random());
    let [first, second, third] = ["one", "two", "three"].map(|text| new_run(thread, text));
    let (_, started) = start(&tenant, &owner, &first).await;
    let (accepted, queued) = start(&tenant, &owner, &second).await;
    assert_eq!((accepted.behind, queued), (Some(first.run_id), None));
    let (accepted, queued) = start(&tenant, &owner, &third).await;
    assert_eq!((accepted.behind, queued), (Some(second.run_id), None));
    let found = tenant.run(second.run_id).await.unwrap();
    assert_eq!(
        (found.status, found.agent.as_str(), found.started_at),
        (RunStatus::Queued, "assistant", None)
    );
    let end = Append { number: 2, end: Some(ended(RunStatus::Completed)), ..Append::default() };
    tenant.append(&started.unwrap().claimed.claim, end.into()).await.unwrap();
    let fourth = new_run(thread, "four");
    let (accepted, queued) = start(&tenant, &owner, &fourth).await;
    assert_eq!((accepted.behind, queued), (Some(third.run_id), None), "those before it come first");
}

/// Who answers depends on the handoff then.
pub async fn a_start_after_a_handoff_writes_no_append(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, thread) = (worker.tenant.clone(), worker.thread);
    worker.end(RunStatus::Completed).await;
    let new = NewHandoff {
        handoff_id: HandoffId::from_uuid(Uuid::new_v4()),
        thread_id: thread,
        user_id: user("ada"),
        source_agent_id: agent("assistant"),
        target_agent_id: agent("skill-creator"),
        context_summary: String::new(),
        handoff_reason: String::new(),
        metadata: Value::Null,
        notes: HandoffNotes::default(),
        max_open: None,
        activation: Some(Activation { workflow: None, expires_at: None }),
    };
    let handoff = tenant.open_handoff(new).await.unwrap();
    let run = new_run(thread, "And?");
    let started = start(&tenant, &process(store).await, &run).await.1.unwrap();
    assert_eq!((started.appended, started.claimed.handoff), (None, Some(handoff)));
    assert_eq!(tenant.run_events(run.run_id, 0, 10).await.unwrap(), []);
    assert_eq!(started.claimed.run, tenant.run(run.run_id).await.unwrap());
    assert_eq!(tenant.append(&started.claimed.claim, first(run.run_id)).await.unwrap().first_seq, 1);
}

pub async fn a_start_knows_what_was_said_before(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, thread, before) = (worker.tenant.clone(), worker.thread, worker.run);
    let said = |n: u32| {
        let mut message = answered(before, "assistant", &format!("{n}"));
        if n.is_multiple_of(3) {
            message.visibility = Visibility::Internal;
        }
        message
    };
    worker.append(Append { messages: (0..200).map(said).collect(), ..Append::default() }).await;
    worker.end(RunStatus::Completed).await;
    let run = new_run(thread, "And?");
    let started = start(&tenant, &process(store).await, &run).await.1.unwrap();
    assert_eq!(started.recent.len(), StartedRun::RECENT as usize);
    assert_eq!(
        started.recent,
        tenant.messages(thread, MessageQuery::last(StartedRun::RECENT)).await.unwrap()
    );
    let end = Append { number: 2, end: Some(ended(RunStatus::Completed)), ..Append::default() };
    tenant.append(&started.claimed.claim, end.into()).await.unwrap();
    let mut unsaid = new_run(thread, "not said");
    (unsaid.message.role, unsaid.message.visibility) = (Role::System, Visibility::Internal);
    let started = start(&tenant, &process(store).await, &unsaid).await.1.unwrap();
    assert_eq!(
        started.recent,
        tenant.messages(thread, MessageQuery::last(StartedRun::RECENT)).await.unwrap()
    );
    assert_eq!(started.recent.last().unwrap().message.id, run.message.id);
}

/// Its outcome may be unknown.
pub async fn a_repeated_start_begins_one_run(store: &dyn Store) {
    let (tenant, owner, run) = (tenant(store), process(store).await, new_run(ThreadId::random(), "Hello"));
    let (accepted, once) = start(&tenant, &owner, &run).await;
    let (again, twice) = start(&tenant, &owner, &run).await;
    assert_eq!(accepted, again);
    let (once, twice) = (once.unwrap(), twice.unwrap());
    assert_eq!((&once.claimed.claim, &once.recent), (&twice.claimed.claim, &twice.recent));
    assert_eq!(
        once.appended.map(|appended| appended.first_seq),
        twice.appended.map(|appended| appended.first_seq)
    );
    assert_eq!(tenant.thread(run.thread_id, None).await.unwrap().total_messages, 1);
    assert_eq!(start(&tenant, &process(store).await, &run).await.1, None, "another process did not begin it");
    let next = Append { number: 2, ..Append::default() };
    tenant.append(&once.claimed.claim, next.into()).await.unwrap();
    assert_eq!(start(&tenant, &owner, &run).await.1, None, "it is worked on");
    let queued = new_run(run.thread_id, "And?");
    for _ in 0..2 {
        let (accepted, started) = start(&tenant, &owner, &queued).await;
        assert_eq!((accepted.run_id, started), (queued.run_id, None));
    }
    assert_eq!(tenant.thread(run.thread_id, None).await.unwrap().queued, 1);
}

pub async fn the_end_of_a_run_claims_the_next(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, thread, owner) = (worker.tenant.clone(), worker.thread, worker.claimed.claim.owner.clone());
    worker.tell(&["working"]).await;
    let [second, third] = ["two", "three"].map(|text| new_run(thread, text));
    tenant.accept(second.clone()).await.unwrap();
    tenant.accept(third.clone()).await.unwrap();
    let end = |number| {
        let events = vec![happened("end")];
        let end = Some(ended(RunStatus::Completed));
        Arc::new(Append { number, events, end, claim_next: true, ..Append::default() })
    };
    let appended = tenant.append(&worker.claimed.claim, end(2)).await.unwrap();
    let next = appended.next.clone().unwrap();
    assert_eq!((appended.first_seq, appended.queued, next.run.run_id), (2, 1, second.run_id));
    assert_eq!((next.claim.epoch, &next.claim.owner, next.run.status), (2, &owner, RunStatus::Running));
    assert_eq!(
        *next,
        baton_core::store::Claimed { run: tenant.run(second.run_id).await.unwrap(), ..(*next).clone() }
    );
    let again = tenant.append(&worker.claimed.claim, end(2)).await.unwrap();
    assert_eq!(again, appended, "its outcome may be unknown");
    assert_eq!(tenant.thread(thread, None).await.unwrap().active_run, Some(second.run_id));
    let appended = tenant.append(&next.claim, end(1)).await.unwrap();
    assert_eq!(tenant.append(&worker.claimed.claim, end(2)).await, Err(StoreError::Fenced), "it goes on");
    let last = appended.next.unwrap();
    assert_eq!((appended.first_seq, last.run.run_id), (3, third.run_id));
    let appended = tenant.append(&last.claim, end(1)).await.unwrap();
    assert_eq!((appended.first_seq, appended.queued, &appended.next), (4, 0, &None), "none is left");
    assert_eq!(tenant.append(&last.claim, end(1)).await.unwrap(), appended);
    let found = tenant.thread(thread, None).await.unwrap();
    assert_eq!((found.active_run, found.queued, found.last_seq), (None, 0, 4));
    let seqs = |events: Vec<baton_core::Event>| events.iter().map(|event| event.seq).collect::<Vec<_>>();
    assert_eq!(seqs(tenant.run_events(second.run_id, 0, 10).await.unwrap()), [3]);
}

/// It is not worked on here any more, and its process lives on.
pub async fn an_abandoned_run_is_taken_over(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    worker.tell(&["working"]).await;
    let tenant = worker.tenant.clone();
    tenant.abandon(&worker.claimed.claim).await.unwrap();
    let late = Append { number: 2, ..Append::default() };
    assert_eq!(tenant.append(&worker.claimed.claim, late.into()).await, Err(StoreError::Fenced));
    let due = store.due(1_000_000).await.unwrap();
    assert!(due.contains(&(tenant.tenant().clone(), worker.thread)));
    let next = TestWorker::claim(&tenant, worker.thread, LEASE).await;
    assert_eq!((next.run, next.claimed.run.attempts), (worker.run, 2));
    tenant.abandon(&worker.claimed.claim).await.unwrap();
    assert_eq!(tenant.claim(worker.thread, &owner("other")).await, Ok(None), "only its own claim");
}
