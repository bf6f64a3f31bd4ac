//! What is set up once, and how a run is started and listened to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{Agent, Limits};
use baton_core::event::Event;
use baton_core::message::Part;
use baton_core::store::run::Idempotency;
use baton_core::store::{OnBusy, Owner, Retention, RunStatus};
use baton_core::tool::{Overflow, Risk, Tool, ToolSource};
use baton_core::{
    AgentName, HumanDuration, LedgerRow, Rights, RunId, SkillSource, Store, TenantId, ThreadId, TraceParent,
    Usage, Usd, UserId, choices,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::entry::Classification;
use crate::failure::Failure;
use crate::lease::{LeaseTimes, ProcessLease};
use crate::live::Live;
use crate::models::Models;
use crate::observer::Observer;
use crate::patterns::team::hooks::TeamHooks;
use crate::policy::Policy;
use crate::session::Answer;
use crate::task::Task;
use crate::workers::{Stays, Workers};

/// Agents by name, as a run sees them.
pub type Agents = BTreeMap<AgentName, Arc<Agent>>;

/// Everything runs need from outside.
#[derive(Debug)]
pub struct Parts {
    pub models: Models,
    pub tools: Vec<Arc<dyn Tool>>,
    pub servers: Option<Arc<dyn ToolSource>>,
    /// Agent Skills, for agents whose files ask for them.
    pub skills: Option<Arc<dyn SkillSource>>,
    pub overflow: Option<Arc<dyn Overflow>>,
    /// Tools of this risk and above need a person's yes. `None`: never.
    pub ask_at: Option<Risk>,
    /// The folder that file tools are confined to.
    pub work_dir: PathBuf,
    pub patience: Patience,
    pub store: Arc<dyn Store>,
    /// The newest roster; each run keeps the one it was claimed with.
    pub agents: watch::Receiver<Arc<Agents>>,
    /// Who this process is among those that work on the same store.
    pub identity: Identity,
    pub lease: LeaseTimes,
    /// How long a record that the run does not wait for may stay unwritten. Zero writes it at once.
    pub flush: Duration,
    /// How long workers stay with a thread that a message came in for.
    pub stays: Stays,
    pub retention: Retention,
    /// What agents may do with each other.
    pub policy: Policy,
    /// Code that accompanies teams.
    pub team_hooks: Option<Arc<dyn TeamHooks>>,
    /// Where whoever wants to hear of threads joins them.
    pub live: Arc<Live>,
    pub observer: Option<Arc<dyn Observer>>,
}

/// One process, and what it knows about others.
#[derive(Clone)]
pub struct Identity {
    pub owner: Owner,
    /// Whether a process is certainly gone, so that its runs need not wait for their leases to end.
    pub is_gone: fn(&Owner) -> bool,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Identity").field(&self.owner).finish()
    }
}

/// Works on runs. Shared by all that ask it to.
#[derive(Debug)]
pub struct Engine {
    pub parts: Parts,
    pub(crate) workers: Workers,
    pub(crate) lease: ProcessLease,
}

impl Engine {
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self { parts, workers: Workers::default(), lease: ProcessLease::default() })
    }

    pub(crate) fn agents(&self) -> Arc<Agents> {
        Arc::clone(&self.parts.agents.borrow())
    }
}

/// How long a model may be silent, and how often a call is tried.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub first_chunk: Duration,
    pub between_chunks: Duration,
    /// Per model of the fallback list.
    pub attempts: u32,
    /// Doubled with each attempt, and varied so that callers do not return all at once.
    pub back_off: Duration,
    /// A provider that asks to wait longer is given up for the next one.
    pub longest_wait: Duration,
}

impl Default for Patience {
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

/// On whose behalf a run happens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Caller {
    pub tenant: TenantId,
    pub user: UserId,
    pub thread_id: ThreadId,
}

choices! {
    /// Which calls that need a person's yes have it from the start.
    pub enum Approve {
        None = "none",
        /// Those that only read.
        Read = "read",
        All = "all",
    }
}

