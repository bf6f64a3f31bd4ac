//! [`Scope`] is one agent at one path of a run, and publishes its events. [`SessionScope`] is what all paths of its session share.

use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::store::NewEvent;
use baton_core::{AgentName, CallContext, SessionId};
use jiff::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use crate::bounds::{Bounds, ChildPermit};
use crate::call_span::CallSpan;
use crate::cancellation::Cancellation;
use crate::failure::Failure;
use crate::journal::Record;
use crate::lease::HandoffLease;
use crate::models::ModelRegistry;
use crate::prior_durations::PriorDurations;
use crate::run_state::RunState;
use crate::steps::StepRecorder;

/// One agent at one path of the run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scope {
    pub run: Arc<RunState>,
    pub(crate) session: Arc<SessionScope>,
    /// `assistant`, `assistant/turn:2`, `assistant/turn:2/tool:1`.
    path: Arc<str>,
    visibility: Visibility,
    /// Cancels everything at and below this path.
    pub(crate) cancel: Cancellation,
    /// The span of the tool call that the scope is in. `None` if spans are disabled.
    pub(crate) span: Option<Arc<CallSpan>>,
}

/// The session of one agent: what is the same at all its paths.
#[derive(Debug, Clone)]
pub(crate) struct SessionScope {
    pub(crate) id: SessionId,
    pub(crate) agent: Arc<Agent>,
    pub(crate) bounds: Arc<Bounds>,
    /// The permit of a live child, held until the last scope of the session is dropped. `None` for the root session.
    permit: Option<Arc<ChildPermit>>,
    /// When the session started, perhaps before a crash.
    pub(crate) started_at: Timestamp,
    /// When this process entered the session.
    entered: Instant,
    /// The lease by which the agent holds the thread. The agents it invokes do not have it.
    pub(crate) lease: Option<Arc<HandoffLease>>,
}

impl SessionScope {
    /// A session that starts now.
    fn new(id: SessionId, agent: Arc<Agent>, bounds: Bounds, permit: Option<ChildPermit>) -> Self {
        Self {
            id,
            agent,
            bounds: Arc::new(bounds),
            permit: permit.map(Arc::new),
            started_at: Timestamp::now(),
            entered: Instant::now(),
            lease: None,
        }
    }

    /// Whether this is the root session, which starts and ends with the run.
    pub(crate) fn is_root(&self) -> bool {
        self.permit.is_none()
    }

    /// How long the session has lasted, including the time before a crash.
    pub(crate) fn elapsed(&self, prior: &PriorDurations) -> Duration {
        prior.at(&self.bounds.path) + self.entered.elapsed()
    }
}

impl Scope {
    pub(crate) fn root(run: Arc<RunState>, agent: Arc<Agent>, bounds: Bounds) -> Self {
        let path = agent.name.as_str().into();
        let cancel = Cancellation::new(run.control.cancel.clone());
        let session = Arc::new(SessionScope::new(SessionId::root(run.run_id), agent, bounds, None));
        Self { run, session, path, visibility: Visibility::User, cancel, span: None }
    }

    /// The same path with another agent and its own session, which starts now or started before a crash.
    #[must_use]
    pub(crate) fn for_agent(
        self,
        agent: &Arc<Agent>,
        id: SessionId,
        bounds: Bounds,
        permit: ChildPermit,
    ) -> Self {
        let mut session = SessionScope::new(id, Arc::clone(agent), bounds, Some(permit));
        if let Some(step) = self.run.recorder.steps.get(self.path()) {
            session.started_at = step.at;
        }
        Self { session: Arc::new(session), cancel: self.cancel.child(), ..self }
    }

    /// The same path with a session that differs in what `change` sets.
    #[must_use]
    pub(crate) fn with_session(mut self, change: impl FnOnce(&mut SessionScope)) -> Self {
        change(Arc::make_mut(&mut self.session));
        self
    }

    /// The same scope, whose agent holds the thread.
    #[must_use]
    pub(crate) fn with_lease(self, lease: &Arc<HandoffLease>) -> Self {
        self.run.progress.hold(lease);
        self.with_session(|session| session.lease = Some(Arc::clone(lease)))
    }

    /// The same scope with its own token, so that it can be cancelled alone.
    #[must_use]
    pub(crate) fn cancellable(&self) -> Self {
        Self { cancel: self.cancel.child(), ..self.clone() }
    }

    /// The same scope with its own token and time limit.
    #[must_use]
    pub(crate) fn with_time_limit(&self) -> Self {
        Self { cancel: self.cancel.with_time_limit(self.shared_path()), ..self.clone() }
    }

    /// The scope of a path below this one.
    #[must_use]
    pub(crate) fn at(&self, segment: &str) -> Self {
        Self { path: format!("{}/{segment}", self.path).into(), ..self.clone() }
    }

