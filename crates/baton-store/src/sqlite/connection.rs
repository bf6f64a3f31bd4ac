//! One connection to the file.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql};

use super::fault::fault;
use super::file::File;
use crate::migrate;
use crate::value::{Row, Value};

/// Statements that stay prepared; there are not many more.
const STATEMENTS: usize = 128;

/// A connection that futures may refer to. Only ever used by one thread at a time, so its lock is never waited for.
#[derive(Debug)]
pub(crate) struct SqliteConnection(Mutex<Connection>);

impl SqliteConnection {
    pub(crate) fn open(file: Option<&File>) -> Result<Self, StoreError> {
        let Some(file) = file else {
            let opened = Self(Mutex::new(Connection::open_in_memory().map_err(|error| fault(&error))?));
            return opened.set_up().map(|()| opened);
        };
        create_private(&file.path)?;
        let ready = Connection::open(&file.path).map_err(|error| fault(&error)).and_then(|connection| {
            let opened = Self(Mutex::new(connection));
            opened.set_up_file(file).and_then(|()| opened.set_up()).map(|()| opened)
        });
        ready.map_err(|error| at(&file.path, error))
    }

    /// Leaves a file of another program as it is.
    fn set_up_file(&self, file: &File) -> Result<(), StoreError> {
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
        // Plans do not depend on values: otherwise statements with partial indexes would be prepared anew for each of them.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .map_err(|error| fault(&error))?;
        // FULL: a commit is on the disk when it returns, also if the power fails. Group commit pays for it.
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
            .map_err(|error| fault(&error))
    }

    pub(crate) fn migrate(&self) -> Result<(), StoreError> {
        migrate::sqlite(&mut self.lock(), fault)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `BEGIN`, `COMMIT` and the like.
    pub(crate) fn control(&self, sql: &str) -> Result<(), StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql).map_err(|error| fault(&error))?;
        statement.execute([]).map(drop).map_err(|error| fault(&error))
    }

    /// Undoes what a transaction did, if one is open: some errors have ended it already.
    pub(crate) fn roll_back(&self) {
        let connection = self.lock();
        if !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
    }

    pub(crate) fn query(&self, sql: &str, tenant: &str, params: &[Value]) -> Result<Vec<Row>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql).map_err(|error| fault(&error))?;
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

    pub(crate) fn execute(&self, sql: &str, tenant: &str, params: &[Value]) -> Result<u64, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql).map_err(|error| fault(&error))?;
        bind(&mut statement, tenant, params).map_err(|error| fault(&error))?;
        let changed = statement.raw_execute().map_err(|error| fault(&error))?;
        Ok(changed as u64)
    }
}

/// Creates the file so that only its owner can read it; SQLite gives its other files the same permissions. A file that exists is not
/// opened: closing it again would drop the locks of every other connection of this process (POSIX), and another process could then
/// remove the write-ahead log that is in use.
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

/// Says which file it was.
pub(super) fn at(path: &Path, error: StoreError) -> StoreError {
    let named = |text: String| format!("{}: {text}", path.display());
    match error {
        StoreError::Unavailable(text) => StoreError::Unavailable(named(text)),
        StoreError::Full(text) => StoreError::Full(named(text)),
        StoreError::Corrupt(text) => StoreError::Corrupt(named(text)),
        StoreError::Failed(text) => StoreError::Failed(named(text)),
        other => other,
    }
}

/// Binds by name: SQLite numbers `$2` by where it stands, not by what it says.
fn bind(statement: &mut Statement<'_>, tenant: &str, params: &[Value]) -> rusqlite::Result<()> {
    if let Some(at) = statement.parameter_index("$1")? {
        statement.raw_bind_parameter(at, tenant)?;
    }
    for (number, param) in params.iter().enumerate() {
        let name = NAMES.get(number).expect("no statement has more values");
        match statement.parameter_index(name)? {
            Some(at) => statement.raw_bind_parameter(at, param)?,
            None => debug_assert!(false, "{name} is not used"),
        }
    }
    Ok(())
}

const NAMES: [&str; 24] = [
    "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$16", "$17",
    "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25",
];

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Integer(*int),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::Ids(ids) => {
                let bytes = ids.iter().flat_map(|id| *id.as_bytes()).collect();
                return Ok(ToSqlOutput::Owned(rusqlite::types::Value::Blob(bytes)));
            }
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn value(found: ValueRef<'_>) -> Value {
    match found {
        ValueRef::Integer(int) => Value::Int(int),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        // No column holds one.
        ValueRef::Null | ValueRef::Real(_) => Value::Null,
    }
}
