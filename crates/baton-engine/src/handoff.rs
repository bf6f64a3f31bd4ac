//! Passing the whole conversation on: an agent gets a lease on a thread, answers in it until it gives it back, and whoever gave it
//! away hears what came of it.
//!
//! - [`terms`]: whether an agent takes a thread over. [`opening`]: it gets it in the middle of a run.
//! - [`lease`]: the lease by which it has it, and how that changes.
//! - [`way`]: who takes a run of the thread, then. [`saying`]: short messages whose meaning needs no model.
//! - [`holding`]: the holder's run. [`returning`]: how it gives the thread back. [`telling`]: what is said when it is back.
//! - [`outside`]: what people and programs do to a handoff from outside of a run. [`discard`]: deletes its saved state.
//! - [`wording`], [`notices`]: what the person hears, and how it is said once.

mod discard;
pub(crate) mod holding;
pub(crate) mod lease;
mod notices;
pub(crate) mod opening;
pub(crate) mod outside;
pub(crate) mod returning;
mod saying;
pub(crate) mod telling;
mod terms;
pub(crate) mod way;
pub(crate) mod wording;

use baton_core::store::HandoffSession;
use baton_core::{AgentName, Rights, RunId, TraceParent, choices};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::Caller;

pub use saying::is_yes;
pub use way::is_resumable;
pub use wording::{connected as connecting, returning as farewell, welcome_back};

/// A handoff that somebody asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HandoffRequest {
    pub caller: Caller,
    /// Who gives the thread away, and gets it back. `None`: who has it now.
    pub source: Option<AgentName>,
    /// Who has it when nobody has had it yet.
    pub fallback: AgentName,
    pub target: AgentName,
    pub context_summary: String,
    pub reason: String,
    /// How many of the last messages the target sees.
    pub recent_messages: u32,
    pub preserve_state: bool,
    pub return_expected: bool,
    pub metadata: Value,
    pub on_conflict: OnConflict,
    pub rights: Rights,
    pub trace: Option<TraceParent>,
}

choices! {
    /// What happens to a request while somebody has the thread.
    pub enum OnConflict {
        Reject = "reject",
        /// It begins when the other one has ended.
        Queue = "queue",
    }
}

/// What became of a request.
#[derive(Debug, Clone)]
pub enum Started {
    /// The target has the thread; the run is the one in which it greets the person.
    Now { handoff: Box<HandoffSession>, run_id: RunId },
    /// It begins when the one that is open has ended.
    Queued,
}

/// Who ends a handoff from outside, and on whose authority.
#[derive(Debug, Clone)]
pub struct Leaving {
    pub caller: Caller,
    /// Somebody else than the person whose thread it is.
    pub is_administrator: bool,
    pub rights: Rights,
    pub trace: Option<TraceParent>,
}

/// What the holder says that came of it.
#[derive(Debug, Clone, Default)]
pub struct Returned {
    pub status: ReturnStatus,
    pub result_summary: Option<String>,
    pub artifacts_created: Vec<String>,
}

choices! {
    #[derive(Default)]
    pub enum ReturnStatus {
        #[default]
        Completed = "completed",
        Cancelled = "cancelled",
        Error = "error",
    }
}
