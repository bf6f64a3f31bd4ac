//! Questions of workflows: no run waits for them, and the answer is a message.

use baton_core::event::EventKind;
use baton_core::store::{
    Activation, Append, ApprovalKind, ApprovalOutcome, ApprovalRequest, ApprovalStatus, Decision,
    HandoffNotes, HandoffSession, HandoffState, MessageQuery, NewEvent, NewHandoff, NewRun, OnBusy,
    RunStatus, WORKFLOW_TOOL,
};
use baton_core::usage::Usage;
use baton_core::{HandoffId, Store, StoreError, Visibility};
use serde_json::{Value, json};
use uuid::Uuid;

use super::belongings::{decision, request};
use super::fixture::{LEASE, TestWorker, agent, ended, in_seconds, new_run, now, user};

const CONFLICT: StoreError = StoreError::Conflict("the approval");

fn question() -> ApprovalRequest {
    let approval_id = Uuid::new_v4();
    ApprovalRequest {
        approval_id,
        kind: ApprovalKind::Question,
        path: format!("skill-creator/{approval_id}"),
        tool: WORKFLOW_TOOL.to_owned(),
        handoff_id: Some(HandoffId::from_uuid(Uuid::now_v7())),
        ..request()
    }
}

/// Ends the run with this question.
async fn end_with(worker: &mut TestWorker<'_>, asked: &ApprovalRequest) {
    let (approvals, end) = (vec![asked.clone()], Some(ended(RunStatus::Completed)));
    worker.append(Append { approvals, end, ..Append::default() }).await;
}

fn answering(worker: &TestWorker<'_>, asked: &ApprovalRequest) -> NewRun {
    let answer = Decision {
        by: user("ada"),
        answer: Some(json!("blue")),
        ..decision(asked.approval_id, ApprovalStatus::Answered)
    };
    NewRun { on_busy: OnBusy::Reject, answers: Some(Box::new(answer)), ..new_run(worker.thread, "blue") }
}

/// An ordinary message is not refused because of it, it cannot be decided without a message, and an answer needs an idle thread.
pub async fn a_message_answers_a_question_of_a_workflow_once(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, thread, asked) = (worker.tenant.clone(), worker.thread, question());
    end_with(&mut worker, &asked).await;
    let id = asked.approval_id;
    assert_eq!(tenant.decide(decision(id, ApprovalStatus::Answered)).await, Err(CONFLICT));
    let due = store.due_notifications(100).await.unwrap();
    assert!(due.iter().all(|(_, approval)| *approval != id), "its user is in the conversation");
    let other = NewRun { unless_asked: true, ..new_run(thread, "Something else") };
    tenant.accept(other).await.unwrap();
    let busy = tenant.accept(answering(&worker, &asked)).await;
    assert!(matches!(busy, Err(StoreError::ThreadBusy(_))), "{busy:?}");
    TestWorker::claim(&tenant, thread, LEASE).await.end(RunStatus::Completed).await;

    let first = answering(&worker, &asked);
    let accepted = tenant.accept(first.clone()).await.unwrap();
    let outcome = tenant.approval(id).await.unwrap().outcome;
    assert_eq!((outcome.status, outcome.answer), (ApprovalStatus::Answered, Some(json!("blue"))));
    assert_eq!((outcome.answer_run_id, outcome.decided_by), (Some(accepted.run_id), Some(user("ada"))));
    TestWorker::claim(&tenant, thread, LEASE).await.end(RunStatus::Completed).await;
    assert_eq!(tenant.accept(answering(&worker, &asked)).await, Err(CONFLICT));
    let history = tenant.messages(thread, MessageQuery::last(10)).await.unwrap();
    assert_eq!(history.len(), 3, "a refused answer leaves nothing");
    let mut there = TestWorker::in_tenant(&tenant).await;
    there.end(RunStatus::Completed).await;
    tenant.accept(new_run(thread, "Again")).await.unwrap();
    let foreign = question();
    end_with(&mut TestWorker::claim(&tenant, thread, LEASE).await, &foreign).await;
    assert_eq!(tenant.accept(answering(&there, &foreign)).await, Err(CONFLICT), "of another thread");
}

