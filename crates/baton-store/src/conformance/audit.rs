//! The trail. That it shows what was changed behind the store's back is tried where its tables can be reached.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::store::{
    AuditEntry, AuditQuery, AuditScope, AuditVerdict, Audited, Cancel, Order, PageRequest, Seal,
};
use baton_core::{Store, StoreError, TenantStore, ThreadId};
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

/// Entries and the newest seal, of a trail that is intact.
async fn intact(tenant: &dyn TenantStore) -> (u64, Option<Seal>) {
    match tenant.verify_audit(AuditScope::Full).await.unwrap() {
        AuditVerdict::Intact { entries, head, seal, .. } => {
            assert_eq!(head.len(), if entries == 0 { 0 } else { 64 });
            (entries, seal)
        }
        broken @ AuditVerdict::Broken { .. } => panic!("{broken:?}"),
    }
}

/// Numbered without gaps within each chain, however many write at once.
pub async fn every_entry_is_chained(store: &dyn Store) {
    let tenant = tenant(store);
    assert_eq!(intact(&*tenant).await, (0, None));
    let wild = AuditEntry {
        on_behalf_of: Some("a\u{0}b".to_owned()),
        trace_id: Some("0af7".to_owned()),
        detail: json!({"z": {"b": 1.5, "a": null}, "a": "line\nbreak"}),
        ..entry("act\u{0}or", "agent.delegate", "allowed")
    };
    tenant.record(wild.clone()).await.unwrap();
    let threads: Vec<ThreadId> = (0..20).map(|_| ThreadId::random()).collect();
    let entries = (0..40).map(|n| AuditEntry {
        thread_id: threads.get(n / 2).copied(),
        ..entry(&format!("agent-{n}"), "tool.call", "allowed")
    });
    for recorded in join_all(entries.map(|entry| tenant.record(entry))).await {
        recorded.unwrap();
    }
    let trail = all(&*tenant, AuditQuery::default()).await;
    assert_eq!(trail.len(), 41);
    let mut last = BTreeMap::new();
    let mut chains = BTreeMap::new();
    for Audited { chain, number, entry, .. } in &trail {
        assert_eq!(*chains.entry(entry.thread_id).or_insert(*chain), *chain, "a thread has one chain");
        assert_eq!(last.insert(chain, number).map_or(0, |last| *last) + 1, *number);
    }
    assert_eq!(
        trail[0].entry,
        AuditEntry { actor: "actor".to_owned(), on_behalf_of: Some("ab".to_owned()), ..wild },
        "text has no NUL"
    );
    assert!(trail.is_sorted_by_key(|entry| (entry.at, entry.chain, entry.number)));
    assert_eq!(trail.iter().map(|entry| &entry.hash).collect::<BTreeSet<_>>().len(), 41);
    assert_eq!(intact(&*tenant).await, (41, None));
}

/// Every seal covers what was written before it, and a call without news writes none.
pub async fn a_seal_covers_what_was_written(store: &dyn Store) {
    let tenant = tenant(store);
    let mut hashes = BTreeSet::new();
    for round in 1..=5 {
        let thread_id = Some(ThreadId::random());
        tenant.record(AuditEntry { thread_id, ..entry("ada", "run.start", "allowed") }).await.unwrap();
        tenant.record(entry("ada", "key.create", "allowed")).await.unwrap();
        store.seal_audit().await.unwrap();
        let (entries, seal) = intact(&*tenant).await;
        let seal = seal.unwrap();
        assert_eq!((entries, seal.number, seal.entries), (2 * round, round, 2 * round));
        assert!(hashes.insert(seal.hash.clone()));
        store.seal_audit().await.unwrap();
        assert_eq!(intact(&*tenant).await.1, Some(seal), "nothing was written since");
    }
    tenant.record(entry("ada", "run.start", "allowed")).await.unwrap();
    let (entries, seal) = intact(&*tenant).await;
    assert_eq!((entries, seal.unwrap().entries), (11, 10), "one entry waits for the next seal");
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
    let any = AuditQuery::default;
    let trail = all(&*tenant, any()).await;
    // Which of the four, from 1 on.
    let numbers = async |query| {
        let found = all(&*tenant, query).await;
        let number = |one: &Audited| trail.iter().position(|entry| entry == one).unwrap() + 1;
        found.iter().map(number).collect::<Vec<usize>>()
    };
    let (ada, read) = (Some("ada".to_owned()), Some("thread.read".to_owned()));
    let actors: Vec<&str> = trail.iter().map(|one| one.entry.actor.as_str()).collect();
    assert_eq!(actors, ["ada", "bob", "ada", "ada"], "the oldest first");
    assert_eq!(numbers(AuditQuery { action: Some("run.start".to_owned()), ..any() }).await, [1, 2]);
    assert_eq!(numbers(AuditQuery { thread_id: Some(thread), ..any() }).await, [1, 4]);
    assert_eq!(numbers(AuditQuery { actor: ada.clone(), ..any() }).await, [1, 3, 4]);
    assert_eq!(numbers(AuditQuery { action: read.clone(), ..any() }).await, [3, 4]);
    let all_of_it = AuditQuery { thread_id: Some(thread), actor: ada, action: read, ..any() };
    assert_eq!(numbers(all_of_it).await, [4]);
    assert_eq!(numbers(AuditQuery { since: Some(in_seconds(60)), ..any() }).await, [0; 0]);
    assert_eq!(numbers(AuditQuery { since: Some(in_seconds(-60)), ..any() }).await.len(), 4);
    let since = AuditQuery { since: Some(trail[2].at), ..any() };
    assert_eq!(numbers(since.clone()).await, [3, 4], "at this time or later");
    assert_eq!(numbers(AuditQuery { actor: Some("bob".to_owned()), ..since }).await, [0; 0]);
    let mut request = page(1);
    request.cursor = Some("x".to_owned());
    assert!(tenant.audit(any(), request).await.is_err());
}

