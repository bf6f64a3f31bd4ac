//! The thread that writes.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use baton_core::StoreError;
use baton_core::store::micros;
use futures_util::FutureExt as _;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use super::connection::SqliteConnection;
use crate::closing::{Closing, close};
use crate::job::{Job, is_refusal};
use crate::meter::{MeterShared, WaitingJob};
use crate::tenant::closed;
use crate::tx::{Tx, TxConnection};

/// Capacity of the queue; callers wait while it is full.
const QUEUE: usize = 1024;
/// Maximum number of jobs in one transaction.
const BATCH: usize = 512;

type WriteOutcome = Result<(), StoreError>;

/// A queued job with its tenant.
pub(crate) struct WriterJob {
    pub(super) tenant: Arc<str>,
    pub(super) job: Box<dyn Job>,
    pub(super) waiting: WaitingJob,
}

impl WriterJob {
    fn answer(self, outcome: Result<(), StoreError>) {
        drop(self.waiting);
        self.job.answer(outcome);
    }
}

enum WriterCommand {
    Do(WriterJob),
    /// A call outside of any tenant and transaction.
    Call(Box<dyn FnOnce(&SqliteConnection) + Send>),
}

/// The handle of the writing thread. Drop waits for the thread to end.
#[derive(Debug)]
pub(crate) struct Writer {
    orders: Mutex<Option<mpsc::Sender<WriterCommand>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(connection: SqliteConnection, shared: Arc<MeterShared>) -> Result<Self, StoreError> {
        let (orders, waiting) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("baton-sqlite".to_owned())
            .spawn(move || work(&connection, &shared, waiting))
            .map_err(|error| StoreError::Failed(format!("cannot start the writing thread: {error}")))?;
        Ok(Self { orders: Mutex::new(Some(orders)), thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn queue(&self, queued: WriterJob) -> Result<(), StoreError> {
        self.order(WriterCommand::Do(queued)).await
    }

    pub(super) async fn with_connection<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, result) = oneshot::channel();
        let call = move |connection: &SqliteConnection| {
            let _ = done.send(work(connection));
        };
        self.order(WriterCommand::Call(Box::new(call))).await?;
        result.await.map_err(|_| closed())?
    }

    async fn order(&self, order: WriterCommand) -> Result<(), StoreError> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        orders.ok_or_else(closed)?.send(order).await.map_err(|_| closed())
    }

    /// Writes the jobs queued so far, then stops the thread.
    pub(super) async fn close(&self) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// Takes all queued jobs, commits one transaction and replies, in a loop.
fn work(connection: &SqliteConnection, shared: &MeterShared, mut waiting: mpsc::Receiver<WriterCommand>) {
    let mut orders = Vec::with_capacity(BATCH);
    while waiting.blocking_recv_many(&mut orders, BATCH) > 0 {
        let mut jobs = Vec::with_capacity(orders.len());
        for order in orders.drain(..) {
            match order {
                WriterCommand::Do(queued) => jobs.push(queued),
                WriterCommand::Call(call) => {
                    commit_all(connection, shared, std::mem::take(&mut jobs));
                    call(connection);
                }
            }
        }
        commit_all(connection, shared, jobs);
    }
}

/// Commits all jobs in one transaction if possible. Otherwise commits each by itself, so that a failing job does not affect the
/// others.
pub(super) fn commit_all(connection: &SqliteConnection, shared: &MeterShared, jobs: Vec<WriterJob>) {
    if jobs.is_empty() {
        return;
    }
    match commit(connection, shared, &jobs) {
        Ok(outcomes) => {
            for (queued, outcome) in jobs.into_iter().zip(outcomes) {
                queued.answer(outcome);
            }
        }
        // A lock fails all jobs, and jobs with an unknown outcome must not run again. A full disk may only fail one large job, so it
        // does not end here.
        Err(error)
            if matches!(error, StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_))
                || jobs.len() == 1 =>
        {
            for queued in jobs {
                queued.answer(Err(error.clone()));
            }
        }
        Err(_) => {
            for queued in jobs {
                let outcome = commit(connection, shared, std::slice::from_ref(&queued));
                queued.answer(outcome.and_then(|mut outcomes| outcomes.remove(0)));
            }
        }
    }
}

