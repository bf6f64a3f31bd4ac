//! What is in the tables, seen past Baton: that nothing is left of a deleted thread.

use baton_core::store::{AuditEntry, Cancel, Owner};
use baton_core::{Store as _, TenantId, ThreadId, UserId};
use baton_store::conformance::belongings::fill_tenant;
use baton_store::{AuditKeys, Database, open_signed};
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::support::{
    LEASE, acme, connect, fresh_database, fresh_postgres, fresh_sqlite, message, server, tables_in_schema,
};

/// A store and a way into its tables.
pub(crate) enum Opened {
    Sqlite(Database, TempDir),
    Postgres(Database, Client),
}

impl Opened {
    pub(crate) async fn sqlite() -> Self {
        let (store, folder) = fresh_sqlite().await;
        Self::Sqlite(store, folder)
    }

    pub(crate) async fn postgres() -> Self {
        let (store, url) = fresh_postgres().await;
        let client = connect(&url).await;
        client.batch_execute("SET search_path = baton").await.unwrap();
        Self::Postgres(store, client)
    }

    /// With a key for the audit trail.
    pub(crate) async fn signed_sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let store = open_signed("sqlite://baton.db", folder.path(), audit_keys()).await.unwrap();
        Self::Sqlite(store, folder)
    }

    pub(crate) async fn signed_postgres() -> Self {
        let url = fresh_database(&server()).await;
        let store = open_signed(&url, "/".as_ref(), audit_keys()).await.unwrap();
        let client = connect(&url).await;
        client.batch_execute("SET search_path = baton").await.unwrap();
        Self::Postgres(store, client)
    }

    pub(crate) fn store(&self) -> &Database {
        match self {
            Self::Sqlite(store, _) | Self::Postgres(store, _) => store,
        }
    }

    /// `ANY_ID` is some UUID.
    pub(crate) async fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(_, folder) => {
                file(folder).execute_batch(&sql.replace("ANY_ID", "randomblob(16)")).unwrap();
            }
            Self::Postgres(_, client) => {
                client.batch_execute(&sql.replace("ANY_ID", "gen_random_uuid()")).await.unwrap();
            }
        }
    }

    /// One column.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Sqlite(_, folder) => {
                let file = file(folder);
                let mut statement = file.prepare(sql).unwrap();
                statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
            }
            Self::Postgres(_, client) => {
                client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
            }
        }
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        match self {
            Self::Sqlite(_, folder) => file(folder).query_row(sql, [], |row| row.get(0)).unwrap(),
            Self::Postgres(_, client) => client.query_one(sql, &[]).await.unwrap().get(0),
        }
    }
}

fn audit_keys() -> AuditKeys {
    AuditKeys::parse("a-key-of-thirty-two-characters-or-more").unwrap()
}

fn file(folder: &TempDir) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(folder.path().join("baton.db")).unwrap();
    // No test of these cuts the power.
    connection.pragma_update(None, "synchronous", "off").unwrap();
    connection
}

/// Tables of which a thread owns something, and those that outlive it.
async fn deleting_leaves_nothing(opened: &Opened, is_long: bool) {
    // Processes belong to no tenant.
    let tables: Vec<&str> =
        tables_in_schema().filter(|table| !["servers", "duties"].contains(table)).collect();
    let stays = [
        "tenants",
        "audit",
        "audit_names",
        "audit_chains",
        "patterns",
        "experience",
        "budget_accounts",
        "skills",
        "created_agents",
        "agent_versions",
        "past_calls",
        "audit_people",
    ];
    let not_of_a_thread = [
        "audit_seals",
        "api_keys",
        "embeddings",
        "results",
        "past_calls",
        "deleted_threads",
        "erasures",
        "event_sweeps",
        "audit_checkpoints",
        "audit_truncations",
    ];
    fill_tenant(opened.store(), &TenantId::parse("other").unwrap()).await;
    let tenant = acme(opened.store());
    let owned = fill_tenant(opened.store(), tenant.tenant()).await;
    let rows = async |table: &str| {
        opened.count(&format!("SELECT count(*) FROM {table} WHERE tenant = 'acme'")).await
    };
    for table in &tables {
        assert!(rows(table).await > 0 || not_of_a_thread.contains(table), "{table} should have something");
    }
    if is_long {
        // Its messages and events are deleted in parts.
        opened.execute("UPDATE thread_work SET records = records + 5000 WHERE tenant = 'acme'").await;
    }
    tenant.delete_thread(owned.thread, None).await.unwrap();
    for table in &tables {
        assert!(rows(table).await == 0 || stays.contains(table), "{table} has something left");
        let others = opened.count(&format!("SELECT count(*) FROM {table} WHERE tenant = 'other'")).await;
        assert!(others > 0 || not_of_a_thread.contains(table), "{table} lost something of another tenant");
    }
}

