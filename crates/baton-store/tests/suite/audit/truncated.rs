//! A15: trails whose oldest entries were removed. What is left is verified, and any other change is found.

use std::sync::Arc;

use baton_core::store::{AuditQuery, AuditScope, AuditVerdict, Audited, Order, PageRequest};
use baton_core::{Store as _, StoreError, TenantStore, ThreadId};
use fastrand::Rng;
use jiff::Timestamp;

use super::mutation::{Mutation, Trail};
use super::signed::{ONE, Place, TWO};
use super::{entry, intact, record_all};
use crate::rows::Opened;
use crate::support::{acme, message};

/// Later than every seal.
fn later() -> Timestamp {
    Timestamp::now() + jiff::SignedDuration::from_hours(1)
}

async fn truncate(tenant: &dyn TenantStore, seal: u64) {
    while tenant.truncate_audit(later(), seal).await.unwrap() {}
}

/// The last seal and the number of entries that the record says were removed.
async fn removed(tenant: &dyn TenantStore) -> Option<(u64, u64)> {
    match tenant.verify_audit(AuditScope::Full).await.unwrap() {
        AuditVerdict::Intact { truncation, .. } => truncation.map(|record| (record.seal, record.entries)),
        broken @ AuditVerdict::Broken { .. } => panic!("{broken:?}"),
    }
}

async fn listed(tenant: &dyn TenantStore, query: AuditQuery) -> Vec<Audited> {
    let query = AuditQuery { order: Order::Asc, ..query };
    tenant.audit(query, PageRequest::first(100)).await.unwrap().data
}

async fn numbers(opened: &Opened, sql: &str) -> u64 {
    opened.texts(sql).await[0].parse().unwrap()
}

const DANGLING: [&str; 2] = [
    "SELECT CAST(count(*) AS TEXT) FROM audit_names AS i WHERE NOT EXISTS (
        SELECT 1 FROM audit AS a WHERE a.tenant = i.tenant AND a.chain = i.chain AND a.number = i.number)",
    "SELECT CAST(count(*) AS TEXT) FROM audit_threads AS i WHERE NOT EXISTS (
        SELECT 1 FROM audit AS a WHERE a.tenant = i.tenant AND a.chain = i.chain AND a.number = i.number)",
];

