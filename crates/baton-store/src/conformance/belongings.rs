//! A thread with one of everything that a thread can own.

use baton_core::budget::{Amount, BudgetLimit, Budgets, PeriodLimits};
use baton_core::store::{
    Append, Approval, ApprovalOutcome, ApprovalRequest, ApprovalStatus, Artifact, Decision, Feedback,
    HandoffNotes, Hop, HopKind, HopOutcome, NewHandoff, NewRun, OutputHandle, Rating, Reservation, RunStatus,
    SpooledOutput, StepState, WorkflowState,
};
use baton_core::{HandoffId, SessionId, Store, TenantId, TenantStore, ThreadId, Usd};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{
    Home, LEASE, TestWorker, agent, answered, call, happened, in_seconds, new_run, now, once, session, step,
    user,
};
use super::{created_agents, push, skills};

/// What [`fill`] has written.
#[derive(Debug)]
pub struct Owned {
    pub thread: ThreadId,
    pub run: NewRun,
    pub handoff: HandoffId,
    /// Of the approval, of the artifact, of the hop and of the spooled output.
    pub id: Uuid,
    pub asked: ApprovalRequest,
}

/// Writes a thread with one of everything that a thread can own.
pub async fn fill_tenant(store: &dyn Store, tenant: &TenantId) -> Owned {
    let home = Home::new(store, tenant);
    let owned = fill(&home).await;
    home.settle_hops(in_seconds(60), 100).await.unwrap();
    owned
}

/// The same in a tenant of a test.
pub(super) async fn fill(tenant: &Home<'_>) -> Owned {
    let mut run = new_run(ThreadId::random(), "Hello");
    run.idempotency = Some(once(&run.thread_id.to_string(), "print"));
    tenant.accept(run.clone()).await.unwrap();
    let mut worker = TestWorker::claim(tenant, run.thread_id, LEASE).await;
    let id = Uuid::new_v4();
    let asked = ApprovalRequest { approval_id: id, ..request() };
    let append = Append {
        approvals: vec![asked.clone()],
        steps: vec![step(run.run_id, "assistant/turn:1", StepState::Finished)],
        events: vec![happened("working")],
        messages: vec![answered(run.run_id, "assistant", "Hi")],
        rows: vec![call(run.run_id, "assistant/turn:1")],
        outputs: vec![SpooledOutput::new(OutputHandle::from_uuid(id), "long")],
        sessions: vec![session(&SessionId::root(run.run_id), RunStatus::Running)],
        ..Append::default()
    };
    worker.append(append).await;
    let owned = Owned { thread: run.thread_id, run, handoff: HandoffId::from_uuid(id), id, asked };
    tenant.reserve(reservation(&owned)).await.unwrap();
    hand_off(&**tenant, &owned).await;
    tenant.put_artifact(artifact(&owned), None, b"bytes".to_vec()).await.unwrap();
    tenant.record_hop(hop(&owned)).await.unwrap();
    tenant.put_feedback(feedback(&owned)).await.unwrap();
    skills::fill(&**tenant, owned.thread).await;
    created_agents::fill(&**tenant, owned.thread).await;
    push::fill(&**tenant, owned.run.run_id).await;
    owned
}

async fn hand_off(tenant: &dyn TenantStore, owned: &Owned) {
    let new = NewHandoff {
        handoff_id: owned.handoff,
        thread_id: owned.thread,
        user_id: user("ada"),
        source_agent_id: agent("assistant"),
        target_agent_id: agent("skill-creator"),
        context_summary: "wants a skill".to_owned(),
        handoff_reason: "asked for it".to_owned(),
        metadata: Value::Null,
        notes: HandoffNotes::default(),
        max_open: None,
        activation: None,
    };
    let mut handoff = tenant.open_handoff(new).await.unwrap();
    handoff.workflow = Some(WorkflowState { state: "testing".to_owned(), data: json!({"name": "x"}) });
    tenant.update_handoff(handoff).await.unwrap();
}

/// A call in progress that counts against every kind of shared budget.
fn reservation(owned: &Owned) -> Reservation {
    let limit = BudgetLimit { max_cost_usd: None, max_tokens: Some(1_000) };
    let periods = PeriodLimits { day: limit, month: limit };
    let budgets = Budgets { run: limit, thread: limit, user: periods, tenant: periods };
    Reservation {
        thread_id: owned.thread,
        run_id: owned.run.run_id,
        path: "assistant/turn:2".to_owned(),
        started_at: now(),
        accounts: budgets.accounts(Some(owned.thread), Some(&user("ada")), now()),
        wanted: Amount { nanos: 1, tokens: 1 },
        least: Amount { nanos: 1, tokens: 1 },
        is_closing: false,
        ttl: LEASE,
        recount: Vec::new(),
    }
}

/// A call of a tool that waits for a person.
pub(super) fn request() -> ApprovalRequest {
    ApprovalRequest {
        approval_id: Uuid::new_v4(),
        created_at: now(),
        expires_at: in_seconds(3600),
        ..ApprovalRequest::of_call(
            "assistant/turn:1/tool:1",
            agent("assistant"),
            "file_write",
            json!({"path": "a"}),
        )
    }
}

/// What [`fill`] has asked.
pub(super) fn approval(owned: &Owned) -> Approval {
    Approval {
        request: owned.asked.clone(),
        thread_id: owned.thread,
        run_id: owned.run.run_id,
        user_id: user("ada"),
        outcome: ApprovalOutcome::pending(),
    }
}

/// A decision of Bob.
pub(super) fn decision(approval_id: Uuid, status: ApprovalStatus) -> Decision {
    Decision {
        approval_id,
        status,
        by: user("bob"),
        reason: None,
        edited: None,
        answer: None,
        remember: false,
        message: None,
        idempotency: None,
        trace_id: None,
    }
}

pub(super) fn artifact(owned: &Owned) -> Artifact {
    let (name, media_type) = ("a.txt".to_owned(), "text/plain".to_owned());
    let (thread_id, run_id) = (owned.thread, Some(owned.run.run_id));
    Artifact { artifact_id: owned.id, thread_id, run_id, name, media_type, size: 5, created_at: now() }
}

pub(super) fn hop(owned: &Owned) -> Hop {
    Hop {
        hop_id: owned.id,
        thread_id: owned.thread,
        run_id: Some(owned.run.run_id),
        kind: HopKind::Transfer,
        from: agent("assistant"),
        to: agent("research"),
        reason: "knows more".to_owned(),
        query_class: "science".to_owned(),
        outcome: HopOutcome::Completed,
        latency_ms: 40,
        cost: Usd::from_nanos(9),
        at: now(),
        request: 0,
    }
}

/// Ada likes it.
pub(super) fn feedback(owned: &Owned) -> Feedback {
    let comment = Some("well done".to_owned());
    Feedback {
        message_id: owned.run.message.id,
        user_id: user("ada"),
        rating: Rating::Good,
        comment,
        at: now(),
    }
}
