//! Leases of threads to agents, and where their holders stand in their workflows.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices;
use crate::id::{AgentName, HandoffId, RunId, ThreadId, UserId};
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
    /// What the caller wants to find again with it.
    pub metadata: Value,
    pub notes: HandoffNotes,
    /// Refused when the target has this many open in the tenant.
    pub max_open: Option<u32>,
    /// With it the target has the thread at once, in the same write.
    pub activation: Option<Activation>,
}

/// What a target begins with that has the thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Activation {
    pub workflow: Option<WorkflowState>,
    pub expires_at: Option<Timestamp>,
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
    /// When the target loses the thread; set while it has it.
    pub expires_at: Option<Timestamp>,
    pub notes: HandoffNotes,
    /// The request that waits for its end. Written only by [`Handoffs::queue_handoff`]; it is not part of the version.
    #[serde(skip)]
    pub next: Option<Value>,
    /// Where the holder stands; gone once it has outlived its retention.
    pub workflow: Option<WorkflowState>,
    /// Counts changes; a change names the one it was made on. 0 while it is not stored.
    pub version: u64,
}

choices! {
    /// Why a handoff ended.
    pub enum HandoffEnd {
        /// The target said that it is done.
        Completed = "completed",
        /// The target gave it back undone.
        Declined = "declined",
        /// The person left.
        Left = "left",
        /// Its time was over.
        Expired = "expired",
        /// The target could not go on.
        Failed = "failed",
        /// Somebody who may end those of others did.
        Ended = "ended",
    }
}

choices! {
    /// Who knows how a handoff stands: that the target has the thread, or that it has ended.
    pub enum Told {
        Nobody = "nobody",
        Person = "person",
        /// Also the agent that has the thread again.
        Agent = "agent",
    }
}

choices! {
    /// What was talked about last, seen from a handoff that has ended.
    pub enum Topic {
        Other = "other",
        /// That it has ended.
        End = "end",
        /// Whether the person wants to go on with it.
        Question = "question",
    }
}

/// What the engine has to remember about a handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffNotes {
    /// Whether the one who gave the thread away says something when it is back.
    pub return_expected: bool,
    /// Whether what was collected is kept when it ends before it is done.
    pub preserve_state: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<HandoffEnd>,
    /// The run that ended it: after a crash it knows that it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_in: Option<RunId>,
    pub told: Told,
    pub topic: Topic,
    /// Runs of the target that failed one after the other.
    pub failures: u32,
    /// The number of the message that it began with, and how many of those before it the target may see.
    pub since: u64,
    pub recent: u32,
}

impl Default for HandoffNotes {
    fn default() -> Self {
        Self {
            return_expected: true,
            preserve_state: true,
            end: None,
            ended_in: None,
            told: Told::Nobody,
            topic: Topic::Other,
            failures: 0,
            since: 0,
            recent: 5,
        }
    }
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
    /// Begins one as `pending`, or as `active` if it says with what. Refused while another one is open on the thread.
    fn open_handoff(&self, handoff: NewHandoff) -> Pending<'_, HandoffSession>;

    fn handoff(&self, handoff: HandoffId) -> Pending<'_, HandoffSession>;

    /// The one that is open on a thread.
    fn open_handoff_of(&self, thread: ThreadId) -> Pending<'_, Option<HandoffSession>>;

    /// Those that are open on any of these threads, in no order. Threads that do not exist are left out.
    fn open_handoffs_of(&self, threads: &[ThreadId]) -> Pending<'_, Vec<HandoffSession>>;

    /// All of a thread, open or not, the oldest first.
    fn handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>>;

    /// Those of a thread that have ended and whose workflow state is still there, the newest first.
    fn resumable_handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>>;

    /// Those whose time is over and on whose threads nobody is at work, at most `limit`.
    fn expired_handoffs(&self, limit: u32) -> Pending<'_, Vec<HandoffSession>>;

    /// Replaces one, workflow state included, if its version is still the one that `changed` was read with. The thread's holder
    /// follows: the target while it is active, the source once it has ended.
    fn update_handoff(&self, changed: HandoffSession) -> Pending<'_, HandoffSession>;

    /// Keeps a request until the handoff has ended. False if it has ended or one waits already.
    fn queue_handoff(&self, handoff: HandoffId, next: Value) -> Pending<'_, bool>;

    /// Forgets the request that waits.
    fn unqueue_handoff(&self, handoff: HandoffId) -> Pending<'_, ()>;
}