/// Old entries are gone, the others are as they were, with the hashes that they had. The removal is an entry itself.
async fn oldest_entries_are_removed(opened: &Opened) {
    let (store, tenant) = (opened.store(), acme(opened.store()));
    let threads: Vec<ThreadId> = (0..6).map(|_| ThreadId::random()).collect();
    // One of them exists, so that its entries are found by its number.
    tenant.accept(message(threads[5], "hello")).await.unwrap();
    let extra = listed(&*tenant, AuditQuery::default()).await.len();
    for round in 0..4_u64 {
        record_all(&tenant, (0..10_usize).map(|n| entry(round, threads.get(n).copied()))).await;
        store.seal_audit().await.unwrap();
    }
    let before = listed(&*tenant, AuditQuery::default()).await;
    assert_eq!(before.len(), 40 + extra);
    let (left, removed_entries) = (20 + extra, 20 + extra as u64);
    assert_eq!(tenant.expired_audit(Timestamp::UNIX_EPOCH).await.unwrap(), None);
    assert_eq!(tenant.expired_audit(later()).await.unwrap(), Some(3), "the newest seal stays");
    truncate(&*tenant, 2).await;
    assert_eq!(removed(&*tenant).await, Some((2, removed_entries)));
    let after = listed(&*tenant, AuditQuery::default()).await;
    assert_eq!(after[..20], before[left..], "with their hashes");
    let truncated = &after[20];
    assert_eq!((after.len(), truncated.entry.action.as_str()), (21, "audit.truncate"));
    assert_eq!(
        (&truncated.entry.detail["seal"], &truncated.entry.detail["entries"]),
        (&2.into(), &removed_entries.into())
    );
    for query in [
        AuditQuery { actor: Some("agent".to_owned()), ..AuditQuery::default() },
        AuditQuery { action: Some("tool.call".to_owned()), ..AuditQuery::default() },
    ] {
        assert_eq!(listed(&*tenant, query).await, before[left..]);
    }
    let query = AuditQuery { thread_id: Some(threads[0]), ..AuditQuery::default() };
    assert_eq!(listed(&*tenant, query).await.len(), 2);
    for sql in DANGLING {
        assert_eq!(numbers(opened, sql).await, 0, "{sql}");
    }
    // The trail goes on, is sealed, verified from its checkpoint, and truncated again, also beyond the checkpoint.
    record_all(&tenant, (0..10_usize).map(|n| entry(9, threads.get(n).copied()))).await;
    store.seal_audit().await.unwrap();
    for scope in [AuditScope::Incremental, AuditScope::Full] {
        let verdict = tenant.verify_audit(scope).await.unwrap();
        let AuditVerdict::Intact { entries, .. } = verdict else { panic!("{verdict:?}") };
        assert_eq!(entries, 51 + extra as u64);
    }
    record_all(&tenant, (0..10_usize).map(|n| entry(9, threads.get(n).copied()))).await;
    store.seal_audit().await.unwrap();
    let last = tenant.expired_audit(later()).await.unwrap().unwrap();
    assert_eq!(last, 5);
    truncate(&*tenant, last).await;
    assert_eq!(removed(&*tenant).await, Some((5, 51 + extra as u64)));
    let verdict = tenant.verify_audit(AuditScope::Incremental).await.unwrap();
    let AuditVerdict::Intact { entries, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(entries, 62 + extra as u64);
    assert_eq!(tenant.expired_audit(later()).await.unwrap(), None);
    truncate(&*tenant, last).await;
    assert_eq!(removed(&*tenant).await, Some((5, 51 + extra as u64)), "a repetition removes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_oldest_entries_are_removed_on_sqlite() {
    oldest_entries_are_removed(&Opened::signed_sqlite().await).await;
    oldest_entries_are_removed(&Opened::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_oldest_entries_are_removed_on_postgres() {
    oldest_entries_are_removed(&Opened::signed_postgres().await).await;
}

/// A seal that covers more than one batch: between two batches the trail is intact, and the walk continues there.
async fn long_seals_are_removed_in_batches(opened: &Opened) {
    let (store, tenant) = (opened.store(), acme(opened.store()));
    // Each is a row of its own.
    for n in 0..1500 {
        tenant.record(entry(n, None)).await.unwrap();
    }
    store.seal_audit().await.unwrap();
    tenant.record(entry(0, None)).await.unwrap();
    store.seal_audit().await.unwrap();
    assert!(tenant.truncate_audit(later(), 1).await.unwrap(), "there is more");
    assert_eq!(removed(&*tenant).await, Some((0, 1000)));
    let left =
        "SELECT CAST(count(*) AS TEXT) FROM audit WHERE tenant = 'acme' AND chain = 0 AND number <= 1500";
    assert_eq!(numbers(opened, left).await, 500);
    opened
        .execute("UPDATE audit SET at = at + 1 WHERE tenant = 'acme' AND chain = 0 AND number = 1200")
        .await;
    let changed = tenant.truncate_audit(later(), 1).await.unwrap_err();
    assert!(
        matches!(&changed, StoreError::Corrupt(text) if text.contains("nothing of it is removed")),
        "{changed}"
    );
    assert_eq!(numbers(opened, left).await, 500);
    opened
        .execute("UPDATE audit SET at = at - 1 WHERE tenant = 'acme' AND chain = 0 AND number = 1200")
        .await;
    assert_eq!(tenant.expired_audit(later()).await.unwrap(), Some(1), "an interrupted removal is continued");
    assert!(!tenant.truncate_audit(later(), 1).await.unwrap());
    assert_eq!(removed(&*tenant).await, Some((1, 1500)));
    assert_eq!(numbers(opened, left).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_long_seals_are_removed_in_batches_on_sqlite() {
    long_seals_are_removed_in_batches(&Opened::signed_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_long_seals_are_removed_in_batches_on_postgres() {
    long_seals_are_removed_in_batches(&Opened::signed_postgres().await).await;
}

/// Evidence of a change is not removed.
async fn a_changed_trail_is_not_truncated(opened: &Opened) {
    let (store, tenant) = (opened.store(), acme(opened.store()));
    for n in 0..4 {
        tenant.record(entry(n, None)).await.unwrap();
        store.seal_audit().await.unwrap();
    }
    opened.execute("UPDATE audit SET entries = replace(entries, 'allowed', 'denied') WHERE number = 2").await;
    let refused = tenant.expired_audit(later()).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Corrupt(text) if text.contains("baton audit verify --full")),
        "{refused}"
    );
    assert!(tenant.truncate_audit(later(), 3).await.is_err());
    assert_eq!(numbers(opened, "SELECT CAST(count(*) AS TEXT) FROM audit WHERE tenant = 'acme'").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_changed_trail_is_not_truncated() {
    a_changed_trail_is_not_truncated(&Opened::signed_sqlite().await).await;
    a_changed_trail_is_not_truncated(&Opened::signed_postgres().await).await;
}

/// Changes of the record and of what it says was removed.
const RECORD: [&str; 13] = [
    "DELETE FROM audit_truncations WHERE tenant = 'acme'",
    "UPDATE audit_truncations SET seal = seal + 1 WHERE tenant = 'acme'",
    "UPDATE audit_truncations SET seal = seal - 1 WHERE tenant = 'acme'",
    "UPDATE audit_truncations SET at = at + 1 WHERE tenant = 'acme'",
    "UPDATE audit_truncations SET key_id = '' WHERE tenant = 'acme'",
    "UPDATE audit_truncations SET tenant = 'rival'",
    // An older record.
    "DELETE FROM audit_truncations; INSERT INTO audit_truncations SELECT * FROM old_truncations",
    // What a verification has signed is no permission to remove.
    "UPDATE audit_truncations SET seal = (SELECT c.seal FROM audit_checkpoints AS c WHERE c.tenant = 'acme'),
        state = (SELECT c.state FROM audit_checkpoints AS c WHERE c.tenant = 'acme'),
        mac = (SELECT c.mac FROM audit_checkpoints AS c WHERE c.tenant = 'acme')",
    "UPDATE audit_truncations SET state = (SELECT c.state FROM audit_checkpoints AS c WHERE c.tenant = 'acme')",
    // More is removed than the record says.
    "DELETE FROM audit_seals WHERE tenant = 'acme' AND number = 3",
    "DELETE FROM audit WHERE tenant = 'acme' AND number = (SELECT min(a.number) FROM audit AS a
        WHERE a.tenant = 'acme' AND a.chain = 0) AND chain = 0",
    // Less.
    "INSERT INTO audit SELECT * FROM removed_audit WHERE tenant = 'acme' AND chain = 0",
    "INSERT INTO audit_seals SELECT * FROM removed_audit_seals WHERE tenant = 'acme' AND number = 2",
];

/// Random changes of what is left, and all of the record.
async fn every_mutation_is_found(opened: &Opened, mutations: u64) {
    let trail = Trail::write(opened).await;
    let tenant = trail.tenant("acme");
    // Leaves a signed checkpoint.
    intact(tenant).await;
    for table in ["audit", "audit_seals"] {
        opened.execute(&format!("CREATE TABLE all_{table} AS SELECT * FROM {table}")).await;
    }
    truncate(tenant, 1).await;
    opened.execute("CREATE TABLE old_truncations AS SELECT * FROM audit_truncations").await;
    truncate(tenant, 2).await;
    for (table, same) in
        [("audit", "k.chain = a.chain AND k.number = a.number"), ("audit_seals", "k.number = a.number")]
    {
        opened
            .execute(&format!(
                "CREATE TABLE removed_{table} AS SELECT * FROM all_{table} AS a
                WHERE NOT EXISTS (SELECT 1 FROM {table} AS k WHERE k.tenant = a.tenant AND {same})"
            ))
            .await;
    }
    let trail = trail.truncated(opened, 3).await;
    for (number, sql) in RECORD.iter().enumerate() {
        opened.execute(&format!("BEGIN; {sql}; COMMIT")).await;
        let verdict = trail.tenant("acme").verify_audit(AuditScope::Full).await.unwrap();
        assert!(matches!(verdict, AuditVerdict::Broken { .. }), "{number}: {sql} was not found");
        trail.restore(opened).await;
    }
    let rng = &mut Rng::with_seed(7);
    for seed in (0..mutations).map(|_| rng.u64(..)) {
        let mutation = Mutation::random(&trail, seed);
        opened.execute(&mutation.sql).await;
        for name in mutation.tenants {
            let verdict = trail.tenant(name).verify_audit(AuditScope::Full).await.unwrap();
            let is_broken = matches!(verdict, AuditVerdict::Broken { .. });
            assert!(is_broken, "{} (seed {seed}) was not found in {name}", mutation.sql);
        }
        trail.restore(opened).await;
    }
    assert_eq!(removed(trail.tenant("acme")).await.map(|(seal, _)| seal), Some(2));
    intact(trail.tenant("rival")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_every_mutation_of_a_truncated_trail_is_found_on_sqlite() {
    every_mutation_is_found(&Opened::signed_sqlite().await, 500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_every_mutation_of_a_truncated_trail_is_found_on_postgres() {
    every_mutation_is_found(&Opened::signed_postgres().await, 60).await;
}

/// The record is signed with the new key when keys rotate, and accepted with the first key of a trail that had none.
async fn the_record_follows_the_keys(place: &Place) {
    let fill = async |store: &baton_store::Database| {
        let tenant: Arc<dyn TenantStore> = acme(store);
        for n in 0..3 {
            tenant.record(entry(n, None)).await.unwrap();
            store.seal_audit().await.unwrap();
        }
        tenant
    };
    let store = place.open("").await;
    let tenant = fill(&store).await;
    truncate(&*tenant, 2).await;
    assert_eq!(removed(&*tenant).await, Some((2, 2)));
    store.close().await.unwrap();

    let store = place.open(ONE).await;
    let tenant = acme(&store);
    let verdict = tenant.verify_audit(AuditScope::Full).await.unwrap();
    assert!(matches!(verdict, AuditVerdict::Broken { .. }), "not signed yet: {verdict:?}");
    assert!(matches!(tenant.sign_audit().await.unwrap(), AuditVerdict::Intact { .. }));
    let tenant = fill(&store).await;
    let last = tenant.expired_audit(later()).await.unwrap().unwrap();
    truncate(&*tenant, last).await;
    store.seal_audit().await.unwrap();
    store.close().await.unwrap();

    let store = place.open(&format!("{TWO} {ONE}")).await;
    fill(&store).await;
    store.close().await.unwrap();
    let store = place.open(TWO).await;
    assert_eq!(removed(&*acme(&store)).await.map(|(seal, _)| seal), Some(last));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_record_of_removed_entries_follows_the_keys() {
    the_record_follows_the_keys(&Place::sqlite()).await;
    the_record_follows_the_keys(&Place::postgres().await).await;
}

/// If the entry about the removal cannot be written, nothing is removed.
async fn removal_and_its_entry_are_stored_together(opened: &Opened, fault: &str) {
    let (store, tenant) = (opened.store(), acme(opened.store()));
    for n in 0..3 {
        tenant.record(entry(n, None)).await.unwrap();
        store.seal_audit().await.unwrap();
    }
    opened.execute(fault).await;
    assert!(tenant.truncate_audit(later(), 2).await.is_err());
    assert_eq!(removed(&*tenant).await, None);
    assert_eq!(intact(&*tenant).await.0, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_removal_and_its_entry_are_stored_together() {
    let sqlite = super::atomic::SQLITE_FAULT.replace("probe", "audit.truncate");
    removal_and_its_entry_are_stored_together(&Opened::signed_sqlite().await, &sqlite).await;
    let postgres = super::atomic::POSTGRES_FAULT.replace("probe", "audit.truncate");
    removal_and_its_entry_are_stored_together(&Opened::signed_postgres().await, &postgres).await;
}
