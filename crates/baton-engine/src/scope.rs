//! [`RunState`] is what all parts of a run share. [`Scope`] is one agent at one path of the run, and publishes its events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind, Source};
use baton_core::ledger::LedgerRow;
use baton_core::message::{Part, Visibility};
use baton_core::store::{Claim, HandoffSession, RunRecord, Step, StepKind, StepState};
use baton_core::{AgentName, CallContext, HandoffId, Rights, RunId, SessionId, TenantStore, TraceParent};
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::bounds::{self, Bounds, ChildPermit};
use crate::child_timeout::TimeoutFlag;
use crate::classifier::{self, Classification};
use crate::engine::{Agents, Engine, Overrides, RunCaller, StoredRequest};
use crate::engine_tool::EngineTool;
use crate::handoff::lease::HandoffLease;
use crate::journal::{Journal, Record};
use crate::ledger::Ledger;
use crate::output_spool::OutputSpool;
use crate::policy::fingerprint;
use crate::prior_durations::PriorDurations;
use crate::run::Input;
use crate::telemetry::CallSpan;
use crate::workers::CancelTokens;

/// Path segment of the note that delegation was denied, because the user lacks the permission.
pub(crate) const DENIED: &str = "denied";

/// The state that all scopes of a run share.
#[derive(Debug)]
pub struct RunState {
    pub engine: Arc<Engine>,
    pub run_id: RunId,
    pub caller: RunCaller,
    /// The roster when the run was claimed. A reload does not change a run.
    pub agents: Arc<Agents>,
    /// The user's permissions. No agent of the run exceeds them.
    pub(crate) rights: Rights,
    pub(crate) trace: Option<TraceParent>,
    pub ledger: Ledger,
    /// Requests a closing turn: an answer from what is there.
    pub(crate) stop: CancellationToken,
    pub cancel: CancellationToken,
    pub(crate) spool: OutputSpool,
    pub(crate) store: Arc<dyn TenantStore>,
    pub(crate) claim: Claim,
    /// The steps that earlier attempts recorded, by path.
    pub(crate) steps: HashMap<String, Step>,
    pub(crate) prior_durations: PriorDurations,
    pub(crate) journal: Journal,
    /// The thread's handoff that changed last, as of the claim.
    pub(crate) handoff: Option<HandoffSession>,
    /// The tasks of live children.
    pub(crate) tasks: TaskTracker,
    /// The number of the run's message in its thread.
    pub(crate) message_number: u64,
    /// When the message was sent.
    pub(crate) said_at: Timestamp,
    /// Transfers made so far.
    pub(crate) transfers: AtomicU32,
    /// Whether the denial of delegation is recorded.
    is_denied: AtomicBool,
    /// Agents that contributed without speaking to the user, in the order in which they ended.
    sources: Mutex<Vec<Source>>,
    /// The request, and the classification by which its agent was chosen.
    asked: OnceLock<(Arc<Vec<Part>>, Option<Classification>)>,
    query_class: OnceLock<String>,
    /// The handoff that the run is about, if it has ended.
    pub(crate) ended_handoff: OnceLock<HandoffId>,
}

/// What earlier attempts of a run left in the store.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) steps: Vec<Step>,
    pub(crate) rows: Vec<LedgerRow>,
    pub(crate) handoff: Option<HandoffSession>,
}

impl RunState {
    pub(crate) fn new(
        engine: Arc<Engine>,
        store: Arc<dyn TenantStore>,
        (claim, run): (Claim, &RunRecord),
        before: Before,
        journal: Journal,
        ends: CancelTokens,
    ) -> Self {
        let (Before { steps, rows, handoff }, CancelTokens { stop, cancel }) = (before, ends);
        let user = run.user_id.clone();
        let caller = RunCaller { tenant: store.tenant().clone(), user, thread_id: run.thread_id };
        let spool = OutputSpool::new(engine.parts.shown_output_bytes, &steps);
        let agents = engine.agents();
        Self {
            engine,
            run_id: run.run_id,
            caller,
            agents,
            rights: StoredRequest::rights_of(&run.request),
            trace: StoredRequest::trace_of(&run.request),
            stop,
            cancel,
            spool,
            store,
            claim,
            message_number: run.message_number,
            said_at: run.created_at,
            prior_durations: PriorDurations::of(&steps, &rows),
            ledger: Ledger::with_saved(rows),
            transfers: AtomicU32::new(bounds::completed_transfers(&steps)),
            is_denied: AtomicBool::new(steps.iter().any(is_denial)),
            sources: Mutex::new(steps.iter().filter_map(source).collect()),
            steps: steps.into_iter().map(|step| (step.path.clone(), step)).collect(),
            journal,
            handoff,
            tasks: TaskTracker::new(),
            asked: OnceLock::new(),
            query_class: OnceLock::new(),
            ended_handoff: OnceLock::new(),
        }
    }

