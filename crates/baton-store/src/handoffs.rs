//! Handoffs: a thread is leased to an agent. Changes are in [`update`].

mod hop;
mod update;

use std::time::Duration;

use baton_core::store::{
    Activation, HandoffChange, HandoffSession, HandoffState, Handoffs, MAX_LEFT_HANDOFFS, NewHandoff,
    Pending, WorkflowState,
};
use baton_core::{AgentName, HandoffId, StoreError, ThreadId, UserId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

impl Handoffs for Tenant {
    fn open_handoff(&self, handoff: NewHandoff) -> Pending<'_, HandoffSession> {
        self.write(JobSubject::Thread(handoff.thread_id), handoff, |tx, handoff| Box::pin(open(tx, handoff)))
    }

    fn handoff(&self, handoff: HandoffId) -> Pending<'_, HandoffSession> {
        self.read(handoff, |tx, handoff| Box::pin(one(tx, *handoff)))
    }

    fn open_handoff_of(&self, thread: ThreadId) -> Pending<'_, Option<HandoffSession>> {
        self.read(thread, |tx, thread| Box::pin(open_of(tx, *thread)))
    }

    fn open_handoffs_of(&self, threads: &[ThreadId]) -> Pending<'_, Vec<HandoffSession>> {
        let threads: Vec<Uuid> = threads.iter().map(|thread| thread.as_uuid()).collect();
        self.read(threads, |tx, threads| Box::pin(open_of_many(tx, threads)))
    }

    fn handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>> {
        self.read(thread, |tx, thread| Box::pin(of_thread(tx, *thread)))
    }

    fn resumable_handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>> {
        self.read(thread, |tx, thread| Box::pin(resumable(tx, *thread)))
    }

    fn resumable_handoffs_of(&self, user: &UserId) -> Pending<'_, Vec<HandoffSession>> {
        self.read(user.clone(), |tx, user| Box::pin(left_of(tx, user)))
    }

    fn expired_handoffs(&self, limit: u32) -> Pending<'_, Vec<HandoffSession>> {
        self.read(limit, |tx, limit| Box::pin(expired(tx, *limit)))
    }

    fn completed_durations(&self, target: &AgentName, limit: u32) -> Pending<'_, Vec<Duration>> {
        self.read((target.clone(), limit), |tx, (target, limit)| Box::pin(durations(tx, target, *limit)))
    }

    fn update_handoff(&self, changed: HandoffSession) -> Pending<'_, HandoffSession> {
        let about = JobSubject::Thread(changed.thread_id);
        self.write(about, changed, |tx, changed| Box::pin(update::update(tx, changed)))
    }

    fn queue_handoff(&self, handoff: HandoffId, next: serde_json::Value) -> Pending<'_, bool> {
        self.write(JobSubject::Tenant, (handoff, next), |tx, (handoff, next)| {
            Box::pin(async {
                let sql = "UPDATE handoffs SET next = $3
                    WHERE tenant = $1 AND handoff_id = $2 AND next IS NULL
                        AND state <> 'completed' AND state <> 'cancelled' AND state <> 'error'";
                Ok(tx.execute(sql, params![*handoff, SqlValue::json(next)?]).await? > 0)
            })
        })
    }

    fn unqueue_handoff(&self, handoff: HandoffId) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, handoff, |tx, handoff| {
            Box::pin(async {
                let sql = "UPDATE handoffs SET next = NULL WHERE tenant = $1 AND handoff_id = $2";
                tx.execute(sql, params![*handoff]).await.map(drop)
            })
        })
    }
}

macro_rules! handoffs {
    ($which:literal) => {
        concat!(
            "SELECT h.handoff_id, h.thread_id, h.user_id, h.source, h.target, h.state, h.context_summary, h.reason,
                h.started_at, h.updated_at, h.completed_at, h.result_summary, h.artifacts, h.metadata, h.version,
                h.expires_at, h.notes, h.next, w.state, w.data
            FROM handoffs AS h
            LEFT JOIN workflow_states AS w ON w.tenant = $1 AND w.handoff_id = h.handoff_id
            WHERE h.tenant = $1 AND ",
            $which
        )
    };
}

const ONE: &str = handoffs!("h.handoff_id = $2");

