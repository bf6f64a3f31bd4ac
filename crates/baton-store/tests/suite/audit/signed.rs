//! Trails that are signed: who cannot read the key cannot rewrite them, keys rotate, and verification continues where it ended.

use baton_core::store::{AuditScope, AuditVerdict};
use baton_core::{Store as _, ThreadId};
use baton_store::{AuditKeys, Database};
use tempfile::TempDir;

use super::{entry, record_all};
use crate::support::{acme, connect, fresh_database, server};

pub(super) const ONE: &str = "the-first-key-of-thirty-two-characters-or-more";
pub(super) const TWO: &str = "the-second-key-of-thirty-two-characters-or-more";

/// A database that is opened with different keys.
pub(super) enum Place {
    Sqlite(TempDir),
    Postgres(String),
}

impl Place {
    pub(super) async fn postgres() -> Self {
        Self::Postgres(fresh_database(&server()).await)
    }

    pub(super) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    pub(super) async fn open(&self, keys: &str) -> Database {
        let keys = AuditKeys::parse(keys).unwrap();
        let opened = match self {
            Self::Sqlite(folder) => baton_store::open_signed("sqlite://baton.db", folder.path(), keys).await,
            Self::Postgres(url) => baton_store::open_signed(url, "/".as_ref(), keys).await,
        };
        opened.unwrap()
    }

    /// Past Baton, with every right.
    pub(super) async fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(folder) => {
                let file = rusqlite::Connection::open(folder.path().join("baton.db")).unwrap();
                file.execute_batch(sql).unwrap();
            }
            Self::Postgres(url) => {
                let client = connect(url).await;
                client.batch_execute(&format!("SET search_path = baton; {sql}")).await.unwrap();
            }
        }
    }
}

/// Entries with a seal after every five.
async fn fill(store: &Database, entries: u64) {
    let tenant = acme(store);
    for n in 0..entries {
        tenant.record(entry(n, None)).await.unwrap();
        if n % 5 == 4 {
            store.seal_audit().await.unwrap();
        }
    }
}

async fn verdict(store: &Database, scope: AuditScope) -> AuditVerdict {
    acme(store).verify_audit(scope).await.unwrap()
}

async fn is_broken(store: &Database) -> bool {
    let full = verdict(store, AuditScope::Full).await;
    let incremental = verdict(store, AuditScope::Incremental).await;
    assert_eq!(
        matches!(full, AuditVerdict::Broken { .. }),
        matches!(incremental, AuditVerdict::Broken { .. }),
        "{full:?} {incremental:?}"
    );
    matches!(full, AuditVerdict::Broken { .. })
}

const FORGET: &str = "DELETE FROM audit; DELETE FROM audit_names; DELETE FROM audit_threads;
    DELETE FROM audit_chains; DELETE FROM audit_seals; DELETE FROM audit_people;";

/// Someone who can write to the database, but does not have the key, writes a trail of their own with correct hashes.
async fn a_rewritten_trail_is_found(place: Place) {
    let store = place.open(ONE).await;
    fill(&store, 12).await;
    assert!(!is_broken(&store).await);
    store.close().await.unwrap();
    place.execute(FORGET).await;
    let forger = place.open("").await;
    fill(&forger, 40).await;
    assert!(!is_broken(&forger).await, "its hashes are right");
    forger.close().await.unwrap();
    let store = place.open(ONE).await;
    assert!(is_broken(&store).await, "no key has signed it");
    // The server does not vouch for it: neither at its start nor with the next entry.
    assert!(store.seal_audit().await.is_err());
    acme(&store).record(entry(1, None)).await.unwrap();
    assert!(store.seal_audit().await.is_err());
    assert!(is_broken(&store).await);
}

