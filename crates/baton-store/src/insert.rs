//! Inserts into many tables at once.
//!
//! SQLite executes a prepared statement per row, which is fastest there. PostgreSQL gets all rows of a table as arrays, one per
//! column, and all tables in one statement.

use std::sync::OnceLock;

use crate::value::SqlValue;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Uuid,
    Text,
    Int,
    Bytes,
}

impl ColumnKind {
    fn array(self) -> &'static str {
        match self {
            Self::Uuid => "uuid[]",
            Self::Text => "text[]",
            Self::Int => "bigint[]",
            Self::Bytes => "bytea[]",
        }
    }
}

/// An `INSERT` into a table.
#[derive(Debug)]
pub(crate) struct Insert {
    table: &'static str,
    /// The columns after `tenant`.
    columns: &'static [(&'static str, ColumnKind)],
    /// The `ON CONFLICT` clause. The rows of one call must be distinct: PostgreSQL refuses to update a row twice.
    conflict: &'static str,
    /// Cached statement for SQLite.
    one: OnceLock<String>,
}

impl Insert {
    pub(crate) const fn new(
        table: &'static str,
        columns: &'static [(&'static str, ColumnKind)],
        conflict: &'static str,
    ) -> Self {
        Self { table, columns, conflict, one: OnceLock::new() }
    }

    /// Statement for one row: `$1` is the tenant, the columns follow from `$2`.
    pub(crate) fn one(&'static self) -> &'static str {
        self.one.get_or_init(|| {
            let values = (1..=self.columns.len() + 1).map(|number| format!("${number}"));
            let values = values.collect::<Vec<_>>().join(", ");
            format!("{} VALUES ({values}) {}", self.begin(), self.conflict)
        })
    }

    /// Statement for many rows: `$1` is the tenant, the columns are arrays from `$first` on.
    fn many(&self, first: usize) -> String {
        let arrays =
            (first..).zip(self.columns).map(|(number, (_, kind))| format!("${number}::{}", kind.array()));
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        format!("{} SELECT $1::text, new.* FROM unnest({arrays}) AS new {}", self.begin(), self.conflict)
    }

    fn begin(&self) -> String {
        let columns = self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        format!("INSERT INTO {} (tenant, {columns})", self.table)
    }
}

/// Independent changes. No two of them touch the same row.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) parts: Vec<StatementPart>,
}

#[derive(Debug)]
pub(crate) enum StatementPart {
    Rows(&'static Insert, Vec<Vec<SqlValue>>),
    /// Any other statement, with its parameters from `$2` on.
    Statement(&'static str, Vec<SqlValue>),
}

/// A parameter for PostgreSQL.
pub(crate) enum Bound<'v> {
    One(&'v SqlValue),
    Column(Vec<&'v SqlValue>),
}

impl Changes {
    pub(crate) fn insert(&mut self, into: &'static Insert, rows: Vec<Vec<SqlValue>>) {
        if !rows.is_empty() {
            self.parts.push(StatementPart::Rows(into, rows));
        }
    }

    pub(crate) fn execute(&mut self, sql: &'static str, params: Vec<SqlValue>) {
        self.parts.push(StatementPart::Statement(sql, params));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Combines all parts into one statement for PostgreSQL, with its parameters from `$2` on.
    pub(crate) fn together(&self) -> (String, Vec<Bound<'_>>) {
        let mut bound = Vec::new();
        let parts: Vec<String> = self.parts.iter().map(|part| part.text(&mut bound)).collect();
        match parts.as_slice() {
            [only] => (only.clone(), bound),
            parts => {
                let parts = parts.iter().enumerate().map(|(at, part)| format!("part_{at} AS ({part})"));
                (format!("WITH {} SELECT 1", parts.collect::<Vec<_>>().join(", ")), bound)
            }
        }
    }
}

impl StatementPart {
    fn text<'v>(&'v self, bound: &mut Vec<Bound<'v>>) -> String {
        let first = bound.len() + 2;
        match self {
            Self::Rows(into, rows) => {
                bound.extend(
                    (0..into.columns.len())
                        .map(|at| Bound::Column(rows.iter().map(|row| &row[at]).collect())),
                );
                into.many(first)
            }
            Self::Statement(sql, params) => {
                bound.extend(params.iter().map(Bound::One));
                renumbered(sql, first - 2)
            }
        }
    }
}

/// Shifts the parameters from `$2` on by `by`.
fn renumbered(sql: &str, by: usize) -> String {
    let mut pieces = sql.split('$');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.len() - piece.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: usize = piece[..digits].parse().unwrap_or_default();
        let moved = if number > 1 { number + by } else { number };
        text += &format!("${moved}{}", &piece[digits..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{params, row_values};

    static NOTES: Insert = Insert::new(
        "notes",
        &[("id", ColumnKind::Uuid), ("text", ColumnKind::Text)],
        "ON CONFLICT DO NOTHING",
    );

    #[test]
    fn rows_and_statements_become_one_statement() {
        let mut changes = Changes::default();
        changes.insert(&NOTES, Vec::new());
        assert!(changes.is_empty());
        changes.insert(&NOTES, vec![params!["a", "b"].to_vec(), params!["c", "d"].to_vec()]);
        let single = "INSERT INTO notes (tenant, id, text) SELECT $1::text, new.* FROM unnest($2::uuid[], $3::text[]) AS new \
            ON CONFLICT DO NOTHING";
        assert_eq!(changes.together().0, single);
        changes.execute("UPDATE other SET a = $2, b = $12 WHERE tenant = $1", row_values![1_u64]);
        let (text, bound) = changes.together();
        assert_eq!(
            text,
            format!(
                "WITH part_0 AS ({single}), part_1 AS (UPDATE other SET a = $4, b = $14 WHERE tenant = $1) SELECT 1"
            )
        );
        assert!(
            matches!(&bound[..], [Bound::Column(ids), Bound::Column(_), Bound::One(_)] if ids.len() == 2)
        );
        assert_eq!(
            NOTES.one(),
            "INSERT INTO notes (tenant, id, text) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
        );
    }
}
