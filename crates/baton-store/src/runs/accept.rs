//! A message comes in: it is kept and its run is queued, in one write.

use baton_core::store::run::Idempotency;
use baton_core::store::{Accepted, AuditEntry, NewRun, OnBusy};
use baton_core::{RunId, StoreError};
use serde_json::json;

use super::room::Room;
use crate::audit;
use crate::job::is_refusal;
use crate::threads::{history, title};
use crate::tx::Tx;
use crate::value::{Row, Value, params};

pub(super) async fn accept(tx: &Tx<'_>, run: &NewRun) -> Result<Accepted, StoreError> {
    if let Some(first) = repeated(tx, run).await? {
        return Ok(first);
    }
    // What would be refused later is refused before anything is written: it then disturbs nobody in the same transaction.
    let looked = futures_util::try_join!(check(tx, run), Room::look(tx, run.max_active));
    let ((), room) = match looked {
        // What is in the way may be this very request, which another server has accepted meanwhile.
        Err(refusal) if is_refusal(&refusal) => return repeated(tx, run).await?.ok_or(refusal),
        looked => looked?,
    };
    if !promise(tx, run).await? {
        return repeated(tx, run).await?.ok_or(StoreError::Conflict("the idempotency key"));
    }
    room.take(tx)?;
    let place = join(tx, run).await?;
    // None of these needs another one, so on PostgreSQL they travel together.
    let message = std::slice::from_ref(&run.message);
    let ((), (), (), behind) = futures_util::try_join!(
        history::write(tx, run.thread_id, place.message_number, message),
        queue(tx, run, &place),
        interrupt(tx, run, &place),
        place.behind(tx, run),
    )?;
    tx.audit(trail(run, &place));
    Ok(Accepted { run_id: run.run_id, message_id: run.message.id, is_new: true, behind })
}

const FIRST_WITH: &str = "SELECT i.run_id, i.fingerprint, m.message_id
    FROM idempotency AS i
    LEFT JOIN runs AS r ON r.tenant = $1 AND r.run_id = i.run_id
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_id = r.thread_id AND m.number = r.message_number
    WHERE i.tenant = $1 AND i.user_id = $2 AND i.key = $3 AND i.expires_at > $4";

/// What became of the same request before.
async fn repeated(tx: &Tx<'_>, run: &NewRun) -> Result<Option<Accepted>, StoreError> {
    let Some(Idempotency { key, fingerprint, .. }) = &run.idempotency else { return Ok(None) };
    let first = tx.first(FIRST_WITH, params![&run.user_id, key.as_str(), tx.now()]).await?;
    let Some(first) = first else { return Ok(None) };
    if first.text(1)? != fingerprint {
        return Err(StoreError::IdempotencyConflict);
    }
    let (run_id, message_id) = (first.parse(0)?, first.parse(2)?);
    Ok(Some(Accepted { run_id, message_id, is_new: false, behind: None }))
}

const PROMISE: &str = "
    INSERT INTO idempotency (tenant, user_id, key, fingerprint, run_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant, user_id, key) DO UPDATE
    SET fingerprint = excluded.fingerprint, run_id = excluded.run_id, expires_at = excluded.expires_at
    WHERE idempotency.expires_at <= $7";

/// Whether the key is ours now. A record whose time is over is replaced.
async fn promise(tx: &Tx<'_>, run: &NewRun) -> Result<bool, StoreError> {
    let Some(Idempotency { key, fingerprint, expires_at }) = &run.idempotency else { return Ok(true) };
    let params = params![&run.user_id, key.as_str(), fingerprint.as_str(), run.run_id, *expires_at, tx.now()];
    Ok(tx.execute(PROMISE, params).await? > 0)
}

/// Refuses what [`join`] would refuse, without having written anything.
async fn check(tx: &Tx<'_>, run: &NewRun) -> Result<(), StoreError> {
    let sql = "SELECT user_id, active_run, queued FROM threads WHERE tenant = $1 AND thread_id = $2";
    let Some(thread) = tx.first(sql, params![run.thread_id]).await? else { return Ok(()) };
    if thread.text(0)? != run.user_id.as_str() {
        return Err(StoreError::ThreadNotFound);
    }
    if run.on_busy != OnBusy::Reject {
        return Ok(());
    }
    if let Some(active) = thread.optional(1, Row::parse)? {
        return Err(StoreError::ThreadBusy(active));
    }
    let sql = "SELECT run_id FROM runs
        WHERE tenant = $1 AND thread_id = $2 AND status = 'queued'
        ORDER BY ordinal
        LIMIT 1";
    match tx.first(sql, params![run.thread_id]).await? {
        Some(first) => Err(StoreError::ThreadBusy(first.parse(0)?)),
        None => Ok(()),
    }
}

