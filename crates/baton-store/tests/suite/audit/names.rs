//! Names behind the tokens of a trail: a changed one is found, a removed one makes entries anonymous.

use baton_core::Store as _;
use baton_core::store::{AuditEntry, AuditScope, AuditVerdict};
use baton_store::Database;

use super::entry;
use super::signed::{ONE, Place, TWO};
use crate::support::acme;

async fn record(store: &Database, names: &[&str]) {
    for name in names {
        let entry = AuditEntry { actor: (*name).to_owned(), ..entry(1, None) };
        acme(store).record(entry).await.unwrap();
    }
    store.seal_audit().await.unwrap();
}

/// The reasons of both kinds of verification, or `None` where the trail is intact.
async fn broken(store: &Database) -> [Option<String>; 2] {
    let mut reasons = [None, None];
    for (reason, scope) in reasons.iter_mut().zip([AuditScope::Full, AuditScope::Incremental]) {
        if let AuditVerdict::Broken { reason: found, .. } = acme(store).verify_audit(scope).await.unwrap() {
            *reason = Some(found);
        }
    }
    reasons
}

const CHANGES: [(&str, &str); 3] = [
    // What ada did was done by eve.
    (
        "UPDATE audit_people SET name = 'aside' WHERE name = 'ada'; UPDATE audit_people SET name = 'ada' WHERE name = 'eve';
        UPDATE audit_people SET name = 'eve' WHERE name = 'aside'",
        "UPDATE audit_people SET name = 'aside' WHERE name = 'ada'; UPDATE audit_people SET name = 'ada' WHERE name = 'eve';
        UPDATE audit_people SET name = 'eve' WHERE name = 'aside'",
    ),
    ("UPDATE audit_people SET name = 'bob' WHERE name = 'ada'", "UPDATE audit_people SET name = 'ada' WHERE name = 'bob'"),
    (
        "INSERT INTO audit_people (tenant, name, token) SELECT tenant, 'mallory', token || '0' FROM audit_people WHERE name = 'ada'",
        "DELETE FROM audit_people WHERE name = 'mallory'",
    ),
];

async fn changed_names_are_found(place: &Place) {
    let store = place.open(ONE).await;
    record(&store, &["ada", "eve"]).await;
    assert_eq!(broken(&store).await, [None, None]);
    for (change, repair) in CHANGES {
        place.execute(change).await;
        for reason in broken(&store).await {
            assert!(reason.is_some_and(|reason| reason.contains("the name behind ~")), "{change}");
        }
        place.execute(repair).await;
        assert_eq!(broken(&store).await, [None, None], "{repair}");
    }
    // An erasure.
    place.execute("DELETE FROM audit_people WHERE name = 'eve'").await;
    assert_eq!(broken(&store).await, [None, None]);
    store.close().await.unwrap();

    let store = place.open(&format!("{TWO} {ONE}")).await;
    record(&store, &["bob"]).await;
    store.close().await.unwrap();
    let store = place.open(TWO).await;
    assert_eq!(broken(&store).await, [None, None], "names are signed with the new key");
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_names_are_found_on_sqlite() {
    changed_names_are_found(&Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_names_are_found_on_postgres() {
    changed_names_are_found(&Place::postgres().await).await;
}
