//! Tenants know nothing of each other.

use std::sync::Arc;

use baton_core::store::{
    Append, ApprovalQuery, ApprovalStatus, AuditQuery, Cancel, Claim, HandoffNotes, HandoffSession,
    HandoffState, MessageQuery, OutputHandle, RunQuery, UsageBy, UsageQuery,
};
use baton_core::{HandoffId, RunId, SessionId, Store, StoreError, TenantStore, ThreadId};
use serde_json::Value;
use uuid::Uuid;

use super::belongings::{Owned, artifact, decision, feedback, fill, hop, request};
use super::fixture::{Home, new_run, owner, page, run_id, tenant, user};

/// Whatever is asked with the id of another tenant's thread, run, … is answered as for one that does not exist.
pub async fn a8_a9_h9_foreign_ids_are_like_unknown_ones(store: &dyn Store) {
    let (mine, theirs) = (tenant(store), tenant(store));
    let foreign = fill(&theirs).await;
    let mut unknown = Owned {
        thread: ThreadId::random(),
        run: new_run(ThreadId::random(), "never sent"),
        handoff: HandoffId::from_uuid(Uuid::new_v4()),
        id: Uuid::new_v4(),
        asked: request(),
    };
    unknown.run.run_id = run_id();
    assert_eq!(answers(&mine, &foreign).await, answers(&mine, &unknown).await);
    assert!(
        answers(&mine, &foreign)
            .await
            .iter()
            .all(|answer| answer.contains("not found") || answer == "Fenced")
    );
    let thread = theirs.thread(foreign.thread, None).await.unwrap();
    assert_eq!((thread.total_messages, thread.last_seq), (2, 1), "nothing was changed");
    assert_eq!(theirs.approval(foreign.id).await.unwrap().outcome.status, ApprovalStatus::Pending);
    assert_eq!(theirs.feedback(foreign.run.message.id).await.unwrap().len(), 1);
}

/// Every method that takes an id, and what it says.
async fn answers(tenant: &Home<'_>, of: &Owned) -> Vec<String> {
    let (thread, run) = (of.thread, of.run.run_id);
    let mut said = reads(&**tenant, thread, run, of).await;
    let claim = Claim { thread_id: thread, run_id: run, owner: owner("worker"), epoch: 1 };
    assert_eq!(tenant.claim(thread, &claim.owner).await, Ok(None));
    said.push(answer(tenant.append(&claim, Arc::new(Append { number: 1, ..Append::default() })).await));
    said.push(answer(tenant.append(&claim, Arc::new(Append { number: 2, ..Append::default() })).await));
    said.push(answer(tenant.rename_thread(thread, None, "Mine").await));
    said.push(answer(tenant.delete_thread(thread, None).await));
    said.push(answer(tenant.cancel_run(run, Cancel::Abort).await));
    said.push(answer(tenant.decide(decision(of.id, ApprovalStatus::Approved)).await));
    said.push(answer(tenant.expire(of.id).await));
    said.push(answer(tenant.put_artifact(artifact(of), None, Vec::new()).await));
    said.push(answer(tenant.put_artifact(artifact(of), Some(&user("ada")), Vec::new()).await));
    said.push(answer(tenant.record_hop(hop(of)).await));
    said.push(answer(tenant.put_feedback(feedback(of)).await));
    said.push(answer(tenant.update_handoff(handoff(of)).await));
    said.push(answer(tenant.revoke_key(of.id).await));
    said
}

async fn reads(tenant: &dyn TenantStore, thread: ThreadId, run: RunId, of: &Owned) -> Vec<String> {
    let query = MessageQuery { include_internal: true, include_system: true, ..MessageQuery::default() };
    vec![
        answer(tenant.thread(thread, None).await),
        answer(tenant.thread(thread, Some(&user("ada"))).await),
        answer(tenant.messages(thread, query).await),
        answer(tenant.events(thread, 0, 10).await),
        answer(tenant.sessions(Some(thread), page(10)).await),
        answer(tenant.artifacts(thread).await),
        answer(tenant.hops(thread).await),
        answer(tenant.open_handoff_of(thread).await),
        answer(tenant.handoffs(thread).await),
        answer(tenant.resumable_handoffs(thread).await),
        answer(tenant.run(run).await),
        answer(tenant.run_events(run, 0, 10).await),
        answer(tenant.ledger(run).await),
        answer(tenant.steps(run).await),
        answer(tenant.run_sessions(run).await),
        answer(tenant.session(&SessionId::root(run)).await),
        answer(tenant.handoff(of.handoff).await),
        answer(tenant.approval(of.id).await),
        answer(tenant.artifact(of.id).await),
        answer(tenant.output_slice(run, OutputHandle::from_uuid(of.id), 0, 10).await),
        answer(tenant.message(of.run.message.id).await),
        answer(tenant.feedback(of.run.message.id).await),
    ]
}

