//! The hop of a handoff, written when the handoff ends, in whatever way it does.

use baton_core::store::HandoffSession;
use baton_core::{RunId, StoreError, Usd};
use uuid::Uuid;

use crate::patterns;
use crate::tx::Tx;
use crate::value::params;

/// The thread's number, and what the holder spent: in the run that opened the handoff all below its path `$4`, then all runs that the
/// holder answered. The agent that gets the thread back in the same run is not part of it.
const SPENT: &str = "
    SELECT w.thread_number, (
        SELECT CAST(coalesce(sum(l.cost_nanos), 0) AS BIGINT)
        FROM runs AS r
        JOIN ledger AS l ON l.tenant = $1 AND l.run_id = r.run_id
        WHERE r.tenant = $1 AND r.thread_number = w.thread_number
            AND (
                (r.run_id = $3 AND (l.path = CAST($4 AS TEXT)
                    OR substr(l.path, 1, length(CAST($4 AS TEXT)) + 1) = CAST($4 AS TEXT) || '/'))
                OR (r.run_id <> $3 AND r.agent = $5 AND r.started_at >= $6)
            )
            AND l.path NOT LIKE '%/return:%'
    )
    FROM thread_work AS w
    WHERE w.tenant = $1 AND w.thread_id = $2";

/// Records the hop of a handoff that has ended. The rows of the ledger up to this end must be written.
pub(super) async fn record(tx: &Tx<'_>, ended: &HandoffSession) -> Result<(), StoreError> {
    let origin = ended.notes.origin.as_deref().and_then(|origin| origin.opened_in.as_ref());
    let (run, path) = origin.map_or((Uuid::nil(), ""), |(run, path)| (RunId::as_uuid(*run), path.as_str()));
    let params = params![ended.thread_id, run, path, &ended.target_agent_id, ended.started_at];
    let row = tx.first(SPENT, params).await?.ok_or(StoreError::ThreadNotFound)?;
    let (mut hop, _) = ended.hop(tx.now());
    hop.cost = Usd::from_nanos(row.int(1)?);
    patterns::put(tx, row.count(0)?, &hop).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn the_cost_of_a_handoff_is_found_by_its_thread() {
        let plan = plan(SPENT);
        assert!(!plan.iter().any(|line| line.starts_with("SCAN ")), "{plan:?}");
    }
}
