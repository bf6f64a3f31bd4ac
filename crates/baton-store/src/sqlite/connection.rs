//! One connection to the file.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql};

use super::fault::{commit_fault, fault};
use super::file::DatabaseFile;
use crate::insert::{Insert, SIZES};
use crate::migrate;
use crate::pending::Tables;
use crate::value::{Row, SqlValue};

/// Capacity of the prepared statement cache; there are not many more statements.
const STATEMENTS: usize = 192;

/// A connection that futures can borrow. Only one thread uses it at a time, so its locks are uncontended.
#[derive(Debug)]
pub(crate) struct SqliteConnection {
    connection: Mutex<Connection>,
    /// By the address and length of the original text.
    statements: Mutex<HashMap<(usize, usize), KnownStatement>>,
}

/// What is known about a statement.
#[derive(Debug, Clone)]
struct KnownStatement {
    /// Its SQL with `?n` parameters.
    text: Arc<str>,
    tables: Tables,
}

impl SqliteConnection {
    pub(crate) fn open(file: Option<&DatabaseFile>) -> Result<Self, StoreError> {
        let Some(file) = file else {
            let opened = Self::new(Connection::open_in_memory().map_err(|error| fault(&error))?);
            return opened.set_up().map(|()| opened);
        };
        create_private(&file.path)?;
        let ready = Connection::open(&file.path).map_err(|error| fault(&error)).and_then(|connection| {
            let opened = Self::new(connection);
            opened.set_up_file(file).and_then(|()| opened.set_up()).map(|()| opened)
        });
        ready.map_err(|error| at(&file.path, error))
    }

    fn new(connection: Connection) -> Self {
        Self { connection: Mutex::new(connection), statements: Mutex::default() }
    }

    /// For the writing connection: a cache of 16 MiB, allocated on demand, holds the pages that new rows go to. With SQLite's
    /// default of 2 MiB every run reads some of them again.
    pub(crate) fn enlarge_cache(&self) -> Result<(), StoreError> {
        self.lock().execute_batch("PRAGMA cache_size = -16384").map_err(|error| fault(&error))
    }

    /// Configures the file. Refuses a file of another program without changing it.
    fn set_up_file(&self, file: &DatabaseFile) -> Result<(), StoreError> {
        let connection = self.lock();
        connection.busy_timeout(file.patience).map_err(|error| fault(&error))?;
        migrate::refuse_foreign(&connection, fault)?;
        match file.pages {
            Some(pages) => connection.execute_batch(&format!("PRAGMA max_page_count = {pages}")),
            None => Ok(()),
        }
        .map_err(|error| fault(&error))
    }

