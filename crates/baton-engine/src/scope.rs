//! Where in a run something happens, and how it is told to others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::store::{Claim, Claimed, Step};
use baton_core::tool::Room;
use baton_core::{AgentName, CallContext, RunId, SessionId, TenantStore};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::engine::{Agents, Caller, Engine};
use crate::journal::{Journal, Record};
use crate::ledger::Ledger;

/// What all of a run shares.
#[derive(Debug)]
pub struct RunState {
    pub engine: Arc<Engine>,
    pub run_id: RunId,
    pub caller: Caller,
    /// The agents as they were when the run was claimed; a reload does not change a run.
    pub agents: Arc<Agents>,
    pub ledger: Ledger,
    /// Somebody wants an answer from what is there.
    pub(crate) stop: CancellationToken,
    pub cancel: CancellationToken,
    pub room: Option<Box<dyn Room>>,
    pub(crate) store: Arc<dyn TenantStore>,
    pub(crate) claim: Claim,
    /// What was recorded before the process died that worked on the run before.
    pub(crate) steps: HashMap<String, Step>,
    pub(crate) journal: Journal,
}

impl RunState {
    pub(crate) fn new(
        engine: Arc<Engine>,
        store: Arc<dyn TenantStore>,
        claimed: Claimed,
        journal: Journal,
        stop: CancellationToken,
        cancel: CancellationToken,
    ) -> Self {
        let Claimed { claim, run, steps, rows } = claimed;
        let caller = Caller { tenant: store.tenant().clone(), user: run.user_id, thread_id: run.thread_id };
        let overflow = engine.parts.overflow.as_ref();
        let room = overflow.map(|overflow| overflow.open(&caller.tenant, run.run_id));
        let agents = engine.agents();
        Self {
            engine,
            run_id: run.run_id,
            caller,
            agents,
            ledger: Ledger::with_saved(rows),
            stop,
            cancel,
            room,
            store,
            claim,
            steps: steps.into_iter().map(|step| (step.path.clone(), step)).collect(),
            journal,
        }
    }
}

impl RunState {
    /// How long a session had been at work before its process died: from its first record to its last.
    pub(crate) fn spent_before(&self, path: &str) -> Duration {
        let is_within = |step: &&Step| step.path == path || step.path.starts_with(&format!("{path}/"));
        let (mut first, mut last) = (None, None);
        for step in self.steps.values().filter(is_within) {
            first = Some(first.map_or(step.at, |at: Timestamp| at.min(step.at)));
            last = Some(last.map_or(step.at, |at: Timestamp| at.max(step.at)));
        }
        let spent = first.zip(last).map(|(first, last)| last.duration_since(first));
        spent.and_then(|spent| Duration::try_from(spent).ok()).unwrap_or_default()
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

    pub(crate) fn shared_path(&self) -> Arc<str> {
        Arc::clone(&self.path)
    }

    pub fn name(&self) -> &AgentName {
        &self.agent.name
    }

    pub(crate) fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Tells whoever listens, after it was written down if it is of a kind that is.
    pub async fn emit(&self, kind: EventKind) {
        self.emit_as(self.visibility, kind).await;
    }

    /// For what only those who may read traces should see.
    pub async fn trace(&self, kind: EventKind) {
        self.emit_as(Visibility::Internal, kind).await;
    }

    async fn emit_as(&self, visibility: Visibility, kind: EventKind) {
        if kind.is_kept() {
            // A place that was finished before a crash has said all it had to say.
            if !self.is_finished() {
                let events = vec![self.event_as(visibility, kind)];
                self.run.journal.keep_soon(Record { events, ..Record::default() }).await;
            }
            return;
        }
        let event = Event {
            seq: 0,
            thread_id: self.run.caller.thread_id,
            run_id: self.run.run_id,
            at: Timestamp::now(),
            agent: self.agent.name.clone(),
            path: Arc::clone(&self.path),
            visibility,
            kind,
        };
        self.run.journal.pass(event).await;
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
            work_dir: self.run.engine.parts.work_dir.clone(),
        })
    }
}
