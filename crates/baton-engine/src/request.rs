//! Requests for runs, and their part that is stored beside the message.

use baton_core::agent::AgentLimits;
use baton_core::message::Part;
use baton_core::store::run::Idempotency;
use baton_core::store::{OnBusy, RunLimits};
use baton_core::{AgentName, HumanDuration, Rights, TenantId, ThreadId, TraceParent, Usd, UserId, choices};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::classifier::Classification;
use crate::task::RunTask;

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
    /// Refuses the message if this many runs are queued or active.
    pub limits: RunLimits,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
