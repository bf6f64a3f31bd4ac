//! [`RunState`] is what all parts of a run share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use baton_core::agent::Agent;
use baton_core::event::Source;
use baton_core::ledger::LedgerRow;
use baton_core::message::{IncludedParts, Part, parts_to_text};
use baton_core::store::{HandoffSession, RunRecord, Step, StepKind, StepState};
use baton_core::workflow::WorkflowProgress;
use baton_core::{HandoffId, Rights, RunId, TenantStore, TraceParent};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::Agents;
use crate::approvals::waits::RunWaits;
use crate::bounds;
use crate::cancellation::CancelTokens;
use crate::classifier::{self, Classification};
use crate::extensions::Extensions;
use crate::hops::OpenHops;
use crate::journal::Journal;
use crate::learning::ExperienceCache;
use crate::lease::HandoffLease;
use crate::ledger::Ledger;
use crate::models::ModelRegistry;
use crate::output_spool::OutputSpool;
use crate::patterns::calling::resume::SessionLocks;
use crate::policy::Policy;
use crate::prior_durations::PriorDurations;
use crate::recounted_accounts::RecountedAccounts;
use crate::remote::exchange::OpenExchange;
use crate::request::{RunCaller, StoredRequest};
use crate::run_files::RunFiles;
use crate::storage::Storage;

/// Path segment of the note that delegation was denied, because the user lacks the permission.
pub(crate) const DENIED: &str = "denied";

/// The state that all scopes of a run share.
#[derive(Debug)]
pub struct RunState {
    pub run_id: RunId,
    pub caller: RunCaller,
    pub(crate) request: RequestContext,
    /// The roster when the run was claimed. A reload does not change a run.
    pub agents: Arc<Agents>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) models: Arc<ModelRegistry>,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) recounted: Arc<RecountedAccounts>,
    pub(crate) experience: Arc<ExperienceCache>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) store: Arc<dyn TenantStore>,
    pub(crate) recorder: Recorder,
    pub(crate) control: RunControl,
    pub(crate) progress: RunProgress,
    pub(crate) waits: RunWaits,
    pub(crate) sub_sessions: SessionLocks,
    /// The thread's handoff that changed last, as of the claim.
    pub(crate) handoff: Option<HandoffSession>,
}

/// A message, and the classification by which its agent was chosen.
type AskedMessage = (Arc<Vec<Part>>, Option<Classification>);

/// The request of a run: what was asked, when, and with which permissions.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// The user's permissions. No agent of the run exceeds them.
    pub(crate) rights: Rights,
    pub(crate) trace: Option<TraceParent>,
    /// The number of the run's message in its thread.
    pub(crate) message_number: u64,
    /// When the message was sent.
    pub(crate) said_at: Timestamp,
    asked: Mutex<Option<AskedMessage>>,
    query_class: OnceLock<String>,
    fingerprint: OnceLock<u64>,
}

/// Where a run records what it does, and what earlier attempts of it recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) journal: Journal,
    pub(crate) ledger: Ledger,
    /// The steps that earlier attempts recorded, by path.
    pub(crate) steps: HashMap<String, Step>,
    /// How long earlier attempts worked on each path.
    pub(crate) prior_durations: PriorDurations,
    pub(crate) spool: OutputSpool,
    /// Files that tools and models have produced.
    pub(crate) files: RunFiles,
}

/// Ends a run and the tasks of its children.
#[derive(Debug)]
pub(crate) struct RunControl {
    /// Requests a closing turn: an answer from what is there.
    pub(crate) stop: CancellationToken,
    pub(crate) cancel: CancellationToken,
    /// The tasks of live children.
    pub(crate) tasks: TaskTracker,
}

