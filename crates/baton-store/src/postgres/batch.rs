//! Many jobs of one tenant in one transaction.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_core::StoreError;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use jiff::Timestamp;

use super::fault::{Fault, Kind};
use super::lanes::{Lane, Queued};
use super::transaction::{Mode, PgTransaction};
use crate::closing::{Closing, close};
use crate::job::{About, Job, is_refusal};
use crate::meter::Shared;
use crate::runs::room;
use crate::tx::Tx;

/// How often jobs are done again because another transaction was in their way.
const RETRIES: u64 = 5;
/// The longest pause before the first of these; it grows with each, and is random so that two do not meet again.
const PAUSE_MS: u64 = 20;

type Outcome = Result<(), StoreError>;

/// Together if that is possible. Otherwise each by itself, so that one that fails takes no other with it.
pub(super) async fn commit_all(lane: &Lane, tenant: &str, mut jobs: Vec<Queued>) {
    // Every process locks threads in the same order; jobs of one thread stay in theirs.
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

/// A database that is not there is not there for any of them.
fn is_for_all(fault: &Fault) -> bool {
    fault.error.is_passing() && fault.kind != Kind::Beaten
}

/// Again, a few times, while another transaction is in the way.
async fn settle(lane: &Lane, tenant: &str, jobs: &[Queued]) -> Result<Vec<Outcome>, Fault> {
    for round in 1..=RETRIES {
        match commit(lane, tenant, jobs).await {
            Err(fault) if fault.kind == Kind::Beaten => {
                tokio::time::sleep(Duration::from_millis(fastrand::u64(1..=PAUSE_MS * round))).await;
            }
            settled => return settled,
        }
    }
    commit(lane, tenant, jobs).await
}

/// One transaction. Jobs that were refused before they wrote anything do not disturb the others; one that fails after it wrote
/// undoes everything, and the error is returned.
async fn commit(lane: &Lane, tenant: &str, jobs: &[Queued]) -> Result<Vec<Outcome>, Fault> {
    let (transaction, now) = PgTransaction::begin(&lane.pool, Mode::Write, tenant).await?;
    let batch = Batch {
        transaction: &transaction,
        shared: &lane.shared,
        tenant,
        now,
        closing: Mutex::default(),
        writes: AtomicU64::new(0),
    };
    let (outcomes, is_known) = batch.run(jobs).await?;
    transaction.commit().await?;
    // To begin, to name the tenant, to commit.
    lane.shared.meter.executed(3);
    lane.shared.meter.committed(batch.writes.load(Ordering::Relaxed));
    if is_known {
        lane.shared.know(tenant);
    }
    Ok(outcomes)
}

struct Batch<'b> {
    transaction: &'b PgTransaction,
    shared: &'b Shared,
    tenant: &'b str,
    now: Timestamp,
    closing: Mutex<Closing>,
    /// Jobs that have written.
    writes: AtomicU64,
}

impl Batch<'_> {
    /// Threads at the same time, so that their statements travel together; then whatever concerns the whole tenant. Also returns
    /// whether the tenant is among the tenants after it.
    async fn run(&self, jobs: &[Queued]) -> Result<(Vec<Outcome>, bool), Fault> {
        if jobs.len() > 1 && self.tx().shared.is_short(self.tenant) {
            self.transaction.verdict(room::lock(&self.tx()).await)?;
        }
        let (threads, others) = jobs.split_at(jobs.partition_point(|queued| queued.about != About::Tenant));
        let threads = threads.chunk_by(|one, next| one.about == next.about);
        let done = join_all(threads.map(|jobs| self.in_order(jobs))).await;
        // One failed statement makes all others fail; now that everyone has noticed, the first is known.
        self.transaction.verdict(Ok(()))?;
        let mut outcomes = done.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        outcomes.extend(self.in_order(others).await?);
        let is_known = self.transaction.verdict(close(&self.tx()).await)?;
        Ok((outcomes, is_known))
    }

    async fn in_order(&self, jobs: &[Queued]) -> Result<Vec<Outcome>, Fault> {
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

/// A job that panics fails; the lane goes on.
pub(super) async fn guarded(job: &dyn Job, tx: &Tx<'_>) -> Outcome {
    let done = AssertUnwindSafe(job.run(tx)).catch_unwind().await;
    done.unwrap_or_else(|_| Err(StoreError::Failed("a job stopped with an internal error".to_owned())))
}
