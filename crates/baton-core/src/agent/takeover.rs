//! Settings for holding a thread across runs.

use serde::Serialize;

use crate::choices;
use crate::duration::HumanDuration;
use crate::permission::Permission;

/// Default words that return the user to the main agent.
pub const EXIT_WORDS: &[&str] = &["cancel", "exit", "quit", "stop", "leave", "never mind"];

/// The conditions under which an agent takes over a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptsHandoff {
    pub triggers: Vec<String>,
    pub trigger_mode: TriggerMode,
    /// The permission that the user needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    pub exclusive: bool,
    pub max_session: HumanDuration,
    #[serde(rename = "return")]
    pub returns: Return,
    /// Whether an unfinished session can be resumed later.
    pub resume: bool,
    pub exit_words: Vec<String>,
}

impl Default for AcceptsHandoff {
    fn default() -> Self {
        Self {
            triggers: Vec::new(),
            trigger_mode: TriggerMode::Hint,
            permission: None,
            exclusive: true,
            max_session: HumanDuration::from_mins(60),
            returns: Return::OnComplete,
            resume: true,
            exit_words: EXIT_WORDS.iter().map(|word| (*word).to_owned()).collect(),
        }
    }
}

choices! {
    pub enum TriggerMode {
        /// Triggers are shown to the current agent's model, which decides.
        Hint = "hint",
        /// A trigger in the user's message starts the handoff without a model.
        Auto = "auto",
    }
}

choices! {
    pub enum Return {
        OnComplete = "on_complete",
        Never = "never",
    }
}
