//! The tasks that write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::StoreError;
use deadpool_postgres::Pool;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::batch;
use crate::audit::chain_of;
use crate::job::{Job, JobSubject};
use crate::meter::{MeterShared, WaitingJob};
use crate::tenant::closed;

/// Concurrent writing tasks. A thread always maps to the same lane, so its jobs keep their order; jobs of a whole tenant use
/// lane 0.
pub(super) const LANES: usize = 4;
/// Tenants whose transactions run concurrently within one lane.
pub(super) const TENANTS: usize = 2;
/// Capacity of a lane's queue; callers wait while it is full.
const QUEUE: usize = 1024;
/// Maximum number of jobs taken from the queue at once.
const BATCH: usize = 512;

/// A queued job with its tenant.
pub(super) struct LaneJob {
    pub(super) tenant: Arc<str>,
    pub(super) about: JobSubject,
    pub(super) job: Box<dyn Job>,
    pub(super) waiting: WaitingJob,
}

impl LaneJob {
    pub(super) fn answer(self, outcome: Result<(), StoreError>) {
        drop(self.waiting);
        self.job.answer(outcome);
    }
}

/// The connections and shared state of a lane.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) pool: Pool,
    pub(super) shared: Arc<MeterShared>,
}

/// The lanes. Each stops after [`Lanes::close`] or drop, once all its queued jobs are answered.
#[derive(Debug)]
pub(super) struct Lanes {
    entrances: Mutex<Vec<mpsc::Sender<LaneJob>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Lanes {
    pub(super) fn start(lane: &Lane) -> Self {
        let (entrances, tasks) = (0..LANES)
            .map(|_| {
                let (entrance, waiting) = mpsc::channel(QUEUE);
                (entrance, tokio::spawn(work(lane.clone(), waiting)))
            })
            .unzip();
        Self { entrances: Mutex::new(entrances), tasks: Mutex::new(tasks) }
    }

    pub(super) async fn queue(&self, queued: LaneJob) -> Result<(), StoreError> {
        let entrance = self.entrance(queued.about).ok_or_else(closed)?;
        entrance.send(queued).await.map_err(|_| closed())
    }

    fn entrance(&self, about: JobSubject) -> Option<mpsc::Sender<LaneJob>> {
        let lane = match about {
            // Lanes do not share audit chains, so they do not wait for each other's.
            JobSubject::Thread(thread) => usize::from(chain_of(Some(thread))) % LANES,
            JobSubject::Tenant | JobSubject::Budgets => 0,
        };
        let entrances = self.entrances.lock().unwrap_or_else(PoisonError::into_inner);
        entrances.get(lane).cloned()
    }

    pub(super) async fn close(&self) {
        self.entrances.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            let _ = task.await;
        }
    }
}

/// Takes all queued jobs, commits one transaction per tenant and replies, in a loop.
async fn work(lane: Lane, mut waiting: mpsc::Receiver<LaneJob>) {
    let mut taken = Vec::with_capacity(BATCH);
    while waiting.recv_many(&mut taken, BATCH).await > 0 {
        let mut tenants: BTreeMap<Arc<str>, Vec<LaneJob>> = BTreeMap::new();
        for queued in taken.drain(..) {
            tenants.entry(Arc::clone(&queued.tenant)).or_default().push(queued);
        }
        // Concurrently, so that a tenant waiting for a lock does not delay the others.
        stream::iter(tenants)
            .for_each_concurrent(TENANTS, async |(tenant, jobs)| {
                batch::commit_all(&lane, &tenant, jobs).await;
            })
            .await;
    }
}
