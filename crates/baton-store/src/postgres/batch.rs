//! Runs many jobs of one tenant in one transaction.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_core::StoreError;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use jiff::Timestamp;

use super::fault::{FaultKind, PostgresFault};
use super::lanes::{Lane, LaneJob};
use super::transaction::{PgTransaction, TransactionMode};
use crate::closing::{Closing, close};
use crate::job::{Job, JobSubject, is_refusal};
use crate::meter::MeterShared;
use crate::runs::room;
use crate::tx::Tx;

/// Retries after a serialization failure or deadlock.
const RETRIES: u64 = 5;
/// Maximum pause in milliseconds before the first retry. It grows linearly and is random, so that two transactions do not
/// collide again.
const PAUSE_MS: u64 = 20;

type BatchOutcome = Result<(), StoreError>;

/// Commits all jobs in one transaction if possible. Otherwise commits each by itself, so that a failing job does not affect the
/// others.
pub(super) async fn commit_all(lane: &Lane, tenant: &str, mut jobs: Vec<LaneJob>) {
    // All processes lock threads in this order, and the accounts of budgets after them, which avoids deadlocks. The sort is
    // stable, so jobs of one thread keep their order.
    jobs.sort_by_key(|queued| queued.about);
    match settle(lane, tenant, &jobs).await {
        Ok(outcomes) => {
            for (queued, outcome) in jobs.into_iter().zip(outcomes) {
                queued.answer(outcome);
            }
        }
        Err(fault) if jobs.len() == 1 || is_for_all(&fault) => {
            for queued in jobs {
                queued.answer(Err(fault.error.clone()));
            }
        }
        Err(_) => {
            for queued in jobs {
                let outcome = settle(lane, tenant, std::slice::from_ref(&queued)).await;
                queued.answer(outcome.map_err(StoreError::from).and_then(|mut outcomes| outcomes.remove(0)));
            }
        }
    }
}

/// An unavailable or full database fails all jobs.
fn is_for_all(fault: &PostgresFault) -> bool {
    fault.error.is_transient() && fault.kind != FaultKind::Beaten
}

/// Commits, with retries while another transaction conflicts.
async fn settle(lane: &Lane, tenant: &str, jobs: &[LaneJob]) -> Result<Vec<BatchOutcome>, PostgresFault> {
    for round in 1..=RETRIES {
        match commit(lane, tenant, jobs).await {
            Err(fault) if fault.kind == FaultKind::Beaten => {
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..=PAUSE_MS * round))).await;
            }
            settled => return settled,
        }
    }
    commit(lane, tenant, jobs).await
}

/// Commits one transaction. A job that is refused before it has written does not affect the others. A job that fails after it
/// has written rolls back the whole transaction.
async fn commit(lane: &Lane, tenant: &str, jobs: &[LaneJob]) -> Result<Vec<BatchOutcome>, PostgresFault> {
    let (transaction, now) = PgTransaction::begin(&lane.pool, TransactionMode::Write, tenant).await?;
    let batch = PostgresBatch {
        transaction: &transaction,
        shared: &lane.shared,
        tenant,
        now,
        closing: Mutex::default(),
        writes: AtomicU64::new(0),
    };
    let (outcomes, is_known) = batch.run(jobs).await?;
    transaction.commit().await?;
    // `BEGIN`, the tenant, `COMMIT`.
    lane.shared.meter.executed(3);
    lane.shared.meter.committed(batch.writes.load(Ordering::Relaxed));
    if is_known {
        lane.shared.know(tenant);
    }
    Ok(outcomes)
}

struct PostgresBatch<'b> {
    transaction: &'b PgTransaction,
    shared: &'b MeterShared,
    tenant: &'b str,
    now: Timestamp,
    closing: Mutex<Closing>,
    /// Number of jobs that have written.
    writes: AtomicU64,
}

impl PostgresBatch<'_> {
    /// Runs the jobs of different threads concurrently, so that their statements are pipelined, then the others in order.
    /// Also returns whether the tenant is certainly in `tenants` after the commit.
    async fn run(&self, jobs: &[LaneJob]) -> Result<(Vec<BatchOutcome>, bool), PostgresFault> {
        if jobs.len() > 1 && self.tx().shared.is_short(self.tenant) {
            self.transaction.verdict(room::lock(&self.tx()).await)?;
        }
        let is_of_thread = |queued: &LaneJob| matches!(queued.about, JobSubject::Thread(_));
        let (threads, others) = jobs.split_at(jobs.partition_point(is_of_thread));
        let threads = threads.chunk_by(|one, next| one.about == next.about);
        let done = join_all(threads.map(|jobs| self.in_order(jobs))).await;
        // A failed statement makes all later ones fail. All jobs have finished here, so the first cause is known.
        self.transaction.verdict(Ok(()))?;
        let mut outcomes = done.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        outcomes.extend(self.in_order(others).await?);
        let is_known = self.transaction.verdict(close(&self.tx()).await)?;
        Ok((outcomes, is_known))
    }

    async fn in_order(&self, jobs: &[LaneJob]) -> Result<Vec<BatchOutcome>, PostgresFault> {
        let mut outcomes = Vec::with_capacity(jobs.len());
        for queued in jobs {
            let tx = self.tx();
            let outcome = guarded(&*queued.job, &tx).await;
            self.transaction.verdict(Ok(()))?;
            let has_written = tx.has_written.load(Ordering::Relaxed);
            match outcome {
                Err(error) if has_written || !is_refusal(&error) => return Err(error.into()),
                outcome => outcomes.push(outcome),
            }
            self.writes.fetch_add(has_written.into(), Ordering::Relaxed);
        }
        Ok(outcomes)
    }

    fn tx(&self) -> Tx<'_> {
        self.transaction.tx(self.tenant, self.now, &self.closing, self.shared)
    }
}

/// Turns a panic of a job into an error, so that the lane continues.
pub(super) async fn guarded(job: &dyn Job, tx: &Tx<'_>) -> BatchOutcome {
    let done = AssertUnwindSafe(job.run(tx)).catch_unwind().await;
    done.unwrap_or_else(|_| Err(StoreError::Failed("a job stopped with an internal error".to_owned())))
}
