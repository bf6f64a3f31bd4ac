//! The trail. That it shows what was changed behind the store's back is tried where its tables can be reached.

use baton_core::store::{AuditEntry, AuditQuery, Audited, Cancel, Verdict};
use baton_core::{Store, TenantStore, ThreadId};
use futures_util::future::join_all;
use serde_json::json;

use super::fixture::{a_moment, in_seconds, new_run, page, tenant, user};
use crate::audit::entry;

async fn all(tenant: &dyn TenantStore, query: AuditQuery) -> Vec<Audited> {
    let (mut request, mut found) = (page(7), Vec::new());
    loop {
        let piece = tenant.audit(query.clone(), request.clone()).await.unwrap();
        found.extend(piece.data);
        match piece.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => return found,
        }
    }
}

/// Numbered without gaps, however many write at once.
pub async fn every_entry_is_chained(store: &dyn Store) {
    let tenant = tenant(store);
    assert_eq!(tenant.verify_audit().await, Ok(Verdict::Intact { entries: 0, head: String::new() }));
    let wild = AuditEntry {
        on_behalf_of: Some("a\u{0}b".to_owned()),
        trace_id: Some("0af7".to_owned()),
        detail: json!({"z": {"b": 1.5, "a": null}, "a": "line\nbreak"}),
        ..entry("act\u{0}or", "agent.delegate", "allowed")
    };
    tenant.record(wild.clone()).await.unwrap();
    let entries = (0..40).map(|n| entry(&format!("agent-{n}"), "tool.call", "allowed"));
    for recorded in join_all(entries.map(|entry| tenant.record(entry))).await {
        recorded.unwrap();
    }
    let trail = all(&*tenant, AuditQuery::default()).await;
    let numbers: Vec<u64> = trail.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, (1..=41).collect::<Vec<u64>>());
    assert_eq!(trail[0].entry, wild);
    assert!(trail.is_sorted_by(|a, b| a.at <= b.at && a.hash != b.hash));
    let head = trail.last().unwrap().hash.clone();
    assert_eq!(tenant.verify_audit().await, Ok(Verdict::Intact { entries: 41, head }));
}

pub async fn a7_entries_are_found_by_what_they_are_about(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    for (actor, action, thread) in [
        ("ada", "run.start", Some(thread)),
        ("bob", "run.start", None),
        ("ada", "thread.read", Some(ThreadId::random())),
        ("ada", "thread.read", Some(thread)),
    ] {
        tenant.record(AuditEntry { thread_id: thread, ..entry(actor, action, "allowed") }).await.unwrap();
        a_moment().await;
    }
    let numbers =
        async |query| all(&*tenant, query).await.iter().map(|entry| entry.number).collect::<Vec<u64>>();
    let any = AuditQuery::default;
    let (ada, read) = (Some("ada".to_owned()), Some("thread.read".to_owned()));
    assert_eq!(numbers(any()).await, [1, 2, 3, 4], "the oldest first");
    assert_eq!(numbers(AuditQuery { thread_id: Some(thread), ..any() }).await, [1, 4]);
    assert_eq!(numbers(AuditQuery { actor: ada.clone(), ..any() }).await, [1, 3, 4]);
    assert_eq!(numbers(AuditQuery { action: read.clone(), ..any() }).await, [3, 4]);
    let all_of_it = AuditQuery { thread_id: Some(thread), actor: ada, action: read, ..any() };
    assert_eq!(numbers(all_of_it).await, [4]);
    assert_eq!(numbers(AuditQuery { since: Some(in_seconds(60)), ..any() }).await, [0; 0]);
    assert_eq!(numbers(AuditQuery { since: Some(in_seconds(-60)), ..any() }).await.len(), 4);
    let third = all(&*tenant, any()).await[2].at;
    let since = AuditQuery { since: Some(third), ..any() };
    assert_eq!(numbers(since.clone()).await, [3, 4], "at this time or later");
    assert_eq!(numbers(AuditQuery { actor: Some("bob".to_owned()), ..since }).await, [0; 0]);
    let mut request = page(1);
    request.cursor = Some("x".to_owned());
    assert!(tenant.audit(any(), request).await.is_err());
}

/// And never what was said.
pub async fn a15_what_the_store_does_is_in_the_trail(store: &dyn Store) {
    let tenant = tenant(store);
    let run = new_run(ThreadId::random(), "my secret plan");
    tenant.accept(run.clone()).await.unwrap();
    tenant.cancel_run(run.run_id, Cancel::Abort).await.unwrap();
    tenant.delete_thread(run.thread_id, Some(&user("ada"))).await.unwrap();
    let trail = all(&*tenant, AuditQuery { thread_id: Some(run.thread_id), ..AuditQuery::default() }).await;
    let did: Vec<(&str, &str, &str)> = trail
        .iter()
        .map(|one| (one.entry.actor.as_str(), one.entry.action.as_str(), one.entry.decision.as_str()))
        .collect();
    let expected = [
        ("ada", "message.send", "accepted"),
        ("system", "run.cancel", "cancelled"),
        ("ada", "thread.delete", "deleted"),
    ];
    assert_eq!(did, expected);
    assert_eq!(trail[0].entry.run_id, Some(run.run_id));
    assert!(!format!("{trail:?}").contains("secret"));
    assert!(matches!(tenant.verify_audit().await, Ok(Verdict::Intact { entries: 3, .. })));
}
