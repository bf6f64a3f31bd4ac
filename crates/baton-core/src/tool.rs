//! The traits for tools.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::McpServer;
use crate::choices;
use crate::duration::HumanDuration;
use crate::id::{AgentName, RunId, SessionId, TenantId, ThreadId, UserId};
use crate::media::ProducedFile;
use crate::rights::Rights;
use crate::trace::TraceParent;

/// A tool that a model can call.
pub trait Tool: Send + Sync + fmt::Debug {
    fn spec(&self) -> &ToolSpec;

    /// Whether the output contains text of third parties: pages, files, programs. The engine then delimits it, so that a model
    /// does not follow instructions in it.
    fn is_untrusted(&self) -> bool {
        false
    }

    /// Runs the tool. The arguments satisfy the schema of the spec. Dropping the future cancels the call: no process,
    /// connection or task may outlive it.
    fn call(&self, arguments: Value, context: Arc<CallContext>) -> ToolFuture;
}

pub type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// A source of tools that are discovered at run time, such as MCP servers.
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// The tools of one server for one tenant and, if threads have workspaces, for the one whose workspace is given. Neither
    /// tenants nor workspaces share a server process.
    fn tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        workspace: Option<&'a Path>,
        server: &'a str,
        definition: &'a McpServer,
    ) -> ToolsFuture<'a>;
}

pub type ToolsFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Arc<dyn Tool>>, ToolError>> + Send + 'a>>;

/// Bytes of a tool's output that a model sees. Longer output is spooled, and the model reads the rest with `read_output`.
pub const SHOWN_OUTPUT_BYTES: usize = 16 * 1024;

/// Description of a tool for models and the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// As agents list it: `search_docs`, `mcp:github/create_issue`. Adapters translate it for their provider.
    pub name: String,
    pub description: String,
    /// A JSON Schema with `type: object`.
    pub parameters: Value,
    pub effect: Effect,
    pub risk: Risk,
    pub timeout: HumanDuration,
}

choices! {
    /// Side effects of a call. Decides whether it may be repeated after a crash.
    pub enum Effect {
        ReadOnly = "read_only",
        /// Idempotent: a repeated call has no further effect.
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

/// The caller and position of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallContext {
    pub tenant: TenantId,
    pub user: UserId,
    /// What the caller of the run may do.
    pub rights: Rights,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub session_id: SessionId,
    pub agent: AgentName,
    /// The folder that file tools are confined to.
    pub work_dir: PathBuf,
    /// Whether `work_dir` is the workspace of the thread, which is created when a tool first uses it.
    pub has_workspace: bool,
    /// Bytes that may be added to the workspace. `None` is no limit.
    pub storage_left: Option<u64>,
    /// The folder below `work_dir` that file tools are confined to instead. It is created when a tool first uses it.
    pub subfolder: Option<PathBuf>,
    /// Trace context to propagate.
    pub trace: Option<TraceParent>,
}

impl CallContext {
    /// The workspace of the thread, if threads have one.
    pub fn workspace(&self) -> Option<&Path> {
        self.has_workspace.then_some(&*self.work_dir)
    }
}

/// Output of a tool: text for the model, the names of what the call created, and files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    pub text: String,
    /// A workflow that ends with this call reports them as its artifacts. They are never parsed from `text`.
    pub artifacts: Vec<String>,
    /// Images and other files. The engine stores them with the result of the call.
    pub files: Vec<ProducedFile>,
}

impl ToolOutput {
    /// Adds the name of something that the call created.
    #[must_use]
    pub fn with_artifact(mut self, name: impl Into<String>) -> Self {
        self.artifacts.push(name.into());
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, file: ProducedFile) -> Self {
        self.files.push(file);
        self
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { text, artifacts: Vec::new(), files: Vec::new() }
    }
}

/// Why a call failed. It becomes text for the model and is recorded with the step; it does not fail the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ToolError {
    #[error("there is no tool `{name}`{}", suggestion(.nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("not permitted: {0}")]
    NotPermitted(String),
    #[error("invalid arguments: {0}")]
    InvalidArguments(String),
    /// The requested name is taken; `alternative` is free.
    #[error("invalid arguments: {}", name_taken(.problem, .alternative))]
    NameTaken { problem: String, alternative: String },
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