/// What the agents of a run have done so far, counted for the whole run.
#[derive(Debug)]
pub(crate) struct RunProgress {
    /// Transfers made so far.
    pub(crate) transfers: AtomicU32,
    /// Whether the denial of delegation is recorded.
    is_denied: AtomicBool,
    pub(crate) open_hops: OpenHops,
    /// Agents that contributed without speaking to the user, in the order in which they ended.
    sources: Mutex<Vec<Source>>,
    /// The handoff that the run is about, if it has ended.
    pub(crate) ended_handoff: OnceLock<HandoffId>,
    /// The lease of the agent that got the thread last.
    lease: Mutex<Option<Arc<HandoffLease>>>,
    /// The progress of a workflow that was announced last.
    announced_progress: Mutex<Option<WorkflowProgress>>,
    /// Replies of remote agents that have accepted a thread and whose sessions have not begun, by the path of the turn.
    exchanges: Mutex<HashMap<String, OpenExchange>>,
}

/// What earlier attempts of a run left in the store.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) steps: Vec<Step>,
    pub(crate) rows: Vec<LedgerRow>,
    pub(crate) handoff: Option<HandoffSession>,
}

/// What the runs of an engine share.
#[derive(Debug)]
pub(crate) struct RunResources {
    pub(crate) agents: Arc<Agents>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) models: Arc<ModelRegistry>,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) recounted: Arc<RecountedAccounts>,
    pub(crate) experience: Arc<ExperienceCache>,
    pub(crate) storage: Arc<Storage>,
}

impl RunState {
    /// The workspace of the thread, if threads have one.
    pub(crate) fn workspace(&self) -> Option<PathBuf> {
        let workspaces = self.extensions.workspaces.as_ref()?;
        Some(workspaces.path(&self.caller.tenant, self.caller.thread_id))
    }

    pub(crate) fn new(
        resources: RunResources,
        store: Arc<dyn TenantStore>,
        run: &RunRecord,
        before: Before,
        journal: Journal,
        tokens: CancelTokens,
    ) -> Self {
        let Before { steps, rows, handoff } = before;
        let RunResources { agents, policy, models, extensions, recounted, experience, storage } = resources;
        let user = run.user_id.clone();
        let (progress, waits) = (RunProgress::after(run, &steps), RunWaits::after(&steps));
        let recorder = Recorder::new(journal, steps, rows, extensions.shown_output_bytes);
        Self {
            run_id: run.run_id,
            caller: RunCaller { tenant: store.tenant().clone(), user, thread_id: run.thread_id },
            request: RequestContext::of(run),
            agents,
            policy,
            models,
            extensions,
            recounted,
            experience,
            storage,
            store,
            recorder,
            control: RunControl { stop: tokens.stop, cancel: tokens.cancel, tasks: TaskTracker::new() },
            progress,
            waits,
            sub_sessions: SessionLocks::default(),
            handoff,
        }
    }

    /// The domain of the request, by which hops are compared. It is computed once.
    pub(crate) fn query_class(&self) -> &str {
        self.request.query_class(&self.agents)
    }

    /// The fingerprint of the request, by which repeated ones are found. It is computed once.
    pub(crate) fn request_fingerprint(&self) -> u64 {
        *self.request.fingerprint.get_or_init(|| classifier::fingerprint(&self.request.words()))
    }

    /// The agent that held the thread by a handoff when the run was claimed.
    pub(crate) fn holder(&self) -> Option<&Arc<Agent>> {
        let handoff = self.handoff.as_ref().filter(|handoff| handoff.state.is_open())?;
        self.agents.get(&handoff.target_agent_id)
    }
}

impl RequestContext {
    fn of(run: &RunRecord) -> Self {
        Self {
            rights: StoredRequest::rights_of(&run.request),
            trace: StoredRequest::trace_of(&run.request),
            message_number: run.message_number,
            said_at: run.created_at,
            asked: Mutex::default(),
            query_class: OnceLock::new(),
            fingerprint: OnceLock::new(),
        }
    }

    pub(crate) fn asked(&self, parts: &Arc<Vec<Part>>, entry: Option<Classification>) {
        *self.message() = Some((Arc::clone(parts), entry));
    }