/// Where in its thread a run and its message stand.
struct Place {
    message_number: u64,
    ordinal: u64,
    active: Option<RunId>,
    /// With the new one.
    queued: u64,
}

/// Whether a run may join is decided by the statement that counts it: nobody comes in between.
const JOIN: &str = "
    INSERT INTO threads (tenant, thread_id, user_id, title, created_at, updated_at, messages, runs, queued)
    VALUES ($1, $2, $3, $4, $5, $5, 1, 1, 1)
    ON CONFLICT (tenant, thread_id) DO UPDATE
    SET updated_at = excluded.updated_at, messages = threads.messages + 1, runs = threads.runs + 1,
        queued = threads.queued + 1
    WHERE threads.user_id = excluded.user_id
        AND (CAST($6 AS BIGINT) = 0 OR (threads.active_run IS NULL AND threads.queued = 0))
    RETURNING messages, runs, active_run, queued";

async fn join(tx: &Tx<'_>, run: &NewRun) -> Result<Place, StoreError> {
    let only_if_idle = run.on_busy == OnBusy::Reject;
    let params = params![run.thread_id, &run.user_id, title(&run.message.text()), tx.now(), only_if_idle];
    let Some(row) = tx.first(JOIN, params).await? else {
        check(tx, run).await?;
        return Err(StoreError::Conflict("the thread"));
    };
    Ok(Place {
        message_number: row.count(0)?,
        ordinal: row.count(1)?,
        active: row.optional(2, Row::parse)?,
        queued: row.count(3)?,
    })
}

const QUEUE: &str = "
    INSERT INTO runs
        (tenant, run_id, thread_id, ordinal, user_id, agent, status, request, message_number, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, $8, $9)
    ON CONFLICT (tenant, run_id) DO NOTHING";

async fn queue(tx: &Tx<'_>, run: &NewRun, place: &Place) -> Result<(), StoreError> {
    let request = Value::json(&run.request)?;
    let (ordinal, message, user) = (place.ordinal, place.message_number, &run.user_id);
    let params = params![run.run_id, run.thread_id, ordinal, user, &run.agent, request, message, tx.now()];
    match tx.execute(QUEUE, params).await? {
        0 => Err(StoreError::Conflict("the run")),
        _ => Ok(()),
    }
}

/// Whoever works on the thread learns of it with the next heartbeat; if nobody does, whoever takes it over.
async fn interrupt(tx: &Tx<'_>, run: &NewRun, place: &Place) -> Result<(), StoreError> {
    let (OnBusy::Interrupt, Some(active)) = (run.on_busy, place.active) else { return Ok(()) };
    let sql = "UPDATE runs SET cancel = 'abort' WHERE tenant = $1 AND run_id = $2 AND status = 'running'";
    tx.execute(sql, params![active]).await.map(drop)
}

impl Place {
    /// The run right before this one.
    async fn behind(&self, tx: &Tx<'_>, run: &NewRun) -> Result<Option<RunId>, StoreError> {
        if self.queued <= 1 {
            return Ok(self.active);
        }
        let sql = "SELECT run_id FROM runs
            WHERE tenant = $1 AND thread_id = $2 AND status = 'queued' AND ordinal < $3
            ORDER BY ordinal DESC
            LIMIT 1";
        let before = tx.first(sql, params![run.thread_id, self.ordinal]).await?;
        before.map(|row| row.parse(0)).transpose()
    }
}

fn trail(run: &NewRun, place: &Place) -> AuditEntry {
    let entry = audit::entry(run.user_id.as_str(), "message.send", "accepted");
    let detail = json!({
        "agent": run.agent, "message_id": run.message.id, "message_number": place.message_number,
        "on_busy": run.on_busy,
    });
    AuditEntry { detail, ..audit::about(entry, run.thread_id, Some(run.run_id)) }
}
