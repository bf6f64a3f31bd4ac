//! What a tenant learns from its hops.

use baton_core::learning::{request_fingerprint, run_weight};
use baton_core::store::HopOutcome::{Cancelled, Completed, Declined, Failed};
use baton_core::store::{Feedback, Hop, HopKind, HopOutcome, NewRun, Rating};
use baton_core::{RunId, Store, TenantStore, ThreadId};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::belongings::{Owned, feedback, fill, hop};
use super::fixture::{agent, new_run, tenant, user};

/// Wins and tries of an agent, rounded to hundredths.
async fn known(tenant: &dyn TenantStore, to: &str) -> (f64, f64) {
    let known = tenant.experience().await.unwrap();
    let found = known.iter().find(|one| one.agent == agent(to)).map(|one| one.tally);
    let round = |number: f64| (number * 100.0).round() / 100.0;
    found.map_or((0.0, 0.0), |tally| (round(tally.wins), round(tally.tries)))
}

/// Of a run of its own, which counts in full.
fn to_in_other_run(owned: &Owned, target: &str, outcome: HopOutcome) -> Hop {
    Hop { run_id: Some(RunId::from_uuid(Uuid::now_v7())), ..to(owned, target, outcome) }
}

/// About another kind of request than the hop that came with the thread, which would share the weight of the run.
fn to(owned: &Owned, target: &str, outcome: HopOutcome) -> Hop {
    let (hop_id, query_class, at) = (Uuid::new_v4(), "contracts".to_owned(), Timestamp::now());
    Hop { hop_id, query_class, to: agent(target), outcome, at, ..hop(owned) }
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
        tenant.record_hop(to_in_other_run(&owned, "legal", outcome)).await.unwrap();
    }
    for kind in [HopKind::Advice, HopKind::Team, HopKind::Chain] {
        tenant.record_hop(Hop { kind, ..to_in_other_run(&owned, "legal", Completed) }).await.unwrap();
    }
    let cancelled = Hop { kind: HopKind::Delegation, ..to_in_other_run(&owned, "legal", Cancelled) };
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

/// A rating changes as much as its run counted: the completed hop of a run with two counts half.
pub async fn ratings_correct_the_share_of_a_hop(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    for outcome in [Completed, Failed] {
        tenant.record_hop(to(&owned, "legal", outcome)).await.unwrap();
    }
    let cancelled = Hop { kind: HopKind::Delegation, ..to(&owned, "legal", Cancelled) };
    tenant.record_hop(cancelled).await.unwrap();
    tenant.record_hop(to_in_other_run(&owned, "legal", Completed)).await.unwrap();
    tenant.settle_hops(later(), 100).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (1.5, 2.0));
    let bad = |by: &str| Feedback { user_id: user(by), rating: Rating::Bad, ..feedback(&owned) };
    tenant.put_feedback(bad("ada")).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (1.0, 2.0));
}

/// A run counts once, also if some of its hops are settled before the others.
pub async fn hops_settled_apart_count_once(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    for _ in 0..3 {
        tenant.record_hop(to(&owned, "legal", Completed)).await.unwrap();
        assert_eq!(known(&*tenant, "legal").await, (1.0, 1.0));
        tenant.settle_hops(later(), 100).await.unwrap();
        assert_eq!(known(&*tenant, "legal").await, (1.0, 1.0));
    }
}

