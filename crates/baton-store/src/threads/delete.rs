//! Deletion of a thread. Only the audit trail and the sums of hop patterns keep traces of it.

use baton_core::{StoreError, ThreadId, UserId};

use super::hold;
use crate::audit;
use crate::tx::Tx;
use crate::value::params;

/// Rows written by the thread's runs. Approvals and idempotency records are deleted with their run.
const OF_RUNS: [&str; 2] = [
    "DELETE FROM tool_outputs WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_id = $2)",
    "DELETE FROM ledger WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_id = $2)",
];

/// Handoffs, artifacts and feedback are deleted with the thread.
const OF_THREAD: [&str; 6] = [
    "DELETE FROM journal WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM messages WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM hops WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM runs WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM threads WHERE tenant = $1 AND thread_id = $2",
    "DELETE FROM thread_work WHERE tenant = $1 AND thread_id = $2",
];

pub(super) async fn delete(tx: &Tx<'_>, thread: ThreadId, user: Option<&UserId>) -> Result<(), StoreError> {
    // Every write of a run needs this row's lock, so none can interleave from here on.
    hold(tx, thread, user).await?;
    for sql in OF_RUNS.into_iter().chain(OF_THREAD) {
        tx.execute(sql, params![thread]).await?;
    }
    let actor = user.map_or("system", UserId::as_str);
    tx.audit(audit::about(audit::entry(actor, "thread.delete", "deleted"), thread, None));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::plan;
    use super::*;

    #[test]
    fn nothing_is_scanned_to_delete_a_thread() {
        for sql in OF_RUNS.into_iter().chain(OF_THREAD) {
            let plan = plan(sql);
            assert!(!plan.iter().any(|line| line.starts_with("SCAN ")), "{sql}: {plan:?}");
        }
    }
}
