//! The end of data: retention of history, and the erasure of a user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{
    AuditEntry, Cancel, Erasure, HistoryRetention, PageRequest, Retention, RunQuery, RunStatus, Thread,
};
use baton_core::{Store, StoreError, TenantId, TenantStore, UserId, Workspaces};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::engine::Engine;
use crate::recovery;

/// The sweep is a duty of one process at a time. A process that dies while it sweeps loses the duty after [`DUTY_LEASE`]. After a sweep
/// it keeps the duty for the sum of [`SWEEP_INTERVAL`] and [`DUTY_LEASE`], also if it dies or is restarted meanwhile.
const SWEEP_DUTY: &str = "sweep";
const DUTY_LEASE: Duration = Duration::from_mins(1);
const SWEEP_INTERVAL: Duration = Duration::from_hours(1);
/// Threads that are looked for at once. Each is deleted with a write of its own.
const THREADS_AT_ONCE: u32 = 100;
/// Runs whose events are removed with one write.
const RUNS_AT_ONCE: u32 = 50;
/// How long the runs of a user that is erased may take to end, so that their costs are recorded.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const END_POLL: Duration = Duration::from_millis(50);
/// Attempts to erase a user before it is left to the next sweep.
const ERASURE_ATTEMPTS: u32 = 10;
const ERASURE_RETRY_DELAY: Duration = Duration::from_secs(3);
/// Attempts to empty the database's log while readers use it, [`END_POLL`] apart. None of them waits.
const PURGE_ATTEMPTS: u32 = 100;

/// How long data is kept, for all tenants and for some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionSettings {
    pub default: Retention,
    pub history: HistoryRetention,
    pub tenants: BTreeMap<TenantId, HistoryRetention>,
}

/// Keeps history forever.
impl From<Retention> for RetentionSettings {
    fn from(default: Retention) -> Self {
        Self { default, history: HistoryRetention::default(), tenants: BTreeMap::new() }
    }
}

impl RetentionSettings {
    fn history_of(&self, tenant: &TenantId) -> HistoryRetention {
        self.tenants.get(tenant).copied().unwrap_or(self.history)
    }
}

