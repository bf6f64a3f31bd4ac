//! A message comes in: it is kept, and its run is queued or begins, in one write.

use baton_core::store::run::Idempotency;
use baton_core::store::{Accepted, Append, AuditEntry, NewRun, OnBusy, Owner, RunStatus};
use baton_core::{HandoffId, RunId, StoreError};
use serde_json::json;

use super::room;
use crate::audit;
use crate::insert::{Changes, Insert, Kind};
use crate::job::is_refusal;
use crate::threads::{self, history, title};
use crate::tx::{ChangeOne, Tx, change_one};
use crate::value::{Row, Value, params};

/// How a process begins the run of a message if its thread is idle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'s> {
    pub(crate) owner: &'s Owner,
    /// Counted with the run if the thread never had a handoff.
    pub(crate) append: Option<&'s Append>,
}

/// What became of a message.
pub(crate) enum Arrived {
    /// With the rest that is to be written.
    Now(Place, Changes),
    /// The same request came before.
    Before(Accepted),
}

/// Queues the run.
pub(crate) async fn accept(tx: &Tx<'_>, run: &NewRun) -> Result<Accepted, StoreError> {
    match arrive(tx, run, None).await? {
        Arrived::Before(first) => Ok(first),
        Arrived::Now(place, changes) => {
            // Before its own row is there.
            let behind = place.behind(tx, run).await?;
            tx.write(changes).await?;
            Ok(accepted(run, behind))
        }
    }
}

pub(crate) fn accepted(run: &NewRun, behind: Option<RunId>) -> Accepted {
    Accepted { run_id: run.run_id, message_id: run.message.id, is_new: true, behind }
}

