//! Accepts a message: stores it and queues or starts its run, in one write.

use baton_core::store::run::Idempotency;
use baton_core::store::{AcceptedRun, Append, AuditEntry, NewRun, OnBusy, Owner, RunStatus};
use baton_core::{HandoffId, RunId, StoreError};
use serde_json::json;

use super::room;
use crate::audit;
use crate::insert::{Changes, ColumnKind, Insert};
use crate::job::is_refusal;
use crate::threads::{self, history, title};
use crate::tx::{ChangeOne, Tx, change_one};
use crate::value::{Row, SqlValue, params, row_values};
use crate::work::records;

/// Claims the run of a message immediately if its thread is idle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimStart<'s> {
    pub(crate) owner: &'s Owner,
    /// Counted together with the run if the thread has never had a handoff.
    pub(crate) append: Option<&'s Append>,
}

/// The outcome of a message.
pub(crate) enum Arrived {
    /// New, with the changes still to be written.
    Now(RunPosition, Changes),
    /// A repetition of an earlier request.
    Before(AcceptedRun),
}

/// Stores the message and queues its run.
pub(crate) async fn accept(tx: &Tx<'_>, run: &NewRun) -> Result<AcceptedRun, StoreError> {
    match arrive(tx, run, None).await? {
        Arrived::Before(first) => Ok(first),
        Arrived::Now(place, changes) => {
            // Before the run's own row is inserted.
            let behind = place.behind(tx, run).await?;
            tx.write(changes).await?;
            Ok(accepted(run, behind))
        }
    }
}

pub(crate) fn accepted(run: &NewRun, behind: Option<RunId>) -> AcceptedRun {
    AcceptedRun { run_id: run.run_id, message_id: run.message.id, is_new: true, behind }
}

/// Reserves the positions of a message and its run. With `start`, claims the run if the thread is idle.
pub(crate) async fn arrive(
    tx: &Tx<'_>,
    run: &NewRun,
    start: Option<ClaimStart<'_>>,
) -> Result<Arrived, StoreError> {
    if let Some(first) = repeated(tx, run).await? {
        return Ok(Arrived::Before(first));
    }
    // Check before the first write: a refusal then does not affect other jobs of the transaction.
    match futures_util::try_join!(check(tx, run), room::look(tx, run.max_active)) {
        // The conflict may be this very request, accepted by another server in the meantime.
        Err(refusal) if is_refusal(&refusal) => {
            return repeated(tx, run).await?.map(Arrived::Before).ok_or(refusal);
        }
        looked => drop(looked?),
    }
    if !promise(tx, run).await? {
        let first = repeated(tx, run).await?.ok_or(StoreError::Conflict("the idempotency key"))?;
        return Ok(Arrived::Before(first));
    }
    room::take(tx, run.run_id, run.max_active).await?;
    let place = join(tx, run, start).await?;
    tx.audit(trail(run, &place));
    let changes = changes(tx, run, &place, start)?;
    Ok(Arrived::Now(place, changes))
}

const FIRST_WITH: &str = "SELECT i.run_id, i.fingerprint, m.message_id
    FROM idempotency AS i
    LEFT JOIN runs AS r ON r.tenant = $1 AND r.run_id = i.run_id
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_id = r.thread_id AND m.number = r.message_number
    WHERE i.tenant = $1 AND i.user_id = $2 AND i.key = $3 AND i.expires_at > $4";

/// Returns the outcome of the same request, if it was accepted before.
async fn repeated(tx: &Tx<'_>, run: &NewRun) -> Result<Option<AcceptedRun>, StoreError> {
    let Some(Idempotency { key, fingerprint, .. }) = &run.idempotency else { return Ok(None) };
    let first = tx.first(FIRST_WITH, params![&run.user_id, key.as_str(), tx.now()]).await?;
    let Some(first) = first else { return Ok(None) };
    if first.text(1)? != fingerprint {
        return Err(StoreError::IdempotencyConflict);
    }
    let (run_id, message_id) = (first.parse(0)?, first.parse(2)?);
    Ok(Some(AcceptedRun { run_id, message_id, is_new: false, behind: None }))
}

const PROMISE: &str = "
    INSERT INTO idempotency (tenant, user_id, key, fingerprint, run_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant, user_id, key) DO UPDATE
    SET fingerprint = excluded.fingerprint, run_id = excluded.run_id, expires_at = excluded.expires_at
    WHERE idempotency.expires_at <= $7";

/// Inserts the idempotency record. Returns `false` if another request holds the key. An expired record is replaced.
async fn promise(tx: &Tx<'_>, run: &NewRun) -> Result<bool, StoreError> {
    let Some(Idempotency { key, fingerprint, expires_at }) = &run.idempotency else { return Ok(true) };
    let params = params![&run.user_id, key.as_str(), fingerprint.as_str(), run.run_id, *expires_at, tx.now()];
    Ok(tx.execute(PROMISE, params).await? > 0)
}

const CHECK: &str = "SELECT w.user_id, w.active_run, w.queued, w.handoff_id,
        (SELECT r.run_id FROM runs AS r WHERE r.tenant = $1 AND r.run_id = $3)
    FROM (SELECT 1) AS one LEFT JOIN thread_work AS w ON w.tenant = $1 AND w.thread_id = $2";