/// Erases a user: ends their runs, deletes their threads with their files, and removes what is left of them. Can be repeated until it
/// succeeds.
pub async fn erase(
    store: &dyn Store,
    workspaces: Option<&dyn Workspaces>,
    tenant: &TenantId,
    erasure: &Erasure,
) -> Result<(), StoreError> {
    let data = store.tenant(tenant);
    let mut page = PageRequest::first(PageRequest::MAX_LIMIT);
    loop {
        let found = data.threads(Some(&erasure.user_id), page.clone()).await?;
        for thread in found.data.iter().filter(|thread| thread.created_at <= erasure.requested_at) {
            delete_with_runs(&*data, workspaces, thread).await?;
        }
        match found.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    data.finish_erasure(erasure.erasure_id).await?;
    purge(store).await;
    Ok(())
}

/// Requests the erasure of a user on behalf of `actor`.
pub async fn request_erasure(
    data: &dyn TenantStore,
    user: &UserId,
    actor: &str,
    trace_id: Option<String>,
) -> Result<Erasure, StoreError> {
    let entry = AuditEntry {
        actor: actor.to_owned(),
        action: "user.erase".to_owned(),
        decision: "requested".to_owned(),
        trace_id,
        ..AuditEntry::default()
    };
    data.begin_erasure(user, entry).await
}

/// Asks the runs of a thread to end, waits for them up to [`END_TIMEOUT`], and deletes the thread. A run that goes on cannot write any
/// more. The files are deleted first: as long as the thread is there, this is repeated after a crash.
async fn delete_with_runs(
    data: &dyn TenantStore,
    workspaces: Option<&dyn Workspaces>,
    thread: &Thread,
) -> Result<(), StoreError> {
    for status in [RunStatus::Queued, RunStatus::Waiting, RunStatus::Running] {
        let query =
            RunQuery { thread_id: Some(thread.thread_id), status: Some(status), ..RunQuery::default() };
        for run in data.runs(query, PageRequest::first(PageRequest::MAX_LIMIT)).await?.data {
            ignore_missing(data.cancel_run(run.run_id, Cancel::Abort).await.map(drop))?;
        }
    }
    let until = Instant::now() + END_TIMEOUT;
    while Instant::now() < until && is_active(data, thread).await? {
        tokio::time::sleep(END_POLL).await;
    }
    if let Some(workspaces) = workspaces {
        let deleted = workspaces.delete(data.tenant(), thread.thread_id).await;
        deleted.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    }
    ignore_missing(data.delete_thread(thread.thread_id, None).await)
}

async fn is_active(data: &dyn TenantStore, thread: &Thread) -> Result<bool, StoreError> {
    match data.thread(thread.thread_id, None).await {
        Err(StoreError::ThreadNotFound) => Ok(false),
        thread => Ok(thread?.active_run.is_some()),
    }
}

/// Another process may have deleted it in the meantime.
fn ignore_missing(done: Result<(), StoreError>) -> Result<(), StoreError> {
    match done {
        Err(StoreError::ThreadNotFound | StoreError::NotFound(_)) => Ok(()),
        done => done,
    }
}

async fn purge(store: &dyn Store) {
    for _ in 0..PURGE_ATTEMPTS {
        if store.purge_files().await.is_ok() {
            return;
        }
        tokio::time::sleep(END_POLL).await;
    }
    tracing::warn!("the log of the database is in use: erased data stays in it until it is merged");
}

impl Engine {
    /// Erases a user whose erasure was requested. Ends their runs in this process at once.
    pub async fn erase(self: &Arc<Self>, tenant: &TenantId, erasure: &Erasure) -> Result<(), StoreError> {
        let query = RunQuery {
            user_id: Some(erasure.user_id.clone()),
            status: Some(RunStatus::Running),
            ..RunQuery::default()
        };
        let data = self.parts.store.tenant(tenant);
        for run in data.runs(query, PageRequest::first(PageRequest::MAX_LIMIT)).await?.data {
            ignore_missing(self.cancel(tenant, run.run_id, Cancel::Abort).await.map(drop))?;
        }
        erase(&*self.parts.store, self.workspaces(), tenant, erasure).await
    }

    /// Erases a user in a task of its own, which stops when this process shuts down. It returns whether the erasure is complete; if it is
    /// not, the next start or sweep continues.
    pub fn erase_in_background(
        self: &Arc<Self>,
        tenant: &TenantId,
        erasure: Erasure,
    ) -> tokio::task::JoinHandle<bool> {
        let (engine, tenant) = (Arc::clone(self), tenant.clone());
        self.workers.tasks.spawn(async move {
            tokio::select! {
                is_complete = engine.erase_repeatedly(&tenant, &erasure) => is_complete,
                () = engine.workers.draining.cancelled() => false,
            }
        })
    }

    async fn erase_repeatedly(self: &Arc<Self>, tenant: &TenantId, erasure: &Erasure) -> bool {
        for _ in 0..ERASURE_ATTEMPTS {
            match self.erase(tenant, erasure).await {
                Ok(()) => return true,
                Err(error) => {
                    tracing::warn!(%tenant, erasure = %erasure.erasure_id, %error, "cannot erase a user; trying again");
                }
            }
            tokio::time::sleep(ERASURE_RETRY_DELAY).await;
        }
        false
    }

    /// Sweeps every hour, unless another process does. Never returns.
    pub(crate) async fn sweep_regularly(self: &Arc<Self>) {
        // Whatever process began them: this one may be the one that was restarted.
        self.resume_erasures().await;
        loop {
            let pause = match self.has_sweep_duty().await {
                Ok(true) => {
                    self.sweep_everything().await;
                    // Keeps the duty, so that the others do not sweep within the hour.
                    let owner = &self.parts.identity.owner;
                    drop(self.parts.store.take_duty(SWEEP_DUTY, owner, SWEEP_INTERVAL + DUTY_LEASE).await);
                    SWEEP_INTERVAL
                }
                Ok(false) => DUTY_LEASE,
                Err(error) => {
                    tracing::warn!(%error, "cannot sweep");
                    DUTY_LEASE
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn resume_erasures(self: &Arc<Self>) {
        for tenant in self.parts.store.tenants().await.unwrap_or_default() {
            let open = self.parts.store.tenant(&tenant).open_erasures().await;
            for erasure in open.unwrap_or_default() {
                drop(self.erase_in_background(&tenant, erasure));
            }
        }
    }

    async fn has_sweep_duty(&self) -> Result<bool, StoreError> {
        self.parts.store.take_duty(SWEEP_DUTY, &self.parts.identity.owner, DUTY_LEASE).await
    }

    async fn sweep_everything(self: &Arc<Self>) {
        self.end_expired_everywhere().await;
        if let Err(error) = recovery::sweep(&*self.parts.store, self.parts.retention.default).await {
            tracing::warn!(%error, "cannot sweep");
        }
        for tenant in self.parts.store.tenants().await.unwrap_or_default() {
            // An error of one tenant does not stop the others.
            match self.sweep_history(&tenant).await {
                Ok(true) => {}
                // Another process has the duty now.
                Ok(false) => return,
                Err(error) => tracing::warn!(%tenant, %error, "cannot sweep"),
            }
        }
    }

    /// Completes interrupted erasures, and removes history that is older than the tenant keeps it. Returns whether this process still
    /// has the duty.
    async fn sweep_history(self: &Arc<Self>, tenant: &TenantId) -> Result<bool, StoreError> {
        let data = self.parts.store.tenant(tenant);
        for erasure in data.open_erasures().await? {
            self.erase(tenant, &erasure).await?;
        }
        let HistoryRetention { threads, events, audit } = self.parts.retention.history_of(tenant);
        if let Some(kept) = threads
            && !self.delete_expired_threads(tenant, &*data, before(kept)).await?
        {
            return Ok(false);
        }
        if let Some(kept) = events
            && !self.delete_expired_events(&*data, before(kept)).await?
        {
            return Ok(false);
        }
        if let Some(kept) = audit
            && !self.truncate_audit(&*data, before(kept)).await?
        {
            return Ok(false);
        }
        self.has_sweep_duty().await
    }

    /// What is removed is verified first: a trail that was changed stays as it is.
    async fn truncate_audit(&self, data: &dyn TenantStore, before: Timestamp) -> Result<bool, StoreError> {
        let Some(seal) = data.expired_audit(before).await? else { return Ok(true) };
        while data.truncate_audit(before, seal).await? {
            if !self.has_sweep_duty().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn delete_expired_threads(
        &self,
        tenant: &TenantId,
        data: &dyn TenantStore,
        before: Timestamp,
    ) -> Result<bool, StoreError> {
        loop {
            let expired = data.expired_threads(before, THREADS_AT_ONCE).await?;
            let mut deleted = 0;
            for thread in &expired {
                if data.delete_expired_thread(*thread, before).await? {
                    deleted += 1;
                    self.delete_workspace(tenant, *thread).await;
                    self.parts.live.changed(tenant, *thread);
                }
            }
            if !self.has_sweep_duty().await? {
                return Ok(false);
            }
            if deleted == 0 || expired.len() < THREADS_AT_ONCE as usize {
                return Ok(true);
            }
        }
    }

    async fn delete_expired_events(
        &self,
        data: &dyn TenantStore,
        before: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut after = None;
        loop {
            after = data.delete_events(before, after, RUNS_AT_ONCE).await?;
            if !self.has_sweep_duty().await? {
                return Ok(false);
            }
            if after.is_none() {
                return Ok(true);
            }
        }
    }
}

fn before(kept: SignedDuration) -> Timestamp {
    Timestamp::now().saturating_sub(kept).unwrap_or(Timestamp::MIN)
}