pub async fn an_append_settles_a_question_of_a_workflow(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, asked) = (worker.tenant.clone(), question());
    end_with(&mut worker, &asked).await;
    tenant.accept(new_run(worker.thread, "blue")).await.unwrap();
    let mut next = TestWorker::claim(&tenant, worker.thread, LEASE).await;
    let outcome = ApprovalOutcome {
        decided_by: Some(user("ada")),
        answer: Some(json!("blue")),
        answer_run_id: Some(next.run),
        ..ApprovalOutcome::closed(ApprovalStatus::Answered)
    };
    let closed_approvals = vec![(asked.approval_id, outcome.clone())];
    next.append(Append { closed_approvals, ..Append::default() }).await;
    let known = tenant.approval(asked.approval_id).await.unwrap().outcome;
    assert_eq!(ApprovalOutcome { decided_at: None, ..known.clone() }, outcome);
    assert!(known.decided_at.is_some());
}

pub async fn the_end_of_a_handoff_closes_its_question(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, asked) = (worker.tenant.clone(), question());
    end_with(&mut worker, &asked).await;
    let new = NewHandoff {
        handoff_id: asked.handoff_id.unwrap(),
        thread_id: worker.thread,
        user_id: user("ada"),
        source_agent_id: agent("assistant"),
        target_agent_id: agent("skill-creator"),
        context_summary: String::new(),
        handoff_reason: String::new(),
        metadata: Value::Null,
        notes: HandoffNotes { question: Some(asked.approval_id), ..HandoffNotes::default() },
        max_open: None,
        activation: Some(Activation { workflow: None, expires_at: Some(in_seconds(3600)) }),
    };
    let open = tenant.open_handoff(new).await.unwrap();
    let kept = tenant.update_handoff(HandoffSession { context_summary: "More".to_owned(), ..open }).await;
    let kept = kept.unwrap();
    let status = async || tenant.approval(asked.approval_id).await.unwrap().outcome.status;
    assert_eq!(status().await, ApprovalStatus::Pending);
    tenant.update_handoff(HandoffSession { state: HandoffState::Cancelled, ..kept }).await.unwrap();
    assert_eq!(status().await, ApprovalStatus::Cancelled);
    assert_eq!(tenant.open_approvals(worker.thread).await, Ok(Vec::new()));
}

/// The event of a run that waits is stored with ids only, however often it waits, and read with the requests.
pub async fn a_waiting_run_refers_to_its_requests(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let asked: Vec<ApprovalRequest> = (0..3)
        .map(|n| ApprovalRequest { approval_id: Uuid::new_v4(), path: format!("a/{n}"), ..request() })
        .collect();
    worker.append(Append { approvals: asked.clone(), ..Append::default() }).await;
    let waiting = |interrupts: Vec<ApprovalRequest>| EventKind::RunWaiting {
        waits_for: interrupts.iter().map(|one| one.approval_id).collect(),
        interrupts,
        usage: Usage::default(),
        by_agent: Vec::new(),
    };
    // Other requests than the stored ones are not found again, because the event has only their ids.
    let given = asked.iter().map(|one| ApprovalRequest { path: "b".to_owned(), ..one.clone() });
    let (given, kind) = (waiting(given.collect()), waiting(asked));
    let event = NewEvent {
        at: now(),
        agent: agent("assistant"),
        path: "assistant".into(),
        visibility: Visibility::User,
        kind: given,
    };
    worker.append(Append { events: vec![event], ..Append::default() }).await;
    let events = tenant.events(worker.thread, 0, 100).await.unwrap();
    assert_eq!(events.last().unwrap().kind, kind);
    let of_run = tenant.run_events(worker.run, 0, 100).await.unwrap();
    assert_eq!(of_run.last().unwrap().kind, kind);
}