fn answer<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Ok(found) => format!("found {found:?}"),
        Err(StoreError::Fenced) => "Fenced".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn handoff(of: &Owned) -> HandoffSession {
    HandoffSession {
        handoff_id: of.handoff,
        thread_id: of.thread,
        user_id: user("ada"),
        source_agent_id: of.run.agent.clone(),
        target_agent_id: of.run.agent.clone(),
        state: HandoffState::Active,
        context_summary: String::new(),
        handoff_reason: String::new(),
        started_at: of.run.message.created_at,
        updated_at: of.run.message.created_at,
        completed_at: None,
        result_summary: None,
        artifacts_created: Vec::new(),
        metadata: Value::Null,
        expires_at: None,
        notes: HandoffNotes::default(),
        next: None,
        workflow: None,
        version: 2,
    }
}

pub async fn a17_lists_hold_nothing_of_another_tenant(store: &dyn Store) {
    let (mine, theirs) = (tenant(store), tenant(store));
    let foreign = fill(&theirs).await;
    theirs.keep("key", Value::Bool(true), super::fixture::in_seconds(60)).await.unwrap();
    assert_eq!(mine.threads(None, page(10)).await.unwrap().data, []);
    assert_eq!(mine.find_threads(None, "e", page(10)).await.unwrap().data, []);
    assert_eq!(mine.ratings(foreign.thread, &user("ada"), 1..=10).await.unwrap(), []);
    assert_eq!(mine.runs(RunQuery::default(), page(10)).await.unwrap().data, []);
    let of_thread = RunQuery { thread_id: Some(foreign.thread), ..RunQuery::default() };
    assert_eq!(mine.runs(of_thread, page(10)).await.unwrap().data, []);
    assert_eq!(mine.sessions(None, page(10)).await.unwrap().data, []);
    assert_eq!(mine.approvals(ApprovalQuery::default(), page(10)).await.unwrap().data, []);
    assert_eq!(mine.audit(AuditQuery::default(), page(10)).await.unwrap().data, []);
    assert_eq!(mine.patterns().await.unwrap(), []);
    assert_eq!(mine.experience().await.unwrap(), []);
    for by in [UsageBy::Agent, UsageBy::User, UsageBy::Model, UsageBy::Day] {
        let all = UsageQuery { by, user_id: None, since: None, until: None };
        assert_eq!(mine.usage(all.clone()).await.unwrap(), []);
        assert_eq!(theirs.usage(all).await.unwrap().len(), 1);
    }
    assert_eq!(mine.keys().await.unwrap(), []);
    assert_eq!(mine.cached("key").await.unwrap(), None);
    assert_eq!(theirs.threads(None, page(10)).await.unwrap().data.len(), 1);
}

/// A thread id belongs to whoever uses it: two tenants may choose the same.
pub async fn the_same_ids_in_two_tenants_are_two_things(store: &dyn Store) {
    let (mine, theirs) = (tenant(store), tenant(store));
    let run = new_run(ThreadId::random(), "mine");
    let mut other = run.clone();
    other.message = super::fixture::said(run.run_id, "theirs");
    assert!(mine.accept(run.clone()).await.unwrap().is_new);
    assert!(theirs.accept(other).await.unwrap().is_new);
    mine.delete_thread(run.thread_id, None).await.unwrap();
    assert_eq!(theirs.thread(run.thread_id, None).await.unwrap().title, "theirs");
    assert_eq!(theirs.run(run.run_id).await.unwrap().message_number, 1);
}
