//! A thread with one of everything that a thread can own.

use baton_core::store::{
    Append, Approval, ApprovalStatus, Artifact, Feedback, HandoffNotes, Hop, HopKind, NewHandoff, NewRun,
    OutputHandle, Rating, RunStatus, SpooledOutput, StepState, WorkflowState,
};
use baton_core::tool::Risk;
use baton_core::{HandoffId, SessionId, Store, TenantId, TenantStore, ThreadId, Usd};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{
    Home, LEASE, TestWorker, agent, answered, call, happened, in_seconds, new_run, now, once, session, step,
    user,
};

/// What [`fill`] has written.
#[derive(Debug)]
pub struct Owned {
    pub thread: ThreadId,
    pub run: NewRun,
    pub handoff: HandoffId,
    /// Of the approval, of the artifact, of the hop and of the spooled output.
    pub id: Uuid,
}

/// Writes a thread with one of everything that a thread can own.
pub async fn fill_tenant(store: &dyn Store, tenant: &TenantId) -> Owned {
    fill(&Home::new(store, tenant)).await
}

/// The same in a tenant of a test.
pub(super) async fn fill(tenant: &Home<'_>) -> Owned {
    let mut run = new_run(ThreadId::random(), "Hello");
    run.idempotency = Some(once(&run.thread_id.to_string(), "print"));
    tenant.accept(run.clone()).await.unwrap();
    let mut worker = TestWorker::claim(tenant, run.thread_id, LEASE).await;
    let id = Uuid::new_v4();
    let append = Append {
        steps: vec![step(run.run_id, "assistant/turn:1", StepState::Finished)],
        events: vec![happened("working")],
        messages: vec![answered(run.run_id, "assistant", "Hi")],
        rows: vec![call(run.run_id, "assistant/turn:1")],
        outputs: vec![SpooledOutput::new(OutputHandle::from_uuid(id), "long")],
        sessions: vec![session(&SessionId::root(run.run_id), RunStatus::Running)],
        ..Append::default()
    };
    worker.append(append).await;
    let owned = Owned { thread: run.thread_id, run, handoff: HandoffId::from_uuid(id), id };
    hand_off(&**tenant, &owned).await;
    tenant.ask(approval(&owned)).await.unwrap();
    tenant.put_artifact(artifact(&owned), None, b"bytes".to_vec()).await.unwrap();
    tenant.record_hop(hop(&owned)).await.unwrap();
    tenant.put_feedback(feedback(&owned)).await.unwrap();
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

pub(super) fn approval(owned: &Owned) -> Approval {
    Approval {
        approval_id: owned.id,
        thread_id: owned.thread,
        run_id: owned.run.run_id,
        path: "assistant/turn:1/tool:1".to_owned(),
        tool: "file_write".to_owned(),
        arguments: json!({"path": "a"}),
        risk: Risk::High,
        status: ApprovalStatus::Pending,
        created_at: now(),
        expires_at: in_seconds(3600),
        decided_at: None,
        decided_by: None,
        reason: None,
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
        run_id: owned.run.run_id,
        kind: HopKind::Transfer,
        from: agent("assistant"),
        to: agent("research"),
        reason: "knows more".to_owned(),
        query_class: "science".to_owned(),
        success: true,
        latency_ms: 40,
        cost: Usd::from_nanos(9),
        at: now(),
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
