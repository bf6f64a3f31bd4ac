//! A run that waits for an approval, made without an engine.

use std::sync::Arc;
use std::time::Duration;

use baton_core::store::work::RunEnd;
use baton_core::store::{
    Append, ApprovalPreview, ApprovalRequest, NewRun, Owner, RunEndData, RunStatus, Store,
};
use baton_core::{AgentName, Message, MessageId, Part, Role, RunId, TenantId, ThreadId, UserId, Visibility};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

/// A call of `shell` by an agent of the run.
pub fn shell(path: &str, agent: &str, arguments: Value, expires_at: Timestamp) -> ApprovalRequest {
    ApprovalRequest {
        approval_id: Uuid::now_v7(),
        preview: ApprovalPreview { heading: "Use the tool shell".to_owned(), fields: Vec::new() },
        schema: json!({ "type": "object", "properties": { "command": { "type": "string" } }, "additionalProperties": false }),
        created_at: Timestamp::now(),
        expires_at,
        ..ApprovalRequest::of_call(path, AgentName::parse(agent).unwrap(), "shell", arguments)
    }
}

/// Parks a run of the user's thread, in which this was asked. Returns the id of the approval.
pub async fn park(
    store: &dyn Store,
    tenant: &str,
    user: &str,
    thread_id: ThreadId,
    request: ApprovalRequest,
) -> String {
    let data = store.tenant(&TenantId::parse(tenant).unwrap());
    let owner = Owner(Uuid::new_v4().to_string().into());
    store.beat(&owner, Duration::from_mins(1)).await.unwrap();
    let run_id = RunId::from_uuid(Uuid::now_v7());
    data.accept(new_run(run_id, thread_id, user)).await.unwrap();
    let claim = data.claim(thread_id, &owner).await.unwrap().expect("an idle thread").claim;
    let id = request.approval_id;
    let asked = Append { number: 1, approvals: vec![request], ..Append::default() };
    data.append(&claim, Arc::new(asked)).await.unwrap();
    let end = Some(RunEnd { status: RunStatus::Waiting, end: RunEndData::default() });
    let parked = Append { number: 2, waits_for: vec![id], end, ..Append::default() };
    data.append(&claim, Arc::new(parked)).await.unwrap();
    id.to_string()
}

fn new_run(run_id: RunId, thread_id: ThreadId, user: &str) -> NewRun {
    let message = Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text("Run it.")],
        created_at: Timestamp::now(),
    };
    NewRun::new(thread_id, UserId::parse(user).unwrap(), AgentName::parse("assistant").unwrap(), message)
}
