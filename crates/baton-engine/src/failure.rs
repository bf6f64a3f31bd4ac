//! Why a run gives no answer.

use baton_core::{AgentName, HumanDuration, ModelError, StoreError};

use crate::bounds::Refusal;
use crate::scope::Scope;

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
    /// Its fault is that of another agent; the name says where to look.
    #[error("stage `{stage}` failed: {failure}")]
    Stage { stage: AgentName, failure: Box<Self> },
    #[error("`{0}` cannot be reached: it runs on another server, and there is no connection to it")]
    Unavailable(AgentName),
    #[error("no answer within {0}")]
    Late(HumanDuration),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("this needs the permission `{0}`, which the person does not have")]
    NotAllowed(String),
    #[error("the advice of `{agent}` is required, and it gave none: {reason}")]
    NoAdvice { agent: AgentName, reason: String },
    #[error("{got} of {asked} advisors answered, and at least {needed} have to")]
    TooLittleAdvice { got: usize, asked: usize, needed: u32 },
    #[error("`{router}` chose nobody: {reason}. It may choose {}", list(.candidates))]
    NotRouted { router: AgentName, reason: String, candidates: Vec<AgentName> },
    #[error("the condition of `{agent}` for handing on cannot be evaluated: {message}")]
    Condition { agent: AgentName, message: String },
    /// A fault in this program, not in what it was asked.
    #[error("`{0}` stopped with an internal error; the log says more")]
    Broken(AgentName),
    /// Somebody has the thread. The sentence is for the person.
    #[error("{0}")]
    HandoffActive(String),
    /// The agent does not take the thread over.
    #[error("`{agent}` does not take over: {reason}")]
    HandoffRejected { agent: AgentName, reason: String },
    /// The agent cannot take the thread over at the moment. The sentence is for the person.
    #[error("{0}")]
    HandoffUnavailable(String),
    /// There is no handoff, or none any more.
    #[error("{0}")]
    NoHandoff(&'static str),
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
            Self::Stage { failure, .. } => failure.code(),
            Self::Unavailable(_) | Self::HandoffUnavailable(_) => "agent_unavailable",
            Self::Late(_) => "timeout",
            Self::Refused(_) => "refused",
            Self::NotAllowed(_) => "permission_denied",
            Self::NoAdvice { .. } | Self::TooLittleAdvice { .. } => "advice_missing",
            Self::NotRouted { .. } => "routing_failed",
            Self::Condition { .. } => "invalid_condition",
            Self::Broken(_) => "internal",
            Self::HandoffActive(_) => "handoff_active",
            Self::HandoffRejected { .. } => "handoff_rejected",
            Self::NoHandoff(_) => "no_active_handoff",
            Self::Store(error) => error.code(),
            Self::Superseded => "superseded",
            Self::Interrupted(_) => "interrupted",
            Self::Elsewhere { code, .. } => code,
            Self::Cancelled => "cancelled",
            Self::TimeUp => "time",
        }
    }
}

impl Failure {
    /// Itself, without the name of the stage that it happened in.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Stage { failure, .. } => failure.cause(),
            _ => self,
        }
    }

    /// The same with the name of the stage that it happened in. What ends the run, or whoever asked for it, is nobody's fault; and the
    /// innermost name says best where to look.
    pub(crate) fn at_stage(self, stage: &AgentName, scope: &Scope) -> Self {
        match self {
            Self::Stage { .. } | Self::Cancelled | Self::Late(_) => self,
            _ if self.ends_the_run(scope) => self,
            _ => Self::Stage { stage: stage.clone(), failure: Box::new(self) },
        }
    }

    /// Whether it is not for a pattern to deal with: the run itself is over, or not ours any more. A child that was cancelled alone
    /// is just one that gave no answer.
    pub(crate) fn ends_the_run(&self, scope: &Scope) -> bool {
        match self {
            Self::Store(_) | Self::Superseded | Self::Interrupted(_) => true,
            Self::Cancelled => scope.run.cancel.is_cancelled(),
            Self::Stage { failure, .. } => failure.ends_the_run(scope),
            _ => false,
        }
    }
}

fn list(names: &[AgentName]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