/// The skills and agents of an erased user stay, under a pseudonym.
async fn k2_skills_and_agents_do_not_name_an_erased_user(opened: &Opened) {
    let tenant = acme(opened.store());
    let owned = fill_tenant(opened.store(), tenant.tenant()).await;
    let saved_by = ["skills", "created_agents"]
        .map(|table| format!("SELECT user_id FROM {table} WHERE tenant = 'acme'"));
    for sql in &saved_by {
        assert_eq!(opened.texts(sql).await, ["ada"], "{sql}");
    }
    let ada = UserId::parse("ada").unwrap();
    let erasure = tenant.begin_erasure(&ada, AuditEntry::default()).await.unwrap();
    tenant.delete_thread(owned.thread, None).await.unwrap();
    tenant.finish_erasure(erasure.erasure_id).await.unwrap();
    for sql in &saved_by {
        let names = opened.texts(sql).await;
        assert!(names.len() == 1 && names[0].starts_with("erased-"), "{sql}: {names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k2_skills_and_agents_do_not_name_an_erased_user_on_sqlite() {
    k2_skills_and_agents_do_not_name_an_erased_user(&Opened::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k2_skills_and_agents_do_not_name_an_erased_user_on_postgres() {
    k2_skills_and_agents_do_not_name_an_erased_user(&Opened::postgres().await).await;
}

/// A request to cancel that a newer version made, and a thread of a tenant without a name.
async fn unreadable_rows_are_skipped(opened: &Opened) {
    let store = opened.store();
    let owner = Owner("one".into());
    store.beat(&owner, LEASE).await.unwrap();
    let tenant = acme(store);
    let threads = [ThreadId::random(), ThreadId::random()];
    for thread in threads {
        tenant.accept(message(thread, "Hello")).await.unwrap();
        let claimed = tenant.claim(thread, &owner).await.unwrap().unwrap();
        tenant.cancel_run(claimed.claim.run_id, Cancel::Abort).await.unwrap();
    }
    tenant.accept(message(ThreadId::random(), "Hello")).await.unwrap();
    opened.execute("UPDATE runs SET cancel = 'newer' WHERE run_id = (SELECT min(run_id) FROM runs)").await;
    assert_eq!(store.beat(&owner, LEASE).await.unwrap().cancelled.len(), 1);
    let moved = "UPDATE runs SET tenant = '' WHERE status = 'queued';
        UPDATE thread_work SET tenant = '' WHERE queued > 0";
    opened.execute(moved).await;
    let thread = ThreadId::random();
    tenant.accept(message(thread, "Hello")).await.unwrap();
    assert_eq!(store.due(10).await.unwrap(), [(tenant.tenant().clone(), thread)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_rows_are_skipped_on_sqlite() {
    unreadable_rows_are_skipped(&Opened::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_thread_leaves_nothing_on_sqlite() {
    deleting_leaves_nothing(&Opened::sqlite().await, false).await;
    deleting_leaves_nothing(&Opened::sqlite().await, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_thread_leaves_nothing_on_postgres() {
    deleting_leaves_nothing(&Opened::postgres().await, false).await;
    deleting_leaves_nothing(&Opened::postgres().await, true).await;
}
