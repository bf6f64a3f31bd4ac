//! Many jobs of one tenant in one transaction.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::AuditEntry;
use deadpool_postgres::Pool;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use jiff::Timestamp;

use super::fault::{Fault, Kind};
use super::lanes::Queued;
use super::transaction::{Mode, PgTransaction};
use crate::audit;
use crate::job::{About, Job, is_refusal};
use crate::tx::Tx;

/// How often jobs are done again because another transaction was in their way.
const RETRIES: u64 = 5;
/// The longest pause before the first of these; it grows with each, and is random so that two do not meet again.
const PAUSE_MS: u64 = 20;

type Outcome = Result<(), StoreError>;

/// Together if that is possible. Otherwise each by itself, so that one that fails takes no other with it.
pub(super) async fn commit_all(pool: &Pool, tenant: &str, mut jobs: Vec<Queued>) {
    // Every process locks threads in the same order; jobs of one thread stay in theirs.
    jobs.sort_by_key(|queued| queued.about);
    match settle(pool, tenant, &jobs).await {
        Ok(outcomes) => {
            for (queued, outcome) in jobs.into_iter().zip(outcomes) {
                queued.job.answer(outcome);
            }
        }
        Err(fault) if jobs.len() == 1 || is_for_all(&fault) => {
            for queued in jobs {
                queued.job.answer(Err(fault.error.clone()));
            }
        }
        Err(_) => {
            for queued in jobs {
                let outcome = settle(pool, tenant, std::slice::from_ref(&queued)).await;
                queued
                    .job
                    .answer(outcome.map_err(StoreError::from).and_then(|mut outcomes| outcomes.remove(0)));
            }
        }
    }
}

/// A database that is not there is not there for any of them.
fn is_for_all(fault: &Fault) -> bool {
    fault.error.is_passing() && fault.kind != Kind::Beaten
}

/// Again, a few times, while another transaction is in the way.
async fn settle(pool: &Pool, tenant: &str, jobs: &[Queued]) -> Result<Vec<Outcome>, Fault> {
    for round in 1..=RETRIES {
        match commit(pool, tenant, jobs).await {
            Err(fault) if fault.kind == Kind::Beaten => {
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..=PAUSE_MS * round))).await;
            }
            settled => return settled,
        }
    }
    commit(pool, tenant, jobs).await
}

/// One transaction. Jobs that were refused before they wrote anything do not disturb the others; one that fails after it wrote
/// undoes everything, and the error is returned.
async fn commit(pool: &Pool, tenant: &str, jobs: &[Queued]) -> Result<Vec<Outcome>, Fault> {
    let (transaction, now) = PgTransaction::begin(pool, Mode::Write, tenant).await?;
    let batch = Batch { transaction: &transaction, tenant, now, trail: Mutex::default() };
    let outcomes = batch.run(jobs).await?;
    transaction.commit().await?;
    Ok(outcomes)
}

struct Batch<'b> {
    transaction: &'b PgTransaction,
    tenant: &'b str,
    now: Timestamp,
    trail: Mutex<Vec<AuditEntry>>,
}

impl Batch<'_> {
    /// Threads at the same time, so that their statements travel together; then whatever concerns the whole tenant.
    async fn run(&self, jobs: &[Queued]) -> Result<Vec<Outcome>, Fault> {
        let (threads, others) = jobs.split_at(jobs.partition_point(|queued| queued.about != About::Tenant));
        let threads = threads.chunk_by(|one, next| one.about == next.about);
        let done = join_all(threads.map(|jobs| self.in_order(jobs))).await;
        // One failed statement makes all others fail; now that everyone has noticed, the first is known.
        self.transaction.verdict(Ok(()))?;
        let mut outcomes = done.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        outcomes.extend(self.in_order(others).await?);
        self.transaction.verdict(audit::flush(&self.tx()).await)?;
        Ok(outcomes)
    }

    async fn in_order(&self, jobs: &[Queued]) -> Result<Vec<Outcome>, Fault> {
        let mut outcomes = Vec::with_capacity(jobs.len());
        for queued in jobs {
            let tx = self.tx();
            let outcome = guarded(&*queued.job, &tx).await;
            self.transaction.verdict(Ok(()))?;
            match outcome {
                Err(error) if tx.has_written.load(Ordering::Relaxed) || !is_refusal(&error) => {
                    return Err(error.into());
                }
                outcome => outcomes.push(outcome),
            }
        }
        Ok(outcomes)
    }

    fn tx(&self) -> Tx<'_> {
        self.transaction.tx(self.tenant, self.now, &self.trail)
    }
}

/// A job that panics fails; the lane goes on.
pub(super) async fn guarded(job: &dyn Job, tx: &Tx<'_>) -> Outcome {
    let done = AssertUnwindSafe(job.run(tx)).catch_unwind().await;
    done.unwrap_or_else(|_| Err(StoreError::Failed("a job stopped with an internal error".to_owned())))
}
