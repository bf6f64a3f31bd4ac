//! The seam to tools.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::agent::McpServer;
use crate::choices;
use crate::duration::HumanDuration;
use crate::id::{AgentName, RunId, SessionId, TenantId, ThreadId, UserId};
use crate::trace::TraceParent;

/// Something a model can ask for.
pub trait Tool: Send + Sync + fmt::Debug {
    fn spec(&self) -> &ToolSpec;

    /// Does it. Arguments satisfy the schema of the spec. Dropping the future cancels the work: no process, connection or
    /// task may outlive it.
    fn call(&self, arguments: Value, context: Arc<CallContext>) -> ToolFuture;
}

pub type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// Where tools come from that are only known once asked, such as MCP servers.
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// The tools of one server, for one tenant: what is started for one is never used by another.
    fn tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a str,
        definition: &'a McpServer,
    ) -> ToolsFuture<'a>;
}

pub type ToolsFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Arc<dyn Tool>>, ToolError>> + Send + 'a>>;

/// Keeps what is too long for a model.
pub trait Overflow: Send + Sync + fmt::Debug {
    /// Room for one run. What is kept in it is gone when it is dropped.
    fn open(&self, tenant: &TenantId, run: RunId) -> Box<dyn Room>;
}

/// See [`Overflow`].
pub trait Room: Send + Sync + fmt::Debug {
    /// The text itself, or its beginning and how to read on.
    fn fit<'a>(
        &'a self,
        context: &'a CallContext,
        text: String,
    ) -> Pin<Box<dyn Future<Output = String> + Send + 'a>>;
}

/// What a model and the engine know about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// As agents list it: `search_docs`, `mcp:github/create_issue`. Adapters spell it for their provider.
    pub name: String,
    pub description: String,
    /// A JSON Schema with `type: object`.
    pub parameters: Value,
    pub effect: Effect,
    pub risk: Risk,
    pub timeout: HumanDuration,
}

choices! {
    /// Whether a call leaves a trace. Decides what may be repeated after a crash.
    pub enum Effect {
        ReadOnly = "read_only",
        /// Done twice it leaves what it leaves when it is done once.
        Repeatable = "repeatable",
        Writes = "writes",
    }
}

choices! {
    pub enum Risk {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

/// On whose behalf and where a call happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallContext {
    pub tenant: TenantId,
    pub user: UserId,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub session_id: SessionId,
    pub agent: AgentName,
    /// The folder that file tools are confined to.
    pub work_dir: PathBuf,
    /// The trace that the call belongs to, for servers that it reaches.
    pub trace: Option<TraceParent>,
}

/// What a tool gives back: text for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    pub text: String,
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { text }
    }
}

/// Why a call gave nothing. It becomes text for the model, never an error of the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    #[error("there is no tool `{name}`{}", suggestion(.nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("not permitted: {0}")]
    NotPermitted(String),
    #[error("invalid arguments: {0}")]
    InvalidArguments(String),
    #[error("limit reached: {0}")]
    Limit(String),
    #[error("no answer within {0}; it may have taken effect")]
    Timeout(HumanDuration),
    #[error("cannot be reached: {0}")]
    Transport(String),
    #[error("failed: {0}")]
    Execution(String),
    #[error("cancelled; it may have taken effect")]
    Cancelled,
    #[error(
        "the outcome is unknown: Baton was stopped while this call was under way, and it was not repeated. It may have taken \
         effect; check that before you call it again"
    )]
    OutcomeUnknown,
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl ToolError {
    /// Whether the tool was started, so that its effect may be there.
    pub fn was_executed(&self) -> bool {
        matches!(
            self,
            Self::Timeout(_)
                | Self::Transport(_)
                | Self::Execution(_)
                | Self::Cancelled
                | Self::OutcomeUnknown
        )
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_tool",
            Self::NotPermitted(_) => "not_permitted",
            Self::InvalidArguments(_) => "invalid_arguments",
            Self::Limit(_) => "limit",
            Self::Timeout(_) => "timeout",
            Self::Transport(_) => "transport",
            Self::Execution(_) => "execution",
            Self::Cancelled => "cancelled",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}