/// Finds the place of a message and its run. With a start, the run is begun if the thread is idle.
pub(crate) async fn arrive(
    tx: &Tx<'_>,
    run: &NewRun,
    start: Option<Start<'_>>,
) -> Result<Arrived, StoreError> {
    if let Some(first) = repeated(tx, run).await? {
        return Ok(Arrived::Before(first));
    }
    // What would be refused later is refused before anything is written: it then disturbs nobody in the same transaction.
    match futures_util::try_join!(check(tx, run), room::look(tx, run.max_active)) {
        // What is in the way may be this very request, which another server has accepted meanwhile.
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

const CHECK: &str = "SELECT
        (SELECT w.user_id FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2),
        (SELECT w.active_run FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2),
        (SELECT w.queued FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2),
        (SELECT r.run_id FROM runs AS r WHERE r.tenant = $1 AND r.run_id = $3),
        (SELECT w.handoff_id FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2)";

const FIRST_QUEUED: &str = "SELECT run_id FROM runs
    WHERE tenant = $1 AND thread_id = $2 AND status IN ('queued', 'running', 'waiting') AND status = 'queued'
    ORDER BY ordinal
    LIMIT 1";

/// What is said of a run that exists.
pub(crate) const KNOWN: StoreError = StoreError::Conflict("the run");

/// Refuses what [`join`] would refuse, without having written anything.
async fn check(tx: &Tx<'_>, run: &NewRun) -> Result<(), StoreError> {
    let found = tx.first(CHECK, params![run.thread_id, run.run_id]).await?;
    let Some(found) = found else { return Ok(()) };
    if !found.is_null(3) {
        return Err(KNOWN);
    }
    if found.optional(0, Row::text)?.is_some_and(|user| user != run.user_id.as_str()) {
        return Err(StoreError::ThreadNotFound);
    }
    if let (true, Some(open)) = (run.unless_held, found.optional(4, Row::parse)?) {
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

/// Where in its thread a run and its message stand.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) message_number: u64,
    ordinal: u64,
    active: Option<RunId>,
    /// With the new one, if it is queued.
    pub(crate) queued: u64,
    pub(crate) epoch: u64,
    pub(crate) last_handoff: Option<HandoffId>,
    /// Those of the thread, with the first append if that was counted.
    pub(crate) last_seq: u64,
    pub(crate) last_record: u64,
}

impl Place {
    pub(crate) fn begins(&self, run: &NewRun) -> bool {
        self.active == Some(run.run_id)
    }
}

/// Whether the run begins: a start was asked for, and the thread is idle.
macro_rules! begins {
    () => {
        "excluded.owner IS NOT NULL AND thread_work.active_run IS NULL AND thread_work.queued = 0"
    };
}

/// Whether its first append is counted with it.
macro_rules! appends {
    () => {
        concat!(begins!(), " AND thread_work.last_handoff IS NULL AND excluded.appended > 0")
    };
}

/// Whether a run may join, and whether it begins, is decided by the statement that counts it, so it is atomic. The values
/// are those of a new thread.
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

async fn join(tx: &Tx<'_>, run: &NewRun, start: Option<Start<'_>>) -> Result<Place, StoreError> {
    let owner = start.map(|start| &*start.owner.0);
    let append = start.and_then(|start| start.append);
    let events = append.map_or(0, |append| append.events.len() as u64);
    let records = append.map_or(0, |append| (append.steps.len() + append.rows.len()) as u64);
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
    Ok(Place {
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
        ("run_id", Kind::Uuid),
        ("thread_id", Kind::Uuid),
        ("ordinal", Kind::Int),
        ("user_id", Kind::Text),
        ("agent", Kind::Text),
        ("status", Kind::Text),
        ("request", Kind::Text),
        ("message_number", Kind::Int),
        ("created_at", Kind::Int),
        ("started_at", Kind::Int),
        ("attempts", Kind::Int),
        ("first_seq", Kind::Int),
    ],
    "",
);

/// The process that works on the thread learns of it with its next beat; if there is none, the one that takes the run over.
const INTERRUPT: &str =
    "UPDATE runs SET cancel = 'abort' WHERE tenant = $1 AND run_id = $2 AND status = 'running'";

/// The thread, the message and the run.
fn changes(
    tx: &Tx<'_>,
    run: &NewRun,
    place: &Place,
    start: Option<Start<'_>>,
) -> Result<Changes, StoreError> {
    let mut changes = Changes::default();
    changes.execute(threads::USE, params![run.thread_id, &run.user_id, title(&run.message.text()), tx.now()]);
    let message = std::slice::from_ref(&run.message);
    changes.insert(&history::INSERT, history::rows(run.thread_id, place.message_number, message)?);
    changes.insert(&RUN, vec![row(tx, run, place, start)?]);
    if let (OnBusy::Interrupt, Some(active)) = (run.on_busy, place.active)
        && active != run.run_id
    {
        changes.execute(INTERRUPT, params![active]);
    }
    Ok(changes)
}

fn row(tx: &Tx<'_>, run: &NewRun, place: &Place, start: Option<Start<'_>>) -> Result<Vec<Value>, StoreError> {
    let begins = place.begins(run);
    let counted = start.and_then(|start| start.append).filter(|_| begins && place.last_handoff.is_none());
    let agent = counted.and_then(|append| append.agent.as_ref()).unwrap_or(&run.agent);
    let events = counted.map_or(0, |append| append.events.len() as u64);
    let status = if begins { RunStatus::Running } else { RunStatus::Queued };
    let (started_at, first_seq) = (begins.then(|| tx.now()), begins.then(|| place.last_seq + 1 - events));
    let (ordinal, number, user) = (place.ordinal, place.message_number, &run.user_id);
    let request = Value::json(&run.request)?;
    let mut row =
        params![run.run_id, run.thread_id, ordinal, user, agent, status, request, number, tx.now()].to_vec();
    row.extend_from_slice(params![started_at, begins, first_seq]);
    Ok(row)
}

impl Place {
    /// The run right before this one.
    pub(crate) async fn behind(&self, tx: &Tx<'_>, run: &NewRun) -> Result<Option<RunId>, StoreError> {
        if self.queued <= 1 {
            return Ok(self.active);
        }
        let sql = "SELECT run_id FROM runs
            WHERE tenant = $1 AND thread_id = $2 AND status IN ('queued', 'running', 'waiting') AND status = 'queued'
                AND ordinal < $3
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
