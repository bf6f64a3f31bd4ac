//! Handoffs: an agent receives a lease on a thread and answers in it until it returns the thread. The agent that handed it off
//! then receives the result.
//!
//! - [`negotiation`]: whether an agent accepts a thread. [`start`]: starts a handoff within a run. [`announcement`]: what the source
//!   agent says then.
//! - [`crate::lease`]: the holder's lease, how it changes, and how its saved state is discarded.
//! - [`crate::routing`]: which agent takes a run of the thread. [`crate::intent`]: short messages whose meaning needs no model.
//! - [`holder_run`]: a run of the holder. [`finish`]: how it returns the thread, and what is said then.
//! - [`conflict`]: the user asks for something else meanwhile. [`elsewhere`]: unfinished work goes on in another thread.
//! - [`remote_target`]: the target is an agent on another server. [`external`]: what users and programs do to a handoff from outside of a run.
//! - [`messages`]: what the user reads, and how it is said once.

pub(crate) mod announcement;
pub(crate) mod conflict;
pub(crate) mod elsewhere;
mod estimate;
pub(crate) mod external;
pub(crate) mod finish;
pub(crate) mod holder_run;
pub(crate) mod messages;
mod negotiation;
mod parked;
mod remote_target;
pub(crate) mod start;

use baton_core::store::HandoffSession;
use baton_core::{AgentName, Rights, RunId, TraceParent, choices};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::RunCaller;

pub use crate::intent::is_yes;
pub use crate::routing::is_resumable;
pub use messages::{connected_message, held_mode_message, returning_message, welcome_back_message};

/// A request to start a handoff.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartHandoff {
    pub caller: RunCaller,
    /// The agent that hands the thread off and gets it back. `None`: the thread's current agent.
    pub source: Option<AgentName>,
    /// The source if the thread has no agent yet.
    pub fallback: AgentName,
    pub target: AgentName,
    pub context_summary: String,
    pub reason: String,
    /// How many of the most recent messages the target sees.
    pub recent_messages: u32,
    pub preserve_state: bool,
    pub return_expected: bool,
    pub metadata: Value,
    pub on_conflict: OnConflict,
    pub rights: Rights,
    pub trace: Option<TraceParent>,
    /// The client's address, for the audit trail.
    #[serde(skip)]
    pub address: Option<String>,
}

choices! {
    /// What happens to a request while a handoff is active on the thread.
    pub enum OnConflict {
        Reject = "reject",
        /// The handoff starts when the active one has ended.
        Queue = "queue",
    }
}

/// The outcome of a [`StartHandoff`] request.
#[derive(Debug, Clone)]
pub enum HandoffStarted {
    /// The target holds the thread. In the run `run_id` it greets the user.
    Now { handoff: Box<HandoffSession>, run_id: RunId },
    /// The handoff starts when the active one has ended.
    Queued,
}

/// A request to end a handoff from outside of a run.
#[derive(Debug, Clone)]
pub struct ExitRequest {
    pub caller: RunCaller,
    /// Whether the caller is an administrator and not the user of the thread.
    pub is_administrator: bool,
    pub rights: Rights,
    pub trace: Option<TraceParent>,
    /// The client's address, for the audit trail.
    pub address: Option<String>,
}

/// The result of a handoff, as its holder reports it.
#[derive(Debug, Clone, Default)]
pub struct HandoffResult {
    pub status: ReturnStatus,
    pub result_summary: Option<String>,
    pub artifacts_created: Vec<String>,
}

choices! {
    /// How a handoff ended, as its holder reports it.
    #[derive(Default)]
    pub enum ReturnStatus {
        #[default]
        Completed = "completed",
        Cancelled = "cancelled",
        Error = "error",
    }
}
