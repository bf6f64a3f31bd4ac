//! Why a run gives no answer.

use baton_core::{AgentName, ModelError, StoreError};

#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(
        "no model is configured for `{0}`: add it to `models.aliases` or `models.providers` in baton.toml"
    )]
    NoModel(String),
    #[error("the prompt of `{agent}` cannot be rendered: {message}")]
    Prompt { agent: String, message: String },
    #[error("the answer does not satisfy the output schema, even after a second attempt: {0}")]
    InvalidOutput(String),
    #[error(
        "a cost limit cannot be kept, because the price of {0} is not known: leave the limit out, or use another model"
    )]
    Unpriced(String),
    #[error("there is no agent `{0}`")]
    NoAgent(AgentName),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its process was taken for dead, and another one goes on with the run.
    #[error("another process has taken over the run")]
    Superseded,
    /// The process that worked on it died, and nobody can go on.
    #[error("the run was interrupted and cannot go on: {0}")]
    Interrupted(String),
    /// Another process ended the run.
    #[error("{message}")]
    Elsewhere { code: String, message: String },
    #[error("the run was cancelled")]
    Cancelled,
    /// A turn was cut because the session's time is over; the session answers with a closing turn.
    #[error("the time limit was met")]
    TimeUp,
}

impl Failure {
    /// Stable, for programs.
    pub fn code(&self) -> &str {
        match self {
            Self::Model(error) => error.kind.word(),
            Self::NoModel(_) => "no_model",
            Self::Prompt { .. } => "invalid_prompt",
            Self::InvalidOutput(_) => "invalid_output",
            Self::Unpriced(_) => "unknown_price",
            Self::NoAgent(_) => "agent_not_found",
            Self::Store(error) => error.code(),
            Self::Superseded => "superseded",
            Self::Interrupted(_) => "interrupted",
            Self::Elsewhere { code, .. } => code,
            Self::Cancelled => "cancelled",
            Self::TimeUp => "time",
        }
    }
}