    /// The same scope with internal visibility: its text is only for readers of traces.
    #[must_use]
    pub(crate) fn internal(&self) -> Self {
        Self { visibility: Visibility::Internal, ..self.clone() }
    }

    /// The same scope within the span of a tool call.
    #[must_use]
    pub(crate) fn with_span(self, span: &CallSpan) -> Self {
        let span = (!span.span.is_disabled()).then(|| Arc::new(span.clone())).or(self.span.clone());
        Self { span, ..self }
    }

    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.session.agent
    }

    pub(crate) fn name(&self) -> &AgentName {
        &self.session.agent.name
    }

    /// The name under which the user reads what `agent` says here: its own or, if it is hidden, that of the agent that it stands in
    /// for: the giver of the thread, or the nearest one above that is not hidden.
    pub(crate) fn speaker(&self, agent: &Agent) -> String {
        if !agent.is_hidden() {
            return agent.display_name.clone();
        }
        let giver = self.session.lease.as_ref().map(|lease| lease.session().source_agent_id);
        let mut above = giver.iter().chain(self.session.bounds.agents());
        let shown = above.find_map(|name| self.run.agents.get(name).filter(|agent| !agent.is_hidden()));
        shown.map_or_else(|| agent.display_name.clone(), |shown| shown.display_name.clone())
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn shared_path(&self) -> Arc<str> {
        Arc::clone(&self.path)
    }

    /// An id that is derived from the run and the path, so that it is the same after a crash.
    pub(crate) fn uuid(&self) -> Uuid {
        self.run.run_id.uuid_at(self.path())
    }

    pub(crate) fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Whether an answer given here is addressed to the user.
    pub(crate) fn is_user_facing(&self) -> bool {
        self.visibility == Visibility::User
    }

    /// Records the step at this path.
    pub(crate) fn step(&self) -> StepRecorder<'_> {
        StepRecorder::new(&self.run, &self.session.id, &self.path)
    }

    /// The models of the scope's agent.
    pub(crate) fn models(&self) -> &Arc<ModelRegistry> {
        if self.session.bounds.is_sub_agent() { self.run.models.for_sub_agents() } else { &self.run.models }
    }

    /// See [`Cancellation::or_timeout`].
    pub(crate) fn or_timeout(&self, failure: Failure) -> Failure {
        self.cancel.or_timeout(failure, &self.run.control.cancel)
    }

    /// The event of this path, as it is stored.
    pub(crate) fn event(&self, visibility: Visibility, kind: EventKind) -> NewEvent {
        let agent = self.name().clone();
        NewEvent { at: Timestamp::now(), agent, path: self.shared_path(), visibility, kind }
    }

    /// Publishes an event. An event of a stored kind is stored first.
    pub(crate) async fn emit(&self, visibility: Visibility, kind: EventKind) {
        if kind.is_kept() {
            // A step that finished before a crash has published its events.
            if !self.step().is_finished() {
                let events = vec![self.event(visibility, kind)];
                let record = Record { events, ..Record::default() };
                // Boxed: a record is large, and deltas, which most calls publish, have none.
                Box::pin(self.run.recorder.journal.commit_soon(record)).await;
            }
            return;
        }
        let event = Event {
            seq: 0,
            thread_id: self.run.caller.thread_id,
            run_id: self.run.run_id,
            at: Timestamp::now(),
            agent: self.name().clone(),
            path: self.shared_path(),
            visibility,
            kind,
        };
        self.run.recorder.journal.publish_transient(event).await;
    }

    /// Publishes an event for readers of traces only.
    pub(crate) async fn trace(&self, kind: EventKind) {
        self.emit(Visibility::Internal, kind).await;
    }

    /// The context of a tool call: the trace has the current call as its parent.
    pub(crate) fn call_context(&self) -> Arc<CallContext> {
        let (caller, request) = (&self.run.caller, &self.run.request);
        let workspace = self.run.workspace();
        let sub_agent_folder = self.run.policy.sub_agent_work_dir.as_ref();
        let sub_agent_folder = sub_agent_folder.filter(|_| self.session.bounds.is_sub_agent());
        Arc::new(CallContext {
            tenant: caller.tenant.clone(),
            user: caller.user.clone(),
            rights: request.rights.clone(),
            thread_id: caller.thread_id,
            run_id: self.run.run_id,
            session_id: self.session.id.clone(),
            agent: self.name().clone(),
            has_workspace: workspace.is_some(),
            storage_left: None,
            work_dir: workspace.unwrap_or_else(|| self.run.extensions.work_dir.clone()),
            subfolder: sub_agent_folder.cloned(),
            trace: match &self.span {
                Some(span) => span.trace(request.trace.as_ref()),
                None => request.trace.clone(),
            },
        })
    }
}
