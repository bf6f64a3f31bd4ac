//! Usage reports.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use baton_core::store::{Pending, UsageBy, UsageLine, UsageQuery, Usages};
use baton_core::usage::Cost;
use baton_core::{StoreError, Tokens, Usage, Usd};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

impl Usages for Tenant {
    fn usage(&self, query: UsageQuery) -> Pending<'_, Vec<UsageLine>> {
        self.read(query, |tx, query| Box::pin(usage(tx, query)))
    }
}

/// The calls within a time range.
macro_rules! calls {
    () => {
        "FROM ledger AS l WHERE l.tenant = $1 AND l.started_at >= $2 AND l.started_at < $3"
    };
}

/// Same as `calls!`, of deleted threads.
macro_rules! past_calls {
    () => {
        "FROM past_calls AS l WHERE l.tenant = $1 AND l.started_at >= $2 AND l.started_at < $3"
    };
}

/// Same as `calls!`, with the run of each call, which names the user. `CROSS JOIN` keeps SQLite from scanning the runs first.
macro_rules! calls_in_runs {
    () => {
        "FROM ledger AS l CROSS JOIN runs AS r
        WHERE l.tenant = $1 AND l.started_at >= $2 AND l.started_at < $3 AND r.tenant = $1 AND r.run_id = l.run_id"
    };
}

/// One row per `$key`. Values are summed in two parts, millions and remainder: provider-reported numbers could overflow a
/// column, which both databases answer with an error.
macro_rules! sums {
    ($key:literal, $($calls:tt)+) => {
        concat!(
            "SELECT ", $key, ", count(DISTINCT l.run_id), count(l.provider), count(*),
                CAST(sum(l.input_tokens / 1000000) AS BIGINT), CAST(sum(l.input_tokens % 1000000) AS BIGINT),
                CAST(sum(l.output_tokens / 1000000) AS BIGINT), CAST(sum(l.output_tokens % 1000000) AS BIGINT),
                CAST(sum(l.cached_tokens / 1000000) AS BIGINT), CAST(sum(l.cached_tokens % 1000000) AS BIGINT),
                CAST(sum(l.cache_write_tokens / 1000000) AS BIGINT), CAST(sum(l.cache_write_tokens % 1000000) AS BIGINT),
                CAST(sum(l.reasoning_tokens / 1000000) AS BIGINT), CAST(sum(l.reasoning_tokens % 1000000) AS BIGINT),
                CAST(sum(l.cost_nanos / 1000000) AS BIGINT), CAST(sum(l.cost_nanos % 1000000) AS BIGINT),
                min(l.cost_known), max(l.estimated)
            ", $($calls)+, " GROUP BY ", $key
        )
    };
}