fn name_taken(problem: &str, alternative: &str) -> String {
    format!("{problem}; choose another name, such as `{alternative}`")
}

impl ToolError {
    /// The text for a model: the kind of error, its cause, and whether the tool was run.
    pub fn for_model(&self) -> String {
        let executed = if self.was_executed() { "" } else { " (the tool was not run)" };
        format!("{self}{executed}")
    }

    /// The text for users: the cause only.
    pub fn detail(&self) -> String {
        match self {
            Self::NotPermitted(text)
            | Self::InvalidArguments(text)
            | Self::Limit(text)
            | Self::Transport(text)
            | Self::Execution(text) => text.clone(),
            Self::NameTaken { problem, alternative } => name_taken(problem, alternative),
            Self::Unknown { .. } | Self::Timeout(_) | Self::Cancelled | Self::OutcomeUnknown => {
                self.to_string()
            }
        }
    }

    /// A value that would be accepted in place of the refused one.
    pub fn alternative(&self) -> Option<&str> {
        match self {
            Self::NameTaken { alternative, .. } => Some(alternative),
            _ => None,
        }
    }

    /// Truncates the text that a tool wrote to `max_chars` characters.
    #[must_use]
    pub fn shortened(mut self, max_chars: usize) -> Self {
        if let Self::NotPermitted(text)
        | Self::InvalidArguments(text)
        | Self::Limit(text)
        | Self::Transport(text)
        | Self::Execution(text) = &mut self
            && let Some((end, _)) = text.char_indices().nth(max_chars)
        {
            text.truncate(end);
        }
        self
    }

    /// Whether the tool was run, so that it may have had an effect.
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
            Self::InvalidArguments(_) | Self::NameTaken { .. } => "invalid_arguments",
            Self::Limit(_) => "limit",
            Self::Timeout(_) => "timeout",
            Self::Transport(_) => "transport",
            Self::Execution(_) => "execution",
            Self::Cancelled => "cancelled",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken() -> ToolError {
        ToolError::NameTaken { problem: "there is already a skill `a`".into(), alternative: "a-2".into() }
    }

    #[test]
    fn a_taken_name_names_an_alternative() {
        let detail = "there is already a skill `a`; choose another name, such as `a-2`";
        assert_eq!(taken().to_string(), format!("invalid arguments: {detail}"));
        assert_eq!((taken().detail().as_str(), taken().code()), (detail, "invalid_arguments"));
        assert_eq!(taken().alternative(), Some("a-2"));
        assert_eq!(ToolError::InvalidArguments("use another, such as `b`".into()).alternative(), None);
    }

    #[test]
    fn models_read_the_kind_of_an_error_and_people_do_not() {
        let refused = ToolError::NotPermitted("not here".into());
        assert_eq!(refused.for_model(), "not permitted: not here (the tool was not run)");
        assert_eq!(refused.detail(), "not here");
        let failed = ToolError::Execution("invalid arguments: no".into());
        assert_eq!(failed.for_model(), "failed: invalid arguments: no");
        assert_eq!(failed.detail(), "invalid arguments: no", "only its own kind is left out");
        assert_eq!(ToolError::Cancelled.detail(), ToolError::Cancelled.to_string());
    }

    #[test]
    fn recorded_errors_come_back_as_they_were() {
        let errors = [
            ToolError::Unknown { name: "x".into(), nearest: None },
            taken(),
            ToolError::Timeout(HumanDuration::from_secs(3)),
            ToolError::Execution("broken".into()),
            ToolError::OutcomeUnknown,
        ];
        for error in errors {
            let recorded = serde_json::to_value(&error).unwrap();
            assert_eq!(serde_json::from_value::<ToolError>(recorded).unwrap(), error);
        }
    }

    #[test]
    fn long_errors_are_cut_between_characters() {
        let error = ToolError::Execution("ää".into());
        assert_eq!(error.clone().shortened(1), ToolError::Execution("ä".into()));
        assert_eq!(error.clone().shortened(2), error);
    }
}
