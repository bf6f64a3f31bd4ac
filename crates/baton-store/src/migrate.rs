//! The schema and its versions. A released migration never changes; new ones are appended.
//!
//! Before the first release, `0001.sql` itself is changed. Such a change needs a new `APPLICATION_ID`, the old one in `DEVELOPMENT_IDS`,
//! and in `postgres::VERSION` a column that only the new schema has.

mod postgres;

use baton_core::StoreError;
use rusqlite::Connection;

pub(crate) use postgres::postgres;

/// In order, written for PostgreSQL. The schema version of a store is the number of migrations applied.
pub const MIGRATIONS: &[&str] = &[include_str!("../schema/0001.sql")];

/// "BTN3" in ASCII: distinguishes a Baton store from other SQLite files.
const APPLICATION_ID: i64 = 0x4254_4E33;
/// "BATN", "BTN1" and "BTN2" in ASCII: stores of development versions, whose tables differ.
const DEVELOPMENT_IDS: [i64; 3] = [0x4241_544E, 0x4254_4E31, 0x4254_4E32];

/// Migrates a SQLite file, in one transaction.
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

/// Refuses a SQLite file that another program or a development version created.
pub(crate) fn refuse_foreign(
    connection: &Connection,
    fault: impl Fn(&rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    // The order matters: another process may create the tables and the id between the two reads, in one transaction.
    let is_empty = number(connection, "SELECT count(*) FROM sqlite_schema").map(|tables| tables == 0);
    let id = number(connection, "PRAGMA application_id").map_err(|error| fault(&error))?;
    match (id, is_empty.map_err(|error| fault(&error))?) {
        (APPLICATION_ID, _) | (_, true) => Ok(()),
        (id, _) if DEVELOPMENT_IDS.contains(&id) => Err(development()),
        _ => Err(StoreError::Corrupt("it is a SQLite file of another program".to_owned())),
    }
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}

/// The error for a schema written by a newer version of Baton.
pub(crate) fn newer(version: i64) -> StoreError {
    let known = MIGRATIONS.len();
    StoreError::Failed(format!(
        "it has schema version {version}, and this Baton knows versions up to {known}: use a newer Baton"
    ))
}

/// The error for tables that a development version created.
fn development() -> StoreError {
    StoreError::Failed(
        "this database was made by a development version of Baton and cannot be read any more: delete it, or restore a \
         backup that was made with a released version"
            .to_owned(),
    )
}

/// Translates a migration from PostgreSQL to SQLite: type names, table options and fill factors.
fn for_sqlite(migration: &str) -> String {
    let types = [("BIGINT", "INTEGER"), ("BYTEA", "BLOB"), (" UUID", " BLOB")];
    let options = [
        (" GENERATED ALWAYS AS IDENTITY", " PRIMARY KEY"),
        (
            "PRIMARY KEY (tenant, thread_id)\n) WITH (fillfactor = 50) /* numbered */;",
            "UNIQUE (tenant, thread_id)\n);",
        ),
        (" WITH (fillfactor = 50)", ""),
        (" WITH (toast_tuple_target = 8160)", ""),
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

    #[test]
    fn database_of_a_development_version_is_refused_unchanged() {
        let fault = |error: &rusqlite::Error| StoreError::Failed(error.to_string());
        for id in DEVELOPMENT_IDS {
            let mut connection = Connection::open_in_memory().unwrap();
            let old = format!(
                "CREATE TABLE thread_work (tenant TEXT NOT NULL, thread_id BLOB NOT NULL) STRICT; \
                 PRAGMA user_version = 1; PRAGMA application_id = {id}"
            );
            connection.execute_batch(&old).unwrap();
            let refused = sqlite(&mut connection, fault).unwrap_err().to_string();
            assert!(refused.contains("development version") && refused.contains("delete it"), "{refused}");
            assert_eq!(number(&connection, "PRAGMA user_version"), Ok(1));
            assert_eq!(number(&connection, "SELECT count(*) FROM sqlite_schema"), Ok(1));
        }
    }
}
