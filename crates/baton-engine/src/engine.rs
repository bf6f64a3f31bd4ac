//! The engine: its dependencies ([`EngineParts`]), and handles to its runs ([`RunHandle`]).

mod beat;

use std::sync::Arc;
use std::time::Duration;

use baton_core::event::Event;
use baton_core::store::Owner;
use baton_core::{AgentName, RunId, Store, StoreError, TenantId, UserId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::agents::Agents;
use crate::extensions::Extensions;
use crate::failure::Failure;
use crate::heartbeat::{HeartbeatConfig, ProcessHeartbeat};
use crate::learning::ExperienceCache;
use crate::lifecycle::RetentionSettings;
use crate::live::ThreadChannels;
use crate::models::ModelRegistry;
use crate::observer::Observer;
use crate::outcome::RunResult;
use crate::policy::Policy;
use crate::recounted_accounts::RecountedAccounts;
use crate::registry::{WorkerLifetime, Workers};
use crate::run_state::RunResources;
use crate::storage::{Storage, StorageLimits};
use crate::tenants::Tenants;

/// The dependencies and settings of an engine.
#[derive(Debug)]
pub struct EngineParts {
    pub models: Arc<ModelRegistry>,
    pub extensions: Arc<Extensions>,
    /// How agents may invoke each other.
    pub policy: Arc<Policy>,
    /// What some tenants have instead of `models`, `policy` and all of `agents`.
    pub tenants: Tenants,
    pub store: Arc<dyn Store>,
    /// The current roster. Each run keeps the one it was claimed with.
    pub agents: watch::Receiver<Arc<Agents>>,
    /// Identifies this process among those that share the store.
    pub identity: ProcessIdentity,
    pub lease: HeartbeatConfig,
    /// How long a record that the run does not wait for may stay unwritten. Zero writes it at once.
    pub flush: Duration,
    /// How long a worker serves the thread of a message that this process accepted.
    pub worker_lifetime: WorkerLifetime,
    pub retention: RetentionSettings,
    pub storage: StorageLimits,
    /// The channels by which clients subscribe to threads.
    pub live: Arc<ThreadChannels>,
    pub observer: Option<Arc<dyn Observer>>,
}

/// The identity of this process, and a check whether another process is gone.
#[derive(Clone)]
pub struct ProcessIdentity {
    pub owner: Owner,
    /// Whether a process is certainly gone. Its runs are then released before its lease expires.
    pub is_gone: fn(&Owner) -> bool,
}

impl std::fmt::Debug for ProcessIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Identity").field(&self.owner).finish()
    }
}

/// Accepts and executes runs. Shared behind an [`Arc`].
#[derive(Debug)]
pub struct Engine {
    pub parts: EngineParts,
    pub(crate) workers: Workers,
    pub(crate) lease: ProcessHeartbeat,
    /// Shared by all runs.
    recounted: Arc<RecountedAccounts>,
    experience: Arc<ExperienceCache>,
    storage: Arc<Storage>,
}

impl Engine {
    pub fn new(parts: EngineParts) -> Arc<Self> {
        let (workers, lease) = (Workers::default(), ProcessHeartbeat::default());
        let storage = Arc::new(Storage::new(parts.storage));
        let (recounted, experience) = (Arc::default(), Arc::default());
        Arc::new(Self { parts, workers, lease, recounted, experience, storage })
    }

    /// What a new run shares with the others of its tenant.
    pub(crate) fn run_resources(&self, tenant: &TenantId) -> RunResources {
        RunResources {
            agents: self.agents(tenant),
            policy: Arc::clone(self.policy(tenant)),
            models: Arc::clone(self.models(tenant)),
            extensions: Arc::clone(&self.parts.extensions),
            recounted: Arc::clone(&self.recounted),
            experience: Arc::clone(&self.experience),
            storage: Arc::clone(&self.storage),
        }
    }

    /// Checks the limits of stored bytes before something is stored. Without limits nothing is read.
    pub async fn check_storage(
        &self,
        tenant: &TenantId,
        user: &UserId,
        adding: u64,
    ) -> Result<(), StoreError> {
        if !self.storage.has_limits() {
            return Ok(());
        }
        self.storage.check(&*self.parts.store.tenant(tenant), user, adding).await
    }

    /// The agents that a tenant may see and use.
    pub fn agents(&self, tenant: &TenantId) -> Arc<Agents> {
        self.parts.tenants.agents(tenant, self.all_agents())
    }

    /// Reads the agents that people of the tenant created, unless `agent` is known: another process may have saved it a moment ago.
    pub async fn look_for_agent(&self, tenant: &TenantId, agent: &AgentName) -> Result<(), StoreError> {
        match &self.parts.extensions.agents {
            Some(created) if !self.agents(tenant).contains_key(agent) => created.refresh(tenant).await,
            _ => Ok(()),
        }
    }

    /// All agents that a tenant could be given: those for all, those of its own folders, and those that its people created.
    pub fn all_agents_of(&self, tenant: &TenantId) -> Arc<Agents> {
        self.parts.tenants.all(tenant, self.all_agents())
    }

    /// The agents for all tenants.
    pub fn all_agents(&self) -> Arc<Agents> {
        Arc::clone(&self.parts.agents.borrow())
    }

    /// The policy for the runs of a tenant.
    pub fn policy(&self, tenant: &TenantId) -> &Arc<Policy> {
        self.parts.tenants.policy(tenant, &self.parts.policy)
    }

    /// The models of a tenant.
    pub fn models(&self, tenant: &TenantId) -> &Arc<ModelRegistry> {
        self.parts.tenants.models(tenant, &self.parts.models)
    }
}

/// A handle to an accepted run. Dropping it cancels the run.
#[derive(Debug)]
pub struct RunHandle {
    pub id: RunId,
    /// All events in order, ending with exactly one `RunFinished` or `RunFailed`.
    pub events: mpsc::Receiver<Event>,
    pub(crate) cancel: CancellationToken,
    pub(crate) end: oneshot::Receiver<RunResult>,
}

impl RunHandle {
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits for the end of the run and discards unread events.
    pub async fn finish(mut self) -> RunResult {
        while self.events.recv().await.is_some() {}
        self.join().await
    }

    /// Waits for the end of the run. Read `events` to their end first: the result is delivered after the last event.
    pub async fn join(mut self) -> RunResult {
        (&mut self.end).await.unwrap_or_else(|_| RunResult::without_end(Failure::Superseded))
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
