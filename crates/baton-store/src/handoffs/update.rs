//! Changes of a handoff: its state, along the permitted transitions, and its workflow.

use baton_core::StoreError;
use baton_core::store::{HandoffSession, HandoffState};

use super::{hop, must_be_free, one};
use crate::approvals;
use crate::tx::Tx;
use crate::value::{SqlValue, params};

const CHANGED: StoreError = StoreError::HandoffChanged;

pub(super) async fn update(tx: &Tx<'_>, changed: &HandoffSession) -> Result<HandoffSession, StoreError> {
    write(tx, changed).await?;
    one(tx, changed.handoff_id).await
}

/// Writes the change without reading the result back.
pub(super) async fn write(tx: &Tx<'_>, changed: &HandoffSession) -> Result<(), StoreError> {
    let before = one(tx, changed.handoff_id).await?;
    if before.thread_id != changed.thread_id {
        return Err(StoreError::NotFound("handoff"));
    }
    if before.version != changed.version || !may_become(before.state, changed.state) {
        return Err(CHANGED);
    }
    let is_resumed = !before.state.is_open() && changed.state.is_open();
    if is_resumed {
        must_be_free(tx, before.thread_id).await?;
    }
    pass_thread(tx, &before, changed.state).await?;
    if is_resumed {
        // Check again: the thread's row is locked now, so no other transaction can open a handoff.
        must_be_free(tx, before.thread_id).await?;
    }
    replace(tx, &before, changed).await?;
    let ends = before.state.is_open() && !changed.state.is_open();
    if let Some(question) = before.notes.question.filter(|_| ends) {
        approvals::close_question(tx, question).await?;
    }
    if ends {
        let (started_at, completed_at) = (before.started_at, Some(tx.now()));
        hop::record(tx, &HandoffSession { started_at, completed_at, ..changed.clone() }).await?;
    }
    if before.workflow == changed.workflow { Ok(()) } else { keep_workflow(tx, changed).await }
}

/// The permitted state transitions. A final state only returns to `active`, when the target resumes the handoff.
fn may_become(before: HandoffState, after: HandoffState) -> bool {
    use HandoffState::{Active, Cancelled, Completed, Error, Pending, Returning};
    match (before, after) {
        (Pending, Active | Cancelled | Error)
        | (Active, Returning | Completed | Cancelled | Error)
        | (Returning, Completed | Cancelled | Error)
        | (Completed | Cancelled | Error, Active) => true,
        (before, after) => before == after,
    }
}

const PASS: &str = "
    UPDATE thread_work
    SET holder = CASE
            WHEN CAST($3 AS TEXT) = 'active' THEN $4
            WHEN CAST($6 AS BIGINT) = 0 AND handoff_id = $7 THEN $5
            ELSE holder
        END,
        last_handoff = CASE WHEN CAST($6 AS BIGINT) = 1 THEN $7 ELSE last_handoff END,
        handoff_id = CASE
            WHEN CAST($6 AS BIGINT) = 1 THEN $7
            WHEN handoff_id = $7 THEN NULL
            ELSE handoff_id
        END
    WHERE tenant = $1 AND thread_id = $2";

/// Sets the thread's holder according to its handoff. An update of a handoff that is no longer the thread's current one does
/// not change the holder.
pub(super) async fn pass_thread(
    tx: &Tx<'_>,
    before: &HandoffSession,
    after: HandoffState,
) -> Result<(), StoreError> {
    let (target, source) = (&before.target_agent_id, &before.source_agent_id);
    let params = params![before.thread_id, after, target, source, after.is_open(), before.handoff_id];
    match tx.execute(PASS, params).await? {
        0 => Err(StoreError::ThreadNotFound),
        _ => Ok(()),
    }
}

const REPLACE: &str = "
    UPDATE handoffs
    SET state = $4, version = version + 1, context_summary = $5, reason = $6, metadata = $7, updated_at = $8,
        completed_at = $9, result_summary = $10, artifacts = $11, expires_at = $12, notes = $13
    WHERE tenant = $1 AND handoff_id = $2 AND version = $3";

/// Updates the mutable columns. Thread, user, source and target never change.
async fn replace(tx: &Tx<'_>, before: &HandoffSession, changed: &HandoffSession) -> Result<(), StoreError> {
    let has_ended = !changed.state.is_open();
    let completed_at = has_ended.then(|| before.completed_at.unwrap_or(tx.now()));
    let (summary, reason) = (changed.context_summary.as_str(), changed.handoff_reason.as_str());
    let (metadata, artifacts) =
        (SqlValue::json(&changed.metadata)?, SqlValue::json(&changed.artifacts_created)?);
    let (id, version, state) = (before.handoff_id, before.version, changed.state);
    let result = changed.result_summary.as_deref();
    let (expires_at, notes) = (changed.expires_at.filter(|_| !has_ended), SqlValue::json(&changed.notes)?);
    let params = params![
        id,
        version,
        state,
        summary,
        reason,
        metadata,
        tx.now(),
        completed_at,
        result,
        artifacts,
        expires_at,
        notes
    ];
    match tx.execute(REPLACE, params).await? {
        0 => Err(CHANGED),
        _ => Ok(()),
    }
}

const KEEP_WORKFLOW: &str = "
    INSERT INTO workflow_states (tenant, handoff_id, state, data, updated_at)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, handoff_id) DO UPDATE
    SET state = excluded.state, data = excluded.data, updated_at = excluded.updated_at";

pub(super) async fn keep_workflow(tx: &Tx<'_>, changed: &HandoffSession) -> Result<(), StoreError> {
    let id = changed.handoff_id;
    let Some(workflow) = &changed.workflow else {
        let sql = "DELETE FROM workflow_states WHERE tenant = $1 AND handoff_id = $2";
        return tx.execute(sql, params![id]).await.map(drop);
    };
    let (state, data) = (workflow.state.as_str(), SqlValue::json(&workflow.data)?);
    tx.execute(KEEP_WORKFLOW, params![id, state, data, tx.now()]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use baton_core::choice::Choice as _;

    use super::*;

    #[test]
    fn c_6_states_follow_each_other_only_along_their_ways() {
        let ways = |before: HandoffState| -> Vec<&str> {
            let after = HandoffState::ALL.iter().filter(|(_, after)| may_become(before, *after));
            after.map(|(word, _)| *word).collect()
        };
        assert_eq!(ways(HandoffState::Pending), ["pending", "active", "cancelled", "error"]);
        assert_eq!(ways(HandoffState::Active), ["active", "returning", "completed", "cancelled", "error"]);
        assert_eq!(ways(HandoffState::Returning), ["returning", "completed", "cancelled", "error"]);
        assert_eq!(ways(HandoffState::Completed), ["active", "completed"]);
        assert_eq!(ways(HandoffState::Cancelled), ["active", "cancelled"]);
        assert_eq!(ways(HandoffState::Error), ["active", "error"]);
    }
}