    fn set_up(&self) -> Result<(), StoreError> {
        let connection = self.lock();
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Query plans do not depend on parameter values. Otherwise statements with partial indexes would be prepared again for
        // each value.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .map_err(|error| fault(&error))?;
        // FULL: a commit survives a power failure; group commit amortizes the sync. A frequently written page is copied from
        // the log to the file once per 16 MiB of log. Deleted content is overwritten, so that erased data is in no free page.
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
                PRAGMA wal_autocheckpoint = 4096; PRAGMA secure_delete = ON;",
            )
            .map_err(|error| fault(&error))
    }

    pub(crate) fn migrate(&self) -> Result<(), StoreError> {
        migrate::sqlite(&mut self.lock(), fault)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// SQLite numbers `$2` by its position in the text, and `?2` by its number.
    fn known<T>(&self, sql: &'static str, read: impl FnOnce(&KnownStatement) -> T) -> T {
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        let known = statements.entry((sql.as_ptr().addr(), sql.len()));
        read(known.or_insert_with(|| KnownStatement {
            text: sql.replace('$', "?").into(),
            tables: Tables::named_in(sql),
        }))
    }

    fn numbered(&self, sql: &'static str) -> Arc<str> {
        self.known(sql, |known| Arc::clone(&known.text))
    }

    /// The tables that a statement names.
    pub(crate) fn tables(&self, sql: &'static str) -> Tables {
        self.known(sql, |known| known.tables)
    }

    /// Runs `BEGIN`, `COMMIT` and similar statements.
    pub(crate) fn control(&self, sql: &str) -> Result<(), StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql).map_err(|error| fault(&error))?;
        statement.execute([]).map(drop).map_err(|error| fault(&error))
    }

    /// Commits. After an I/O error the commit may be in the write-ahead log: a recovery after a crash would then apply it.
    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("COMMIT").map_err(|error| fault(&error))?;
        statement.execute([]).map(drop).map_err(|error| commit_fault(&error))
    }

    /// Writes a copy of the database to an empty file, from one snapshot. Keeps application id and schema version.
    pub(crate) fn copy_to(&self, target: &Path) -> Result<(), StoreError> {
        let target = target.to_str().ok_or_else(|| StoreError::Failed("the path is not UTF-8".to_owned()))?;
        let connection = self.lock();
        connection.execute("VACUUM INTO ?1", [target]).map(drop).map_err(|error| fault(&error))
    }

    /// Merges the log into the file and empties it. A reader may keep a part of it in use, which the next call merges. Fails at once
    /// in that case: this connection is the one that writes, and no write would be made while it waits.
    pub(crate) fn truncate_log(&self) -> Result<(), StoreError> {
        let connection = self.lock();
        let timeout: i64 = connection
            .query_row("PRAGMA busy_timeout", [], |row| row.get(0))
            .map_err(|error| fault(&error))?;
        connection.busy_timeout(Duration::ZERO).map_err(|error| fault(&error))?;
        let merged = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        let timeout = Duration::from_millis(u64::try_from(timeout).unwrap_or_default());
        connection.busy_timeout(timeout).map_err(|error| fault(&error))?;
        match merged.map_err(|error| fault(&error))? {
            0 => Ok(()),
            _ => Err(StoreError::Unavailable("the log is in use".to_owned())),
        }
    }

    /// Rolls back, if a transaction is open: some errors end it already.
    pub(crate) fn roll_back(&self) {
        let connection = self.lock();
        if !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
    }

    pub(crate) fn query(
        &self,
        sql: &'static str,
        tenant: &str,
        params: &[SqlValue],
    ) -> Result<Vec<Row>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&self.numbered(sql)).map_err(|error| fault(&error))?;
        bind(&mut statement, tenant, params).map_err(|error| fault(&error))?;
        let columns = statement.column_count();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| fault(&error))? {
            let values = (0..columns).map(|at| row.get_ref(at).map(value)).collect::<Result<_, _>>();
            found.push(Row(values.map_err(|error| fault(&error))?));
        }
        Ok(found)
    }

    /// The row id that the last insert assigned.
    pub(crate) fn last_number(&self) -> u64 {
        u64::try_from(self.lock().last_insert_rowid()).unwrap_or_default()
    }

    pub(crate) fn execute(
        &self,
        sql: &'static str,
        tenant: &str,
        params: &[SqlValue],
    ) -> Result<u64, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&self.numbered(sql)).map_err(|error| fault(&error))?;
        bind(&mut statement, tenant, params).map_err(|error| fault(&error))?;
        let changed = statement.raw_execute().map_err(|error| fault(&error))?;
        Ok(changed as u64)
    }

    /// Executes a statement for each of `rows`, in order.
    pub(crate) fn execute_each<'v>(
        &self,
        sql: &'static str,
        tenant: &str,
        rows: impl Iterator<Item = &'v [SqlValue]>,
    ) -> Result<(), StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&self.numbered(sql)).map_err(|error| fault(&error))?;
        for params in rows {
            bind(&mut statement, tenant, params).map_err(|error| fault(&error))?;
            statement.raw_execute().map_err(|error| fault(&error))?;
        }
        Ok(())
    }

    /// Inserts rows, and returns the number of statements.
    pub(crate) fn insert(
        &self,
        into: &'static Insert,
        tenant: &str,
        mut rows: &[Vec<SqlValue>],
    ) -> Result<u64, StoreError> {
        let connection = self.lock();
        let mut executed = 0;
        for (at, size) in SIZES.into_iter().enumerate() {
            if rows.len() < size {
                continue;
            }
            let text = self.numbered(into.text(at));
            let mut statement = connection.prepare_cached(&text).map_err(|error| fault(&error))?;
            while let Some((group, rest)) = rows.split_at_checked(size) {
                bind(&mut statement, tenant, group.iter().flatten()).map_err(|error| fault(&error))?;
                statement.raw_execute().map_err(|error| fault(&error))?;
                (rows, executed) = (rest, executed + 1);
            }
        }
        Ok(executed)
    }
}

/// Creates the file readable by its owner only; SQLite gives its other files the same permissions. An existing file is not
/// opened: closing it would drop the POSIX locks of all other connections of this process, and another process could then
/// remove the write-ahead log in use.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let failed =
        |why: &dyn std::fmt::Display| StoreError::Failed(format!("cannot open {}: {why}", path.display()));
    match OpenOptions::new().create_new(true).append(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {
            Err(failed(&"it is a folder"))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

/// Adds the path to an error.
pub(super) fn at(path: &Path, error: StoreError) -> StoreError {
    let named = |text: String| format!("{}: {text}", path.display());
    match error {
        StoreError::Unavailable(text) => StoreError::Unavailable(named(text)),
        StoreError::OutcomeUnknown(text) => StoreError::OutcomeUnknown(named(text)),
        StoreError::Full(text) => StoreError::Full(named(text)),
        StoreError::Corrupt(text) => StoreError::Corrupt(named(text)),
        StoreError::Failed(text) => StoreError::Failed(named(text)),
        other => other,
    }
}

/// Binds the tenant as `?1` and `params` from `?2` on. Only the tenant may be unused.
fn bind<'v>(
    statement: &mut Statement<'_>,
    tenant: &str,
    params: impl IntoIterator<Item = &'v SqlValue>,
) -> rusqlite::Result<()> {
    let most = statement.parameter_count();
    if most >= 1 {
        statement.raw_bind_parameter(1, tenant)?;
    }
    let mut params = params.into_iter();
    for (number, param) in (2..=most).zip(&mut params) {
        statement.raw_bind_parameter(number, param)?;
    }
    debug_assert!(params.next().is_none(), "more values than parameters");
    Ok(())
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Integer(*int),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::StaticText(word) => ValueRef::Text(word.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::SharedBlob(bytes) => ValueRef::Blob(bytes),
            Self::Id(id) => ValueRef::Blob(id.as_bytes()),
            Self::Ids(ids) => {
                let bytes = ids.iter().flat_map(|id| *id.as_bytes()).collect();
                return Ok(ToSqlOutput::Owned(rusqlite::types::Value::Blob(bytes)));
            }
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn value(found: ValueRef<'_>) -> SqlValue {
    match found {
        ValueRef::Integer(int) => SqlValue::Int(int),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
        // No column holds a real number.
        ValueRef::Null | ValueRef::Real(_) => SqlValue::Null,
    }
}
