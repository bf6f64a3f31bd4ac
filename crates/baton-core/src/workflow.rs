//! The state machine of a workflow, and the trait for guides that work without a model.
//!
//! - [`machine`]: the current state and its transitions, without side effects. [`data`]: its stored data, [`value`]: validation
//!   of collected values, [`refusal`]: errors.
//! - [`progress`]: how far a workflow is, for the user.
//! - [`consent`]: whether a message confirms a question.
//! - [`guide`]: guides a user through a workflow in place of a model. The engine calls it, an adapter implements it.

pub mod consent;
pub mod data;
pub mod guide;
pub mod machine;
pub mod progress;
pub mod refusal;
pub mod value;

pub use guide::{GuideMessage, GuideReply, WorkflowChange, WorkflowGuide};
pub use machine::{Confirmation, Machine, Waits};
pub use progress::WorkflowProgress;
pub use refusal::Refusal;

/// Display name of a state or value: `collect_details` becomes "Collect details".
pub fn label(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
