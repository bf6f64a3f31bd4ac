//! What a tenant learns from its hops.

use baton_core::learning::request_fingerprint;
use baton_core::store::HopOutcome::{Cancelled, Completed, Declined, Failed};
use baton_core::store::{Feedback, Hop, HopKind, HopOutcome, Rating};
use baton_core::{Store, TenantStore};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::belongings::{Owned, feedback, fill, hop};
use super::fixture::{agent, tenant, user};

/// Wins and tries of an agent, rounded to hundredths.
async fn known(tenant: &dyn TenantStore, to: &str) -> (f64, f64) {
    let known = tenant.experience().await.unwrap();
    let found = known.iter().find(|one| one.agent == agent(to)).map(|one| one.tally);
    let round = |number: f64| (number * 100.0).round() / 100.0;
    found.map_or((0.0, 0.0), |tally| (round(tally.wins), round(tally.tries)))
}

fn to(owned: &Owned, target: &str, outcome: HopOutcome) -> Hop {
    Hop { hop_id: Uuid::new_v4(), to: agent(target), outcome, at: Timestamp::now(), ..hop(owned) }
}

fn later() -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(1)
}

/// Cancelled is no success, and a cancelled delegation says nothing. Settling changes nothing.
pub async fn outcomes_are_counted(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let before = known(&*tenant, "legal").await;
    assert_eq!(before, (0.0, 0.0));
    for outcome in [Completed, Completed, Cancelled, Failed, Declined] {
        tenant.record_hop(to(&owned, "legal", outcome)).await.unwrap();
    }
    for kind in [HopKind::Advice, HopKind::Team, HopKind::Chain] {
        tenant.record_hop(Hop { kind, ..to(&owned, "legal", Completed) }).await.unwrap();
    }
    let cancelled = Hop { kind: HopKind::Delegation, ..to(&owned, "legal", Cancelled) };
    tenant.record_hop(cancelled).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (2.0, 5.0));
    assert!(tenant.settle_hops(later(), 100).await.unwrap() > 0);
    assert_eq!(known(&*tenant, "legal").await, (2.0, 5.0));
    tenant.delete_thread(owned.thread, None).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (2.0, 5.0), "it outlives the thread");
}

/// A bad rating turns a success into none, before and after the hop is settled; a good one turns it back.
pub async fn ratings_correct_what_was_counted(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let rate = |by: &str, rating| Feedback { user_id: user(by), rating, ..feedback(&owned) };
    tenant.record_hop(to(&owned, "legal", Completed)).await.unwrap();
    // One good rating came with the thread.
    assert_eq!(known(&*tenant, "legal").await, (1.0, 1.0));
    tenant.put_feedback(rate("ada", Rating::Bad)).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (0.0, 1.0));
    tenant.put_feedback(rate("ada", Rating::Good)).await.unwrap();
    tenant.settle_hops(later(), 100).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (1.0, 1.0));
    tenant.put_feedback(rate("bob", Rating::Bad)).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (1.0, 1.0), "one of two");
    tenant.put_feedback(rate("eve", Rating::Bad)).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (0.0, 1.0));
    tenant.put_feedback(rate("eve", Rating::Good)).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (1.0, 1.0));
}

/// Who asks the same again soon was not served the first time.
pub async fn a_repeated_request_was_not_served(store: &dyn Store) {
    let tenant = tenant(store);
    let (first, second) = (fill(&tenant).await, fill(&tenant).await);
    let request = request_fingerprint(&["refund", "invoice", "november"].into_iter());
    let other = request_fingerprint(&["reset", "password", "account"].into_iter());
    let now = Timestamp::now();
    let asked = |owned: &Owned, target: &str, minutes: i64, request| Hop {
        at: now + SignedDuration::from_mins(minutes),
        request,
        ..to(owned, target, Completed)
    };
    tenant.record_hop(asked(&first, "legal", 0, request)).await.unwrap();
    tenant.record_hop(asked(&second, "law", 30, request)).await.unwrap();
    tenant.record_hop(asked(&second, "law", 3, other)).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (1.0, 1.0), "too late, or about something else");
    tenant.record_hop(asked(&second, "law", 5, request)).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (0.0, 1.0));
    tenant.settle_hops(now + SignedDuration::from_secs(1), 100).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (0.0, 1.0));
}