/// One message to be worked on.
#[derive(Debug, Clone)]
pub struct RunRequest {
    pub caller: Caller,
    /// Who is to answer.
    pub agent: AgentName,
    pub input: Vec<Part>,
    pub overrides: Overrides,
    pub on_busy: OnBusy,
    /// How the agent was chosen, if it was not named.
    pub entry: Option<Classification>,
    pub task: Task,
    /// What the caller may do. Agents that work for them may not do more.
    pub rights: Rights,
    /// What the request belongs to that the message came with.
    pub trace: Option<TraceParent>,
    /// What the caller wants to find again with the run.
    pub metadata: Option<Value>,
}

/// On which terms a message is accepted.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub idempotency: Option<Idempotency>,
    /// Refused when the tenant has this many runs queued or at work.
    pub max_active: Option<u32>,
}

/// What is kept of a request beside its message: enough to begin again after a crash.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    #[serde(flatten)]
    pub(crate) overrides: Overrides,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<Classification>,
    #[serde(default, skip_serializing_if = "Task::is_answer")]
    pub(crate) task: Task,
    /// A run without them comes from a time or a place where everybody might do everything.
    #[serde(default = "Rights::all")]
    pub(crate) rights: Rights,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<TraceParent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Value>,
}

/// What the caller of a run added to it, as it is kept.
pub fn metadata(request: &Value) -> Option<&Value> {
    request.get("metadata")
}

impl Request {
    /// What the caller of a kept request may do. Rights that cannot be read are none.
    pub(crate) fn rights_of(kept: &Value) -> Rights {
        kept.get("rights").map_or_else(Rights::all, |rights| Rights::deserialize(rights).unwrap_or_default())
    }

    /// Whether the run's agent is the one who answers, rather than one who asks others for the caller.
    pub(crate) fn is_answered(kept: &Value) -> bool {
        kept.get("task").is_none()
    }

    pub(crate) fn trace_of(kept: &Value) -> Option<TraceParent> {
        kept.get("trace").and_then(|trace| TraceParent::deserialize(trace).ok())
    }
}

/// What the caller wants otherwise than the agent's file says. Limits can only be lowered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    pub max_turns: Option<u32>,
    pub max_cost_usd: Option<Usd>,
    pub timeout: Option<HumanDuration>,
    pub output_schema: Option<Value>,
    pub approve: Approve,
    /// The caller named the agent, and wants to hear nobody else, whoever has the thread.
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
            approve: Approve::None,
            is_named: false,
        }
    }
}

impl Overrides {
    pub(crate) fn limits(&self, limits: &Limits) -> Limits {
        let lower_cost = match (limits.max_cost_usd, self.max_cost_usd) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Limits {
            max_turns: limits.max_turns.min(self.max_turns.unwrap_or(u32::MAX)),
            timeout: self.timeout.map_or(limits.timeout, |timeout| timeout.min(limits.timeout)),
            max_cost_usd: lower_cost,
            ..limits.clone()
        }
    }
}

/// A run that was accepted. Dropping it cancels the run.
#[derive(Debug)]
pub struct Run {
    pub id: RunId,
    /// Everything that happens, in order; ends with exactly one `RunFinished` or `RunFailed`.
    pub events: mpsc::Receiver<Event>,
    pub(crate) cancel: CancellationToken,
    pub(crate) end: oneshot::Receiver<Finished>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Finished {
    pub status: RunStatus,
    pub answer: Option<Answer>,
    /// Who gave it, which may be another agent than the one that was asked.
    pub answered_by: Option<AgentName>,
    pub failure: Option<Failure>,
    pub usage: Usage,
    pub rows: Vec<LedgerRow>,
}

impl Run {
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits for the end and throws away events nobody has read.
    pub async fn finish(mut self) -> Finished {
        while self.events.recv().await.is_some() {}
        self.join().await
    }

    /// Waits for the end. Events must be read to theirs first, or the run waits for its listener.
    pub async fn join(mut self) -> Finished {
        (&mut self.end).await.unwrap_or_else(|_| Finished::without_end(Failure::Superseded))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Finished {
    /// Nobody here knows what became of it.
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
