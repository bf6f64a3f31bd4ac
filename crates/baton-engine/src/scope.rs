//! Where in a run something happens, and how it is told to others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::event::{Event, EventKind, Source};
use baton_core::message::{Part, Visibility};
use baton_core::store::{Claim, Claimed, HandoffSession, Step, StepKind, StepState};
use baton_core::tool::Room;
use baton_core::{AgentName, CallContext, HandoffId, Rights, RunId, SessionId, TenantStore, TraceParent};
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::bounds::{self, Bounds, Live};
use crate::children::Clock;
use crate::engine::{Agents, Caller, Engine, Overrides, Request};
use crate::entry::{self, Classification};
use crate::given::Given;
use crate::handoff::lease::Lease;
use crate::journal::{Journal, Record};
use crate::ledger::Ledger;
use crate::policy::fingerprint;
use crate::run::Input;
use crate::spent::SpentBefore;
use crate::telemetry::Spanned;

/// Where it is noted that nobody is asked, because the person may not have it.
pub(crate) const DENIED: &str = "denied";

/// What all of a run shares.
#[derive(Debug)]
pub struct RunState {
    pub engine: Arc<Engine>,
    pub run_id: RunId,
    pub caller: Caller,
    /// The agents as they were when the run was claimed; a reload does not change a run.
    pub agents: Arc<Agents>,
    /// What the person may do that the run is for. Nobody in it may do more.
    pub(crate) rights: Rights,
    pub(crate) trace: Option<TraceParent>,
    pub ledger: Ledger,
    /// Somebody wants an answer from what is there.
    pub(crate) stop: CancellationToken,
    pub cancel: CancellationToken,
    pub room: Option<Box<dyn Room>>,
    pub(crate) store: Arc<dyn TenantStore>,
    pub(crate) claim: Claim,
    /// What was recorded before the process died that worked on the run before.
    pub(crate) steps: HashMap<String, Step>,
    pub(crate) before: SpentBefore,
    pub(crate) journal: Journal,
    /// The thread's handoff that changed last, as it was when the run was claimed.
    pub(crate) handoff: Option<HandoffSession>,
    /// Children at work, each a task of its own.
    pub(crate) tasks: TaskTracker,
    /// Where the message stands in its thread that the run is about.
    pub(crate) message_number: u64,
    /// When it was said.
    pub(crate) said_at: Timestamp,
    /// Transfers that were made.
    pub(crate) transfers: AtomicU32,
    /// Whether it is on record that nobody is asked.
    is_denied: AtomicBool,
    /// Who contributed behind the scenes, in the order in which they ended.
    sources: Mutex<Vec<Source>>,
    /// What the run was asked, and what was thought of it when its agent was chosen.
    asked: OnceLock<(Arc<Vec<Part>>, Option<Classification>)>,
    query_class: OnceLock<String>,
    /// The handoff that it had to do with, if that has ended.
    pub(crate) ended_handoff: OnceLock<HandoffId>,
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
        let Claimed { claim, run, steps, rows, handoff } = claimed;
        let caller = Caller { tenant: store.tenant().clone(), user: run.user_id, thread_id: run.thread_id };
        let overflow = engine.parts.overflow.as_ref();
        let room = overflow.map(|overflow| overflow.open(&caller.tenant, run.run_id));
        let agents = engine.agents();
        Self {
            engine,
            run_id: run.run_id,
            caller,
            agents,
            rights: Request::rights_of(&run.request),
            trace: Request::trace_of(&run.request),
            stop,
            cancel,
            room,
            store,
            claim,
            message_number: run.message_number,
            said_at: run.created_at,
            before: SpentBefore::of(&steps, &rows),
            ledger: Ledger::with_saved(rows),
            transfers: AtomicU32::new(bounds::transfers_behind(&steps)),
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

    /// Returns when no child is at work any more, also none that was only told to end: then all they spent is in the ledger.
    pub(crate) async fn at_rest(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(crate) fn asked(&self, input: &Input, entry: Option<Classification>) {
        let _ = self.asked.set((Arc::clone(&input.parts), entry));
    }

    /// What kind of request the run is about, for comparing ways that batons take. Looked at once, however often it is passed.
    pub(crate) fn query_class(&self) -> &str {
        self.query_class.get_or_init(|| {
            let classified = self.asked.get().and_then(|(parts, entry)| {
                entry.clone().or_else(|| entry::classify(&self.agents, &crate::run::words(parts)))
            });
            classified.map_or_else(|| entry::GENERAL.to_owned(), |class| class.domain)
        })
    }

    /// What the run was asked, in words. Empty where nobody said anything.
    pub(crate) fn words(&self) -> String {
        self.asked.get().map(|(parts, _)| crate::run::words(parts)).unwrap_or_default()
    }

    /// Nobody is asked in this run. False if that was known.
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

    /// Who had the thread by a handoff when the run was claimed.
    pub(crate) fn holder(&self) -> Option<&Arc<Agent>> {
        let handoff = self.handoff.as_ref().filter(|handoff| handoff.state.is_open())?;
        self.agents.get(&handoff.target_agent_id)
    }

    /// How long a place had been at work before its process died.
    pub(crate) fn spent_before(&self, path: &str) -> Duration {
        self.before.at(path)
    }
}

/// What [`DENIED`] left before a crash.
fn is_denial(step: &Step) -> bool {
    step.kind == StepKind::Note && step.path.rsplit('/').next() == Some(DENIED)
}

/// A contribution that was recorded before a crash.
fn source(step: &Step) -> Option<Source> {
    let is_finished = step.kind == StepKind::Session && step.state == StepState::Finished;
    let agent = if is_finished { step.data.get("source")?.as_str()? } else { return None };
    Some(Source { agent: AgentName::parse(agent).ok()?, session_id: step.session_id.clone() })
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
    /// When its agent's part began, perhaps before a crash,
    began: Timestamp,
    /// and when it was entered by this process.
    entered: Instant,
    /// Ends everything at this place and below it.
    pub(crate) cancel: CancellationToken,
    /// Why it was ended, if its time was over.
    pub(crate) clock: Arc<Clock>,
    pub(crate) bounds: Arc<Bounds>,
    /// Counts as a child at work while anything of it is left.
    pub(crate) live: Option<Arc<Live>>,
    /// The lease by which its agent has the thread. Nobody whom it involves has it.
    pub(crate) lease: Option<Arc<Lease>>,
    /// Tools for this place only, from whoever involved the agent.
    pub(crate) given: Arc<Vec<Arc<dyn Given>>>,
    /// The tool call that it happens in, as traces have it. Nothing while nobody wants spans.
    pub(crate) span: Option<Arc<Spanned>>,
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
            began: Timestamp::now(),
            entered: Instant::now(),
            cancel,
            clock: Arc::default(),
            bounds,
            live: None,
            lease: None,
            given: Arc::default(),
            span: None,
        }
    }

