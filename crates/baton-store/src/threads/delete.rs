//! Deletion of a thread. Only the audit trail, the sums of hop patterns and the budgets of its user and
//! tenant keep traces of it.

use baton_core::{StoreError, ThreadId, UserId};

use super::hold;
use crate::audit;
use crate::budgets::settle;
use crate::tx::Tx;
use crate::value::params;

/// Rows written by the thread's runs. Approvals and idempotency records are deleted with their run.
const OF_RUNS: [&str; 2] = [
    "DELETE FROM tool_outputs WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_number = $2)",
    "DELETE FROM ledger WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_number = $2)",
];

const OF_THREAD: [&str; 5] = [
    "DELETE FROM journal WHERE tenant = $1 AND thread_number = $2",
    "DELETE FROM messages WHERE tenant = $1 AND thread_number = $2",
    "DELETE FROM hops WHERE tenant = $1 AND thread_number = $2",
    "DELETE FROM runs WHERE tenant = $1 AND thread_number = $2",
    "DELETE FROM threads WHERE tenant = $1 AND thread_number = $2",
];

/// With its handoffs, artifacts and feedback.
const THREAD: &str = "DELETE FROM thread_work WHERE tenant = $1 AND thread_id = $2";

pub(super) async fn delete(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<(), StoreError> {
    // Every write of a run needs this row's lock, so none can interleave from here on.
    let number = hold(tx, thread, user).await?;
    settle::delete_thread(tx, thread, number).await?;
    for sql in OF_RUNS.into_iter().chain(OF_THREAD) {
        tx.execute(sql, params![number]).await?;
    }
    tx.execute(THREAD, params![thread]).await?;
    audit::forget_number(tx, thread, number).await?;
    let actor = user.map_or("system", UserId::as_str);
    tx.audit(&audit::about(audit::entry(actor, "thread.delete", "deleted"), thread, None))
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::plan;
    use super::*;

    #[test]
    fn nothing_is_scanned_to_delete_a_thread() {
        for sql in OF_RUNS.into_iter().chain(OF_THREAD).chain([THREAD]) {
            let plan = plan(sql);
            assert!(!plan.iter().any(|line| line.starts_with("SCAN ")), "{sql}: {plan:?}");
        }
    }
}
