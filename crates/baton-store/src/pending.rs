//! Changes that a SQLite transaction makes later, many rows at a time.
//!
//! One `INSERT` of several rows costs less than as many statements: the tables and indexes are opened once, and the position of
//! one row is where the search for the next begins. So the rows of all jobs of a transaction wait until it ends, or until a
//! statement names a table that they change. A change that fails then fails the whole transaction, whose jobs run again one by
//! one.

use std::collections::HashSet;

use baton_core::{StoreError, ThreadId};

use crate::insert::{Changes, Insert, StatementPart};
use crate::meter::Meter;
use crate::sqlite::SqliteConnection;
use crate::value::SqlValue;

/// A set of the tables in [`WAITING`], one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tables(u32);

/// The tables whose changes wait. A change of any other table makes every statement write what waits first.
const WAITING: [&str; 13] = [
    "threads",
    "messages",
    "runs",
    "journal",
    "ledger",
    "tool_outputs",
    "artifacts",
    "hops",
    "audit",
    "audit_threads",
    "audit_names",
    "audit_chains",
    "budget_reservations",
];

/// Tables with a foreign key to one whose changes wait, which SQLite checks at once.
const REFERRING: [(&str, &str); 1] = [("approvals", "runs")];

impl Tables {
    const ALL: Self = Self(u32::MAX);

    /// The tables that a statement reads or writes: each follows one of four words. No statement lists tables with commas.
    pub(crate) fn named_in(sql: &str) -> Self {
        let mut tables = Self::default();
        let mut names_table = false;
        for word in
            sql.split(|c: char| c.is_whitespace() || c == '(' || c == ')').filter(|word| !word.is_empty())
        {
            if names_table {
                let table = REFERRING.iter().find(|(from, _)| *from == word).map_or(word, |(_, to)| to);
                tables.0 |= WAITING.iter().position(|waiting| *waiting == table).map_or(0, |at| 1 << at);
            }
            names_table = ["FROM", "JOIN", "INTO", "UPDATE"].contains(&word);
        }
        tables
    }

    fn of(insert: &Insert) -> Self {
        let at = WAITING.iter().position(|waiting| *waiting == insert.table());
        at.map_or(Self::ALL, |at| Self(1 << at))
    }

    fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0 || self == Self::ALL
    }
}

/// Changes of one tenant that wait.
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    rows: Vec<(&'static Insert, Vec<Vec<SqlValue>>)>,
    /// Performed after all rows, in order.
    statements: Vec<(&'static str, Vec<SqlValue>)>,
    tables: Tables,
    threads: HashSet<ThreadId>,
    /// Whether some changes are not about one thread.
    is_general: bool,
}

impl PendingChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.tables == Tables::default()
    }

    /// Whether a statement that names `tables` may depend on these changes. With a thread, it reads rows of that thread only.
    pub(crate) fn concern(&self, tables: Tables, thread: Option<ThreadId>) -> bool {
        let is_about = |thread| self.is_general || self.threads.contains(&thread);
        self.tables.overlaps(tables) && thread.is_none_or(is_about)
    }

    pub(crate) fn add(&mut self, changes: Changes, tables: impl Fn(&'static str) -> Tables) {
        match changes.thread {
            Some(thread) => _ = self.threads.insert(thread),
            None => self.is_general = true,
        }
        for part in changes.parts {
            match part {
                StatementPart::Rows(into, rows) => {
                    self.tables.0 |= Tables::of(into).0;
                    match self.rows.iter_mut().find(|(known, _)| std::ptr::eq(*known, into)) {
                        Some((_, known)) => known.extend(rows),
                        None => self.rows.push((into, rows)),
                    }
                }
                StatementPart::Statement(sql, params) => {
                    let named = tables(sql);
                    self.tables.0 |= if named == Tables::default() { Tables::ALL.0 } else { named.0 };
                    self.statements.push((sql, params));
                }
            }
        }
    }

    /// Performs the changes.
    pub(crate) fn write(
        self,
        connection: &SqliteConnection,
        tenant: &str,
        meter: &Meter,
    ) -> Result<(), StoreError> {
        for (into, rows) in &self.rows {
            meter.executed(connection.insert(into, tenant, rows)?);
        }
        meter.executed(self.statements.len() as u64);
        let mut same = self.statements.chunk_by(|(one, _), (next, _)| std::ptr::eq(*one, *next));
        same.try_for_each(|statements| {
            let params = statements.iter().map(|(_, params)| params.as_slice());
            connection.execute_each(statements[0].0, tenant, params)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insert::ColumnKind;
    use crate::value::row_values;

    static NOTES: Insert = Insert::new("notes", &[("text", ColumnKind::Text)], "");
    static RUNS: Insert = Insert::new("runs", &[("run_id", ColumnKind::Uuid)], "");

    fn about(thread: Option<ThreadId>, into: &'static Insert) -> PendingChanges {
        let mut changes = Changes { thread, ..Changes::default() };
        changes.insert(into, vec![row_values!["a"]]);
        let mut pending = PendingChanges::default();
        pending.add(changes, Tables::named_in);
        pending
    }

    #[test]
    fn a_statement_waits_for_changes_of_the_tables_that_it_names() {
        let pending = about(None, &RUNS);
        let waits = |sql| pending.concern(Tables::named_in(sql), None);
        for sql in [
            "SELECT 1 FROM runs WHERE tenant = $1",
            "SELECT (SELECT r.run_id FROM runs AS r) FROM thread_work",
            "UPDATE runs SET a = 1",
            "DELETE FROM runs",
            "SELECT 1 FROM (SELECT 1) AS one LEFT JOIN\n    runs AS r ON true",
            "INSERT INTO approvals VALUES ($1)",
        ] {
            assert!(waits(sql), "{sql}");
        }
        assert!(!waits("UPDATE thread_work SET runs = runs + 1"), "a column");
        assert!(!waits("SELECT 1 FROM messages"));
        assert!(about(None, &NOTES).concern(Tables::default(), None), "a table that is not listed");
    }

    #[test]
    fn tables_that_refer_to_waiting_rows_are_known() {
        for table in
            crate::migrate::MIGRATIONS.iter().flat_map(|schema| schema.split("CREATE TABLE ").skip(1))
        {
            let (name, columns) = table.split_once(' ').unwrap();
            for reference in columns.split(';').next().unwrap().split("REFERENCES ").skip(1) {
                let to = reference.split(' ').next().unwrap();
                let is_checked_at_once = !reference.contains("INITIALLY DEFERRED");
                if WAITING.contains(&to) && is_checked_at_once {
                    assert!(REFERRING.contains(&(name, to)), "{name} refers to {to}");
                }
            }
        }
    }

    #[test]
    fn a_statement_about_one_thread_waits_for_changes_of_that_thread() {
        let [one, other] = [ThreadId::random(), ThreadId::random()];
        let runs = Tables::named_in("SELECT 1 FROM runs");
        let pending = about(Some(one), &RUNS);
        assert!(pending.concern(runs, Some(one)) && !pending.concern(runs, Some(other)));
        assert!(about(None, &RUNS).concern(runs, Some(other)), "changes that may be about any thread");
    }
}