const OPEN: &str = handoffs!(
    "h.thread_id = $2 AND h.state <> 'completed' AND h.state <> 'cancelled' AND h.state <> 'error'"
);

/// SQLite has no arrays: `$2` is the concatenation of the ids, 16 bytes each.
const OPEN_OF_MANY: &str = handoffs!(
    "h.handoff_id IN (
        SELECT t.handoff_id FROM thread_work AS t
        WHERE t.tenant = $1 AND t.thread_id IN (
            WITH RECURSIVE listed (id, rest) AS (
                SELECT substr($2, 1, 16), substr($2, 17)
                UNION ALL
                SELECT substr(rest, 1, 16), substr(rest, 17) FROM listed WHERE length(rest) > 0
            )
            SELECT id FROM listed
        )
    )"
);

const OPEN_OF_ARRAY: &str = handoffs!(
    "h.handoff_id IN (
        SELECT t.handoff_id FROM thread_work AS t WHERE t.tenant = $1 AND t.thread_id = ANY ($2)
    )"
);

const OF_THREAD: &str = handoffs!("h.thread_id = $2 ORDER BY h.started_at, h.handoff_id");

const RESUMABLE: &str = handoffs!(
    "h.thread_id = $2 AND h.state NOT IN ('pending', 'active', 'returning') AND w.handoff_id IS NOT NULL
    ORDER BY h.started_at DESC, h.handoff_id DESC"
);

const LEFT: &str = handoffs!(
    "h.handoff_id IN (
        SELECT l.handoff_id FROM handoffs AS l
        WHERE l.tenant = $1 AND l.user_id = $2
            AND l.state <> 'pending' AND l.state <> 'active' AND l.state <> 'returning' AND l.state <> 'completed'
        ORDER BY l.updated_at DESC
        LIMIT $3
    ) AND w.handoff_id IS NOT NULL
    ORDER BY h.updated_at DESC, h.handoff_id DESC"
);

const LAST: &str = handoffs!(
    "h.handoff_id = (SELECT t.last_handoff FROM thread_work AS t WHERE t.tenant = $1 AND t.thread_id = $2)"
);

const EXPIRED: &str = handoffs!(
    "h.state = 'active' AND h.expires_at < $2
    AND EXISTS (
        SELECT 1 FROM thread_work AS t
        WHERE t.tenant = $1 AND t.thread_id = h.thread_id AND t.active_run IS NULL AND t.queued = 0
    )
    ORDER BY h.expires_at
    LIMIT $3"
);

const DURATIONS: &str = "
    SELECT started_at, completed_at FROM handoffs
    WHERE tenant = $1 AND target = $2 AND state = 'completed' AND completed_at IS NOT NULL
    ORDER BY completed_at DESC
    LIMIT $3";

const INSERT: &str = "
    INSERT INTO handoffs
        (tenant, handoff_id, thread_id, user_id, source, target, state, version, context_summary, reason, metadata,
        started_at, updated_at, completed_at, result_summary, artifacts, expires_at, notes)
    VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10, $11, $11, $12, $13, $14, $15, $16)
    ON CONFLICT DO NOTHING";

async fn durations(tx: &Tx<'_>, target: &AgentName, limit: u32) -> Result<Vec<Duration>, StoreError> {
    let rows = tx.query(DURATIONS, params![target, i64::from(limit)]).await?;
    let lasted = |row: &Row| {
        let lasted = row.time(1)?.duration_since(row.time(0)?);
        Ok(Duration::try_from(lasted).unwrap_or_default())
    };
    rows.iter().map(lasted).collect()
}

async fn open(tx: &Tx<'_>, new: &NewHandoff) -> Result<HandoffSession, StoreError> {
    threads::must_exist(tx, new.thread_id).await?;
    insert(tx, &session(new, tx.now()), new.max_open).await?;
    one(tx, new.handoff_id).await
}

/// Writes a run's change of a handoff. Version 0 is a new handoff.
pub(crate) async fn change(tx: &Tx<'_>, change: &HandoffChange) -> Result<(), StoreError> {
    match change.session.version {
        0 => insert(tx, &change.session, change.max_open).await,
        _ => update::write(tx, &change.session).await,
    }
}