const FIRST_QUEUED: &str = "SELECT run_id FROM runs
    WHERE tenant = $1 AND thread_id = $2 AND finished_at IS NULL AND status = 'queued'
    ORDER BY ordinal
    LIMIT 1";

/// The error for a run that already exists.
pub(crate) const KNOWN: StoreError = StoreError::Conflict("the run");

/// Performs the checks of [`join`] without writing.
async fn check(tx: &Tx<'_>, run: &NewRun) -> Result<(), StoreError> {
    let found = tx.first(CHECK, params![run.thread_id, run.run_id]).await?;
    let Some(found) = found else { return Ok(()) };
    if !found.is_null(4) {
        return Err(KNOWN);
    }
    if found.optional(0, Row::text)?.is_some_and(|user| user != run.user_id.as_str()) {
        return Err(StoreError::ThreadNotFound);
    }
    if let (true, Some(open)) = (run.unless_held, found.optional(3, Row::parse)?) {
        return Err(StoreError::HandoffActive(open));
    }
    if run.on_busy != OnBusy::Reject {
        return Ok(());
    }
    if let Some(active) = found.optional(1, Row::parse)? {
        return Err(StoreError::ThreadBusy(active));
    }
    if found.optional(2, Row::count)?.unwrap_or_default() == 0 {
        return Ok(());
    }
    match tx.first(FIRST_QUEUED, params![run.thread_id]).await? {
        Some(first) => Err(StoreError::ThreadBusy(first.parse(0)?)),
        None => Ok(()),
    }
}

/// The position of a run and its message in their thread.
#[derive(Debug)]
pub(crate) struct RunPosition {
    pub(crate) message_number: u64,
    ordinal: u64,
    active: Option<RunId>,
    /// Including the new run, if it is queued.
    pub(crate) queued: u64,
    pub(crate) epoch: u64,
    pub(crate) last_handoff: Option<HandoffId>,
    /// The thread's counters, including the first append if it was counted.
    pub(crate) last_seq: u64,
    pub(crate) last_record: u64,
}

impl RunPosition {
    pub(crate) fn begins(&self, run: &NewRun) -> bool {
        self.active == Some(run.run_id)
    }
}

/// Whether the run starts now: a start was requested, and the thread is idle.
macro_rules! begins {
    () => {
        "excluded.owner IS NOT NULL AND thread_work.active_run IS NULL AND thread_work.queued = 0"
    };
}

/// Whether the run's first append is counted in the same statement.
macro_rules! appends {
    () => {
        concat!(begins!(), " AND thread_work.last_handoff IS NULL AND excluded.appended > 0")
    };
}