    /// Returns when the task of every child has ended, cancelled ones included. All they spent is then in the ledger.
    pub(crate) async fn children_finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(crate) fn asked(&self, input: &Input, entry: Option<Classification>) {
        let _ = self.asked.set((Arc::clone(&input.parts), entry));
    }

    /// The domain of the request, by which hops are compared. It is computed once.
    pub(crate) fn query_class(&self) -> &str {
        self.query_class.get_or_init(|| {
            let classified = self.asked.get().and_then(|(parts, entry)| {
                entry.clone().or_else(|| classifier::classify(&self.agents, &crate::run::text_of(parts)))
            });
            classified.map_or_else(|| classifier::GENERAL.to_owned(), |class| class.domain)
        })
    }

    /// The text of the request. Empty if the run has no message.
    pub(crate) fn words(&self) -> String {
        self.asked.get().map(|(parts, _)| crate::run::text_of(parts)).unwrap_or_default()
    }

    /// Marks delegation as denied in this run. Returns `false` if it was marked before.
    pub(crate) fn deny(&self) -> bool {
        !self.is_denied.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn add_source(&self, source: Source) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if !sources.contains(&source) {
            sources.push(source);
        }
    }

    pub(crate) fn sources(&self) -> Vec<Source> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agent that held the thread by a handoff when the run was claimed.
    pub(crate) fn holder(&self) -> Option<&Arc<Agent>> {
        let handoff = self.handoff.as_ref().filter(|handoff| handoff.state.is_open())?;
        self.agents.get(&handoff.target_agent_id)
    }

    /// How long a path had been worked on before the process died.
    pub(crate) fn prior_duration(&self, path: &str) -> Duration {
        self.prior_durations.at(path)
    }
}

/// Whether a step is the [`DENIED`] note.
fn is_denial(step: &Step) -> bool {
    step.kind == StepKind::Note && step.path.rsplit('/').next() == Some(DENIED)
}

/// The contribution that a finished session recorded.
fn source(step: &Step) -> Option<Source> {
    let is_finished = step.kind == StepKind::Session && step.state == StepState::Finished;
    let agent = if is_finished { step.data.get("source")?.as_str()? } else { return None };
    Some(Source { agent: AgentName::parse(agent).ok()?, session_id: step.session_id.clone() })
}

/// One agent at one path of the run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scope {
    pub run: Arc<RunState>,
    pub agent: Arc<Agent>,
    pub session_id: SessionId,
    /// `assistant`, `assistant/turn:2`, `assistant/turn:2/tool:1`.
    path: Arc<str>,
    visibility: Visibility,
    /// When the agent's session started, perhaps before a crash.
    started_at: Timestamp,
    /// When this process entered the session.
    entered: Instant,
    /// Cancels everything at and below this path.
    pub(crate) cancel: CancellationToken,
    /// Set if the scope was cancelled because its time limit expired.
    pub(crate) timeout_flag: Arc<TimeoutFlag>,
    pub(crate) bounds: Arc<Bounds>,
    /// The permit of a live child, held until the last clone of the scope is dropped. `None` for the root session.
    pub(crate) live: Option<Arc<ChildPermit>>,
    /// The lease by which the agent holds the thread. The agents it invokes do not have it.
    pub(crate) lease: Option<Arc<HandoffLease>>,
    /// Additional tools for this scope, from the invoking agent.
    pub(crate) engine_tools: Arc<Vec<Arc<dyn EngineTool>>>,
    /// The span of the tool call that the scope is in. `None` if spans are disabled.
    pub(crate) span: Option<Arc<CallSpan>>,
}

impl Scope {
    pub fn root(run: Arc<RunState>, agent: Arc<Agent>, overrides: &Overrides) -> Self {
        let session_id = SessionId::root(run.run_id);
        let path = agent.name.as_str().into();
        let bounds = Arc::new(Bounds::root(&run, &agent, overrides));
        let cancel = run.cancel.clone();
        Self {
            run,
            agent,
            session_id,
            path,
            visibility: Visibility::User,
            started_at: Timestamp::now(),
            entered: Instant::now(),
            cancel,
            timeout_flag: Arc::default(),
            bounds,
            live: None,
            lease: None,
            engine_tools: Arc::default(),
            span: None,
        }
    }