async fn insert(tx: &Tx<'_>, new: &HandoffSession, max_open: Option<u32>) -> Result<(), StoreError> {
    must_be_free(tx, new.thread_id).await?;
    must_have_room(tx, &new.target_agent_id, max_open).await?;
    // `last_handoff` of the thread is also set for a handoff that ended before its first write.
    update::pass_thread(tx, new, if new.state.is_open() { new.state } else { HandoffState::Pending }).await?;
    let has_ended = !new.state.is_open();
    let completed_at = has_ended.then(|| tx.now());
    let params = params![
        new.handoff_id,
        new.thread_id,
        &new.user_id,
        &new.source_agent_id,
        &new.target_agent_id,
        new.state,
        new.context_summary.as_str(),
        new.handoff_reason.as_str(),
        SqlValue::json(&new.metadata)?,
        tx.now(),
        completed_at,
        new.result_summary.as_deref(),
        SqlValue::json(&new.artifacts_created)?,
        new.expires_at.filter(|_| !has_ended),
        SqlValue::json(&new.notes)?
    ];
    if tx.execute(INSERT, params).await? == 0 {
        must_be_free(tx, new.thread_id).await?;
        return Err(StoreError::HandoffChanged);
    }
    if has_ended {
        update::pass_thread(tx, new, new.state).await?;
        let ended = HandoffSession { started_at: tx.now(), completed_at, ..new.clone() };
        hop::record(tx, &ended).await?;
    }
    match new.workflow {
        Some(_) => update::keep_workflow(tx, new).await,
        None => Ok(()),
    }
}

/// The session as first written.
fn session(new: &NewHandoff, now: Timestamp) -> HandoffSession {
    let (state, activation) = match new.activation.clone() {
        Some(activation) => (HandoffState::Active, activation),
        None => (HandoffState::Pending, Activation { workflow: None, expires_at: None }),
    };
    HandoffSession {
        handoff_id: new.handoff_id,
        thread_id: new.thread_id,
        user_id: new.user_id.clone(),
        source_agent_id: new.source_agent_id.clone(),
        target_agent_id: new.target_agent_id.clone(),
        state,
        context_summary: new.context_summary.clone(),
        handoff_reason: new.handoff_reason.clone(),
        started_at: now,
        updated_at: now,
        completed_at: None,
        result_summary: None,
        artifacts_created: Vec::new(),
        metadata: new.metadata.clone(),
        expires_at: activation.expires_at,
        notes: new.notes.clone(),
        next: None,
        workflow: activation.workflow,
        version: 0,
    }
}

/// Refuses if the target has reached `max_open` handoffs. Not exact: two concurrent handoffs may both pass, because this only
/// protects against floods.
async fn must_have_room(tx: &Tx<'_>, target: &AgentName, max_open: Option<u32>) -> Result<(), StoreError> {
    let Some(most) = max_open else { return Ok(()) };
    let sql = "SELECT COUNT(*) FROM (
        SELECT 1 FROM handoffs
        WHERE tenant = $1 AND target = $2 AND state <> 'completed' AND state <> 'cancelled' AND state <> 'error'
        LIMIT $3
    ) AS open";
    let row = tx.first(sql, params![target, u64::from(most)]).await?;
    let open = row.map_or(Ok(0), |row| row.count(0))?;
    if open >= u64::from(most) { Err(StoreError::TooManyHandoffs(most)) } else { Ok(()) }
}

/// Refuses while a handoff is open on the thread.
async fn must_be_free(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    let sql = "SELECT handoff_id FROM handoffs
        WHERE tenant = $1 AND thread_id = $2 AND state <> 'completed' AND state <> 'cancelled' AND state <> 'error'";
    match tx.first(sql, params![thread]).await? {
        Some(other) => Err(StoreError::HandoffActive(other.parse(0)?)),
        None => Ok(()),
    }
}

async fn one(tx: &Tx<'_>, handoff: HandoffId) -> Result<HandoffSession, StoreError> {
    let row = tx.first(ONE, params![handoff]).await?.ok_or(StoreError::NotFound("handoff"))?;
    read(&row)
}

async fn open_of(tx: &Tx<'_>, thread: ThreadId) -> Result<Option<HandoffSession>, StoreError> {
    threads::must_exist(tx, thread).await?;
    tx.first(OPEN, params![thread]).await?.as_ref().map(read).transpose()
}