/// One statement decides whether a run may join and whether it starts, so both are atomic. `VALUES` applies to a new thread.
const JOIN: ChangeOne = change_one!(
    "messages, runs, active_run, queued, epoch, last_handoff, last_seq, records",
    "
    INSERT INTO thread_work
        (tenant, thread_id, user_id, messages, runs, queued, active_run, owner, epoch, last_seq, records, appended,
        appended_run, appended_seq)
    VALUES ($1, $2, $3, 1, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (tenant, thread_id) DO UPDATE
    SET messages = thread_work.messages + 1,
        runs = thread_work.runs + 1,
        queued = thread_work.queued + CASE WHEN ",
    begins!(),
    " THEN 0 ELSE 1 END,
        active_run = CASE WHEN ",
    begins!(),
    " THEN excluded.active_run ELSE thread_work.active_run END,
        owner = CASE WHEN ",
    begins!(),
    " THEN excluded.owner ELSE thread_work.owner END,
        epoch = thread_work.epoch + CASE WHEN ",
    begins!(),
    " THEN 1 ELSE 0 END,
        last_seq = thread_work.last_seq + CASE WHEN ",
    appends!(),
    " THEN excluded.last_seq ELSE 0 END,
        records = thread_work.records + CASE WHEN ",
    appends!(),
    " THEN excluded.records ELSE 0 END,
        appended = CASE WHEN ",
    appends!(),
    " THEN excluded.appended WHEN ",
    begins!(),
    " THEN 0 ELSE thread_work.appended END,
        appended_run = CASE WHEN ",
    appends!(),
    " THEN excluded.appended_run WHEN ",
    begins!(),
    " THEN NULL ELSE thread_work.appended_run END,
        appended_seq = CASE WHEN ",
    appends!(),
    " THEN thread_work.last_seq + 1 WHEN ",
    begins!(),
    " THEN 0 ELSE thread_work.appended_seq END
    WHERE thread_work.user_id = excluded.user_id
        AND (CAST($13 AS BIGINT) = 0 OR (thread_work.active_run IS NULL AND thread_work.queued = 0))"
);

async fn join(tx: &Tx<'_>, run: &NewRun, start: Option<ClaimStart<'_>>) -> Result<RunPosition, StoreError> {
    let owner = start.map(|start| &*start.owner.0);
    let append = start.and_then(|start| start.append);
    let events = append.map_or(0, |append| append.events.len() as u64);
    let records = append.map_or(0, records);
    let is_counted = append.is_some();
    let only_if_idle = run.on_busy == OnBusy::Reject;
    let params = params![
        run.thread_id,
        &run.user_id,
        owner.is_none(),
        owner.map(|_| run.run_id),
        owner,
        owner.is_some(),
        events,
        records,
        append.map_or(0, |append| append.number),
        is_counted.then_some(run.run_id),
        is_counted,
        only_if_idle
    ];
    let Some(row) = tx.change(&JOIN, params).await? else {
        check(tx, run).await?;
        return Err(StoreError::Conflict("the thread"));
    };
    Ok(RunPosition {
        message_number: row.count(0)?,
        ordinal: row.count(1)?,
        active: row.optional(2, Row::parse)?,
        queued: row.count(3)?,
        epoch: row.count(4)?,
        last_handoff: row.optional(5, Row::parse)?,
        last_seq: row.count(6)?,
        last_record: row.count(7)?,
    })
}

static RUN: Insert = Insert::new(
    "runs",
    &[
        ("run_id", ColumnKind::Uuid),
        ("thread_id", ColumnKind::Uuid),
        ("ordinal", ColumnKind::Int),
        ("user_id", ColumnKind::Text),
        ("agent", ColumnKind::Text),
        ("status", ColumnKind::Text),
        ("request", ColumnKind::Text),
        ("message_number", ColumnKind::Int),
        ("created_at", ColumnKind::Int),
        ("started_at", ColumnKind::Int),
        ("attempts", ColumnKind::Int),
        ("first_seq", ColumnKind::Int),
    ],
    "",
);

/// The worker sees the flag at its next heartbeat. Without a worker, the process that takes over the run sees it.
const INTERRUPT: &str =
    "UPDATE runs SET cancel = 'abort' WHERE tenant = $1 AND run_id = $2 AND status = 'running'";

/// The changes of the thread, the message and the run.
fn changes(
    tx: &Tx<'_>,
    run: &NewRun,
    place: &RunPosition,
    start: Option<ClaimStart<'_>>,
) -> Result<Changes, StoreError> {
    let mut changes = Changes::default();
    changes.execute(
        threads::USE,
        row_values![run.thread_id, &run.user_id, title(&run.message.text()), tx.now()],
    );
    let message = std::slice::from_ref(&run.message);
    changes.insert(&history::INSERT, history::rows(run.thread_id, place.message_number, message)?);
    changes.insert(&RUN, vec![row(tx, run, place, start)?]);
    if let (OnBusy::Interrupt, Some(active)) = (run.on_busy, place.active)
        && active != run.run_id
    {
        changes.execute(INTERRUPT, row_values![active]);
    }
    Ok(changes)
}

fn row(
    tx: &Tx<'_>,
    run: &NewRun,
    place: &RunPosition,
    start: Option<ClaimStart<'_>>,
) -> Result<Vec<SqlValue>, StoreError> {
    let begins = place.begins(run);
    let counted = start.and_then(|start| start.append).filter(|_| begins && place.last_handoff.is_none());
    let agent = counted.and_then(|append| append.agent.as_ref()).unwrap_or(&run.agent);
    let events = counted.map_or(0, |append| append.events.len() as u64);
    let status = if begins { RunStatus::Running } else { RunStatus::Queued };
    let (started_at, first_seq) = (begins.then(|| tx.now()), begins.then(|| place.last_seq + 1 - events));
    let (ordinal, number, user) = (place.ordinal, place.message_number, &run.user_id);
    let request = SqlValue::json(&run.request)?;
    let mut row =
        row_values![run.run_id, run.thread_id, ordinal, user, agent, status, request, number, tx.now()];
    row.extend_from_slice(params![started_at, begins, first_seq]);
    Ok(row)
}

impl RunPosition {
    /// The run directly ahead of this one in the thread's queue.
    pub(crate) async fn behind(&self, tx: &Tx<'_>, run: &NewRun) -> Result<Option<RunId>, StoreError> {
        if self.queued <= 1 {
            return Ok(self.active);
        }
        let sql = "SELECT run_id FROM runs
            WHERE tenant = $1 AND thread_id = $2 AND finished_at IS NULL AND status = 'queued'
                AND ordinal < $3
            ORDER BY ordinal DESC
            LIMIT 1";
        let before = tx.first(sql, params![run.thread_id, self.ordinal]).await?;
        before.map(|row| row.parse(0)).transpose()
    }
}

fn trail(run: &NewRun, place: &RunPosition) -> AuditEntry {
    let entry = audit::entry(run.user_id.as_str(), "message.send", "accepted");
    let detail = json!({
        "agent": run.agent, "message_id": run.message.id, "message_number": place.message_number,
        "on_busy": run.on_busy,
    });
    AuditEntry { detail, ..audit::about(entry, run.thread_id, Some(run.run_id)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn the_queue_of_a_thread_is_read_from_its_index() {
        let search = "SEARCH runs USING INDEX runs_open (tenant=? AND thread_id=?)";
        assert_eq!(plan(FIRST_QUEUED), [search]);
    }
}
