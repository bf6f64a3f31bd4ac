//! Accepts a message: stores it and queues or starts its run, in one write.

use baton_core::store::run::Idempotency;
use baton_core::store::{AcceptedRun, Append, AuditEntry, NewRun, OnBusy, Owner, RunStatus};
use baton_core::{HandoffId, RunId, StoreError, UserId};
use serde_json::json;

use super::room;
use crate::approvals;
use crate::audit;
use crate::insert::{Changes, ColumnKind, Insert};
use crate::job::is_refusal;
use crate::threads::{self, history, title};
use crate::tx::{Tx, TxConnection};
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
            let behind = place.behind(tx).await?;
            tx.write(changes).await?;
            Ok(accepted(run, behind))
        }
    }
}

pub(crate) fn accepted(run: &NewRun, behind: Option<RunId>) -> AcceptedRun {
    AcceptedRun { run_id: run.run_id, message_id: run.message.id, is_new: true, behind, after: 0 }
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
    let found = match futures_util::try_join!(check(tx, run), room::look(tx, run)) {
        // The conflict may be this very request, accepted by another server in the meantime.
        Err(refusal) if is_refusal(&refusal) => {
            return repeated(tx, run).await?.map(Arrived::Before).ok_or(refusal);
        }
        checked => checked?.0,
    };
    if !promise(tx, &run.user_id, run.run_id, run.idempotency.as_ref()).await? {
        let first = repeated(tx, run).await?.ok_or(StoreError::Conflict("the idempotency key"))?;
        return Ok(Arrived::Before(first));
    }
    room::take(tx, run.run_id, run.max_active).await?;
    let place = match tx.link {
        TxConnection::Postgres(_) => join(tx, run, start).await?,
        TxConnection::Sqlite(_) => join_found(tx, run, start, &found).await?,
    };
    if let Some(decision) = &run.answers {
        approvals::answer(tx, run.run_id, decision).await?;
    }
    tx.audit_run(run.thread_id, place.thread, &[trail(run, &place)])?;
    let changes = changes(tx, run, &place, start)?;
    Ok(Arrived::Now(place, changes))
}

const FIRST_WITH: &str = "SELECT run_id, fingerprint FROM idempotency
    WHERE tenant = $1 AND user_id = $2 AND key = $3 AND expires_at > $4";

/// Only for a repetition: it names tables whose rows may be pending, which would then be written one job at a time.
const MESSAGE_OF: &str = "SELECT m.message_id
    FROM runs AS r
    JOIN messages AS m ON m.tenant = $1 AND m.thread_number = r.thread_number AND m.number = r.message_number
    WHERE r.tenant = $1 AND r.run_id = $2";

/// Returns the outcome of the same request, if it was accepted before.
async fn repeated(tx: &Tx<'_>, run: &NewRun) -> Result<Option<AcceptedRun>, StoreError> {
    let Some(request) = &run.idempotency else { return Ok(None) };
    accepted_before(tx, &run.user_id, request).await
}

pub(super) async fn accepted_before(
    tx: &Tx<'_>,
    user: &UserId,
    request: &Idempotency,
) -> Result<Option<AcceptedRun>, StoreError> {
    let Idempotency { key, fingerprint, .. } = request;
    let first = tx.first(FIRST_WITH, params![user, key.as_str(), tx.now()]).await?;
    let Some(first) = first else { return Ok(None) };
    if first.text(1)? != fingerprint {
        return Err(StoreError::IdempotencyConflict);
    }
    let run_id: RunId = first.parse(0)?;
    // The run may be one of another job of the same transaction on PostgreSQL, which has not inserted it yet. This is no refusal, so
    // the jobs run again one by one.
    let unfinished = || StoreError::Failed("the run of an idempotency key is not stored yet".to_owned());
    let message = tx.first(MESSAGE_OF, params![run_id]).await?.ok_or_else(unfinished)?;
    Ok(Some(AcceptedRun { run_id, message_id: message.parse(0)?, is_new: false, behind: None, after: 0 }))
}

const PROMISE: &str = "
    INSERT INTO idempotency (tenant, user_id, key, fingerprint, run_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant, user_id, key) DO UPDATE
    SET fingerprint = excluded.fingerprint, run_id = excluded.run_id, expires_at = excluded.expires_at
    WHERE idempotency.expires_at <= $7";

/// Inserts the idempotency record. Returns `false` if another request holds the key. An expired record is replaced.
pub(crate) async fn promise(
    tx: &Tx<'_>,
    user: &UserId,
    run: RunId,
    idempotency: Option<&Idempotency>,
) -> Result<bool, StoreError> {
    let Some(Idempotency { key, fingerprint, expires_at }) = idempotency else { return Ok(true) };
    let params = params![user, key.as_str(), fingerprint.as_str(), run, *expires_at, tx.now()];
    Ok(tx.execute(PROMISE, params).await? > 0)
}

