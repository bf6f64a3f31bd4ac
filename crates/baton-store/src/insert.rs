//! Inserts into many tables at once.
//!
//! SQLite inserts up to 16 rows per statement, with those of other jobs of the transaction ([`pending`](crate::pending)).
//! PostgreSQL gets all rows of a table as arrays, one per column, and all tables in one statement.

use std::sync::OnceLock;

use baton_core::ThreadId;

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
    /// Cached statements for SQLite, one for each of [`SIZES`].
    texts: [OnceLock<String>; SIZES.len()],
}

/// How many rows a statement for SQLite inserts. Rows are taken in the largest groups possible.
pub(crate) const SIZES: [usize; 5] = [16, 8, 4, 2, 1];

impl Insert {
    pub(crate) const fn new(
        table: &'static str,
        columns: &'static [(&'static str, ColumnKind)],
        conflict: &'static str,
    ) -> Self {
        Self { table, columns, conflict, texts: [const { OnceLock::new() }; SIZES.len()] }
    }

    pub(crate) fn table(&self) -> &'static str {
        self.table
    }

    /// Statement for `SIZES[at]` rows: `$1` is the tenant, the columns of the rows follow from `$2`. A failure rolls the whole
    /// transaction back, so SQLite needs no journal to undo one statement (`OR FAIL`).
    pub(crate) fn text(&'static self, at: usize) -> &'static str {
        self.texts[at].get_or_init(|| {
            let columns = self.columns.len();
            let row = |row: usize| {
                let values =
                    (2 + row * columns..2 + (row + 1) * columns).map(|number| format!(", ${number}"));
                format!("($1{})", values.collect::<String>())
            };
            let rows = (0..SIZES[at]).map(row).collect::<Vec<_>>().join(", ");
            format!("INSERT OR FAIL {} VALUES {rows} {}", self.target(), self.conflict)
        })
    }

    /// Statement for many rows: `$1` is the tenant, the columns are arrays from `$first` on.
    fn many(&self, first: usize) -> String {
        let arrays =
            (first..).zip(self.columns).map(|(number, (_, kind))| format!("${number}::{}", kind.array()));
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        format!(
            "INSERT {} SELECT $1::text, new.* FROM unnest({arrays}) AS new {}",
            self.target(),
            self.conflict
        )
    }

    fn target(&self) -> String {
        let columns = self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        format!("INTO {} (tenant, {columns})", self.table)
    }
}

/// Independent changes. No two of them touch the same row.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The thread that all of them are about, if it is one.
    pub(crate) thread: Option<ThreadId>,
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
    pub(crate) fn of(thread: ThreadId) -> Self {
        Self { thread: Some(thread), parts: Vec::new() }
    }

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
            NOTES.text(4),
            "INSERT OR FAIL INTO notes (tenant, id, text) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
        );
        let four = "VALUES ($1, $2, $3), ($1, $4, $5), ($1, $6, $7), ($1, $8, $9) ON CONFLICT";
        assert!(NOTES.text(2).contains(four), "{}", NOTES.text(2));
    }
}
