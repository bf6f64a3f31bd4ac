//! Stores that belong to one test, and things to put into them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use baton_core::message::{Message, Part, Role, Visibility};
use baton_core::store::work::NewEvent;
use baton_core::store::{Append, Claim, NewRun, Owner};
use baton_core::{EventKind, MessageId, RunId, Store as _, StoreError, TenantId, TenantStore, ThreadId};
use baton_store::Database;
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// Longer than any test.
pub(crate) const LEASE: Duration = Duration::from_hours(1);

/// A store in a file of its own; the folder goes with the value.
pub(crate) async fn fresh_sqlite() -> (Database, TempDir) {
    let folder = TempDir::new().unwrap();
    let store = open_sqlite(folder.path(), "").await.unwrap();
    (store, folder)
}

/// `baton.db` in a folder, with parameters such as `?busy_timeout=20`.
pub(crate) async fn open_sqlite(folder: &Path, parameters: &str) -> Result<Database, StoreError> {
    baton_store::open(&format!("sqlite://baton.db{parameters}"), folder).await
}

/// A database of its own on the tests' server, and its URL. It goes with the server.
pub(crate) async fn fresh_postgres() -> (Database, String) {
    let url = fresh_database(&server()).await;
    (open_postgres(&url).await.unwrap(), url)
}

pub(crate) async fn open_postgres(url: &str) -> Result<Database, StoreError> {
    baton_store::open(url, Path::new("/")).await
}

/// An empty database on a server.
pub(crate) async fn fresh_database(server: &str) -> String {
    let name = format!("baton_{}", Uuid::new_v4().simple());
    connect(server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let mut url = url::Url::parse(server).unwrap();
    url.set_path(&name);
    url.into()
}

/// The tests' server.
pub(crate) fn server() -> String {
    std::env::var("BATON_TEST_POSTGRES")
        .expect("these tests need a PostgreSQL: start the tests with make test, or set BATON_TEST_POSTGRES")
}

/// As whoever the URL names, past everything that Baton does. The connection ends with the client.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// One number.
pub(crate) async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// A server of its own, for tests that break it.
pub(crate) struct Server {
    folder: PathBuf,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let name = Uuid::new_v4().simple().to_string();
        // Beside the one of `make test`, which stops whatever is left there, also when this process is killed.
        let folder = std::env::var_os("BATON_TEST_POSTGRES_DIR")
            .map_or_else(std::env::temp_dir, PathBuf::from)
            .join(name);
        let url = script("start", &folder, &[]);
        Self { folder, url: url.trim().to_owned() }
    }

    /// `immediate` is a crash: whoever is connected is cut off.
    pub(crate) fn restart(&self, how: &str) {
        script("restart", &self.folder, &[how]);
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        script("stop", &self.folder, &[]);
    }
}

fn script(order: &str, folder: &Path, more: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh");
    let mut command = Command::new("bash");
    command.arg(script).arg(order).arg(folder).args(more).stderr(Stdio::inherit());
    let output = command.output().unwrap();
    assert!(output.status.success(), "postgres.sh {order} failed");
    String::from_utf8(output.stdout).unwrap()
}

/// The names of all tables.
pub(crate) fn tables_in_schema() -> impl Iterator<Item = &'static str> {
    let tables = baton_store::MIGRATIONS.iter().flat_map(|schema| schema.split("CREATE TABLE ").skip(1));
    tables.filter_map(|table| table.split(' ').next())
}

pub(crate) fn acme(store: &Database) -> Arc<dyn TenantStore> {
    store.tenant(&TenantId::parse("acme").unwrap())
}

/// A message that wants an answer.
pub(crate) fn message(thread: ThreadId, text: &str) -> NewRun {
    let run_id = RunId::from_uuid(Uuid::now_v7());
    let message = Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text(text)],
        created_at: Timestamp::now(),
    };
    let run = NewRun::new(thread, "ada".parse().unwrap(), "assistant".parse().unwrap(), message);
    NewRun { request: Value::Null, ..run }
}

pub(crate) fn owner(name: &str) -> Owner {
    Owner(name.into())
}

/// A thread with a run, claimed by `name`.
pub(crate) async fn claimed(tenant: &dyn TenantStore, name: &str) -> Claim {
    let thread = ThreadId::random();
    tenant.accept(message(thread, "hello")).await.unwrap();
    tenant.claim(thread, &owner(name)).await.unwrap().expect("it waits to be claimed").claim
}

/// An append with one event, whose path says which append it was.
pub(crate) fn append(number: u64) -> Arc<Append> {
    let event = NewEvent {
        at: Timestamp::now(),
        agent: "assistant".parse().unwrap(),
        path: format!("append:{number}").into(),
        visibility: Visibility::User,
        kind: EventKind::RunStarted { is_held: false },
    };
    Arc::new(Append { number, events: vec![event], ..Append::default() })
}
