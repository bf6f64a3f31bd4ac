//! Notifications of approvals: due, taken by one process, delivered or tried again.

use std::time::Duration;

use baton_core::Store;
use baton_core::store::{Append, ApprovalRequest, ApprovalStatus, NextNotification};
use uuid::Uuid;

use super::belongings::{decision, request};
use super::fixture::{Home, TestWorker, in_seconds, now, tenant};

const LEASE: Duration = Duration::from_mins(10);
/// More than a test of this suite creates in a shared database.
const ALL: u32 = 10_000;

async fn asked(tenant: &Home<'_>, expires_in: i64) -> Uuid {
    let approval_id = Uuid::new_v4();
    let new = ApprovalRequest {
        approval_id,
        path: format!("assistant/{approval_id}"),
        created_at: now(),
        expires_at: in_seconds(expires_in),
        ..request()
    };
    let mut worker = TestWorker::in_tenant(tenant).await;
    worker.append(Append { approvals: vec![new], ..Append::default() }).await;
    approval_id
}

async fn is_due(store: &dyn Store, approval: Uuid) -> bool {
    store.due_notifications(ALL).await.unwrap().iter().any(|(_, id)| *id == approval)
}

/// Also for a process that starts later: what was not delivered stays due.
pub async fn a_new_approval_is_due_until_it_is_delivered(store: &dyn Store) {
    let tenant = tenant(store);
    let id = asked(&tenant, 3600).await;
    let due = store.due_notifications(ALL).await.unwrap();
    assert!(due.contains(&(tenant.tenant().clone(), id)), "with its tenant");
    let taken = tenant.take_notification(id, LEASE).await.unwrap().unwrap();
    assert_eq!((taken.approval.request.approval_id, taken.attempt), (id, 1));
    assert_eq!(taken.approval.outcome.status, ApprovalStatus::Pending);
    tenant.settle_notification(id, NextNotification::Never).await.unwrap();
    assert!(!is_due(store, id).await);
    assert_eq!(tenant.take_notification(id, LEASE).await, Ok(None));
}

pub async fn a_notification_is_taken_by_one_process_at_a_time(store: &dyn Store) {
    let tenant = tenant(store);
    let id = asked(&tenant, 3600).await;
    let (first, second) =
        tokio::join!(tenant.take_notification(id, LEASE), tenant.take_notification(id, LEASE));
    let taken = [first.unwrap(), second.unwrap()];
    assert_eq!(taken.iter().flatten().count(), 1);
    assert!(!is_due(store, id).await, "while it is taken");
    // Its process was killed: the lease ends.
    tenant.settle_notification(id, NextNotification::After(Duration::ZERO)).await.unwrap();
    assert!(is_due(store, id).await);
    let again = tenant.take_notification(id, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(again.attempt, 2);
    assert!(is_due(store, id).await, "a lease that is over");
    tenant.settle_notification(id, NextNotification::After(LEASE)).await.unwrap();
    assert!(!is_due(store, id).await, "a pause after a failure");
}

/// What is decided, has expired or belongs to another tenant is not announced.
pub async fn only_open_approvals_are_notified(store: &dyn Store) {
    let tenant = tenant(store);
    let (decided, expired, other) =
        (asked(&tenant, 3600).await, asked(&tenant, 0).await, asked(&tenant, 3600).await);
    tenant.decide(decision(decided, ApprovalStatus::Denied)).await.unwrap();
    for id in [decided, expired] {
        assert!(!is_due(store, id).await);
        assert_eq!(tenant.take_notification(id, LEASE).await, Ok(None));
    }
    let stranger = super::fixture::tenant(store);
    assert_eq!(stranger.take_notification(other, LEASE).await, Ok(None));
    stranger.settle_notification(other, NextNotification::Never).await.unwrap();
    assert!(is_due(store, other).await);
}
