//! Ways between agents.

use baton_core::store::{Hop, HopKind, HopOutcome};
use baton_core::{Store, StoreError, ThreadId, Usd};
use futures_util::future::join_all;
use uuid::Uuid;

use super::belongings::{fill, hop};
use super::fixture::{agent, in_seconds, tenant};

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
