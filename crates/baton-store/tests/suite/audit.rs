//! The audit trail seen past Baton: every change of it is found, and an unchanged trail is intact.

mod atomic;
mod mutation;
mod names;
mod signed;
mod truncated;

use std::sync::Arc;

use baton_core::store::{AuditEntry, AuditQuery, AuditScope, AuditVerdict, PageRequest, Seal};
use baton_core::{Store as _, TenantId, TenantStore, ThreadId};
use baton_store::Database;
use futures_util::future::join_all;
use serde_json::json;

use crate::rows::Opened;
use crate::support::{acme, connect, count, fresh_postgres, fresh_sqlite, open_postgres, open_sqlite};

use mutation::{Mutation, Trail};

pub(super) fn entry(n: u64, thread_id: Option<ThreadId>) -> AuditEntry {
    AuditEntry {
        actor: "agent".to_owned(),
        action: "tool.call".to_owned(),
        thread_id,
        decision: "allowed".to_owned(),
        detail: json!({"n": n}),
        ..AuditEntry::default()
    }
}

async fn record_all(tenant: &Arc<dyn TenantStore>, entries: impl Iterator<Item = AuditEntry>) {
    for recorded in join_all(entries.map(|entry| tenant.record(entry))).await {
        recorded.unwrap();
    }
}

/// Entries and the newest seal, of a trail that is intact.
async fn intact(tenant: &dyn TenantStore) -> (u64, Option<Seal>) {
    match tenant.verify_audit(AuditScope::Full).await.unwrap() {
        AuditVerdict::Intact { entries, seal, .. } => (entries, seal),
        broken @ AuditVerdict::Broken { .. } => panic!("{broken:?}"),
    }
}

/// What is done to a chain of 1203 entries behind Baton's back, where it is noticed, what is said about it, and what undoes it.
const TAMPERING: [(&str, u64, &str, &str); 8] = [
    (
        "UPDATE audit SET entries = replace(entries, 'allowed', 'denied') WHERE number = 700",
        700,
        "not as it was written",
        "UPDATE audit SET entries = replace(entries, 'denied', 'allowed') WHERE number = 700",
    ),
    (
        "UPDATE audit SET at = at + 1 WHERE number = 1",
        1,
        "not as it was written",
        "UPDATE audit SET at = at - 1 WHERE number = 1",
    ),
    (
        "UPDATE audit SET entries = replace(entries, 'tool.call', 'nothing') WHERE number = 1203",
        1203,
        "not as it was written",
        "UPDATE audit SET entries = replace(entries, 'nothing', 'tool.call') WHERE number = 1203",
    ),
    (
        "UPDATE audit SET number = 9000 WHERE number = 600",
        600,
        "missing",
        "UPDATE audit SET number = 600 WHERE number = 9000",
    ),
    (
        "INSERT INTO audit SELECT tenant, chain, 0, at, entries, hash FROM audit WHERE number = 1",
        1,
        "missing",
        "DELETE FROM audit WHERE number = 0",
    ),
    (
        "INSERT INTO audit SELECT tenant, chain, 1204, at, entries, hash FROM audit WHERE number = 1",
        1204,
        "after the end",
        "DELETE FROM audit WHERE number = 1204",
    ),
    (
        "UPDATE audit_chains SET at = at + 1 WHERE tenant = 'acme' AND chain = 0",
        1203,
        "the end of the chain",
        "UPDATE audit_chains SET at = at - 1 WHERE tenant = 'acme' AND chain = 0",
    ),
    ("DELETE FROM audit WHERE number > 1200", 1201, "missing", ""),
];