/// The columns of [`FoundThread::read`], whether the run is known, and how many questions are open.
macro_rules! found {
    () => {
        "SELECT w.user_id, w.active_run, w.queued, w.handoff_id,
            (SELECT r.run_id FROM runs AS r WHERE r.tenant = $1 AND r.run_id = $3),
            w.thread_number, w.messages, w.runs, w.epoch, w.last_handoff, w.last_seq, w.records,
            (SELECT count(*) FROM approvals AS a
                WHERE a.tenant = $1 AND a.thread_id = $2 AND a.status = 'pending' AND a.kind = 'question'
                    AND a.tool <> 'advance_workflow' AND a.expires_at > $4)"
    };
}

const CHECK: &str = concat!(
    found!(),
    " FROM (SELECT 1) AS one LEFT JOIN thread_work AS w ON w.tenant = $1 AND w.thread_id = $2"
);

/// For SQLite: finds nothing if there is no such thread. A run that is known in another one fails when it is inserted.
const CHECK_THREAD: &str =
    concat!(found!(), " FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2");

const FIRST_QUEUED: &str = "SELECT run_id FROM runs
    WHERE tenant = $1 AND thread_number = $2 AND finished_at IS NULL AND status <> 'waiting' AND status = 'queued'
    ORDER BY ordinal
    LIMIT 1";

/// The error for a run that already exists.
pub(crate) const KNOWN: StoreError = StoreError::Conflict("the run");

/// The row of a thread before a message. A thread that is not there yet has zeros and no number.
#[derive(Debug, Default)]
struct FoundThread {
    number: Option<u64>,
    messages: u64,
    runs: u64,
    active: Option<RunId>,
    queued: u64,
    epoch: u64,
    last_handoff: Option<HandoffId>,
    last_seq: u64,
    records: u64,
}

impl FoundThread {
    /// Reads a row of [`CHECK`] or [`CHECK_THREAD`].
    fn read(row: &Row) -> Result<Self, StoreError> {
        let Some(number) = row.optional(5, Row::count)? else { return Ok(Self::default()) };
        Ok(Self {
            number: Some(number),
            messages: row.count(6)?,
            runs: row.count(7)?,
            active: row.optional(1, Row::parse)?,
            queued: row.count(2)?,
            epoch: row.count(8)?,
            last_handoff: row.optional(9, Row::parse)?,
            last_seq: row.count(10)?,
            records: row.count(11)?,
        })
    }
}

/// Performs the checks of [`join`] without writing. Returns the thread as it is.
async fn check(tx: &Tx<'_>, run: &NewRun) -> Result<FoundThread, StoreError> {
    let sql = if tx.is_postgres() { CHECK } else { CHECK_THREAD };
    let found = tx.query_of(run.thread_id, sql, params![run.thread_id, run.run_id, tx.now()]).await?;
    let Some(found) = found.first() else { return Ok(FoundThread::default()) };
    if !found.is_null(4) {
        return Err(KNOWN);
    }
    if found.optional(0, Row::text)?.is_some_and(|user| user != run.user_id.as_str()) {
        return Err(StoreError::ThreadNotFound);
    }
    if let (true, Some(open)) = (run.unless_held, found.optional(3, Row::parse)?) {
        return Err(StoreError::HandoffActive(open));
    }
    if run.unless_asked && found.count(12)? == 1 {
        return Err(StoreError::QuestionOpen);
    }
    if let Some(decision) = &run.answers {
        approvals::must_be_open(tx, run.thread_id, decision.approval_id).await?;
    }
    let thread = FoundThread::read(found)?;
    if run.on_busy != OnBusy::Reject {
        return Ok(thread);
    }
    if let Some(active) = thread.active {
        return Err(StoreError::ThreadBusy(active));
    }
    if thread.queued == 0 {
        return Ok(thread);
    }
    match tx.first(FIRST_QUEUED, params![thread.number]).await? {
        Some(first) => Err(StoreError::ThreadBusy(first.parse(0)?)),
        None => Ok(thread),
    }
}

/// The position of a run and its message in their thread.
#[derive(Debug)]
pub(crate) struct RunPosition {
    /// The number of the thread.
    pub(crate) thread: u64,
    /// Whether the thread was certainly created for this run.
    is_new: bool,
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
const JOIN: &str = concat!(
    "
    INSERT INTO thread_work
        (tenant, thread_id, user_id, messages, runs, queued, active_run, owner, epoch, last_seq, records, appended,
        appended_run, appended_seq, bytes)
    VALUES ($1, $2, $3, 1, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14)
    ON CONFLICT (tenant, thread_id) DO UPDATE
    SET messages = thread_work.messages + 1,
        runs = thread_work.runs + 1,
        bytes = thread_work.bytes + excluded.bytes,
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
        AND (CAST($13 AS BIGINT) = 0 OR (thread_work.active_run IS NULL AND thread_work.queued = 0))
    RETURNING messages, runs, active_run, queued, epoch, last_handoff, last_seq, records, thread_number"
);

/// For PostgreSQL, where other transactions may have changed the thread since [`check`].
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
        only_if_idle,
        bytes_of(run)
    ];
    let Some(row) = tx.first(JOIN, params).await? else {
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
        thread: row.count(8)?,
        is_new: false,
    })
}