/// The same with entries that are only added.
async fn appended_entries_are_found(place: Place) {
    let store = place.open(ONE).await;
    fill(&store, 7).await;
    store.close().await.unwrap();
    // Baton without the key refuses, so the forger removes what says that there is one.
    let forger = place.open("").await;
    let refused = acme(&forger).record(entry(1, None)).await.unwrap_err().to_string();
    assert!(refused.contains("BATON_AUDIT_KEY"), "{refused}");
    place.execute("UPDATE audit_chains SET key_id = ''").await;
    acme(&forger).record(entry(8, None)).await.unwrap();
    let store = place.open(ONE).await;
    assert!(is_broken(&store).await, "the end of the chain");
    assert!(store.seal_audit().await.is_err(), "it is not sealed");
    // With a made-up key, as if it had been rotated.
    place.execute("UPDATE audit_chains SET key_id = '00'").await;
    let store = place.open(ONE).await;
    assert!(store.seal_audit().await.is_err());
    assert!(is_broken(&store).await);
    // With the id of the real key: the next entry is written, but does not sign what is before it.
    let id = AuditKeys::parse(ONE).unwrap().signing_id().to_owned();
    place.execute(&format!("UPDATE audit_chains SET key_id = '{id}'")).await;
    let store = place.open(ONE).await;
    acme(&store).record(entry(9, None)).await.unwrap();
    let refused = store.seal_audit().await.unwrap_err().to_string();
    assert!(refused.contains("changed outside of Baton"), "{refused}");
    assert!(is_broken(&store).await);
}

/// The stored ends are changed to fit, but without the key they cannot be signed.
async fn truncated_trails_are_found(place: Place) {
    let store = place.open(ONE).await;
    fill(&store, 7).await;
    assert!(!is_broken(&store).await);
    let to_seal = "DELETE FROM audit WHERE number > 5;
        UPDATE audit_chains SET entries = 5, head = (SELECT hash FROM audit WHERE number = 5),
            at = (SELECT at FROM audit WHERE number = 5) WHERE chain = 0;";
    place.execute(to_seal).await;
    assert!(is_broken(&store).await, "the unsealed entries are missing");
    drop(store);
    place.execute(FORGET).await;
    let store = place.open(ONE).await;
    assert!(is_broken(&store).await, "the trail was verified before");
    fill(&store, 20).await;
    assert!(is_broken(&store).await, "a new trail does not replace it");
}

/// An old key verifies what it has signed, and can be thrown away once the new one has sealed.
async fn keys_rotate(place: Place) {
    let store = place.open(ONE).await;
    fill(&store, 10).await;
    store.close().await.unwrap();
    let only_new = place.open(TWO).await;
    assert!(is_broken(&only_new).await, "the old key is missing");
    assert!(only_new.seal_audit().await.is_err());
    drop(only_new);
    let store = place.open(&format!("{TWO}\n{ONE}")).await;
    assert_eq!(store.seal_audit().await, Ok(1), "sealed again, although nothing was added");
    store.close().await.unwrap();
    let store = place.open(TWO).await;
    fill(&store, 5).await;
    let AuditVerdict::Intact { entries, seal, unsigned_seals, .. } = verdict(&store, AuditScope::Full).await
    else {
        panic!("it is intact")
    };
    let signer = AuditKeys::parse(TWO).unwrap().signing_id().to_owned();
    assert_eq!((entries, unsigned_seals, seal.unwrap().key_id), (15, 2, Some(signer)));
    place.execute("UPDATE audit SET at = at + 1 WHERE number = 1").await;
    assert!(is_broken_in_full(&store).await, "the later seals cover what the old key had signed");
}

async fn is_broken_in_full(store: &Database) -> bool {
    matches!(verdict(store, AuditScope::Full).await, AuditVerdict::Broken { .. })
}