    /// Whether this is the root session, which starts and ends with the run.
    pub(crate) fn is_root(&self) -> bool {
        self.live.is_none()
    }

    /// The same path with another agent and its own session, which starts now or started before a crash.
    #[must_use]
    pub(crate) fn for_agent(
        self,
        agent: &Arc<Agent>,
        session_id: SessionId,
        bounds: Arc<Bounds>,
        live: ChildPermit,
    ) -> Self {
        Self {
            agent: Arc::clone(agent),
            session_id,
            bounds,
            live: Some(Arc::new(live)),
            started_at: self.run.steps.get(self.path()).map_or_else(Timestamp::now, |step| step.at),
            entered: Instant::now(),
            cancel: self.cancel.child_token(),
            lease: None,
            engine_tools: Arc::default(),
            ..self
        }
    }

    /// The same scope, whose agent holds the thread.
    #[must_use]
    pub(crate) fn with_lease(self, lease: &Arc<HandoffLease>) -> Self {
        Self { lease: Some(Arc::clone(lease)), ..self }
    }

    /// The same scope with its own token, so that it can be cancelled alone.
    #[must_use]
    pub(crate) fn cancellable(&self) -> Self {
        Self { cancel: self.cancel.child_token(), ..self.clone() }
    }

    /// The visibility of the session's start and end. An agent that speaks to the user is not shown as a sub-agent.
    pub(crate) fn session_visibility(&self) -> Visibility {
        let shows_sub_agents = self.run.engine.parts.policy.stream_sub_agent_events;
        if shows_sub_agents && !self.is_user_facing() { Visibility::User } else { Visibility::Internal }
    }

    /// The scope of a path below this one.
    #[must_use]
    pub fn at(&self, segment: &str) -> Self {
        Self { path: format!("{}/{segment}", self.path).into(), ..self.clone() }
    }

    /// The same scope with internal visibility: its text is only for readers of traces.
    #[must_use]
    pub fn internal(&self) -> Self {
        Self { visibility: Visibility::Internal, ..self.clone() }
    }

    /// The same scope within the span of a tool call.
    #[must_use]
    pub(crate) fn with_span(self, span: &CallSpan) -> Self {
        let span = (!span.span.is_disabled()).then(|| Arc::new(span.clone())).or(self.span.clone());
        Self { span, ..self }
    }

    /// The run's trace context, with the current tool call as its parent.
    fn trace_here(&self) -> Option<TraceParent> {
        let Some(span) = &self.span else { return self.run.trace.clone() };
        span.trace(&self.run)
    }

    /// When the agent's session started, perhaps before a crash.
    pub(crate) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// How long the agent's session has lasted, including the time before a crash.
    pub(crate) fn elapsed(&self) -> Duration {
        self.run.prior_duration(&self.bounds.path) + self.entered.elapsed()
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

    /// An id that is derived from the run and the path, so that it is the same after a crash.
    pub(crate) fn uuid(&self) -> Uuid {
        let path = self.path();
        let backwards: String = path.chars().rev().collect();
        let place = u128::from(fingerprint(path)) << 32 | u128::from(fingerprint(&backwards));
        // Only the low 60 bits change. The version and the variant stay.
        Uuid::from_u128(self.run.run_id.as_uuid().as_u128() ^ (place & (u128::MAX >> 68)))
    }

    pub(crate) fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Publishes an event. An event of a stored kind is stored first.
    pub async fn emit(&self, kind: EventKind) {
        self.emit_as(self.visibility, kind).await;
    }

    /// Publishes an event for readers of traces only.
    pub async fn trace(&self, kind: EventKind) {
        self.emit_as(Visibility::Internal, kind).await;
    }

    async fn emit_as(&self, visibility: Visibility, kind: EventKind) {
        if kind.is_kept() {
            // A step that finished before a crash has published its events.
            if !self.is_finished() {
                let events = vec![self.event_as(visibility, kind)];
                self.run.journal.commit_soon(Record { events, ..Record::default() }).await;
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
        self.run.journal.publish_transient(event).await;
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
            trace: self.trace_here(),
        })
    }
}
