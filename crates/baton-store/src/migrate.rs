//! The schema and its versions. A migration is never changed once it was released; a new one is added.

mod postgres;

use baton_core::StoreError;
use rusqlite::Connection;

pub(crate) use postgres::postgres;

/// In order; the version of a store is how many of them it has seen.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("../schema/0001.sql")];

/// "BATN": tells a Baton store from any other SQLite file.
const APPLICATION_ID: i64 = 0x4241_544E;

/// Brings a SQLite file up to date, in one transaction.
pub(crate) fn sqlite(
    connection: &mut Connection,
    fault: impl Fn(&rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let begun = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
    let transaction = begun.map_err(|error| fault(&error))?;
    refuse_foreign(&transaction, &fault)?;
    let version = number(&transaction, "PRAGMA user_version").map_err(|error| fault(&error))?;
    let seen = usize::try_from(version).unwrap_or_default();
    let Some(missing) = MIGRATIONS.get(seen..) else { return Err(newer(version)) };
    if missing.is_empty() {
        return Ok(());
    }
    for migration in missing {
        transaction.execute_batch(&for_sqlite(migration)).map_err(|error| fault(&error))?;
    }
    let marks =
        format!("PRAGMA user_version = {}; PRAGMA application_id = {APPLICATION_ID}", MIGRATIONS.len());
    transaction.execute_batch(&marks).map_err(|error| fault(&error))?;
    transaction.commit().map_err(|error| fault(&error))
}

/// A file that another program made is not ours to change.
pub(crate) fn refuse_foreign(
    connection: &Connection,
    fault: impl Fn(&rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let ours = number(connection, "PRAGMA application_id").map(|id| id == APPLICATION_ID);
    let is_empty = number(connection, "SELECT count(*) FROM sqlite_schema").map(|tables| tables == 0);
    match (ours.map_err(|error| fault(&error))?, is_empty.map_err(|error| fault(&error))?) {
        (false, false) => Err(StoreError::Corrupt("it is a SQLite file of another program".to_owned())),
        _ => Ok(()),
    }
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}

/// Written by a Baton that knows more than this one.
pub(crate) fn newer(version: i64) -> StoreError {
    let known = MIGRATIONS.len();
    StoreError::Failed(format!(
        "it has schema version {version}, and this Baton knows versions up to {known}: use a newer Baton"
    ))
}

/// Migrations are written for PostgreSQL; SQLite wants other names for the same types, and has no fill factors.
fn for_sqlite(migration: &str) -> String {
    let types = [("BIGINT", "INTEGER"), ("BYTEA", "BLOB"), (" UUID", " BLOB")];
    let options = [
        (" WITH (fillfactor = 50)", ""),
        (" WITH (fillfactor = 70)", ""),
        ("\n) /* clustered */;", "\n) STRICT, WITHOUT ROWID;"),
        ("\n);", "\n) STRICT;"),
    ];
    types.iter().chain(&options).fold(migration.to_owned(), |sql, (from, to)| sql.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        let fault = |error: &rusqlite::Error| StoreError::Failed(error.to_string());
        sqlite(&mut connection, fault).unwrap();
        sqlite(&mut connection, fault).unwrap();
        let strict: i64 = connection
            .query_row(
                "SELECT count(*) FROM pragma_table_list WHERE strict = 0 AND name NOT LIKE 'sqlite_%'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(strict, 0, "every table checks its types");
        connection.execute_batch("PRAGMA user_version = 1000").unwrap();
        assert!(sqlite(&mut connection, fault).unwrap_err().to_string().contains("newer Baton"));
    }
}