    /// Whether it is the run's own session, which begins and ends with the run.
    pub(crate) fn is_root(&self) -> bool {
        self.live.is_none()
    }

    /// The same place with another agent and a session of its own, which begins now or began before a crash.
    #[must_use]
    pub(crate) fn taken_by(
        self,
        agent: &Arc<Agent>,
        session_id: SessionId,
        bounds: Arc<Bounds>,
        live: Live,
    ) -> Self {
        Self {
            agent: Arc::clone(agent),
            session_id,
            bounds,
            live: Some(Arc::new(live)),
            began: self.run.steps.get(self.path()).map_or_else(Timestamp::now, |step| step.at),
            entered: Instant::now(),
            cancel: self.cancel.child_token(),
            lease: None,
            given: Arc::default(),
            ..self
        }
    }

    /// The same place, whose agent has the thread.
    #[must_use]
    pub(crate) fn holding(self, lease: &Arc<Lease>) -> Self {
        Self { lease: Some(Arc::clone(lease)), ..self }
    }

    /// The same place with a token of its own, so that it can be cancelled alone.
    #[must_use]
    pub(crate) fn cancellable(&self) -> Self {
        Self { cancel: self.cancel.child_token(), ..self.clone() }
    }

    /// Who hears that a session began or ended. Whoever speaks to the person is not a sub-agent to them.
    pub(crate) fn session_visibility(&self) -> Visibility {
        let shows_sub_agents = self.run.engine.parts.policy.stream_sub_agent_events;
        if shows_sub_agents && !self.is_for_the_person() { Visibility::User } else { Visibility::Internal }
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

    /// The same place within the span of a tool call.
    #[must_use]
    pub(crate) fn within(self, span: &Spanned) -> Self {
        let span = (!span.span.is_disabled()).then(|| Arc::new(span.clone())).or(self.span.clone());
        Self { span, ..self }
    }

    /// The run's trace, seen from the tool call that this is part of.
    fn trace_here(&self) -> Option<TraceParent> {
        let Some(span) = &self.span else { return self.run.trace.clone() };
        span.trace(&self.run)
    }

    /// When its agent's part began, perhaps before a crash.
    pub(crate) fn began(&self) -> Timestamp {
        self.began
    }

    /// How long its agent's part has been at work, by whatever process.
    pub(crate) fn worked(&self) -> Duration {
        self.run.spent_before(&self.bounds.path) + self.entered.elapsed()
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

    /// An id that is the same for the same place of the same run, also after a crash.
    pub(crate) fn uuid(&self) -> Uuid {
        let path = self.path();
        let backwards: String = path.chars().rev().collect();
        let place = u128::from(fingerprint(path)) << 32 | u128::from(fingerprint(&backwards));
        // What says which kind of id it is stays as it is.
        Uuid::from_u128(self.run.run_id.as_uuid().as_u128() ^ (place & (u128::MAX >> 68)))
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
            trace: self.trace_here(),
        })
    }
}
