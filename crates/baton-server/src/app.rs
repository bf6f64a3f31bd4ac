//! Everything a handler needs. Cheap to clone.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use baton_agui::Faces;
use baton_core::{AgentName, Store, TenantStore, ThreadId};
use baton_engine::entry::Classification;
use baton_engine::{Agents, Engine, Interest, Subscription};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

use crate::access::Access;
use crate::guards::Guards;
use crate::identity::{Identity, Principal};
use crate::metrics::Metrics;
use crate::roster::RosterState;
use crate::settings::Settings;
use crate::system::Inspect;

/// Who answers a message for which nobody was named, or why nobody can.
pub type Choose =
    Box<dyn Fn(&Agents, &str) -> Result<(AgentName, Option<Classification>), String> + Send + Sync>;

/// What the server is put together from.
pub struct Parts {
    pub engine: Arc<Engine>,
    /// The newest roster, for those who look at it; runs get theirs from the engine.
    pub roster: watch::Receiver<RosterState>,
    pub choose: Choose,
    pub inspect: Inspect,
    /// The same that the engine's observer is.
    pub metrics: Arc<Metrics>,
    pub settings: Settings,
    pub version: &'static str,
}

#[derive(Debug, Clone)]
pub struct App(Arc<Inner>);

pub struct Inner {
    pub engine: Arc<Engine>,
    pub roster: watch::Receiver<RosterState>,
    pub choose: Choose,
    pub inspect: Inspect,
    pub metrics: Arc<Metrics>,
    pub settings: Settings,
    pub version: &'static str,
    pub started_at: Timestamp,
    pub identity: Identity,
    pub guards: Guards,
    /// What each route demands.
    pub access: Access,
    /// Made once for each roster: all streams share it.
    faces: Mutex<Option<(Arc<Agents>, Arc<Faces>)>>,
    /// The server is about to end: nothing new is begun.
    pub draining: CancellationToken,
    /// It ends now: streams tell their readers to come back, and stop.
    pub closing: CancellationToken,
    /// Routes beside the native ones.
    pub doors: OpenApiRouter<App>,
}

impl App {
    pub fn new(parts: Parts) -> Self {
        Self::with_doors(parts, OpenApiRouter::new())
    }

    /// With routes beside the native ones: the same guards, and they too have to say what they demand.
    pub fn with_doors(parts: Parts, doors: OpenApiRouter<Self>) -> Self {
        let Parts { engine, roster, choose, inspect, metrics, settings, version } = parts;
        let identity = Identity::new(&settings.auth, Arc::clone(&engine.parts.store));
        let guards = Guards::new(&settings.limits);
        let mut described = crate::openapi::document();
        described.merge(doors.get_openapi().clone());
        let access = Access::of(&described);
        Self(Arc::new(Inner {
            engine,
            roster,
            choose,
            inspect,
            metrics,
            settings,
            version,
            started_at: Timestamp::now(),
            identity,
            guards,
            access,
            faces: Mutex::default(),
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
            doors,
        }))
    }
}

impl Inner {
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.engine.parts.store
    }

    /// The only way for a handler to data: that of the caller's tenant.
    pub fn data(&self, caller: &Principal) -> Arc<dyn TenantStore> {
        self.store().tenant(&caller.tenant)
    }

    /// What is published in a thread of the caller's tenant from now on.
    pub fn subscribe(&self, caller: &Principal, thread: ThreadId, interest: Interest) -> Subscription {
        self.engine.parts.live.subscribe(&caller.tenant, thread, interest)
    }

    pub fn agents(&self) -> Arc<Agents> {
        Arc::clone(&self.engine.parts.agents.borrow())
    }

    /// How agents look in front of people.
    pub fn faces(&self) -> Arc<Faces> {
        let agents = self.agents();
        let mut known = self.faces.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, faces)) if Arc::ptr_eq(of, &agents) => Arc::clone(faces),
            _ => {
                let faces = Arc::new(Faces::of(agents.values().map(|agent| &**agent)));
                *known = Some((agents, Arc::clone(&faces)));
                faces
            }
        }
    }

    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }
}

impl Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("version", &self.version).finish_non_exhaustive()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("version", &self.version).finish_non_exhaustive()
    }
}