/// A trail that began without a key is accepted once, by an explicit decision.
async fn a_first_key_is_adopted(place: Place) {
    let store = place.open("").await;
    fill(&store, 10).await;
    let threads: Vec<_> = (0..20).map(|_| ThreadId::random()).collect();
    record_all(&acme(&store), threads.iter().map(|thread| entry(1, Some(*thread)))).await;
    store.seal_audit().await.unwrap();
    store.close().await.unwrap();
    let store = place.open(ONE).await;
    assert!(is_broken(&store).await);
    acme(&store).record(entry(2, None)).await.unwrap();
    let refused = store.seal_audit().await.unwrap_err().to_string();
    assert!(refused.contains("baton audit sign"), "{refused}");
    let signed = acme(&store).sign_audit().await.unwrap();
    let AuditVerdict::Intact { entries: 31, unsigned_seals: 3, .. } = signed else { panic!("{signed:?}") };
    record_all(&acme(&store), threads.iter().map(|thread| entry(3, Some(*thread)))).await;
    fill(&store, 5).await;
    assert!(!is_broken(&store).await, "the ends of all chains are signed");
    place.execute("UPDATE audit_seals SET key_id = '' WHERE number = 5").await;
    assert!(is_broken_in_full(&store).await, "a seal without a key after one with it");
}

/// The second verification reads only what was added; a forged checkpoint is ignored.
async fn verification_continues(place: Place) {
    let store = place.open(ONE).await;
    fill(&store, 10).await;
    let since = |verdict: &AuditVerdict| match verdict {
        AuditVerdict::Intact { since_seal, entries, .. } => (*since_seal, *entries),
        AuditVerdict::Broken { .. } => panic!("{verdict:?}"),
    };
    assert_eq!(since(&verdict(&store, AuditScope::Incremental).await), (None, 10));
    fill(&store, 5).await;
    assert_eq!(since(&verdict(&store, AuditScope::Incremental).await), (Some(2), 15));
    assert_eq!(since(&verdict(&store, AuditScope::Incremental).await), (Some(3), 15));
    assert_eq!(since(&verdict(&store, AuditScope::Full).await), (None, 15));
    // Old entries are not read again, new ones are.
    place.execute("UPDATE audit SET at = at + 1 WHERE number = 1").await;
    assert_eq!(since(&verdict(&store, AuditScope::Incremental).await), (Some(3), 15));
    assert!(is_broken_in_full(&store).await);
    place.execute("UPDATE audit_checkpoints SET seal = 1").await;
    let forged = verdict(&store, AuditScope::Incremental).await;
    assert!(matches!(forged, AuditVerdict::Broken { .. }), "everything is read: {forged:?}");
    place
        .execute("UPDATE audit SET at = at - 1 WHERE number = 1; UPDATE audit_checkpoints SET seal = 3")
        .await;
    fill(&store, 5).await;
    place.execute("UPDATE audit SET at = at + 1 WHERE number = 18").await;
    let changed = verdict(&store, AuditScope::Incremental).await;
    assert!(matches!(changed, AuditVerdict::Broken { number: 18, .. }), "{changed:?}");
}

/// Concurrent chains: PostgreSQL has several.
async fn many_chains_are_signed(place: Place) {
    let store = place.open(ONE).await;
    let tenant = acme(&store);
    let threads: Vec<_> = (0..40).map(|_| ThreadId::random()).collect();
    record_all(&tenant, threads.iter().map(|thread| entry(1, Some(*thread)))).await;
    assert!(!is_broken(&store).await, "unsealed ends are signed");
    store.seal_audit().await.unwrap();
    assert!(!is_broken(&store).await);
}

macro_rules! on_both {
    ($($name:ident: $sqlite:ident, $postgres:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $sqlite() {
                $name(Place::sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn $postgres() {
                $name(Place::postgres().await).await;
            }
        )+
    };
}

on_both! {
    a_rewritten_trail_is_found: a_rewritten_trail_is_found_on_sqlite, a_rewritten_trail_is_found_on_postgres;
    appended_entries_are_found: appended_entries_are_found_on_sqlite, appended_entries_are_found_on_postgres;
    truncated_trails_are_found: truncated_trails_are_found_on_sqlite, truncated_trails_are_found_on_postgres;
    keys_rotate: keys_rotate_on_sqlite, keys_rotate_on_postgres;
    a_first_key_is_adopted: a_first_key_is_adopted_on_sqlite, a_first_key_is_adopted_on_postgres;
    verification_continues: verification_continues_on_sqlite, verification_continues_on_postgres;
    many_chains_are_signed: many_chains_are_signed_on_sqlite, many_chains_are_signed_on_postgres;
}
