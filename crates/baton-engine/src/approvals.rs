//! Approvals: tool calls and questions that wait for a person.
//!
//! - [`policy`]: whether a call runs, is denied, or waits. [`settings`]: the operator's part of it.
//! - [`gate`]: evaluates all calls of a turn before the first one runs, and applies decisions. [`request`](mod@request): what the
//!   person is asked.
//! - [`waits`]: what a run waits for. [`parking`]: the record with which it waits, without a process.
//! - [`decide`]: decisions of people. [`answer`]: a message that answers a question. [`workflow_answer`]: a decision that becomes a
//!   message, because a workflow asked. [`remote_question`]: a question of an agent on another server.
//!
//! A wait is a step at `<call>/approval`. It is started with the append that creates the approval, and finished with the outcome.
//! The call that waits ends with [`Failure::Waiting`](crate::Failure::Waiting), which every pattern passes on after its other
//! branches have finished. So only waits are left when it reaches the root, and the run parks. After a decision the run executes
//! again: finished steps return their record, and the call finds its decision.

mod answer;
mod decide;
pub(crate) mod gate;
pub(crate) mod parking;
pub(crate) mod policy;
pub(crate) mod remote_question;
pub(crate) mod request;
mod settings;
pub(crate) mod waits;
mod workflow_answer;

pub use decide::{DecideError, DecisionInput, Verdict, check_decision};
pub use settings::{ApprovalSettings, ApprovalTerms};
