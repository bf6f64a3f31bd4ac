//! State shared by all handlers. Cheap to clone.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use baton_agents::{Diagnostic, Roster};
use baton_agui::AgentProfiles;
use baton_core::store::RunLimits;
use baton_core::{AgentName, Store, TenantId, TenantStore, ThreadId};
use baton_engine::classifier::Classification;
use baton_engine::{Agents, Engine, Interest, Subscription};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

use crate::access::Access;
use crate::guards::Guards;
use crate::identity::{AuthenticationMode, Authenticator, Principal};
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::roster::RosterState;
use crate::settings::ServerSettings;
use crate::stream::permits::StreamPermits;
use crate::system::Inspect;
use crate::trail::Aggregates;

/// Chooses the agent for a message that names none, among the agents of a tenant. The error says why no agent can answer.
pub type Choose = Box<
    dyn Fn(Option<&TenantId>, &Agents, &str) -> Result<(AgentName, Option<Classification>), String>
        + Send
        + Sync,
>;

/// The newest rosters of tenants with agents of their own.
pub type TenantRosters = HashMap<TenantId, watch::Receiver<RosterState>>;

/// Returns all agents of a tenant that has created some, and the problems of those that cannot be used.
pub type CreatedRoster = Box<dyn Fn(&TenantId) -> Option<(Arc<Roster>, Vec<Diagnostic>)> + Send + Sync>;

/// The components of the server.
pub struct ServerParts {
    pub engine: Arc<Engine>,
    /// The newest roster, for display. Runs get theirs from the engine.
    pub roster: watch::Receiver<RosterState>,
    /// The same of tenants with agents of their own.
    pub tenant_rosters: TenantRosters,
    /// The same with the agents that people of a tenant created.
    pub created: Option<CreatedRoster>,
    pub choose: Choose,
    pub inspect: Inspect,
    /// The instance that also observes the engine.
    pub metrics: Arc<Metrics>,
    pub settings: ServerSettings,
    pub version: &'static str,
}

#[derive(Debug, Clone)]
pub struct App(Arc<AppInner>);

/// The agents of a roster, and what streams show of them.
type RosterProfiles = (Arc<Agents>, Arc<AgentProfiles>);

pub struct AppInner {
    pub engine: Arc<Engine>,
    pub roster: watch::Receiver<RosterState>,
    tenant_rosters: TenantRosters,
    created: Option<CreatedRoster>,
    pub choose: Choose,
    pub inspect: Inspect,
    pub metrics: Arc<Metrics>,
    pub settings: ServerSettings,
    pub version: &'static str,
    pub started_at: Timestamp,
    pub identity: Authenticator,
    pub guards: Guards,
    pub streams: StreamPermits,
    pub readiness: Readiness,
    /// Audit entries that are aggregated over time.
    pub aggregates: Aggregates,
    /// The requirements of each route.
    pub access: Access,
    /// Built once per roster and shared by all streams.
    profiles: Mutex<HashMap<Option<TenantId>, RosterProfiles>>,
    /// Cancelled when shutdown begins: no new work is accepted.
    pub draining: CancellationToken,
    /// Cancelled at the end of shutdown: streams ask their clients to reconnect, and end.
    pub closing: CancellationToken,
    /// All routes, without their layers.
    pub routes: Router<App>,
}

impl App {
    pub fn new(parts: ServerParts) -> Self {
        Self::with_doors(parts, OpenApiRouter::new())
    }

