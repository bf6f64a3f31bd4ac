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
use crate::meter::{Shared, Waiting};
use crate::tenant::closed;
use crate::tx::{Link, Tx};

/// Jobs that may wait; callers beyond that wait to be let in.
const QUEUE: usize = 1024;
/// Jobs in one transaction.
const BATCH: usize = 512;

type Outcome = Result<(), StoreError>;

/// A job and whose it is.
pub(crate) struct Queued {
    pub(super) tenant: Arc<str>,
    pub(super) job: Box<dyn Job>,
    pub(super) waiting: Waiting,
}

impl Queued {
    fn answer(self, outcome: Result<(), StoreError>) {
        drop(self.waiting);
        self.job.answer(outcome);
    }
}

enum Order {
    Do(Queued),
    /// Something outside of any tenant, by itself.
    Call(Box<dyn FnOnce(&SqliteConnection) + Send>),
}

/// Ends, and is waited for, when it is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    orders: Mutex<Option<mpsc::Sender<Order>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(connection: SqliteConnection, shared: Arc<Shared>) -> Result<Self, StoreError> {
        let (orders, waiting) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("baton-sqlite".to_owned())
            .spawn(move || work(&connection, &shared, waiting))
            .map_err(|error| StoreError::Failed(format!("cannot start the writing thread: {error}")))?;
        Ok(Self { orders: Mutex::new(Some(orders)), thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn queue(&self, queued: Queued) -> Result<(), StoreError> {
        self.order(Order::Do(queued)).await
    }

    pub(super) async fn with_connection<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, result) = oneshot::channel();
        let call = move |connection: &SqliteConnection| {
            let _ = done.send(work(connection));
        };
        self.order(Order::Call(Box::new(call))).await?;
        result.await.map_err(|_| closed())?
    }

    async fn order(&self, order: Order) -> Result<(), StoreError> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        orders.ok_or_else(closed)?.send(order).await.map_err(|_| closed())
    }

    /// What was queued before is still written.
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

/// Takes all that waits, does it in one transaction, answers; and again.
fn work(connection: &SqliteConnection, shared: &Shared, mut waiting: mpsc::Receiver<Order>) {
    let mut orders = Vec::with_capacity(BATCH);
    while waiting.blocking_recv_many(&mut orders, BATCH) > 0 {
        let mut jobs = Vec::with_capacity(orders.len());
        for order in orders.drain(..) {
            match order {
                Order::Do(queued) => jobs.push(queued),
                Order::Call(call) => {
                    commit_all(connection, shared, std::mem::take(&mut jobs));
                    call(connection);
                }
            }
        }
        commit_all(connection, shared, jobs);
    }
}

/// Together if that is possible. Otherwise each by itself, so that one that fails takes no other with it.
pub(super) fn commit_all(connection: &SqliteConnection, shared: &Shared, jobs: Vec<Queued>) {
    if jobs.is_empty() {
        return;
    }
    match commit(connection, shared, &jobs) {
        Ok(outcomes) => {
            for (queued, outcome) in jobs.into_iter().zip(outcomes) {
                queued.answer(outcome);
            }
        }
        // One large job may be what does not fit; a lock concerns them all.
        Err(error) if matches!(error, StoreError::Unavailable(_)) || jobs.len() == 1 => {
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

/// One transaction. Jobs that were refused before they wrote anything do not disturb the others; one that fails after it wrote
/// undoes everything, and the error is returned.
fn commit(
    connection: &SqliteConnection,
    shared: &Shared,
    jobs: &[Queued],
) -> Result<Vec<Outcome>, StoreError> {
    connection.control("BEGIN IMMEDIATE")?;
    shared.meter.executed(2);
    let done = attempt(connection, shared, jobs).and_then(|done| connection.control("COMMIT").map(|()| done));
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
struct Done<'j> {
    /// Of each job.
    outcomes: Vec<Outcome>,
    /// How many jobs have written.
    writes: u64,
    /// Tenants that are among the tenants now.
    known: Vec<&'j str>,
}

fn attempt<'j>(
    connection: &SqliteConnection,
    shared: &Shared,
    jobs: &'j [Queued],
) -> Result<Done<'j>, StoreError> {
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
    Ok(Done { outcomes, writes, known })
}

fn transaction<'c>(
    connection: &'c SqliteConnection,
    tenant: &'c str,
    now: Timestamp,
    closing: &'c Mutex<Closing>,
    shared: &'c Shared,
) -> Tx<'c> {
    Tx { link: Link::Sqlite(connection), tenant, now, closing, shared, has_written: AtomicBool::new(false) }
}

/// One read by itself.
pub(super) fn run(
    connection: &SqliteConnection,
    shared: &Shared,
    tenant: &str,
    job: &dyn Job,
) -> Result<(), StoreError> {
    let closing = Mutex::default();
    let tx = transaction(connection, tenant, now(), &closing, shared);
    guarded(job, &tx)
}

/// As exact as it is kept.
fn now() -> Timestamp {
    Timestamp::from_microsecond(micros(Timestamp::now())).unwrap_or(Timestamp::MAX)
}

/// A job that panics fails; the thread goes on.
fn guarded(job: &dyn Job, tx: &Tx<'_>) -> Result<(), StoreError> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| ready(job.run(tx))));
    done.unwrap_or_else(|_| Err(StoreError::Failed("a job stopped with an internal error".to_owned())))
}

/// On SQLite nothing is ever waited for.
fn ready<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    work.now_or_never().unwrap_or_else(|| Err(StoreError::Failed("a job waited for something".to_owned())))
}
