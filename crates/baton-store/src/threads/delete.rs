//! Deletion of a thread. The audit trail, the sums of hop patterns, the budgets of its user and tenant and what its calls cost outlive
//! it.
//!
//! A long thread disappears with one write, like any other. Its messages and events are then removed in batches, so that no writer
//! waits for long; a crash leaves the rest to the next sweep.

use baton_core::{StoreError, ThreadId, UserId};
use jiff::Timestamp;
use uuid::Uuid;

use super::hold;
use crate::audit;
use crate::budgets::settle;
use crate::patterns;
use crate::tx::Tx;
use crate::value::params;

/// Rows that one transaction deletes of a long thread. Shorter threads are deleted with one transaction.
const ROWS_AT_ONCE: u64 = 1000;

/// Keeps the costs of a thread, under an id that says nothing about its run.
macro_rules! keep_costs {
    ($random:literal) => {
        concat!(
            "WITH kept AS MATERIALIZED (
                SELECT tenant, run_id, ", $random, " AS past_id FROM runs WHERE tenant = $1 AND thread_number = $2
            )
            INSERT INTO past_calls (tenant, started_at, run_id, number, user_id, agent, kind, provider, name, input_tokens,
                output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, estimated, cost_nanos, cost_known)
            SELECT k.tenant, l.started_at, k.past_id, l.number, CAST($3 AS TEXT), l.agent, l.kind, l.provider, l.name,
                l.input_tokens, l.output_tokens, l.cached_tokens, l.cache_write_tokens, l.reasoning_tokens, l.estimated,
                l.cost_nanos, l.cost_known
            FROM kept AS k CROSS JOIN ledger AS l
            WHERE k.tenant = $1 AND l.tenant = $1 AND l.run_id = k.run_id"
        )
    };
}

const KEEP_COSTS_SQLITE: &str = keep_costs!("randomblob(16)");
const KEEP_COSTS_POSTGRES: &str = keep_costs!("gen_random_uuid()");

/// Rows written by the thread's runs. Approvals and idempotency records are deleted with their run.
const OF_RUNS: [&str; 2] = [
    "DELETE FROM tool_outputs WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_number = $2)",
    "DELETE FROM ledger WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_number = $2)",
];

const OF_THREAD: [&str; 2] = [
    "DELETE FROM runs WHERE tenant = $1 AND thread_number = $2",
    "DELETE FROM threads WHERE tenant = $1 AND thread_number = $2",
];

/// The tables that grow with the length of a thread.
const HISTORY: [&str; 3] = [
    "DELETE FROM journal WHERE tenant = $1 AND thread_number = $2",
    "DELETE FROM messages WHERE tenant = $1 AND thread_number = $2",
    "DELETE FROM hops WHERE tenant = $1 AND thread_number = $2",
];

/// The same, at most `$3` rows.
const PART_OF_HISTORY: [&str; 3] = [
    "DELETE FROM journal WHERE tenant = $1 AND thread_number = $2 AND last_seq <= (
        SELECT max(last_seq) FROM (
            SELECT last_seq FROM journal WHERE tenant = $1 AND thread_number = $2 ORDER BY last_seq LIMIT $3
        ) AS oldest)",
    "DELETE FROM messages WHERE tenant = $1 AND thread_number = $2 AND number <= (
        SELECT max(number) FROM (
            SELECT number FROM messages WHERE tenant = $1 AND thread_number = $2 ORDER BY number LIMIT $3
        ) AS oldest)",
    "DELETE FROM hops WHERE tenant = $1 AND thread_number = $2 AND at <= (
        SELECT max(at) FROM (
            SELECT at FROM hops WHERE tenant = $1 AND thread_number = $2 ORDER BY at LIMIT $3
        ) AS oldest)",
];

/// With its handoffs, artifacts, feedback, push notification configurations and drafts of skills and agents.
const THREAD: &str = "DELETE FROM thread_work WHERE tenant = $1 AND thread_id = $2";

/// What [`THREAD`] deletes by foreign key. [`HIDE`] changes the key that these rows refer to.
const OWNED: [&str; 6] = [
    "DELETE FROM handoffs WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM artifacts WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM feedback WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM push_configs WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM skill_drafts WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM agent_drafts WHERE tenant = $1 AND thread_id = $2",
];

const LENGTH: &str =
    "SELECT messages + records, user_id FROM thread_work WHERE tenant = $1 AND thread_id = $2";

/// Makes the row unreachable and keeps its number. A worker of the thread is fenced: the claim is gone.
const HIDE: &str = "
    UPDATE thread_work
    SET thread_id = $3, user_id = '', holder = NULL, handoff_id = NULL, last_handoff = NULL, queued = 0, active_run = NULL,
        owner = NULL, epoch = epoch + 1, appended = 0, appended_run = NULL, bytes = 0,
        file_bytes = 0
    WHERE tenant = $1 AND thread_id = $2";

const LEAVE: &str = "INSERT INTO deleted_threads (tenant, thread_number, thread_id) VALUES ($1, $2, $3)";

const LEFT: &str =
    "SELECT thread_number, thread_id FROM deleted_threads WHERE tenant = $1 ORDER BY thread_number LIMIT 1";