/// One SQL text per filter, so that the planner can skip the join, and per table. The runs of the two tables are different, so their
/// sums add up.
struct UsageStatement {
    of_all: [&'static str; 2],
    of_user: [&'static str; 2],
}

const BY_AGENT: UsageStatement = UsageStatement {
    of_all: [sums!("l.agent", calls!()), sums!("l.agent", past_calls!())],
    of_user: [
        sums!("l.agent", calls_in_runs!(), " AND r.user_id = $4"),
        sums!("l.agent", past_calls!(), " AND l.user_id = $4"),
    ],
};

const BY_USER: UsageStatement = UsageStatement {
    of_all: [sums!("r.user_id", calls_in_runs!()), sums!("l.user_id", past_calls!())],
    of_user: [
        sums!("r.user_id", calls_in_runs!(), " AND r.user_id = $4"),
        sums!("l.user_id", past_calls!(), " AND l.user_id = $4"),
    ],
};

const BY_MODEL: UsageStatement = UsageStatement {
    of_all: [
        sums!("l.provider || '/' || l.name", calls!(), " AND l.kind = 'model'"),
        sums!("l.provider || '/' || l.name", past_calls!(), " AND l.kind = 'model'"),
    ],
    of_user: [
        sums!("l.provider || '/' || l.name", calls_in_runs!(), " AND r.user_id = $4 AND l.kind = 'model'"),
        sums!("l.provider || '/' || l.name", past_calls!(), " AND l.user_id = $4 AND l.kind = 'model'"),
    ],
};

/// Grouped by days since 1970-01-01 UTC.
const BY_DAY: UsageStatement = UsageStatement {
    of_all: [
        sums!("l.started_at / 86400000000", calls!()),
        sums!("l.started_at / 86400000000", past_calls!()),
    ],
    of_user: [
        sums!("l.started_at / 86400000000", calls_in_runs!(), " AND r.user_id = $4"),
        sums!("l.started_at / 86400000000", past_calls!(), " AND l.user_id = $4"),
    ],
};

async fn usage(tx: &Tx<'_>, query: &UsageQuery) -> Result<Vec<UsageLine>, StoreError> {
    let question = match query.by {
        UsageBy::Agent => BY_AGENT,
        UsageBy::User => BY_USER,
        UsageBy::Model => BY_MODEL,
        UsageBy::Day => BY_DAY,
    };
    let since = query.since.map_or(SqlValue::Int(i64::MIN), SqlValue::from);
    let until = query.until.map_or(SqlValue::Int(i64::MAX), SqlValue::from);
    let (statements, values) = match &query.user_id {
        Some(user) => (question.of_user, params![since, until, user].to_vec()),
        None => (question.of_all, params![since, until].to_vec()),
    };
    let mut lines = BTreeMap::new();
    for sql in statements {
        for row in tx.query(sql, &values).await? {
            add(&mut lines, read(query.by, &row)?);
        }
    }
    let mut lines: Vec<UsageLine> = lines.into_values().collect();
    if query.by == UsageBy::Day {
        lines.sort_by(|a, b| a.key.cmp(&b.key));
    } else {
        lines.sort_by_cached_key(|line| {
            let Usage { tokens, cost, .. } = line.usage;
            (Reverse((cost.known_part(), tokens.total())), line.key.clone())
        });
    }
    Ok(lines)
}

fn add(lines: &mut BTreeMap<String, UsageLine>, line: UsageLine) {
    match lines.get_mut(&line.key) {
        Some(known) => {
            known.runs += line.runs;
            known.model_calls += line.model_calls;
            known.tool_calls += line.tool_calls;
            known.usage += line.usage;
        }
        None => drop(lines.insert(line.key.clone(), line)),
    }
}

fn read(by: UsageBy, row: &Row) -> Result<UsageLine, StoreError> {
    let key = if by == UsageBy::Day { day(row)? } else { row.text(0)?.to_owned() };
    let (model_calls, calls) = (row.count(2)?, row.count(3)?);
    let tokens = |at| whole(row, at).map(|sum| u64::try_from(sum.max(0)).unwrap_or(u64::MAX));
    let tokens = Tokens {
        input_tokens: tokens(4)?,
        output_tokens: tokens(6)?,
        cached_tokens: tokens(8)?,
        cache_write_tokens: tokens(10)?,
        reasoning_tokens: tokens(12)?,
    };
    let nanos = whole(row, 14)?.clamp(i64::MIN.into(), i64::MAX.into());
    let usd = Usd::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
    let cost = if row.int(16)? == 0 { Cost::Unknown(usd) } else { Cost::Known(usd) };
    let usage = Usage { tokens, cost, estimated: row.int(17)? != 0 };
    Ok(UsageLine { key, runs: row.count(1)?, model_calls, tool_calls: calls - model_calls, usage })
}

/// Combines the millions and the remainder.
fn whole(row: &Row, at: usize) -> Result<i128, StoreError> {
    Ok(i128::from(row.int(at)?) * 1_000_000 + i128::from(row.int(at + 1)?))
}

fn day(row: &Row) -> Result<String, StoreError> {
    let seconds = row.int(0)?.saturating_mul(86_400);
    let day = Timestamp::from_second(seconds)
        .map_err(|_| StoreError::Corrupt("a call began at a time that does not exist".to_owned()))?;
    Ok(day.to_zoned(TimeZone::UTC).date().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn a_sum_reads_the_calls_of_its_time_and_nothing_else() {
        for question in [BY_AGENT, BY_USER, BY_MODEL, BY_DAY] {
            for [sql, past] in [question.of_all, question.of_user] {
                let plan_of_past = plan(past);
                assert!(plan_of_past[0].starts_with("SEARCH l USING "), "{plan_of_past:#?}");
                let plan = plan(sql);
                let ledger =
                    "SEARCH l USING INDEX ledger_by_time (tenant=? AND started_at>? AND started_at<?)";
                assert_eq!(plan[0], ledger, "{plan:#?}");
                let is_by_key = |line: &String| line.starts_with("SEARCH r ") && line.ends_with("run_id=?)");
                let others = plan.iter().skip(1).filter(|line| !line.contains("TEMP B-TREE"));
                assert!(others.clone().all(is_by_key), "{plan:#?}");
            }
        }
    }
}
