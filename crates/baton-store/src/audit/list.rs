//! Entries of all chains in one order: by time, then chain, then number.

use baton_core::StoreError;
use baton_core::store::{AuditEntry, AuditQuery, Audited, Order, Page, PageRequest, micros};

use super::chain::{self, hex};
use super::checkpoint::Checkpoint;
use super::ends::chain_at;
use super::truncation::Truncation;
use super::{find, people, stored};
use crate::page::{self, Ordered};
use crate::tx::Tx;
use crate::value::{Row, SqlValue};

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

    fn of(entry: &Audited) -> Self {
        let number = i64::try_from(entry.number).unwrap_or(i64::MAX);
        Self { at: micros(entry.at), chain: entry.chain.into(), number }
    }

    /// The position of a row is that of its last entry.
    fn of_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { at: row.int(2)?, chain: row.int(0)?, number: row.int(1)? })
    }
}

/// Rows of the trail between two positions. `$tables` selects them by the columns `at, chain, number` of `$of`.
macro_rules! rows {
    ($of:literal, $($tables:literal)+) => {
        Ordered { asc: rows!("", $of, $($tables)+), desc: rows!(" DESC", $of, $($tables)+) }
    };
    ($direction:literal, $of:literal, $($tables:literal)+) => {
        concat!(
            "SELECT a.chain, a.number, a.at, a.entries, (
                SELECT b.hash FROM audit AS b
                WHERE b.tenant = $1 AND b.chain = a.chain AND b.number < a.number
                ORDER BY b.number DESC
                LIMIT 1
            ) ", $($tables,)+ " AND (", $of, ".at, ", $of, ".chain, ", $of, ".number) > ($2, $3, $4)
                AND (", $of, ".at, ", $of, ".chain, ", $of, ".number) < ($5, $6, $7)
            ORDER BY ", $of, ".at", $direction, ", ", $of, ".chain", $direction, ", ", $of, ".number", $direction, "
            LIMIT $8"
        )
    };
}

const ALL: Ordered = rows!("a", "FROM audit AS a WHERE a.tenant = $1");

/// `CROSS JOIN` keeps SQLite from scanning the trail first.
const OF_THREAD: Ordered = rows!(
    "i",
    "FROM audit_threads AS i CROSS JOIN audit AS a
    WHERE i.tenant = $1 AND i.thread_number = $9 AND a.tenant = $1 AND a.chain = i.chain AND a.number = i.number"
);

const OF_NAME: Ordered = rows!(
    "i",
    "FROM audit_names AS i CROSS JOIN audit AS a
    WHERE i.tenant = $1 AND i.name = $9 AND a.tenant = $1 AND a.chain = i.chain AND a.number = i.number"
);

/// Rows per query.
const ROWS: u32 = 16;

pub(super) async fn list(
    tx: &Tx<'_>,
    query: &AuditQuery,
    page: &PageRequest,
    last: Option<AuditPosition>,
) -> Result<Page<Audited>, StoreError> {
    let query = &people::with_token(tx, query).await?;
    let wanted = page::with_next(page) as usize;
    let mut found = match query.thread_id {
        Some(thread) => {
            let mut found =
                collect(tx, query, last, wanted, &OF_NAME, Some(find::thread(thread).into())).await?;
            if let Some(number) = find::number_of(tx, thread).await? {
                found.extend(collect(tx, query, last, wanted, &OF_THREAD, Some(number.into())).await?);
                sort(&mut found, query.order);
            }
            found
        }
        None => {
            let (statement, term) = statement(query);
            collect(tx, query, last, wanted, statement, term).await?
        }
    };
    found.truncate(wanted);
    let mut page =
        page::cut(found, page.size(), |last| page::ordered(query.order, AuditPosition::cursor(last)));
    people::show(tx, &mut page.data).await?;
    Ok(page)
}

/// Sorts entries of two sources. Both may have an entry about a thread that was deleted and created again in one transaction.
fn sort(entries: &mut Vec<Audited>, order: Order) {
    entries.sort_by_key(AuditPosition::of);
    entries.dedup_by_key(|entry| AuditPosition::of(entry));
    if order == Order::Desc {
        entries.reverse();
    }
}