    /// Adds routes beside the native ones. They use the same guards and must declare their requirements as well.
    pub fn with_doors(parts: ServerParts, doors: OpenApiRouter<Self>) -> Self {
        let ServerParts {
            engine,
            roster,
            tenant_rosters,
            created,
            choose,
            inspect,
            metrics,
            settings,
            version,
        } = parts;
        let identity = Authenticator::new(&settings.auth, Arc::clone(&engine.parts.store));
        let guards = Guards::new(&settings.limits);
        let streams = StreamPermits::new(&settings.limits, settings.auth.mode);
        // Built once for both: each route makes its description together with its handler, which takes milliseconds in all.
        let a2a = if settings.a2a.is_some() { crate::a2a::routes() } else { OpenApiRouter::new() };
        let (routes, described) = crate::routes::all().merge(a2a).merge(doors).split_for_parts();
        let access = Access::of(&described);
        Self(Arc::new(AppInner {
            engine,
            roster,
            tenant_rosters,
            created,
            choose,
            inspect,
            metrics,
            settings,
            version,
            started_at: Timestamp::now(),
            identity,
            guards,
            streams,
            readiness: Readiness::default(),
            aggregates: Aggregates::new(Instant::now()),
            access,
            profiles: Mutex::default(),
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
            routes,
        }))
    }
}

impl AppInner {
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.engine.parts.store
    }

    /// The data of the caller's tenant. Handlers have no other access to the store.
    pub fn data(&self, caller: &Principal) -> Arc<dyn TenantStore> {
        self.store().tenant(&caller.tenant)
    }

    /// Subscribes to a thread of the caller's tenant.
    pub fn subscribe(&self, caller: &Principal, thread: ThreadId, interest: Interest) -> Subscription {
        self.engine.parts.live.subscribe(&caller.tenant, thread, interest)
    }

    /// How many runs a caller may have open. In open mode there is only one user, who may have all of the tenant.
    pub fn run_limits(&self, caller: &Principal) -> RunLimits {
        let limits = &self.settings.limits;
        let has_users = self.settings.auth.mode == AuthenticationMode::Required;
        let user = has_users.then_some(limits.max_concurrent_runs_per_user);
        RunLimits { tenant: Some(limits.max_concurrent_runs_of(&caller.tenant)), user }
    }

    /// The agents that the caller's tenant may see and use. Handlers show no others.
    pub fn agents(&self, caller: &Principal) -> Arc<Agents> {
        self.engine.agents(&caller.tenant)
    }

    /// The agent for a message of the caller that names none.
    pub fn first_agent(
        &self,
        caller: &Principal,
        message: &str,
    ) -> Result<(AgentName, Option<Classification>), String> {
        (self.choose)(Some(&caller.tenant), &self.agents(caller), message)
    }

    /// The newest agent files of the caller's tenant, with the agents that its people created.
    pub fn roster_of(&self, caller: &Principal) -> RosterState {
        let files = self.tenant_rosters.get(&caller.tenant).unwrap_or(&self.roster).borrow().clone();
        match self.created.as_ref().and_then(|created| created(&caller.tenant)) {
            Some((roster, left_out)) => files.with_created(roster, left_out),
            None => files,
        }
    }

    /// Reads the agents that people of the caller's tenant created: another server may have saved one a moment ago. If the store does
    /// not answer, those that are known stay.
    pub async fn refresh_agents(&self, caller: &Principal) {
        let Some(created) = &self.engine.parts.extensions.agents else { return };
        if let Err(error) = created.refresh(&caller.tenant).await {
            tracing::warn!(%error, "created agents cannot be read");
        }
    }

    /// Display data of all agents of the caller's tenant. A stream shows only those that its thread involves.
    pub fn profiles(&self, caller: &Principal) -> Arc<AgentProfiles> {
        let agents = self.engine.all_agents_of(&caller.tenant);
        // Tenants without agents of their own share an entry.
        let is_shared = Arc::ptr_eq(&agents, &self.engine.all_agents());
        let tenant = Some(&caller.tenant).filter(|_| !is_shared);
        let mut known = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&tenant.cloned()) {
            Some((of, profiles)) if Arc::ptr_eq(of, &agents) => Arc::clone(profiles),
            _ => {
                let profiles = Arc::new(AgentProfiles::of(agents.values().map(|agent| &**agent)));
                known.insert(tenant.cloned(), (agents, Arc::clone(&profiles)));
                profiles
            }
        }
    }

    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }
}

impl Deref for App {
    type Target = AppInner;
    fn deref(&self) -> &AppInner {
        &self.0
    }
}

impl fmt::Debug for AppInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("version", &self.version).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("version", &self.version).finish_non_exhaustive()
    }
}
