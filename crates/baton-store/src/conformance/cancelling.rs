//! Runs that are to end before they are done. Each has exactly one last event.

use baton_core::event::RunOutcome;
use baton_core::ledger::AgentUsage;
use baton_core::store::work::InterruptedCall;
use baton_core::store::{Append, AuditQuery, Cancel, RunQuery, RunStatus, Step, StepState};
use baton_core::{Event, EventKind, RunId, SessionId, Store, StoreError, TenantStore, ThreadId, Visibility};
use serde_json::json;

use super::fixture::{LEASE, TestWorker, call, happened, new_run, page, run_id, said, session, step, tenant};

async fn only_end(tenant: &dyn TenantStore, run: RunId) -> Event {
    let events = tenant.run_events(run, 0, 100).await.unwrap();
    let mut ends: Vec<Event> = events
        .into_iter()
        .filter(|event| matches!(event.kind, EventKind::RunFinished { outcome: RunOutcome::Cancelled, .. }))
        .collect();
    assert_eq!(ends.len(), 1);
    ends.remove(0)
}

pub async fn a_queued_run_ends_at_once(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let [first, second] = ["one", "two"].map(|text| new_run(thread, text));
    tenant.accept(first.clone()).await.unwrap();
    tenant.accept(second.clone()).await.unwrap();
    assert_eq!(tenant.cancel_run(first.run_id, Cancel::Stop).await, Ok(RunStatus::Cancelled));
    let record = tenant.run(first.run_id).await.unwrap();
    assert_eq!((record.status, record.started_at), (RunStatus::Cancelled, None));
    assert!(record.finished_at.is_some() && record.end.is_some());
    let end = only_end(&*tenant, first.run_id).await;
    assert_eq!((end.seq, end.agent.as_str(), &*end.path), (1, "assistant", "assistant"));
    assert_eq!(TestWorker::claim(&tenant, thread, LEASE).await.run, second.run_id, "it is stepped over");
    let waiting = RunQuery { status: Some(RunStatus::Queued), ..RunQuery::default() };
    assert_eq!(tenant.runs(waiting, page(10)).await.unwrap().data, []);
    let about = AuditQuery { action: Some("run.cancel".to_owned()), ..AuditQuery::default() };
    let trail = tenant.audit(about, page(10)).await.unwrap().data;
    assert_eq!((trail.len(), trail[0].entry.run_id), (1, Some(first.run_id)));
}

/// Its process hears of it with the next beat. Who wants it to end at once is not overruled by who gives it time.
pub async fn a_run_at_work_is_asked_to_end(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run) = (worker.tenant.clone(), worker.run);
    let wish = async |how| {
        assert_eq!(tenant.cancel_run(run, how).await, Ok(RunStatus::Running));
        worker.beat(LEASE).await
    };
    assert_eq!(wish(Cancel::Stop).await, Some(Cancel::Stop));
    assert_eq!(wish(Cancel::Abort).await, Some(Cancel::Abort));
    assert_eq!(wish(Cancel::Stop).await, Some(Cancel::Abort));
    assert_eq!(tenant.run(run).await.unwrap().cancel, Some(Cancel::Abort));
    assert_eq!(tenant.run_events(run, 0, 10).await.unwrap(), [], "its process ends it");
    worker.end(RunStatus::Cancelled).await;
    assert_eq!(tenant.run(run).await.unwrap().status, RunStatus::Cancelled);
}

/// Its process died in a call of a model; the provider wants its money all the same.
pub async fn the_call_that_a_process_died_in_is_paid_for(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run) = (worker.tenant.clone(), worker.run);
    let under_way = |path: &str| InterruptedCall {
        message_id: said(run, "").id,
        visibility: Visibility::User,
        row: call(run, path),
    };
    let open = |path: &str, data: serde_json::Value| Step {
        data: data.into(),
        ..step(run, path, StepState::Started)
    };
    let steps = vec![
        step(run, "assistant/turn:1", StepState::Finished),
        open("assistant/turn:2", json!(under_way("assistant/turn:2"))),
        open("assistant/turn:3", json!(null)),
    ];
    let rows = vec![call(run, "assistant/turn:1")];
    worker.append(Append { steps, rows, ..Append::default() }).await;
    worker.die().await;
    assert_eq!(tenant.cancel_run(run, Cancel::Abort).await, Ok(RunStatus::Cancelled));
    let rows = tenant.ledger(run).await.unwrap();
    let mut paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["assistant/turn:1", "assistant/turn:2"], "settled ones are not paid for again");
    let EventKind::RunFinished { usage, .. } = only_end(&*tenant, run).await.kind else { panic!("no end") };
    assert_eq!(usage, tenant.run(run).await.unwrap().usage);
    assert_eq!(usage.tokens.input_tokens, 20);
}

pub async fn a_run_whose_process_is_gone_ends_at_once(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run, thread) = (worker.tenant.clone(), worker.run, worker.thread);
    let sessions = vec![session(&SessionId::root(run), RunStatus::Running)];
    let rows = vec![call(run, "assistant/turn:1")];
    worker.append(Append { sessions, rows, events: vec![happened("working")], ..Append::default() }).await;
    worker.die().await;
    assert_eq!(tenant.cancel_run(run, Cancel::Abort).await, Ok(RunStatus::Cancelled));
    let end = only_end(&*tenant, run).await;
    let EventKind::RunFinished { usage, by_agent, .. } = end.kind else { panic!("{end:?}") };
    let paid = call(run, "");
    assert_eq!((end.seq, usage), (2, paid.usage()));
    assert_eq!(by_agent, [AgentUsage { agent: paid.agent.clone(), usage }]);
    assert_eq!(tenant.session(&SessionId::root(run)).await.unwrap().status, RunStatus::Cancelled);
    assert_eq!(tenant.thread(thread, None).await.unwrap().active_run, None);
    // It was only slow.
    let late = Append { number: 2, events: vec![happened("late")], ..Append::default() };
    assert_eq!(tenant.append(&worker.claimed.claim, late.into()).await, Err(StoreError::Fenced));
    let repeated = Append { number: 1, ..Append::default() };
    assert_eq!(tenant.append(&worker.claimed.claim, repeated.into()).await, Err(StoreError::Fenced));
    assert_eq!(tenant.claim(thread, &worker.claimed.claim.owner).await, Ok(None));
}

pub async fn a_waiting_run_ends_at_once(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run) = (worker.tenant.clone(), worker.run);
    worker.end(RunStatus::Waiting).await;
    tenant.accept(new_run(worker.thread, "next")).await.unwrap();
    let next = TestWorker::claim(&tenant, worker.thread, LEASE).await;
    assert_eq!(tenant.cancel_run(run, Cancel::Abort).await, Ok(RunStatus::Cancelled));
    assert_eq!(only_end(&*tenant, run).await.seq, 1);
    assert_eq!(tenant.thread(worker.thread, None).await.unwrap().active_run, Some(next.run));
    let undisturbed = Append { number: 1, ..Append::default() };
    assert!(tenant.append(&next.claimed.claim, undisturbed.into()).await.is_ok(), "another run goes on");
}

pub async fn a_run_that_has_ended_stays_as_it_is(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    worker.end(RunStatus::Completed).await;
    let before = worker.tenant.run(worker.run).await.unwrap();
    assert_eq!(worker.tenant.cancel_run(worker.run, Cancel::Abort).await, Ok(RunStatus::Completed));
    assert_eq!(worker.tenant.run(worker.run).await.unwrap(), before);
    assert_eq!(worker.tenant.cancel_run(run_id(), Cancel::Stop).await, Err(StoreError::NotFound("run")));
}
