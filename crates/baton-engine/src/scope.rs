//! Where in a run something happens, and how it is told to others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::tool::Room;
use baton_core::{AgentName, CallContext, RunId, SessionId};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

use crate::engine::{Agents, Caller, Engine};
use crate::ledger::Ledger;

/// What all of a run shares.
#[derive(Debug)]
pub struct RunState {
    pub engine: Arc<Engine>,
    pub run_id: RunId,
    pub caller: Caller,
    /// The agents as they were when the run began; a reload does not change a run.
    pub agents: Arc<Agents>,
    pub ledger: Ledger,
    pub cancel: CancellationToken,
    pub room: Option<Box<dyn Room>>,
    events: mpsc::Sender<Event>,
    seq: AtomicU64,
}

impl RunState {
    pub fn new(
        engine: Arc<Engine>,
        run_id: RunId,
        caller: Caller,
        agents: Arc<Agents>,
        cancel: CancellationToken,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let room = engine.overflow.as_ref().map(|overflow| overflow.open(&caller.tenant, run_id));
        Self {
            engine,
            run_id,
            caller,
            agents,
            ledger: Ledger::default(),
            cancel,
            room,
            events,
            seq: AtomicU64::new(1),
        }
    }
}

/// One agent at one place of the run's tree. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scope {
    pub run: Arc<RunState>,
    pub agent: Arc<Agent>,
    pub session_id: SessionId,
    /// `assistant`, `assistant/turn:2`, `assistant/turn:2/tool:1`.
    path: Arc<str>,
    visibility: Visibility,
}

impl Scope {
    pub fn root(run: Arc<RunState>, agent: Arc<Agent>) -> Self {
        let session_id = SessionId::root(run.run_id);
        let path = agent.name.as_str().into();
        Self { run, agent, session_id, path, visibility: Visibility::User }
    }

    /// A place below this one.
    #[must_use]
    pub fn at(&self, segment: &str) -> Self {
        Self { path: format!("{}/{segment}", self.path).into(), ..self.clone() }
    }

    /// The same place, but nobody without the right to traces sees what is said.
    #[must_use]
    pub fn internal(&self) -> Self {
        Self { visibility: Visibility::Internal, ..self.clone() }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn name(&self) -> &AgentName {
        &self.agent.name
    }

    /// Tells whoever listens. Waits while the listener is behind; goes on when it has gone.
    pub async fn emit(&self, kind: EventKind) {
        self.emit_as(self.visibility, kind).await;
    }

    /// For what only those who may read traces should see.
    pub async fn trace(&self, kind: EventKind) {
        self.emit_as(Visibility::Internal, kind).await;
    }

    async fn emit_as(&self, visibility: Visibility, kind: EventKind) {
        let event = Event {
            seq: self.run.seq.fetch_add(1, Ordering::Relaxed),
            thread_id: self.run.caller.thread_id,
            run_id: self.run.run_id,
            at: Timestamp::now(),
            agent: self.agent.name.clone(),
            path: Arc::clone(&self.path),
            visibility,
            kind,
        };
        // Mostly there is room, and then nothing has to be waited for.
        if let Err(TrySendError::Full(event)) = self.run.events.try_send(event) {
            let _ = self.run.events.send(event).await;
        }
    }

    pub fn call_context(&self) -> Arc<CallContext> {
        let caller = &self.run.caller;
        Arc::new(CallContext {
            tenant: caller.tenant.clone(),
            user: caller.user.clone(),
            thread_id: caller.thread_id,
            run_id: self.run.run_id,
            session_id: self.session_id.clone(),
            agent: self.agent.name.clone(),
            work_dir: self.run.engine.work_dir.clone(),
        })
    }
}