pub async fn the_trail_is_listed_in_either_order(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    for number in 1..=20 {
        let (actor, action) = if number % 2 == 0 { ("ada", "run.start") } else { ("bob", "tool.call") };
        let thread_id = match number % 3 {
            0 => Some(thread),
            1 => Some(ThreadId::random()),
            _ => None,
        };
        tenant.record(AuditEntry { thread_id, ..entry(actor, action, "allowed") }).await.unwrap();
        a_moment().await;
    }
    let trail = all(&*tenant, AuditQuery::default()).await;
    assert_eq!(trail.len(), 20);
    let (since, until) = (Some(trail[2].at), Some(trail[17].at));
    let (ada, start) = (Some("ada".to_owned()), Some("run.start".to_owned()));
    let call = Some("tool.call".to_owned());
    for (thread_id, actor, action) in [
        (None, None, None),
        (Some(thread), None, None),
        (Some(thread), ada.clone(), start.clone()),
        (None, ada.clone(), None),
        (None, ada, start.clone()),
        (None, None, start),
        (None, None, call),
    ] {
        let fits = |one: &&Audited| {
            let entry = &one.entry;
            thread_id.is_none_or(|id| entry.thread_id == Some(id))
                && actor.as_ref().is_none_or(|actor| entry.actor == *actor)
                && action.as_ref().is_none_or(|action| entry.action == *action)
        };
        for (since, until, within) in [(None, None, 0..20), (since, until, 2..17), (None, until, 0..17)] {
            let mut expected: Vec<Audited> = trail[within].iter().filter(fits).cloned().collect();
            let (actor, action) = (actor.clone(), action.clone());
            let query = AuditQuery { thread_id, actor, action, since, until, order: Order::Asc };
            assert_eq!(all(&*tenant, query.clone()).await, expected, "{query:?}");
            expected.reverse();
            let query = AuditQuery { order: Order::Desc, ..query };
            assert_eq!(all(&*tenant, query.clone()).await, expected, "{query:?}");
        }
    }
    for (since, until) in [(None, Some(trail[0].at)), (until, since), (Some(in_seconds(60)), None)] {
        let order = Order::Desc;
        assert_eq!(all(&*tenant, AuditQuery { since, until, order, ..AuditQuery::default() }).await, []);
    }
}

/// Entries that are written while the trail is read backwards come before its first page.
pub async fn a_cursor_of_the_trail_stays_right_in_its_own_order_only(store: &dyn Store) {
    let tenant = tenant(store);
    let record = async || tenant.record(entry("ada", "run.start", "allowed")).await.unwrap();
    for _ in 0..3 {
        record().await;
    }
    let query = |order| AuditQuery { order, ..AuditQuery::default() };
    for (order, other) in [(Order::Asc, Order::Desc), (Order::Desc, Order::Asc)] {
        let first = tenant.audit(query(order), page(1)).await.unwrap();
        record().await;
        let request = PageRequest { cursor: first.next_cursor, ..page(1) };
        let second = tenant.audit(query(order), request.clone()).await.unwrap();
        let number = first.data[0].number;
        assert_eq!(second.data[0].number, if order == Order::Asc { number + 1 } else { number - 1 });
        assert_eq!(tenant.audit(query(other), request).await, Err(StoreError::InvalidCursor));
    }
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
    assert_eq!(intact(&*tenant).await.0, 3);
}

/// One entry for each write that succeeds and changes something.
pub async fn an_audited_write_has_its_entry(store: &dyn Store) {
    let tenant = tenant(store);
    let run = new_run(ThreadId::random(), "hello");
    tenant.accept(run.clone()).await.unwrap();
    let address = Some("192.0.2.7".to_owned());
    let probe = AuditEntry { address, thread_id: Some(run.thread_id), ..entry("ada", "probe", "allowed") };
    let audited = tenant.audited(probe.clone());
    assert_eq!(audited.tenant(), tenant.tenant());
    audited.rename_thread(run.thread_id, None, "New").await.unwrap();
    assert!(audited.rename_thread(ThreadId::random(), None, "New").await.is_err());
    audited.thread(run.thread_id, None).await.unwrap();
    audited.delete_thread(run.thread_id, None).await.unwrap();
    tenant.accept(new_run(ThreadId::random(), "hello")).await.unwrap();
    let query = AuditQuery { action: Some("probe".to_owned()), ..AuditQuery::default() };
    let found: Vec<AuditEntry> = all(&*tenant, query).await.into_iter().map(|one| one.entry).collect();
    assert_eq!(found, [probe.clone(), probe]);
}
