//! Entries of all chains in one order: by time, then chain, then number.

use baton_core::StoreError;
use baton_core::store::{AuditQuery, Audited, Order, Page, PageRequest, micros};

use super::chain::hex;
use super::ends::chain_at;
use super::stored;
use crate::page::{self, Ordered};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, row_values};

/// A position between entries. Times within a chain never decrease, so this order agrees with the order of each chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AuditPosition {
    at: i64,
    chain: i64,
    number: i64,
}

impl AuditPosition {
    const FIRST: Self = Self::before(i64::MIN);
    const LAST: Self = Self { at: i64::MAX, chain: i64::MAX, number: i64::MAX };

    /// The position before every entry at time `at`.
    const fn before(at: i64) -> Self {
        Self { at, chain: -1, number: 0 }
    }

    /// Parses the cursor: the position of the last entry of the previous page.
    pub(super) fn parse(page: &PageRequest, order: Order) -> Result<Option<Self>, StoreError> {
        let Some(cursor) = page::cursor_in(page, order)? else { return Ok(None) };
        let numbers = cursor.split('.').map(str::parse).collect::<Result<Vec<i64>, _>>();
        match numbers.as_deref() {
            Ok(&[at, chain, number]) => Ok(Some(Self { at, chain, number })),
            _ => Err(StoreError::InvalidCursor),
        }
    }

    fn cursor(entry: &Audited) -> String {
        format!("{}.{}.{}", micros(entry.at), entry.chain, entry.number)
    }
}

/// One SQL text per filter, so that the planner can choose the matching index.
macro_rules! all {
    ($which:literal) => {
        Ordered { asc: all!("", $which), desc: all!(" DESC", $which) }
    };
    ($direction:literal, $which:literal) => {
        concat!(
            "SELECT chain, number, at, actor, action, thread_id, entry, hash
            FROM audit
            WHERE tenant = $1 AND (at, chain, number) > ($2, $3, $4) AND (at, chain, number) < ($5, $6, $7)",
            $which,
            "
            ORDER BY at",
            $direction,
            ", chain",
            $direction,
            ", number",
            $direction,
            "
            LIMIT $8"
        )
    };
}

