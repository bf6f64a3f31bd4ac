//! What is in the tables, seen past Baton: that nothing is left of a deleted thread, and that a changed trail is noticed.

use std::sync::Arc;

use baton_core::store::{AuditEntry, Verdict};
use baton_core::{Store as _, TenantId, TenantStore};
use baton_store::Database;
use baton_store::conformance::belongings::fill;
use serde_json::json;
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::support::{acme, connect, fresh_postgres, fresh_sqlite};

/// A store and a way into its tables.
enum Opened {
    Sqlite(Database, TempDir),
    Postgres(Database, Client),
}

impl Opened {
    async fn sqlite() -> Self {
        let (store, folder) = fresh_sqlite().await;
        Self::Sqlite(store, folder)
    }

    async fn postgres() -> Self {
        let (store, url) = fresh_postgres().await;
        let client = connect(&url).await;
        client.batch_execute("SET search_path = baton").await.unwrap();
        Self::Postgres(store, client)
    }

    fn store(&self) -> &Database {
        match self {
            Self::Sqlite(store, _) | Self::Postgres(store, _) => store,
        }
    }

    async fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(_, folder) => file(folder).execute_batch(sql).unwrap(),
            Self::Postgres(_, client) => client.batch_execute(sql).await.unwrap(),
        }
    }

    async fn count(&self, sql: &str) -> i64 {
        match self {
            Self::Sqlite(_, folder) => file(folder).query_row(sql, [], |row| row.get(0)).unwrap(),
            Self::Postgres(_, client) => client.query_one(sql, &[]).await.unwrap().get(0),
        }
    }
}

fn file(folder: &TempDir) -> rusqlite::Connection {
    rusqlite::Connection::open(folder.path().join("baton.db")).unwrap()
}

/// Tables of which a thread owns something, and those that outlive it.
async fn deleting_leaves_nothing(opened: &Opened) {
    let schema = include_str!("../../schema/0001.sql");
    let tables: Vec<&str> =
        schema.split("CREATE TABLE ").skip(1).map(|rest| rest.split(' ').next().unwrap()).collect();
    let stays = ["tenants", "audit", "patterns"];
    let not_of_a_thread = ["api_keys", "results"];
    let other = opened.store().tenant(&TenantId::parse("other").unwrap());
    fill(&other).await;
    let tenant = acme(opened.store());
    let owned = fill(&tenant).await;
    let rows = async |table: &str| {
        opened.count(&format!("SELECT count(*) FROM {table} WHERE tenant = 'acme'")).await
    };
    for table in &tables {
        assert!(rows(table).await > 0 || not_of_a_thread.contains(table), "{table} should have something");
    }
    tenant.delete_thread(owned.thread, None).await.unwrap();
    for table in &tables {
        assert!(rows(table).await == 0 || stays.contains(table), "{table} has something left");
        let others = opened.count(&format!("SELECT count(*) FROM {table} WHERE tenant = 'other'")).await;
        assert!(others > 0 || not_of_a_thread.contains(table), "{table} lost something of another tenant");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_thread_leaves_nothing_on_sqlite() {
    deleting_leaves_nothing(&Opened::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_thread_leaves_nothing_on_postgres() {
    deleting_leaves_nothing(&Opened::postgres().await).await;
}

/// What is done to a trail of 1203 entries behind Baton's back, where it is noticed, and what is said about it. What can be
/// undone is undone by the statement after it.
const TAMPERING: [(&str, u64, &str, &str); 9] = [
    (
        "UPDATE audit SET entry = replace(entry, 'allowed', 'denied') WHERE number = 700",
        700,
        "not as it was written",
        "UPDATE audit SET entry = replace(entry, 'denied', 'allowed') WHERE number = 700",
    ),
    (
        "UPDATE audit SET at = at + 1 WHERE number = 1",
        1,
        "not as it was written",
        "UPDATE audit SET at = at - 1 WHERE number = 1",
    ),
    (
        "UPDATE audit SET actor = 'mallory' WHERE number = 2",
        2,
        "beside the entry",
        "UPDATE audit SET actor = 'agent' WHERE number = 2",
    ),
    (
        "UPDATE audit SET action = 'nothing' WHERE number = 1203",
        1203,
        "beside the entry",
        "UPDATE audit SET action = 'tool.call' WHERE number = 1203",
    ),
    (
        "UPDATE audit SET thread_id = 'x' WHERE number = 501",
        501,
        "beside the entry",
        "UPDATE audit SET thread_id = NULL WHERE number = 501",
    ),
    (
        "UPDATE audit SET number = 9000 WHERE number = 600",
        600,
        "missing",
        "UPDATE audit SET number = 600 WHERE number = 9000",
    ),
    (
        "INSERT INTO audit SELECT tenant, 0, at, actor, action, thread_id, entry, hash FROM audit WHERE number = 1",
        1204,
        "do not belong",
        "DELETE FROM audit WHERE number = 0",
    ),
    (
        "UPDATE tenants SET audit_head = 'x' || audit_head WHERE tenant = 'acme'",
        1203,
        "the end of the chain",
        "UPDATE tenants SET audit_head = substr(audit_head, 2) WHERE tenant = 'acme'",
    ),
    ("DELETE FROM audit WHERE number > 1200", 1201, "missing", ""),
];

async fn tampering_is_noticed(opened: &Opened) {
    let tenant = acme(opened.store());
    let entries = (0..1203).map(|n| {
        let tenant: Arc<dyn TenantStore> = Arc::clone(&tenant);
        async move { tenant.record(entry(n)).await.unwrap() }
    });
    futures_util::future::join_all(entries).await;
    let Verdict::Intact { entries: 1203, head } = tenant.verify_audit().await.unwrap() else {
        panic!("not intact")
    };
    assert_eq!(head.len(), 64);
    for (tampering, place, words, repair) in TAMPERING {
        opened.execute(tampering).await;
        let verdict = tenant.verify_audit().await.unwrap();
        let Verdict::Broken { number, reason } = &verdict else { panic!("{tampering} was not noticed") };
        assert!(*number == place && reason.contains(words), "{tampering}: {verdict:?}");
        opened.execute(repair).await;
        let is_mended =
            tenant.verify_audit().await.unwrap() == Verdict::Intact { entries: 1203, head: head.clone() };
        assert!(is_mended != repair.is_empty(), "{repair}");
    }
}

fn entry(n: u64) -> AuditEntry {
    AuditEntry {
        actor: "agent".to_owned(),
        on_behalf_of: None,
        action: "tool.call".to_owned(),
        thread_id: None,
        run_id: None,
        decision: "allowed".to_owned(),
        trace_id: None,
        detail: json!({"n": n}),
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