    /// Makes an earlier message the request of this run, because the run's own message says to carry that one out.
    pub(crate) fn replace_message(&self, parts: &Arc<Vec<Part>>) {
        self.asked(parts, None);
    }

    fn message(&self) -> MutexGuard<'_, Option<AskedMessage>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn query_class(&self, agents: &Agents) -> &str {
        self.query_class.get_or_init(|| {
            let classified = self.message().clone().and_then(|(parts, entry)| {
                entry
                    .clone()
                    .or_else(|| classifier::classify(agents, &parts_to_text(&parts, IncludedParts::Text)))
            });
            classified.map_or_else(|| classifier::GENERAL.to_owned(), |class| class.domain)
        })
    }

    /// The text of the request. Empty if the run has no message.
    pub(crate) fn words(&self) -> String {
        let parts = self.message().as_ref().map(|(parts, _)| Arc::clone(parts));
        parts.map(|parts| parts_to_text(&parts, IncludedParts::Text)).unwrap_or_default()
    }
}

impl Recorder {
    fn new(journal: Journal, steps: Vec<Step>, rows: Vec<LedgerRow>, shown_output_bytes: usize) -> Self {
        Self {
            journal,
            spool: OutputSpool::new(shown_output_bytes, &steps),
            files: RunFiles::after(&steps),
            prior_durations: PriorDurations::of(&steps, &rows),
            ledger: Ledger::with_saved(rows),
            steps: steps.into_iter().map(|step| (step.path.clone(), step)).collect(),
        }
    }
}

impl RunControl {
    /// Returns when the task of every child has ended, cancelled ones included. All they spent is then in the ledger.
    pub(crate) async fn children_finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl RunProgress {
    /// The progress that `steps` of earlier attempts recorded.
    fn after(run: &RunRecord, steps: &[Step]) -> Self {
        Self {
            open_hops: OpenHops::after(run.thread_id, run.run_id, steps),
            transfers: AtomicU32::new(bounds::completed_transfers(steps)),
            is_denied: AtomicBool::new(steps.iter().any(is_denial)),
            sources: Mutex::new(steps.iter().filter_map(source).collect()),
            ended_handoff: OnceLock::new(),
            lease: Mutex::default(),
            announced_progress: Mutex::default(),
            exchanges: Mutex::default(),
        }
    }

    pub(crate) fn hold(&self, lease: &Arc<HandoffLease>) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(lease));
    }

    /// The lease by which an agent of this run has, or had, the thread.
    pub(crate) fn lease(&self) -> Option<Arc<HandoffLease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the progress of a workflow that was announced to the user.
    pub(crate) fn announce(&self, progress: Option<&WorkflowProgress>) {
        *self.announced_progress.lock().unwrap_or_else(PoisonError::into_inner) = progress.cloned();
    }

    /// Whether this is the progress that was announced to the user last.
    pub(crate) fn has_announced(&self, progress: &WorkflowProgress) -> bool {
        let announced = self.announced_progress.lock().unwrap_or_else(PoisonError::into_inner);
        announced.as_ref() == Some(progress)
    }

    /// Keeps a reply that is being read, for the session that goes on with it.
    pub(crate) fn keep_exchange(&self, path: &str, open: OpenExchange) {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), open);
    }

    pub(crate) fn take_exchange(&self, path: &str) -> Option<OpenExchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).remove(path)
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
}

/// Whether a step is the [`DENIED`] note.
fn is_denial(step: &Step) -> bool {
    step.kind == StepKind::Note && step.path.rsplit('/').next() == Some(DENIED)
}

/// The contribution that a finished session recorded.
fn source(step: &Step) -> Option<Source> {
    let is_finished = step.kind == StepKind::Session && step.state == StepState::Finished;
    let agent = if is_finished { step.data.field("source")? } else { return None };
    Some(Source { agent, session_id: step.session_id.clone() })
}
