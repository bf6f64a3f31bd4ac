//! The engine: its dependencies ([`EngineParts`]), requests for runs ([`RunRequest`]) and handles to them ([`RunHandle`]).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{Agent, AgentLimits};
use baton_core::event::Event;
use baton_core::message::Part;
use baton_core::store::run::Idempotency;
use baton_core::store::{OnBusy, Owner, Retention, RunStatus};
use baton_core::tool::{Risk, Tool, ToolSource};
use baton_core::{
    AgentName, HumanDuration, LedgerRow, Rights, RunId, SkillSource, Store, TenantId, ThreadId, TraceParent,
    Usage, Usd, UserId, choices,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::classifier::Classification;
use crate::failure::Failure;
use crate::heartbeat::{HeartbeatConfig, ProcessHeartbeat};
use crate::live::ThreadChannels;
use crate::models::ModelRegistry;
use crate::observer::Observer;
use crate::patterns::team::hooks::TeamHooks;
use crate::policy::Policy;
use crate::session::Answer;
use crate::task::RunTask;
use crate::workers::{WorkerLifetime, Workers};

/// A roster: agents by name.
pub type Agents = BTreeMap<AgentName, Arc<Agent>>;

/// The dependencies and settings of an engine.
#[derive(Debug)]
pub struct EngineParts {
    pub models: ModelRegistry,
    pub tools: Vec<Arc<dyn Tool>>,
    pub servers: Option<Arc<dyn ToolSource>>,
    /// Source of Agent Skills, for agents whose files list some.
    pub skills: Option<Arc<dyn SkillSource>>,
    /// Bytes of one tool output that a model is shown. Longer output is spooled.
    pub shown_output_bytes: usize,
    /// Tools of this risk or higher need the user's approval. `None` disables the check.
    pub ask_at: Option<Risk>,
    /// The directory that file tools are confined to.
    pub work_dir: PathBuf,
    pub model_timeouts: ModelTimeouts,
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
    pub retention: Retention,
    /// How agents may invoke each other.
    pub policy: Policy,
    /// Callbacks for team discussions.
    pub team_hooks: Option<Arc<dyn TeamHooks>>,
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
}

impl Engine {
    pub fn new(parts: EngineParts) -> Arc<Self> {
        Arc::new(Self { parts, workers: Workers::default(), lease: ProcessHeartbeat::default() })
    }

    pub(crate) fn agents(&self) -> Arc<Agents> {
        Arc::clone(&self.parts.agents.borrow())
    }
}

/// Timeouts and retries of model calls.
#[derive(Debug, Clone, Copy)]
pub struct ModelTimeouts {
    pub first_chunk: Duration,
    pub between_chunks: Duration,
    /// Attempts per model of the fallback list.
    pub attempts: u32,
    /// Delay before the first retry. It doubles with each attempt, up to 32-fold, and is randomized between half and all of it.
    pub back_off: Duration,
    /// If a provider asks for a longer wait, the next model is tried instead.
    pub longest_wait: Duration,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            first_chunk: Duration::from_mins(2),
            between_chunks: Duration::from_mins(1),
            attempts: 3,
            back_off: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
        }
    }
}

/// The tenant, user and thread of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunCaller {
    pub tenant: TenantId,
    pub user: UserId,
    pub thread_id: ThreadId,
}

choices! {
    /// Which tool calls are approved in advance.
    pub enum PreApproval {
        None = "none",
        /// Calls of read-only tools.
        Read = "read",
        All = "all",
    }
}

/// A message and how to run an agent on it.
#[derive(Debug, Clone)]
pub struct RunRequest {
    pub caller: RunCaller,
    /// The agent to answer.
    pub agent: AgentName,
    pub input: Vec<Part>,
    pub overrides: Overrides,
    pub on_busy: OnBusy,
    /// How the agent was chosen, if the caller named none.
    pub entry: Option<Classification>,
    pub task: RunTask,
    /// The caller's permissions. No agent of the run exceeds them.
    pub rights: Rights,
    /// The trace context of the request that carried the message.
    pub trace: Option<TraceParent>,
    /// JSON of the caller's own, stored with the run.
    pub metadata: Option<Value>,
}

/// Conditions for accepting a message.
#[derive(Debug, Clone, Default)]
pub struct SubmitOptions {
    pub idempotency: Option<Idempotency>,
    /// Refuses the message if the tenant has this many runs queued or active.
    pub max_active: Option<u32>,
}

/// The part of a request that is stored beside its message: enough to restart the run after a crash.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredRequest {
    #[serde(flatten)]
    pub(crate) overrides: Overrides,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<Classification>,
    #[serde(default, skip_serializing_if = "RunTask::is_answer")]
    pub(crate) task: RunTask,
    /// A stored run without rights predates them or comes from an unauthenticated caller. It has all rights.
    #[serde(default = "Rights::all")]
    pub(crate) rights: Rights,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<TraceParent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Value>,
}

/// The caller's metadata in a stored request.
pub fn metadata(request: &Value) -> Option<&Value> {
    request.get("metadata")
}

impl StoredRequest {
    /// The rights in a stored request. Missing rights are all rights; unreadable rights are none.
    pub(crate) fn rights_of(kept: &Value) -> Rights {
        kept.get("rights").map_or_else(Rights::all, |rights| Rights::deserialize(rights).unwrap_or_default())
    }

    /// Whether the task of a stored request is [`RunTask::Answer`].
    pub(crate) fn is_answered(kept: &Value) -> bool {
        kept.get("task").is_none()
    }

    /// Whether the message of a stored request names its agent.
    pub(crate) fn names_agent(kept: &Value) -> bool {
        kept["is_named"].as_bool().unwrap_or_default()
    }

    pub(crate) fn trace_of(kept: &Value) -> Option<TraceParent> {
        kept.get("trace").and_then(|trace| TraceParent::deserialize(trace).ok())
    }
}

/// What the caller overrides of the agent's file. Limits can only be lowered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    pub max_turns: Option<u32>,
    pub max_cost_usd: Option<Usd>,
    pub timeout: Option<HumanDuration>,
    pub output_schema: Option<Value>,
    pub approve: PreApproval,
    /// Whether the caller named the agent and wants no other one to answer, even if another agent holds the thread.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_named: bool,
}

impl Default for Overrides {
    fn default() -> Self {
        Self {
            max_turns: None,
            max_cost_usd: None,
            timeout: None,
            output_schema: None,
            approve: PreApproval::None,
            is_named: false,
        }
    }
}

impl Overrides {
    pub(crate) fn limits(&self, limits: &AgentLimits) -> AgentLimits {
        let lower_cost = match (limits.max_cost_usd, self.max_cost_usd) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        AgentLimits {
            max_turns: limits.max_turns.min(self.max_turns.unwrap_or(u32::MAX)),
            timeout: self.timeout.map_or(limits.timeout, |timeout| timeout.min(limits.timeout)),
            max_cost_usd: lower_cost,
            ..limits.clone()
        }
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

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunResult {
    pub status: RunStatus,
    pub answer: Option<Answer>,
    /// The agent that answered, which may differ from the requested one.
    pub answered_by: Option<AgentName>,
    pub failure: Option<Failure>,
    pub usage: Usage,
    pub rows: Vec<LedgerRow>,
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

impl RunResult {
    /// The result of a run whose outcome this process does not know.
    pub(crate) fn without_end(failure: Failure) -> Self {
        Self {
            status: RunStatus::Failed,
            answer: None,
            answered_by: None,
            failure: Some(failure),
            usage: Usage::default(),
            rows: Vec::new(),
        }
    }
}
