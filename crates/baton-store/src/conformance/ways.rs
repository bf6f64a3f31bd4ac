//! Ways between agents.

use baton_core::store::{
    Feedback, HandoffEnd, HandoffNotes, HandoffSession, HandoffState, Hop, HopKind, HopOutcome, Rating,
};
use baton_core::{Store, StoreError, ThreadId, Usd};
use futures_util::future::join_all;
use uuid::Uuid;

use super::belongings::{feedback, fill, hop};
use super::fixture::{agent, in_seconds, tenant, user};

pub async fn a_hop_counts_once(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let first = tenant.hops(owned.thread).await.unwrap().remove(0);
    let repeated = join_all((0..5).map(|_| tenant.record_hop(first.clone()))).await;
    assert!(repeated.iter().all(Result::is_ok));
    let failed = Hop {
        hop_id: Uuid::new_v4(),
        outcome: HopOutcome::Failed,
        latency_ms: 2,
        at: in_seconds(5),
        reason: "it\u{0} failed".to_owned(),
        ..first.clone()
    };
    tenant.record_hop(failed.clone()).await.unwrap();
    let kept = Hop { reason: "it failed".to_owned(), ..failed };
    assert_eq!(tenant.hops(owned.thread).await, Ok(vec![first, kept.clone()]));
    let patterns = tenant.patterns().await.unwrap();
    assert_eq!(patterns.len(), 1);
    let pattern = &patterns[0];
    assert_eq!((pattern.count, pattern.successes, pattern.total_latency_ms), (2, 1, 42));
    assert_eq!((pattern.total_cost, pattern.last_at), (Usd::from_nanos(18), kept.at));
    let elsewhere = Hop { hop_id: Uuid::new_v4(), thread_id: ThreadId::random(), ..hop(&owned) };
    assert_eq!(tenant.record_hop(elsewhere).await, Err(StoreError::ThreadNotFound));
    assert_eq!(tenant.patterns().await.unwrap()[0].count, 2);
}

/// Ways of another kind, between others, or for another class of questions are other ways.
pub async fn the_most_frequent_way_comes_first(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let again = || Hop { hop_id: Uuid::new_v4(), ..hop(&owned) };
    let hops = [
        Hop { kind: HopKind::Route, ..again() },
        Hop { to: agent("legal"), ..again() },
        Hop { to: agent("legal"), ..again() },
        Hop { to: agent("legal"), cost: Usd::from_nanos(i64::MAX), latency_ms: u64::MAX, ..again() },
        Hop { query_class: "law".to_owned(), ..again() },
        Hop { query_class: "law".to_owned(), ..again() },
    ];
    for hop in hops {
        tenant.record_hop(hop).await.unwrap();
    }
    let patterns = tenant.patterns().await.unwrap();
    let counts: Vec<(u64, &str)> =
        patterns.iter().map(|pattern| (pattern.count, pattern.to.as_str())).collect();
    assert_eq!(counts, [(3, "legal"), (2, "research"), (1, "research"), (1, "research")]);
}

/// Sums and ratings are the same before and after hops are settled, and after their thread is deleted.
pub async fn settled_hops_stay_in_the_sums(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let again = |seconds| Hop { hop_id: Uuid::new_v4(), at: in_seconds(seconds), ..hop(&owned) };
    for seconds in [10, 20, 30] {
        tenant.record_hop(again(seconds)).await.unwrap();
    }
    let before = tenant.patterns().await.unwrap();
    assert_eq!((before.len(), before[0].count, before[0].liked), (1, 4, 1));
    assert_eq!(tenant.settle_hops(in_seconds(15), 100).await, Ok(2), "older ones only");
    assert_eq!(tenant.patterns().await.unwrap(), before);
    // A rating after some hops of the run are settled, and before the others are.
    let bad = Feedback { user_id: user("bob"), rating: Rating::Bad, ..feedback(&owned) };
    tenant.put_feedback(bad).await.unwrap();
    let rated = tenant.patterns().await.unwrap();
    assert_eq!((rated[0].count, rated[0].liked, rated[0].disliked), (4, 1, 1));
    assert_eq!(tenant.settle_hops(in_seconds(60), 1).await, Ok(1));
    assert_eq!(tenant.patterns().await.unwrap(), rated);
    tenant.delete_thread(owned.thread, None).await.unwrap();
    assert_eq!(tenant.patterns().await.unwrap(), rated);
    assert_eq!(tenant.settle_hops(in_seconds(60), 100).await, Ok(0));
}

/// A handoff is a hop once it has ended; one that is resumed and ends again stays one hop, with its last outcome.
pub async fn ended_handoff_is_one_hop(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let of_handoff = async || {
        let hops = tenant.hops(owned.thread).await.unwrap();
        hops.into_iter().filter(|hop| hop.kind == HopKind::Handoff).collect::<Vec<_>>()
    };
    let open = tenant.open_handoff_of(owned.thread).await.unwrap().unwrap();
    assert_eq!(of_handoff().await, []);
    let end = |handoff: HandoffSession, state, end| {
        let notes = HandoffNotes { end: Some(end), ..handoff.notes.clone() };
        HandoffSession { state, notes, ..handoff }
    };
    let active = match open.state {
        HandoffState::Pending => {
            tenant.update_handoff(HandoffSession { state: HandoffState::Active, ..open }).await.unwrap()
        }
        _ => open,
    };
    let left = end(active, HandoffState::Cancelled, HandoffEnd::Left);
    let left = tenant.update_handoff(left).await.unwrap();
    let [hop] = <[Hop; 1]>::try_from(of_handoff().await).unwrap();
    assert_eq!((hop.hop_id, hop.outcome), (left.handoff_id.as_uuid(), HopOutcome::Cancelled));
    assert_eq!((&hop.from, &hop.to), (&left.source_agent_id, &left.target_agent_id));
    let resumed = HandoffSession { state: HandoffState::Active, ..left };
    let resumed = tenant.update_handoff(resumed).await.unwrap();
    tenant.update_handoff(end(resumed, HandoffState::Completed, HandoffEnd::Completed)).await.unwrap();
    let [again] = <[Hop; 1]>::try_from(of_handoff().await).unwrap();
    assert_eq!((again.hop_id, again.outcome), (hop.hop_id, HopOutcome::Completed));
}