const NOTHING_LEFT: &str = "DELETE FROM deleted_threads WHERE tenant = $1 AND thread_number = $2";

/// Returns whether rows are left, for [`delete_part`].
pub(super) async fn delete(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<bool, StoreError> {
    // Every write of a run needs this row's lock, so none can interleave from here on.
    let number = hold(tx, thread, user).await?;
    let actor = user.map_or("system", UserId::as_str);
    remove(tx, thread, number, actor, "deleted").await
}

/// A thread that was not used since `$3` and on which nothing is open. A run that waits has a pending approval.
const IS_EXPIRED: &str = "SELECT 1 FROM thread_work AS w JOIN threads AS t ON t.tenant = $1 AND t.thread_number = w.thread_number
    WHERE w.tenant = $1 AND w.thread_id = $2 AND t.updated_at < $3
        AND w.active_run IS NULL AND w.queued = 0 AND w.handoff_id IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM approvals AS a WHERE a.tenant = $1 AND a.thread_id = w.thread_id AND a.status = 'pending')";

/// Deletes a thread that expired. Returns `None` if it is gone, was used since, or has open work.
pub(crate) async fn delete_expired(
    tx: &Tx<'_>,
    thread: ThreadId,
    before: Timestamp,
) -> Result<Option<bool>, StoreError> {
    let number = match hold(tx, thread, None).await {
        Err(StoreError::ThreadNotFound) => return Ok(None),
        number => number?,
    };
    if tx.first(IS_EXPIRED, params![thread, before]).await?.is_none() {
        return Ok(None);
    }
    remove(tx, thread, number, "system", "expired").await.map(Some)
}

async fn remove(
    tx: &Tx<'_>,
    thread: ThreadId,
    number: u64,
    actor: &str,
    decision: &str,
) -> Result<bool, StoreError> {
    let found = tx.first(LENGTH, params![thread]).await?.ok_or(StoreError::ThreadNotFound)?;
    let (is_long, user) = (found.count(0)? > ROWS_AT_ONCE, found.text(1)?);
    settle::delete_thread(tx, thread, number).await?;
    patterns::settle_thread(tx, number).await?;
    let keep_costs = if tx.is_postgres() { KEEP_COSTS_POSTGRES } else { KEEP_COSTS_SQLITE };
    tx.execute(keep_costs, params![number, user]).await?;
    for sql in OF_RUNS.into_iter().chain(OF_THREAD).chain(HISTORY.into_iter().filter(|_| !is_long)) {
        tx.execute(sql, params![number]).await?;
    }
    if is_long {
        for sql in OWNED {
            tx.execute(sql, params![thread]).await?;
        }
        let hidden = Uuid::new_v4();
        tx.execute(HIDE, params![thread, hidden]).await?;
        tx.execute(LEAVE, params![number, hidden]).await?;
    } else {
        tx.execute(THREAD, params![thread]).await?;
    }
    audit::forget_number(tx, thread, number).await?;
    tx.audit(&audit::about(audit::entry(actor, "thread.delete", decision), thread, None))?;
    Ok(is_long)
}

/// Whether there is something for [`delete_part`].
pub(crate) async fn is_deletion_left(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.first(LEFT, &[]).await?.is_some())
}

/// Deletes a part of what is left of a long thread.
pub(crate) async fn delete_part(tx: &Tx<'_>) -> Result<(), StoreError> {
    let Some(left) = tx.first(LEFT, &[]).await? else { return Ok(()) };
    let number = left.count(0)?;
    let mut deleted = 0;
    for sql in PART_OF_HISTORY {
        let room = ROWS_AT_ONCE.saturating_sub(deleted);
        if room == 0 {
            return Ok(());
        }
        deleted += tx.execute(sql, params![number, room]).await?;
    }
    if deleted == 0 {
        tx.execute(THREAD, params![left.parse::<ThreadId>(1)?]).await?;
        tx.execute(NOTHING_LEFT, params![number]).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::plan;
    use super::*;

    #[test]
    fn nothing_is_scanned_to_delete_a_thread() {
        let all = OF_RUNS.into_iter().chain(OF_THREAD).chain(HISTORY).chain(PART_OF_HISTORY).chain(OWNED);
        for sql in all.chain([THREAD, LENGTH, IS_EXPIRED, LEFT, NOTHING_LEFT]) {
            let plan = plan(sql);
            assert!(
                !plan.iter().any(|line| line.starts_with("SCAN ") && !line.contains("oldest")),
                "{sql}: {plan:?}"
            );
        }
    }

    #[test]
    fn every_table_that_refers_to_a_thread_is_emptied_before_it_is_hidden() {
        let mut referring = 0;
        for table in
            crate::migrate::MIGRATIONS.iter().flat_map(|schema| schema.split("CREATE TABLE ").skip(1))
        {
            let (name, columns) = table.split_once(' ').unwrap();
            if columns.split("\n)").next().unwrap().contains("REFERENCES thread_work ") {
                let statement = format!("DELETE FROM {name} ");
                assert!(OWNED.iter().any(|sql| sql.starts_with(&statement)), "{name}");
                referring += 1;
            }
        }
        assert_eq!(referring, OWNED.len());
    }
}