/// A rating takes back no win that a repeated request had not added, and none that another rating has taken back.
pub async fn ratings_take_back_only_what_was_added(store: &dyn Store) {
    let tenant = tenant(store);
    let (first, second) = (fill(&tenant).await, fill(&tenant).await);
    let request = request_fingerprint(&["refund", "invoice", "november"].into_iter());
    let now = Timestamp::now();
    let hop = Hop { at: now, request, ..to(&first, "legal", Completed) };
    tenant.record_hop(hop).await.unwrap();
    let again = Hop { at: now + SignedDuration::from_mins(5), request, ..to(&second, "law", Completed) };
    tenant.record_hop(again).await.unwrap();
    tenant.record_hop(to_in_other_run(&first, "legal", Completed)).await.unwrap();
    tenant.settle_hops(now + SignedDuration::from_secs(1), 100).await.unwrap();
    let counted = known(&*tenant, "legal").await;
    assert_eq!(counted, (1.0, 2.0));
    for rating in [Rating::Bad, Rating::Good, Rating::Bad] {
        for by in ["ada", "bob", "eve"] {
            let feedback = Feedback { user_id: user(by), rating, ..feedback(&first) };
            tenant.put_feedback(feedback).await.unwrap();
        }
        assert_eq!(known(&*tenant, "legal").await, counted, "{rating:?}");
    }
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

/// The newest evidence counts most, whether it is settled or not: an agent that has served a hundred users well is not judged by what was
/// before.
pub async fn newest_evidence_counts_most(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let now = Timestamp::now();
    let unknown = || Some(RunId::from_uuid(Uuid::now_v7()));
    for n in 0..220_i64 {
        let outcome = if n < 120 { Failed } else { Completed };
        let at = now - SignedDuration::from_secs(300 - n);
        tenant.record_hop(Hop { run_id: unknown(), at, ..to(&owned, "legal", outcome) }).await.unwrap();
    }
    let (wins, tries) = known(&*tenant, "legal").await;
    assert!((tries - 100.0).abs() < 2.0 && wins > 55.0, "{wins} of {tries}");
    // In batches, as a server does.
    while tenant.settle_hops(later(), 30).await.unwrap() >= 30 {}
    assert_eq!(known(&*tenant, "legal").await, (wins, tries));
}

/// The runs of one user on one day count less and less; those of another user count in full.
pub async fn one_user_has_a_bounded_weight(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let round = |number: f64| (number * 100.0).round() / 100.0;
    // The first run of the day came with the thread.
    let expected = |runs: std::ops::RangeInclusive<u32>| round(runs.map(run_weight).sum());
    for (by, target) in [("ada", "legal"), ("eve", "law")] {
        for _ in 0..30 {
            let run = NewRun { user_id: user(by), ..new_run(ThreadId::random(), "Hello") };
            tenant.accept(run.clone()).await.unwrap();
            let (thread_id, run_id) = (run.thread_id, Some(run.run_id));
            tenant.record_hop(Hop { thread_id, run_id, ..to(&owned, target, Failed) }).await.unwrap();
        }
    }
    let bounded = ((0.0, expected(2..=31)), (0.0, expected(1..=30)));
    assert!(bounded.1.1 < 15.0, "{bounded:?}");
    assert_eq!((known(&*tenant, "legal").await, known(&*tenant, "law").await), bounded);
    tenant.settle_hops(later(), 100).await.unwrap();
    assert_eq!((known(&*tenant, "legal").await, known(&*tenant, "law").await), bounded);
}

/// Deleting threads gives no more weight to a user: neither is anything learnt from hops that are not settled, nor does the next run count
/// as the first one of the day.
pub async fn deleting_threads_adds_no_weight(store: &dyn Store) {
    let tenant = tenant(store);
    for _ in 0..9 {
        let owned = fill(&tenant).await;
        tenant.record_hop(to(&owned, "legal", Failed)).await.unwrap();
        tenant.delete_thread(owned.thread, None).await.unwrap();
    }
    assert_eq!(known(&*tenant, "legal").await, (0.0, 0.0));
    let owned = fill(&tenant).await;
    tenant.record_hop(to(&owned, "legal", Failed)).await.unwrap();
    let (_, tries) = known(&*tenant, "legal").await;
    assert!(0.0 < tries && tries <= 0.5, "{tries}");
}

/// A handoff that a user requests outside of a run says nothing: no agent chose its target, and it costs no model call.
pub async fn requested_handoffs_are_not_learnt_from(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    for outcome in [Declined, Cancelled, Completed] {
        let hop = Hop { kind: HopKind::Handoff, run_id: None, ..to(&owned, "legal", outcome) };
        tenant.record_hop(hop).await.unwrap();
    }
    assert_eq!(known(&*tenant, "legal").await, (0.0, 0.0));
    tenant.settle_hops(later(), 100).await.unwrap();
    assert_eq!(known(&*tenant, "legal").await, (0.0, 0.0));
}

/// Ratings of old runs change nothing any more: a user cannot collect them and then change everything at once.
pub async fn late_ratings_correct_nothing(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let old = Timestamp::now() - SignedDuration::from_hours(30);
    tenant.record_hop(Hop { at: old, ..to(&owned, "legal", Completed) }).await.unwrap();
    tenant.settle_hops(later(), 100).await.unwrap();
    let counted = known(&*tenant, "legal").await;
    assert!(counted.0 > 0.8, "{counted:?}");
    let rate = |by: &str| Feedback { user_id: user(by), rating: Rating::Bad, ..feedback(&owned) };
    for by in ["ada", "bob", "eve"] {
        tenant.put_feedback(rate(by)).await.unwrap();
    }
    assert_eq!(known(&*tenant, "legal").await, counted);
}
