//! The database of both servers, read with SQL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// The rows of all tables, by table.
pub(super) type Rows = BTreeMap<String, BTreeSet<String>>;

/// The only table that idle servers change: each renews its lease every second.
const LEASES: &str = "servers";

/// Transactions that have written or locked something.
const WRITES: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_xid IS NOT NULL";

pub(super) enum Database {
    Sqlite(PathBuf),
    Postgres(Box<Client>, Runtime),
}

impl Database {
    /// Opens the database once a server has created its tables.
    pub(super) fn open(url: &str) -> Self {
        if let Some(file) = url.strip_prefix("sqlite://") {
            return Self::Sqlite(file.into());
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
        runtime.spawn(connection);
        runtime.block_on(client.batch_execute("SET search_path = baton")).unwrap();
        Self::Postgres(Box::new(client), runtime)
    }

    /// Every row of every table except the leases.
    pub(super) fn rows(&self) -> Rows {
        let tables = self.texts(match self {
            Self::Sqlite(_) => "SELECT name FROM sqlite_master WHERE type = 'table'",
            Self::Postgres(..) => "SELECT tablename::text FROM pg_tables WHERE schemaname = 'baton'",
        });
        assert!(tables.contains(LEASES) && tables.len() > 15, "{tables:?}");
        let tables = tables.into_iter().filter(|table| table != LEASES);
        let rows = tables.map(|table| match self {
            Self::Sqlite(_) => (table.clone(), self.texts(&format!("SELECT * FROM {table}"))),
            Self::Postgres(..) => {
                (table.clone(), self.texts(&format!("SELECT kept::text FROM {table} AS kept")))
            }
        });
        rows.collect()
    }

    /// When the lease of a process ends, in microseconds since 1970.
    pub(super) fn lease_until(&self, process: u32) -> Option<i64> {
        self.number(&format!("SELECT max(lease_until) FROM servers WHERE owner LIKE '%/{process}/%'"))
    }

    /// Whether every audit entry is sealed, so that no server writes another seal.
    pub(super) fn is_sealed(&self) -> bool {
        let sql = "SELECT CAST(sum(CASE WHEN chain < 16 THEN entries ELSE -entries END) AS BIGINT) FROM audit_chains";
        self.number(sql) == Some(0)
    }

    /// Ends the lease of a process now.
    pub(super) fn end_lease(&self, process: u32) {
        let sql = format!("UPDATE servers SET lease_until = 0 WHERE owner LIKE '%/{process}/%'");
        match self {
            Self::Sqlite(file) => Connection::open(file).unwrap().execute_batch(&sql).unwrap(),
            Self::Postgres(client, runtime) => runtime.block_on(client.batch_execute(&sql)).unwrap(),
        }
    }

    /// Whether no process is in the middle of a write transaction. In a paused process, PostgreSQL ends it after 5 s, SQLite never.
    pub(super) fn is_free(&self) -> bool {
        match self {
            Self::Sqlite(file) => {
                let connection = Connection::open(file).unwrap();
                connection.busy_timeout(Duration::from_millis(200)).unwrap();
                connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
            }
            Self::Postgres(..) => self.number(WRITES) == Some(0),
        }
    }

    fn number(&self, sql: &str) -> Option<i64> {
        match self {
            Self::Sqlite(file) => {
                Connection::open(file).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
            }
            Self::Postgres(client, runtime) => runtime.block_on(client.query_one(sql, &[])).unwrap().get(0),
        }
    }

    /// Each row as a text.
    fn texts(&self, sql: &str) -> BTreeSet<String> {
        match self {
            Self::Sqlite(file) => {
                let connection = Connection::open(file).unwrap();
                let mut statement = connection.prepare(sql).unwrap();
                let columns = statement.column_count();
                let row = |row: &rusqlite::Row<'_>| {
                    let values = (0..columns).map(|column| row.get_ref(column).map(text));
                    values.collect::<Result<Vec<_>, _>>().map(|values| values.join(" | "))
                };
                statement.query_map([], row).unwrap().map(Result::unwrap).collect()
            }
            Self::Postgres(client, runtime) => {
                let rows = runtime.block_on(client.query(sql, &[])).unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

/// Fails with every row that only one of them has.
pub(super) fn assert_same(before: &Rows, after: &Rows) {
    let mut changes = Vec::new();
    for (table, rows) in before {
        let now = &after[table];
        changes.extend(rows.difference(now).map(|row| format!("- {table}: {row}")));
        changes.extend(now.difference(rows).map(|row| format!("+ {table}: {row}")));
    }
    assert!(changes.is_empty(), "{} rows differ:\n{}", changes.len(), changes.join("\n"));
}
