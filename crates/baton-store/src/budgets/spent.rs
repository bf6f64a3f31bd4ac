//! What the ledger says was spent.

use baton_core::StoreError;
use baton_core::budget::{Amount, BudgetKey, BudgetScope};
use baton_core::id::ThreadId;
use jiff::Timestamp;

use crate::tx::Tx;
use crate::value::{Row, params};

/// In two parts, as the sums of usage reports: one sum could overflow.
macro_rules! sums {
    ($($calls:literal),+) => {
        concat!(
            "SELECT
                CAST(coalesce(sum(l.cost_nanos / 1000000), 0) AS BIGINT),
                CAST(coalesce(sum(l.cost_nanos % 1000000), 0) AS BIGINT),
                CAST(coalesce(sum(l.input_tokens / 1000000 + l.output_tokens / 1000000), 0) AS BIGINT),
                CAST(coalesce(sum(l.input_tokens % 1000000 + l.output_tokens % 1000000), 0) AS BIGINT)
            ", $($calls),+
        )
    };
}

const OF_TENANT: &str =
    sums!("FROM ledger AS l WHERE l.tenant = $1 AND l.started_at >= $2 AND l.started_at < $3");

/// Of deleted threads.
const PAST_OF_TENANT: &str =
    sums!("FROM past_calls AS l WHERE l.tenant = $1 AND l.started_at >= $2 AND l.started_at < $3");

const PAST_OF_USER: &str = sums!(
    "FROM past_calls AS l WHERE l.tenant = $1 AND l.user_id = $4 AND l.started_at >= $2 AND l.started_at < $3"
);

/// `CROSS JOIN` makes SQLite begin with the runs: the tenant has many more calls. `+` keeps it from searching the calls of a run by
/// their time, among all calls of the tenant.
const OF_USER: &str = sums!(
    "FROM runs AS r CROSS JOIN ledger AS l
    WHERE r.tenant = $1 AND r.user_id = $4
        AND l.tenant = $1 AND l.run_id = r.run_id AND +l.started_at >= $2 AND +l.started_at < $3"
);

const OF_THREAD: &str = sums!(
    "FROM runs AS r CROSS JOIN ledger AS l
    WHERE r.tenant = $1 AND l.tenant = $1 AND l.run_id = r.run_id
        AND r.thread_number = (SELECT thread_number FROM thread_work WHERE tenant = $1 AND thread_id = $2)"
);

/// The calls of an account in the ledger, including those of deleted threads.
pub(super) async fn in_ledger(tx: &Tx<'_>, key: &BudgetKey) -> Result<Amount, StoreError> {
    let (since, until) = (key.starts_at, key.ends_at().unwrap_or(Timestamp::MAX));
    let row = match key.scope {
        BudgetScope::Tenant => {
            let past = tx.first(PAST_OF_TENANT, params![since, until]).await?;
            return both(tx.first(OF_TENANT, params![since, until]).await?, past);
        }
        BudgetScope::User => {
            let values = params![since, until, key.subject.as_str()];
            let past = tx.first(PAST_OF_USER, values).await?;
            return both(tx.first(OF_USER, values).await?, past);
        }
        BudgetScope::Thread => {
            let thread = ThreadId::parse(&key.subject);
            let thread = thread.map_err(|error| StoreError::Unreadable(error.to_string()))?;
            tx.first(OF_THREAD, params![thread]).await?
        }
        // They belong to one run, which counts them itself.
        BudgetScope::Run | BudgetScope::Agent => None,
    };
    row.map_or(Ok(Amount::default()), |row| sum(&row, 0))
}

fn both(one: Option<Row>, other: Option<Row>) -> Result<Amount, StoreError> {
    let amount = |row: Option<Row>| row.map_or(Ok(Amount::default()), |row| sum(&row, 0));
    Ok(amount(one)?.plus(amount(other)?))
}

/// Combines the millions and the remainder of cost and tokens.
pub(super) fn sum(row: &Row, at: usize) -> Result<Amount, StoreError> {
    let whole = |at| Ok::<_, StoreError>(i128::from(row.int(at)?) * 1_000_000 + i128::from(row.int(at + 1)?));
    let most = i128::from(super::MOST);
    let nanos = i64::try_from(whole(at)?.min(most)).unwrap_or_default();
    let tokens = u64::try_from(whole(at + 2)?.clamp(0, most)).unwrap_or_default();
    Ok(Amount { nanos, tokens })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn recounting_reads_the_calls_of_one_account() {
        for sql in [OF_TENANT, OF_USER, OF_THREAD, PAST_OF_TENANT, PAST_OF_USER] {
            let plan = plan(sql);
            assert!(!plan.iter().any(|line| line.starts_with("SCAN ")), "{plan:#?}");
        }
        let of_user = plan(OF_USER);
        assert!(of_user[0].contains("runs_of_user (tenant=? AND user_id=?)"), "{of_user:#?}");
        assert!(of_user[1].contains("(tenant=? AND run_id=?)"), "{of_user:#?}");
    }
}
