//! The tasks that write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::StoreError;
use deadpool_postgres::Pool;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::batch;
use crate::job::{About, Job};
use crate::meter::{Shared, Waiting};
use crate::tenant::closed;

/// Transactions that write at the same time. A thread is always in the same lane, so its jobs keep their order; what concerns a
/// whole tenant is in the first.
pub(super) const LANES: usize = 4;
/// Tenants of one lane whose transactions are under way at the same time.
pub(super) const TENANTS: usize = 2;
/// Jobs that may wait in a lane; callers beyond that wait to be let in.
const QUEUE: usize = 1024;
/// Jobs that are taken at once.
const BATCH: usize = 512;

/// A job and whose it is.
pub(super) struct Queued {
    pub(super) tenant: Arc<str>,
    pub(super) about: About,
    pub(super) job: Box<dyn Job>,
    pub(super) waiting: Waiting,
}

impl Queued {
    pub(super) fn answer(self, outcome: Result<(), StoreError>) {
        drop(self.waiting);
        self.job.answer(outcome);
    }
}

/// Where a lane writes to.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) pool: Pool,
    pub(super) shared: Arc<Shared>,
}

/// Each lane ends when nothing more can come and all that came is answered: after [`Lanes::close`], or when this is dropped.
#[derive(Debug)]
pub(super) struct Lanes {
    entrances: Mutex<Vec<mpsc::Sender<Queued>>>,
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

    pub(super) async fn queue(&self, queued: Queued) -> Result<(), StoreError> {
        let entrance = self.entrance(queued.about).ok_or_else(closed)?;
        entrance.send(queued).await.map_err(|_| closed())
    }

    fn entrance(&self, about: About) -> Option<mpsc::Sender<Queued>> {
        let lane = match about {
            // Ids of threads are random.
            About::Thread(thread) => usize::from(thread.as_uuid().as_bytes()[15]) % LANES,
            About::Tenant => 0,
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

/// Takes all that waits, does it in one transaction per tenant, answers; and again.
async fn work(lane: Lane, mut waiting: mpsc::Receiver<Queued>) {
    let mut taken = Vec::with_capacity(BATCH);
    while waiting.recv_many(&mut taken, BATCH).await > 0 {
        let mut tenants: BTreeMap<Arc<str>, Vec<Queued>> = BTreeMap::new();
        for queued in taken.drain(..) {
            tenants.entry(Arc::clone(&queued.tenant)).or_default().push(queued);
        }
        // At the same time, so that one that has to wait for a lock does not keep the others.
        stream::iter(tenants)
            .for_each_concurrent(TENANTS, async |(tenant, jobs)| {
                batch::commit_all(&lane, &tenant, jobs).await;
            })
            .await;
    }
}