/// Without any seal: the chain alone shows it. Each entry is a row, so that its number is known.
async fn tampering_is_noticed(opened: &Opened) {
    let tenant = acme(opened.store());
    for n in 0..1203 {
        tenant.record(entry(n, None)).await.unwrap();
    }
    assert_eq!(intact(&*tenant).await, (1203, None));
    for (tampering, place, words, repair) in TAMPERING {
        opened.execute(tampering).await;
        let verdict = tenant.verify_audit(AuditScope::Full).await.unwrap();
        let AuditVerdict::Broken { chain: Some(0), number, reason } = &verdict else {
            panic!("{tampering}: {verdict:?}")
        };
        assert!(*number == place && reason.contains(words), "{tampering}: {verdict:?}");
        if !repair.is_empty() {
            opened.execute(repair).await;
            assert_eq!(intact(&*tenant).await, (1203, None), "{repair}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_trail_is_noticed_on_sqlite() {
    tampering_is_noticed(&Opened::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_trail_is_noticed_on_postgres() {
    tampering_is_noticed(&Opened::postgres().await).await;
}

/// Random changes of sealed entries, of the ends of chains and of seals.
async fn every_mutation_is_found(opened: &Opened, mutations: u64) {
    let trail = Trail::write(opened).await;
    for seed in 0..mutations {
        let mutation = Mutation::random(&trail, seed);
        opened.execute(&mutation.sql).await;
        for tenant in mutation.tenants {
            let verdict = trail.tenant(tenant).verify_audit(AuditScope::Full).await.unwrap();
            let is_broken = matches!(verdict, AuditVerdict::Broken { .. });
            assert!(is_broken, "{} (seed {seed}) was not found in {tenant}", mutation.sql);
        }
        trail.restore(opened).await;
        if seed % 50 == 0 {
            trail.assert_intact().await;
        }
    }
    trail.assert_intact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mutation_of_a_sealed_trail_is_found_on_sqlite() {
    every_mutation_is_found(&Opened::signed_sqlite().await, 1000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mutation_of_a_sealed_trail_is_found_on_postgres() {
    every_mutation_is_found(&Opened::signed_postgres().await, 100).await;
}

/// Writers of many threads and the sealing of all servers at the same time.
async fn concurrent_writers_keep_the_chains(stores: &[Database]) {
    let threads: Vec<ThreadId> = (0..30).map(|_| ThreadId::random()).collect();
    let writing = (0..400_usize).map(async |n| {
        let store = &stores[n % stores.len()];
        let thread = threads.get(n % 31).copied();
        acme(store).record(entry(n as u64, thread)).await.unwrap();
        if n % 20 == 0 {
            store.seal_audit().await.unwrap();
        }
    });
    join_all(writing).await;
    for store in stores {
        store.seal_audit().await.unwrap();
    }
    let tenant = acme(&stores[0]);
    let (entries, seal) = intact(&*tenant).await;
    assert_eq!((entries, seal.unwrap().entries), (400, 400));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_keep_the_chains_on_sqlite() {
    let (first, folder) = fresh_sqlite().await;
    let second = open_sqlite(folder.path(), "").await.unwrap();
    concurrent_writers_keep_the_chains(&[first, second]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_keep_the_chains_on_postgres() {
    let (first, url) = fresh_postgres().await;
    let (second, third) = (open_postgres(&url).await.unwrap(), open_postgres(&url).await.unwrap());
    concurrent_writers_keep_the_chains(&[first, second, third]).await;
}

/// The second store is the process after the crash.
async fn a_crash_before_the_seal_is_made_up_for(first: Database, second: Database) {
    let tenant = acme(&first);
    tenant.record(entry(1, None)).await.unwrap();
    assert_eq!(first.seal_audit().await, Ok(1));
    record_all(&tenant, (2..=9).map(|n| entry(n, Some(ThreadId::random())))).await;
    // Not closed, as if the process had been killed.
    std::mem::forget(first);
    let tenant = acme(&second);
    let (entries, seal) = intact(&*tenant).await;
    assert_eq!((entries, seal.unwrap().entries), (9, 1));
    assert_eq!(second.seal_audit().await, Ok(1), "although it has written nothing itself");
    assert_eq!(intact(&*tenant).await.1.unwrap().entries, 9);
    assert_eq!(second.seal_audit().await, Ok(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_the_seal_is_made_up_for_on_sqlite() {
    let (first, folder) = fresh_sqlite().await;
    let second = open_sqlite(folder.path(), "").await.unwrap();
    a_crash_before_the_seal_is_made_up_for(first, second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_the_seal_is_made_up_for_on_postgres() {
    let (first, url) = fresh_postgres().await;
    let second = open_postgres(&url).await.unwrap();
    a_crash_before_the_seal_is_made_up_for(first, second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_seals_what_was_written() {
    let (store, folder) = fresh_sqlite().await;
    acme(&store).record(entry(1, None)).await.unwrap();
    store.close().await.unwrap();
    let again = open_sqlite(folder.path(), "").await.unwrap();
    assert_eq!(intact(&*acme(&again)).await.1.unwrap().entries, 1);
}

/// A writer of the first store holds a chain; the other seals meanwhile, and writers of other chains go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_chain_keeps_neither_the_seal_nor_other_chains() {
    let (store, url) = fresh_postgres().await;
    let tenant = acme(&store);
    tenant.record(entry(1, None)).await.unwrap();
    let client = connect(&url).await;
    let lock = "BEGIN; SELECT FROM baton.audit_chains WHERE tenant = 'acme' AND chain = 0 FOR UPDATE";
    client.batch_execute(lock).await.unwrap();
    let thread = loop {
        let thread = ThreadId::random();
        let query = AuditQuery { thread_id: Some(thread), ..AuditQuery::default() };
        // Found out on another tenant, so that nothing waits here.
        let other = store.tenant(&TenantId::parse("other").unwrap());
        other.record(entry(1, Some(thread))).await.unwrap();
        if other.audit(query, PageRequest::first(1)).await.unwrap().data[0].chain != 0 {
            break thread;
        }
    };
    tenant.record(entry(2, Some(thread))).await.unwrap();
    store.seal_audit().await.unwrap();
    assert_eq!(intact(&*tenant).await.1.unwrap().entries, 2);
    client.batch_execute("ROLLBACK").await.unwrap();
}

/// Nothing but the end of its chain is updated, and that without touching an index.
#[tokio::test(flavor = "multi_thread")]
async fn recording_updates_no_row_of_the_tenant_and_no_index() {
    let (store, url) = fresh_postgres().await;
    let tenant = acme(&store);
    tenant.record(entry(1, None)).await.unwrap();
    let client = connect(&url).await;
    let version = "SELECT xmin::text::bigint FROM baton.tenants WHERE tenant = 'acme'";
    let before = count(&client, version).await;
    record_all(&tenant, (0..50).map(|n| entry(n, Some(ThreadId::random())))).await;
    assert_eq!(count(&client, version).await, before);
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 'baton.audit_chains'::regclass";
    assert_eq!(count(&client, indexes).await, 1);
    let room = "SELECT count(*) FROM pg_class WHERE oid = 'baton.audit_chains'::regclass
        AND 'fillfactor=50' = ANY (reloptions)";
    assert_eq!(count(&client, room).await, 1);
}