async fn open_of_many(tx: &Tx<'_>, threads: &[Uuid]) -> Result<Vec<HandoffSession>, StoreError> {
    let sql = if tx.is_postgres() { OPEN_OF_ARRAY } else { OPEN_OF_MANY };
    tx.query(sql, &[SqlValue::Ids(threads.to_vec())]).await?.iter().map(read).collect()
}

async fn of_thread(tx: &Tx<'_>, thread: ThreadId) -> Result<Vec<HandoffSession>, StoreError> {
    threads::must_exist(tx, thread).await?;
    tx.query(OF_THREAD, params![thread]).await?.iter().map(read).collect()
}

async fn resumable(tx: &Tx<'_>, thread: ThreadId) -> Result<Vec<HandoffSession>, StoreError> {
    threads::must_exist(tx, thread).await?;
    tx.query(RESUMABLE, params![thread]).await?.iter().map(read).collect()
}

async fn left_of(tx: &Tx<'_>, user: &UserId) -> Result<Vec<HandoffSession>, StoreError> {
    tx.query(LEFT, params![user, u64::from(MAX_LEFT_HANDOFFS)]).await?.iter().map(read).collect()
}

/// Returns the thread's most recent handoff, open or not.
pub(crate) async fn last_of(tx: &Tx<'_>, thread: ThreadId) -> Result<Option<HandoffSession>, StoreError> {
    tx.first(LAST, params![thread]).await?.as_ref().map(read).transpose()
}

async fn expired(tx: &Tx<'_>, limit: u32) -> Result<Vec<HandoffSession>, StoreError> {
    tx.query(EXPIRED, params![tx.now(), u64::from(limit)]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<HandoffSession, StoreError> {
    let workflow =
        |row: &Row, at| Ok(WorkflowState { state: row.text(at)?.to_owned(), data: row.json(at + 1)? });
    Ok(HandoffSession {
        handoff_id: row.parse(0)?,
        thread_id: row.parse(1)?,
        user_id: row.parse(2)?,
        source_agent_id: row.parse(3)?,
        target_agent_id: row.parse(4)?,
        state: row.choice(5)?,
        context_summary: row.text(6)?.to_owned(),
        handoff_reason: row.text(7)?.to_owned(),
        started_at: row.time(8)?,
        updated_at: row.time(9)?,
        completed_at: row.optional(10, Row::time)?,
        result_summary: row.optional(11, Row::text)?.map(str::to_owned),
        artifacts_created: row.json(12)?,
        metadata: row.json(13)?,
        version: row.count(14)?,
        expires_at: row.optional(15, Row::time)?,
        notes: row.json(16)?,
        next: row.optional(17, Row::json)?,
        workflow: row.optional(18, workflow)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    /// C-4: an estimate reads as many index entries as its limit says, whatever the number of handoffs.
    #[test]
    fn c_4_durations_are_read_from_an_index() {
        let plan = plan(DURATIONS);
        assert_eq!(plan.len(), 1, "no sorting: {plan:#?}");
        assert!(plan[0].contains("COVERING INDEX handoffs_completed (tenant=? AND target=?"), "{plan:#?}");
    }

    /// K10: the index has the order, so that the newest are found without looking at all handoffs of the user.
    #[test]
    fn k_10_left_handoffs_of_a_user_are_found_by_an_index() {
        let plan = plan(LEFT);
        assert!(plan.iter().any(|part| part.contains("INDEX handoffs_left")), "{plan:#?}");
        assert!(!plan.iter().any(|part| part.starts_with("SCAN ")), "{plan:#?}");
    }

    #[test]
    fn open_handoffs_of_many_threads_are_found_by_their_keys() {
        let plan = plan(OPEN_OF_MANY);
        let reads: Vec<&String> = plan.iter().filter(|part| !part.ends_with("SCAN listed")).collect();
        let by_key = |part: &&&String| {
            let is_key = part.contains(" INDEX sqlite_autoindex_") || part.contains(" PRIMARY KEY ");
            part.starts_with("SEARCH ") && is_key
        };
        assert_eq!(reads.iter().filter(by_key).count(), 3, "handoffs, threads and workflows: {plan:#?}");
        let is_scan = |part: &&String| part.starts_with("SCAN ") && *part != "SCAN CONSTANT ROW";
        assert!(!reads.iter().any(is_scan), "{plan:#?}");
    }
}