/// Entries with `$9` in a column. Both bounds include the column, so that SQLite uses its index.
macro_rules! with {
    ($column:literal, $which:literal) => {
        Ordered { asc: with!($column, "", $which), desc: with!($column, " DESC", $which) }
    };
    ($column:literal, $direction:literal, $which:literal) => {
        concat!(
            "SELECT chain, number, at, actor, action, thread_id, entry, hash
            FROM audit
            WHERE tenant = $1 AND (",
            $column,
            ", at, chain, number) > ($9, $2, $3, $4) AND (",
            $column,
            ", at, chain, number) < ($9, $5, $6, $7)",
            $which,
            "
            ORDER BY ",
            $column,
            $direction,
            ", at",
            $direction,
            ", chain",
            $direction,
            ", number",
            $direction,
            "
            LIMIT $8"
        )
    };
}

const ALL: Ordered = all!("");

const OF_THREAD: Ordered = with!(
    "thread_id",
    " AND (CAST($10 AS TEXT) IS NULL OR actor = $10) AND (CAST($11 AS TEXT) IS NULL OR action = $11)"
);

const OF_ACTOR: Ordered = with!("actor", " AND (CAST($10 AS TEXT) IS NULL OR action = $10)");

/// Repeats the condition of the partial index `audit_of_action`.
const OF_ACTION: Ordered =
    with!("action", " AND action <> 'message.send' AND action <> 'run.start' AND action <> 'run.end'");

const OF_FREQUENT_ACTION: Ordered = all!(" AND action = $9");

/// Every run writes one entry of each. The index `audit_of_action` excludes them.
const FREQUENT: [&str; 3] = ["message.send", "run.start", "run.end"];

pub(super) async fn list(
    tx: &Tx<'_>,
    query: &AuditQuery,
    page: &PageRequest,
    last: Option<AuditPosition>,
) -> Result<Page<Audited>, StoreError> {
    let (statement, mut filters) = statement(query);
    let mut values = bounds(query, last).to_vec();
    values.push(page::with_next(page).into());
    values.append(&mut filters);
    let rows = tx.query(statement.sql(query.order), &values).await?;
    let entries = rows.iter().map(read).collect::<Result<Vec<Audited>, _>>()?;
    Ok(page::cut(entries, page.size(), |last| page::ordered(query.order, AuditPosition::cursor(last))))
}

/// Returns the statement for a query, and its parameters from `$9` on.
fn statement(query: &AuditQuery) -> (&'static Ordered, Vec<SqlValue>) {
    let (actor, action) = (query.actor.as_deref(), query.action.as_deref());
    match (query.thread_id, actor, action) {
        (Some(thread), ..) => (&OF_THREAD, row_values![thread, actor, action]),
        (None, Some(actor), _) => (&OF_ACTOR, row_values![actor, action]),
        (None, None, Some(action)) if FREQUENT.contains(&action) => {
            (&OF_FREQUENT_ACTION, row_values![action])
        }
        (None, None, Some(action)) => (&OF_ACTION, row_values![action]),
        (None, None, None) => (&ALL, Vec::new()),
    }
}

/// Parameters `$2` to `$7`: the exclusive bounds of a page.
fn bounds(query: &AuditQuery, last: Option<AuditPosition>) -> [SqlValue; 6] {
    let mut after = query.since.map_or(AuditPosition::FIRST, |since| AuditPosition::before(micros(since)));
    let mut before = query.until.map_or(AuditPosition::LAST, |until| AuditPosition::before(micros(until)));
    match (last, query.order) {
        (Some(last), Order::Asc) => after = after.max(last),
        (Some(last), Order::Desc) => before = before.min(last),
        (None, _) => {}
    }
    [after.at, after.chain, after.number, before.at, before.chain, before.number].map(SqlValue::from)
}

fn read(row: &Row) -> Result<Audited, StoreError> {
    Ok(Audited {
        chain: chain_at(row, 0)?,
        number: row.count(1)?,
        at: row.time(2)?,
        entry: stored::read(row, 3)?,
        hash: hex(row.blob(7)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    const BY_TIME: &str =
        "audit_by_time (tenant=? AND (at,chain,number)>(?,?,?) AND (at,chain,number)<(?,?,?))";

    /// Entries of other actions are read and skipped; no sort is needed.
    #[test]
    fn a_frequent_action_is_picked_from_the_entries_by_time() {
        for order in [Order::Asc, Order::Desc] {
            let plan = plan(OF_FREQUENT_ACTION.sql(order));
            assert_eq!(plan, [format!("SEARCH audit USING INDEX {BY_TIME}")], "{order}");
        }
    }

    #[test]
    fn a_list_reads_no_more_than_its_page() {
        let of = |column: &str| {
            let bound = format!("({column},at,chain,number)");
            format!("audit_of_{column} (tenant=? AND {bound}>(?,?,?,?) AND {bound}<(?,?,?,?))")
                .replace("of_thread_id", "of_thread")
        };
        for (list, index) in [
            (ALL, BY_TIME.to_owned()),
            (OF_THREAD, of("thread_id")),
            (OF_ACTOR, of("actor")),
            (OF_ACTION, of("action")),
        ] {
            for order in [Order::Asc, Order::Desc] {
                assert_eq!(plan(list.sql(order)), [format!("SEARCH audit USING INDEX {index}")], "{order}");
            }
        }
    }

    #[test]
    fn frequent_actions_are_those_that_the_index_leaves_out() {
        let condition = FREQUENT.map(|action| format!("action <> '{action}'")).join(" AND ");
        assert!(include_str!("../../schema/0001.sql").contains(&condition));
        assert!(OF_ACTION.asc.contains(&condition) && OF_ACTION.desc.contains(&condition));
    }
}
