//! Leases of threads to agents, and where their holders stand in their workflows.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices;
use crate::id::{AgentName, HandoffId, ThreadId, UserId};
use crate::store::Pending;

choices! {
    pub enum HandoffState {
        Pending = "pending",
        Active = "active",
        Returning = "returning",
        Completed = "completed",
        Cancelled = "cancelled",
        Error = "error",
    }
}

impl HandoffState {
    /// Whether the target still has the thread or is about to.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Returning)
    }
}

/// A handoff that is about to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct NewHandoff {
    pub handoff_id: HandoffId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    pub source_agent_id: AgentName,
    pub target_agent_id: AgentName,
    pub context_summary: String,
    pub handoff_reason: String,
    pub metadata: Value,
}

/// A handoff as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandoffSession {
    pub handoff_id: HandoffId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    pub source_agent_id: AgentName,
    pub target_agent_id: AgentName,
    pub state: HandoffState,
    pub context_summary: String,
    pub handoff_reason: String,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub result_summary: Option<String>,
    pub artifacts_created: Vec<String>,
    pub metadata: Value,
    /// Where the holder stands; gone once it has outlived its retention.
    pub workflow: Option<WorkflowState>,
    /// Counts changes; a change names the one it was made on.
    pub version: u64,
}

/// Where an agent stands in its workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowState {
    pub state: String,
    /// What was collected, and whatever else the workflow keeps.
    pub data: Value,
}

/// What can be done with handoffs.
pub trait Handoffs: Send + Sync {
    /// Begins one as `pending`. Refused while another one is open on the thread.
    fn open_handoff(&self, handoff: NewHandoff) -> Pending<'_, HandoffSession>;

    fn handoff(&self, handoff: HandoffId) -> Pending<'_, HandoffSession>;

    /// The one that is open on a thread.
    fn open_handoff_of(&self, thread: ThreadId) -> Pending<'_, Option<HandoffSession>>;

    /// Those of a thread that have ended and whose workflow state is still there, the newest first.
    fn resumable_handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>>;

    /// Replaces one, workflow state included, if its version is still the one that `changed` was read with. The thread's holder
    /// follows: the target while it is active, the source once it has ended.
    fn update_handoff(&self, changed: HandoffSession) -> Pending<'_, HandoffSession>;
}