const CREATE: &str = "
    INSERT INTO thread_work
        (tenant, thread_id, user_id, messages, runs, queued, active_run, owner, epoch, last_seq, records, appended,
        appended_run, appended_seq, bytes)
    VALUES ($1, $2, $3, 1, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

const START: &str = "
    UPDATE thread_work
    SET messages = messages + 1, runs = runs + 1, active_run = $3, owner = $4, epoch = epoch + 1, last_seq = $5,
        records = $6, appended = $7, appended_run = $8, appended_seq = $9, bytes = bytes + $10
    WHERE tenant = $1 AND thread_number = $2";

const QUEUE: &str = "
    UPDATE thread_work SET messages = messages + 1, runs = runs + 1, queued = queued + 1, bytes = bytes + $3
    WHERE tenant = $1 AND thread_number = $2";

/// Same as [`join`], for SQLite: nothing else can have changed the thread since [`check`] read it, so a simple statement is enough.
async fn join_found(
    tx: &Tx<'_>,
    run: &NewRun,
    start: Option<ClaimStart<'_>>,
    found: &FoundThread,
) -> Result<RunPosition, StoreError> {
    let start = start.filter(|_| found.active.is_none() && found.queued == 0);
    let append = start.and_then(|start| start.append).filter(|_| found.last_handoff.is_none());
    let begun = start.map(|_| run.run_id);
    let mut place = RunPosition {
        thread: found.number.unwrap_or_default(),
        is_new: found.number.is_none(),
        message_number: found.messages + 1,
        ordinal: found.runs + 1,
        active: begun.or(found.active),
        queued: found.queued + u64::from(begun.is_none()),
        epoch: found.epoch + u64::from(begun.is_some()),
        last_handoff: found.last_handoff,
        last_seq: found.last_seq + append.map_or(0, |append| append.events.len() as u64),
        last_record: found.records + append.map_or(0, records),
    };
    let (owner, number) = (start.map(|start| &*start.owner.0), append.map_or(0, |append| append.number));
    let (appended_run, appended_seq) = (append.and(begun), append.map_or(0, |_| found.last_seq + 1));
    let RunPosition { thread, queued, active, epoch, last_seq, last_record, .. } = place;
    match (found.number, begun) {
        (None, _) => {
            let mut values = row_values![run.thread_id, &run.user_id, queued, active, owner, epoch, last_seq];
            values.extend(row_values![last_record, number, appended_run, appended_seq, bytes_of(run)]);
            tx.execute(CREATE, &values).await?;
            place.thread = tx.last_number();
        }
        (Some(_), Some(_)) => {
            let counted = params![last_seq, last_record, number, appended_run, appended_seq, bytes_of(run)];
            let values = [params![thread, active, owner].as_slice(), counted].concat();
            tx.execute(START, &values).await?;
        }
        (Some(_), None) => drop(tx.execute(QUEUE, params![thread, bytes_of(run)]).await?),
    }
    Ok(place)
}

fn bytes_of(run: &NewRun) -> u64 {
    history::bytes(std::slice::from_ref(&run.message))
}

static RUN: Insert = Insert::new(
    "runs",
    &[
        ("run_id", ColumnKind::Uuid),
        ("thread_id", ColumnKind::Uuid),
        ("thread_number", ColumnKind::Int),
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
    let mut changes = Changes::of(run.thread_id);
    let title = title(&run.message.text());
    let mut thread = row_values![place.thread, run.thread_id, &run.user_id, title, tx.now()];
    if place.is_new {
        thread.push(tx.now().into());
        changes.insert(&threads::INSERT, vec![thread]);
    } else {
        changes.execute(threads::USE, thread);
    }
    let message = std::slice::from_ref(&run.message);
    changes.insert(&history::INSERT, history::rows(place.thread, place.message_number, message)?);
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
    let mut row = row_values![run.run_id, run.thread_id, place.thread, ordinal, user, agent, status, request];
    row.extend(row_values![number, tx.now(), started_at, begins, first_seq]);
    Ok(row)
}

impl RunPosition {
    /// The run directly ahead of this one in the thread's queue.
    pub(crate) async fn behind(&self, tx: &Tx<'_>) -> Result<Option<RunId>, StoreError> {
        if self.queued <= 1 {
            return Ok(self.active);
        }
        let sql = "SELECT run_id FROM runs
            WHERE tenant = $1 AND thread_number = $2 AND finished_at IS NULL AND status <> 'waiting'
                AND status = 'queued'
                AND ordinal < $3
            ORDER BY ordinal DESC
            LIMIT 1";
        let before = tx.first(sql, params![self.thread, self.ordinal]).await?;
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
    use baton_core::store::WORKFLOW_TOOL;

    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn questions_of_workflows_are_named_by_their_tool() {
        let tool = format!("a.tool <> '{WORKFLOW_TOOL}'");
        assert!(CHECK.contains(&tool) && CHECK_THREAD.contains(&tool));
    }

    #[test]
    fn the_queue_of_a_thread_is_read_from_its_index() {
        let search = "SEARCH runs USING INDEX runs_open (tenant=? AND thread_number=?)";
        assert_eq!(plan(FIRST_QUEUED), [search]);
    }
}
