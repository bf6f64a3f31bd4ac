//! What is set up once, and how a run is started and listened to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{Agent, Limits};
use baton_core::event::{Event, EventKind, Outcome};
use baton_core::message::Part;
use baton_core::tool::{Overflow, Risk, Tool, ToolSource};
use baton_core::{
    AgentName, HumanDuration, LedgerRow, RunId, TenantId, ThreadId, Usage, Usd, UserId, choices,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::budget::Limit;
use crate::failure::Failure;
use crate::models::Models;
use crate::scope::{RunState, Scope};
use crate::session::{self, Answer};

/// Agents by name, as a run sees them.
pub type Agents = BTreeMap<AgentName, Arc<Agent>>;

/// How many events may wait for a listener before the run waits for it.
const EVENT_QUEUE: usize = 256;

/// Everything runs need from outside.
#[derive(Debug)]
pub struct Engine {
    pub models: Models,
    pub tools: Vec<Arc<dyn Tool>>,
    pub servers: Option<Arc<dyn ToolSource>>,
    pub overflow: Option<Arc<dyn Overflow>>,
    /// Tools of this risk and above need a person's yes. `None`: never.
    pub ask_at: Option<Risk>,
    /// The folder that file tools are confined to.
    pub work_dir: PathBuf,
    pub patience: Patience,
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
#[derive(Debug, Clone)]
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
    pub agents: Arc<Agents>,
    pub agent: Arc<Agent>,
    pub input: Vec<Part>,
    pub overrides: Overrides,
}

/// What the caller wants otherwise than the agent's file says. Limits can only be lowered.
#[derive(Debug, Clone)]
pub struct Overrides {
    pub max_turns: Option<u32>,
    pub max_cost_usd: Option<Usd>,
    pub timeout: Option<HumanDuration>,
    pub output_schema: Option<Value>,
    pub approve: Approve,
}

impl Default for Overrides {
    fn default() -> Self {
        Self {
            max_turns: None,
            max_cost_usd: None,
            timeout: None,
            output_schema: None,
            approve: Approve::None,
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

/// A run under way. Dropping it cancels the run.
#[derive(Debug)]
pub struct Run {
    pub id: RunId,
    /// Everything that happens, in order; ends with exactly one `RunFinished` or `RunFailed`.
    pub events: mpsc::Receiver<Event>,
    cancel: CancellationToken,
    task: JoinHandle<Finished>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Finished {
    pub status: Status,
    pub answer: Option<Answer>,
    pub failure: Option<Failure>,
    pub usage: Usage,
    pub rows: Vec<LedgerRow>,
}

choices! {
    pub enum Status {
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
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
        match (&mut self.task).await {
            Ok(finished) => finished,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Engine {
    /// Starts working on a message.
    pub fn start(self: &Arc<Self>, request: RunRequest) -> Run {
        let id = RunId::from_uuid(Uuid::now_v7());
        let (tell, events) = mpsc::channel(EVENT_QUEUE);
        let cancel = CancellationToken::new();
        let state = RunState::new(
            Arc::clone(self),
            id,
            request.caller.clone(),
            Arc::clone(&request.agents),
            cancel.clone(),
            tell,
        );
        let scope = Scope::root(Arc::new(state), Arc::clone(&request.agent));
        let task = tokio::spawn(work(scope, request));
        Run { id, events, cancel, task }
    }
}

async fn work(scope: Scope, request: RunRequest) -> Finished {
    scope.emit(EventKind::RunStarted).await;
    let result = session::hold(&scope, request.input, &request.overrides).await;
    let ledger = &scope.run.ledger;
    let usage = ledger.spent("");
    let (status, answer, failure) = match result {
        Ok(answer) => (Status::Completed, Some(answer), None),
        Err(Failure::Cancelled) => (Status::Cancelled, None, Some(Failure::Cancelled)),
        Err(failure) => (Status::Failed, None, Some(failure)),
    };
    let limit = answer.as_ref().and_then(|answer| answer.limit).map(Limit::word).map(str::to_owned);
    scope
        .emit(match (&failure, status) {
            (_, Status::Completed) => EventKind::RunFinished { outcome: Outcome::Success, usage, limit },
            (_, Status::Cancelled) => EventKind::RunFinished { outcome: Outcome::Cancelled, usage, limit },
            (failure, Status::Failed) => EventKind::RunFailed {
                code: failure.as_ref().map_or("failed", Failure::code).to_owned(),
                message: failure.as_ref().map(ToString::to_string).unwrap_or_default(),
                usage,
            },
        })
        .await;
    Finished { status, answer, failure, usage, rows: ledger.rows() }
}