/// Returns the first entries of a page, at least `wanted` if there are so many, from the rows that a statement finds. `term` is its
/// parameter `$9`.
async fn collect(
    tx: &Tx<'_>,
    query: &AuditQuery,
    last: Option<AuditPosition>,
    wanted: usize,
    statement: &Ordered,
    term: Option<SqlValue>,
) -> Result<Vec<Audited>, StoreError> {
    let (after, before) = bounds(query, last);
    let is_listed = |entry: &Audited| {
        let position = AuditPosition::of(entry);
        after < position && position < before && matches(query, &entry.entry)
    };
    let (mut first_row, mut last_row) = (after, before);
    // The row of an entry is found by its last entry, which is less than this far away.
    last_row.number = last_row.number.saturating_add_unsigned(stored::MOST as u64);
    // Where the trail begins; read if the first entry of a chain is listed.
    let mut start: Option<Checkpoint> = None;
    let mut found = Vec::new();
    while found.len() < wanted {
        let rows = tx.query(statement.sql(query.order), &values(first_row, last_row, term.as_ref())).await?;
        for row in &rows {
            let is_first = row.optional(4, chain::hash_at)?.is_none();
            if is_first && start.is_none() {
                start = Some(Truncation::start(tx).await?);
            }
            found.extend(read(start.as_ref(), row, query.order)?.into_iter().filter(is_listed));
        }
        let Some(row) = rows.last().filter(|_| rows.len() == ROWS as usize) else { break };
        match query.order {
            Order::Asc => first_row = AuditPosition::of_row(row)?,
            Order::Desc => last_row = AuditPosition::of_row(row)?,
        }
    }
    Ok(found)
}

/// Returns the statement for a query that names no thread, and its parameter `$9`.
fn statement(query: &AuditQuery) -> (&'static Ordered, Option<SqlValue>) {
    let name = match &query.actor {
        Some(actor) => Some(find::actor(actor)),
        None => query.action.as_deref().and_then(find::action),
    };
    name.map_or((&ALL, None), |name| (&OF_NAME, Some(name.into())))
}

fn matches(query: &AuditQuery, entry: &AuditEntry) -> bool {
    query.thread_id.is_none_or(|thread| entry.thread_id == Some(thread))
        && query.actor.as_ref().is_none_or(|actor| entry.actor == *actor)
        && query.action.as_ref().is_none_or(|action| entry.action == *action)
}

/// The exclusive bounds of a page.
fn bounds(query: &AuditQuery, last: Option<AuditPosition>) -> (AuditPosition, AuditPosition) {
    let mut after = query.since.map_or(AuditPosition::FIRST, |since| AuditPosition::before(micros(since)));
    let mut before = query.until.map_or(AuditPosition::LAST, |until| AuditPosition::before(micros(until)));
    match (last, query.order) {
        (Some(last), Order::Asc) => after = after.max(last),
        (Some(last), Order::Desc) => before = before.min(last),
        (None, _) => {}
    }
    (after, before)
}

/// Parameters from `$2` on.
fn values(after: AuditPosition, before: AuditPosition, term: Option<&SqlValue>) -> Vec<SqlValue> {
    let bounds = [after.at, after.chain, after.number, before.at, before.chain, before.number];
    let values = bounds.into_iter().map(SqlValue::from).chain([SqlValue::from(ROWS)]);
    values.chain(term.cloned()).collect()
}

/// The entries of a row of [`rows`], in the order of the list.
fn read(start: Option<&Checkpoint>, row: &Row, order: Order) -> Result<Vec<Audited>, StoreError> {
    let (chain, at) = (chain_at(row, 0)?, row.time(2)?);
    let first = || start.and_then(|start| start.chains.get(usize::from(chain))).map(|end| end.head);
    let before = row.optional(4, chain::hash_at)?.or_else(first).unwrap_or_default();
    let entries = stored::entries(before, row, 1)?;
    let read = |stored: &stored::StoredEntry<'_>| {
        let (number, entry, hash) = (stored.number, stored.entry()?, hex(&stored.hash));
        Ok(Audited { chain, number, at, entry, hash })
    };
    let mut read = entries.iter().map(read).collect::<Result<Vec<Audited>, StoreError>>()?;
    if order == Order::Desc {
        read.reverse();
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn a_list_reads_no_more_than_its_page() {
        let bounds = "(at,chain,number)>(?,?,?) AND (at,chain,number)<(?,?,?))";
        for (list, search) in [
            (ALL, format!("SEARCH a USING INDEX audit_by_time (tenant=? AND {bounds}")),
            (OF_THREAD, format!("SEARCH i USING PRIMARY KEY (thread_number=? AND tenant=? AND {bounds}")),
            (OF_NAME, format!("SEARCH i USING PRIMARY KEY (tenant=? AND name=? AND {bounds}")),
        ] {
            for order in [Order::Asc, Order::Desc] {
                let plan = plan(list.sql(order));
                assert_eq!(plan[0], search, "{order}");
                assert!(
                    !plan.iter().any(|line| line.starts_with("SCAN") || line.contains("TEMP")),
                    "{plan:?}"
                );
            }
        }
    }
}