/// Commits one transaction. A job that is refused before it has written does not affect the others. A job that fails after it
/// has written rolls back the whole transaction.
fn commit(
    connection: &SqliteConnection,
    shared: &MeterShared,
    jobs: &[WriterJob],
) -> Result<Vec<WriteOutcome>, StoreError> {
    connection.control("BEGIN IMMEDIATE")?;
    shared.meter.executed(2);
    let done = attempt(connection, shared, jobs).and_then(|done| connection.commit().map(|()| done));
    match done {
        Ok(done) => {
            shared.meter.committed(done.writes);
            done.known.iter().for_each(|tenant| shared.know(tenant));
            Ok(done.outcomes)
        }
        Err(error) => {
            connection.roll_back();
            Err(error)
        }
    }
}

/// The result of a transaction.
struct TransactionResult<'j> {
    /// One per job.
    outcomes: Vec<WriteOutcome>,
    /// Number of jobs that have written.
    writes: u64,
    /// Tenants that are in `tenants` now.
    known: Vec<&'j str>,
}

fn attempt<'j>(
    connection: &SqliteConnection,
    shared: &MeterShared,
    jobs: &'j [WriterJob],
) -> Result<TransactionResult<'j>, StoreError> {
    let now = now();
    let mut writes = 0;
    let mut known = Vec::new();
    let mut closings: BTreeMap<&str, Mutex<Closing>> = BTreeMap::new();
    let mut outcomes = Vec::with_capacity(jobs.len());
    for queued in jobs {
        let closing = closings.entry(&queued.tenant).or_default();
        let tx = transaction(connection, &queued.tenant, now, closing, shared);
        let outcome = guarded(&*queued.job, &tx);
        let has_written = tx.has_written.load(Ordering::Relaxed);
        match outcome {
            Err(error) if has_written || !is_refusal(&error) => return Err(error),
            outcome => outcomes.push(outcome),
        }
        writes += u64::from(has_written);
    }
    for (tenant, closing) in &closings {
        let tx = transaction(connection, tenant, now, closing, shared);
        if ready(close(&tx))? {
            known.push(*tenant);
        }
    }
    Ok(TransactionResult { outcomes, writes, known })
}

fn transaction<'c>(
    connection: &'c SqliteConnection,
    tenant: &'c str,
    now: Timestamp,
    closing: &'c Mutex<Closing>,
    shared: &'c MeterShared,
) -> Tx<'c> {
    Tx {
        link: TxConnection::Sqlite(connection),
        tenant,
        now,
        closing,
        shared,
        has_written: AtomicBool::new(false),
    }
}

/// Runs one read.
pub(super) fn run(
    connection: &SqliteConnection,
    shared: &MeterShared,
    tenant: &str,
    job: &dyn Job,
) -> Result<(), StoreError> {
    let closing = Mutex::default();
    let tx = transaction(connection, tenant, now(), &closing, shared);
    guarded(job, &tx)
}

/// The current time, truncated to the microseconds that are stored.
fn now() -> Timestamp {
    Timestamp::from_microsecond(micros(Timestamp::now())).unwrap_or(Timestamp::MAX)
}

/// Turns a panic of a job into an error, so that the thread continues.
fn guarded(job: &dyn Job, tx: &Tx<'_>) -> Result<(), StoreError> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| ready(job.run(tx))));
    done.unwrap_or_else(|_| Err(StoreError::Failed("a job stopped with an internal error".to_owned())))
}

/// Polls a future once: on SQLite no job ever awaits anything.
fn ready<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    work.now_or_never().unwrap_or_else(|| Err(StoreError::Failed("a job waited for something".to_owned())))
}
