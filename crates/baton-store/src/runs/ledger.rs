//! The ledger: the cost of each call of a run.

use baton_core::ledger::Called;
use baton_core::usage::Cost;
use baton_core::{LedgerRow, RunId, StoreError, Tokens, Usage, Usd};

use super::sessions;
use crate::insert::{ColumnKind, Insert};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};

/// Limit of one value: 10^15 tokens or a million dollars. Providers report these numbers, so larger ones are cut to keep sums
/// in range.
const MOST: u64 = 1 << 50;

const OF_RUN: &str = "SELECT session_id, agent, path, kind, provider, name,
        input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, cost_nanos, cost_known,
        estimated, started_at, latency_ms, outcome, error
    FROM ledger
    WHERE tenant = $1 AND run_id = $2
    ORDER BY started_at, number";

pub(crate) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<LedgerRow>, StoreError> {
    tx.query(OF_RUN, params![run]).await?.iter().map(|row| read(run, row)).collect()
}

fn read(run: RunId, row: &Row) -> Result<LedgerRow, StoreError> {
    let name = row.text(5)?.to_owned();
    let usage = sum(row, 6)?;
    Ok(LedgerRow {
        run_id: run,
        session_id: sessions::full(run, row.text(0)?)?,
        agent: row.parse(1)?,
        path: row.text(2)?.to_owned(),
        call: match row.optional(4, Row::text)? {
            Some(provider) => Called::Model { provider: provider.to_owned(), model: name },
            None => Called::Tool { tool: name },
        },
        tokens: usage.tokens,
        estimated: usage.estimated,
        cost: usage.cost,
        started_at: row.time(14)?,
        latency_ms: row.count(15)?,
        outcome: row.choice(16)?,
        error: row.optional(17, Row::text)?.map(str::to_owned),
    })
}

/// Sums over ledger rows `l`, in the order of [`sum`].
macro_rules! sums {
    () => {
        "CAST(sum(l.input_tokens) AS BIGINT) AS input_tokens,
        CAST(sum(l.output_tokens) AS BIGINT) AS output_tokens,
        CAST(sum(l.cached_tokens) AS BIGINT) AS cached_tokens,
        CAST(sum(l.cache_write_tokens) AS BIGINT) AS cache_write_tokens,
        CAST(sum(l.reasoning_tokens) AS BIGINT) AS reasoning_tokens,
        CAST(sum(l.cost_nanos) AS BIGINT) AS cost,
        min(l.cost_known) AS known,
        max(l.estimated) AS estimated"
    };
}
pub(super) use sums;

const TOTAL: &str = concat!("SELECT ", sums!(), " FROM ledger AS l WHERE l.tenant = $1 AND l.run_id = $2");

/// The cost of a run so far.
pub(super) async fn total(tx: &Tx<'_>, run: RunId) -> Result<Usage, StoreError> {
    tx.first(TOTAL, params![run]).await?.map_or(Ok(Usage::default()), |row| sum(&row, 0))
}

/// Reads eight columns starting at `at`: five kinds of tokens, the cost, whether it is known, whether anything is estimated.
/// All are null if there were no rows.
pub(super) fn sum(row: &Row, at: usize) -> Result<Usage, StoreError> {
    if row.is_null(at) {
        return Ok(Usage::default());
    }
    let tokens = Tokens {
        input_tokens: row.count(at)?,
        output_tokens: row.count(at + 1)?,
        cached_tokens: row.count(at + 2)?,
        cache_write_tokens: row.count(at + 3)?,
        reasoning_tokens: row.count(at + 4)?,
    };
    let usd = Usd::from_nanos(row.int(at + 5)?);
    let cost = if row.int(at + 6)? == 0 { Cost::Unknown(usd) } else { Cost::Known(usd) };
    Ok(Usage { tokens, cost, estimated: row.int(at + 7)? != 0 })
}

pub(crate) static INSERT: Insert = Insert::new(
    "ledger",
    &[
        ("run_id", ColumnKind::Uuid),
        ("number", ColumnKind::Int),
        ("session_id", ColumnKind::Text),
        ("agent", ColumnKind::Text),
        ("path", ColumnKind::Text),
        ("kind", ColumnKind::Text),
        ("provider", ColumnKind::Text),
        ("name", ColumnKind::Text),
        ("input_tokens", ColumnKind::Int),
        ("output_tokens", ColumnKind::Int),
        ("cached_tokens", ColumnKind::Int),
        ("cache_write_tokens", ColumnKind::Int),
        ("reasoning_tokens", ColumnKind::Int),
        ("cost_nanos", ColumnKind::Int),
        ("cost_known", ColumnKind::Int),
        ("estimated", ColumnKind::Int),
        ("started_at", ColumnKind::Int),
        ("latency_ms", ColumnKind::Int),
        ("outcome", ColumnKind::Text),
        ("error", ColumnKind::Text),
    ],
    "",
);

/// Returns rows for [`INSERT`]. The first row gets the number `first`.
pub(crate) fn rows(run: RunId, first: u64, rows: &[LedgerRow]) -> Vec<Vec<SqlValue>> {
    (first..).zip(rows).map(|(number, row)| values(run, number, row)).collect()
}

fn values(run: RunId, number: u64, row: &LedgerRow) -> Vec<SqlValue> {
    let (kind, provider, name) = match &row.call {
        Called::Model { provider, model } => ("model", Some(provider.as_str()), model.as_str()),
        Called::Tool { tool } => ("tool", None, tool.as_str()),
    };
    let usd = row.cost.known_part().nanos().clamp(-(MOST.cast_signed()), MOST.cast_signed());
    let is_known = matches!(row.cost, Cost::Known(_));
    let session = sessions::short(run, &row.session_id);
    let tokens = &row.tokens;
    let count = |count: u64| count.min(MOST);
    row_values![
        run,
        number,
        session,
        &row.agent,
        row.path.as_str(),
        kind,
        provider,
        name,
        count(tokens.input_tokens),
        count(tokens.output_tokens),
        count(tokens.cached_tokens),
        count(tokens.cache_write_tokens),
        count(tokens.reasoning_tokens),
        usd,
        is_known,
        row.estimated,
        row.started_at,
        row.latency_ms,
        row.outcome,
        row.error.as_deref(),
    ]
}
