//! Failures of runs, their codes and which of them end a run.

use baton_core::{AgentName, HumanDuration, ModelError, RemoteError, StoreError};
use tokio_util::sync::CancellationToken;

use crate::bounds::{InvocationError, LimitKind};

/// Why a run has no answer.
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
    /// What the agent got is not what its `input_schema` describes.
    #[error("the input of `{agent}` does not satisfy its input schema: {message}")]
    InvalidInput { agent: AgentName, message: String },
    #[error("the answer does not satisfy the output schema, even after a second attempt: {0}")]
    InvalidOutput(String),
    #[error(
        "a cost limit cannot be kept, because the price of {0} is not known: set `price` for the model in baton.toml, limit tokens instead, or use another model"
    )]
    Unpriced(String),
    /// A budget is used up. The session then answers with a closing turn, if the budget allows one.
    #[error("{message}")]
    BudgetExhausted { message: String, limit: LimitKind },
    /// A guardrail of the agent refused its task or withheld its answer. The reason does not have the text.
    #[error("a guardrail of `{agent}` for its {side} refused this ({check}): {reason}")]
    Guardrail { agent: AgentName, side: &'static str, check: String, reason: String },
    #[error("there is no agent `{0}`")]
    NoAgent(AgentName),
    /// A stage of a chain failed. The name says which one.
    #[error("stage `{stage}` failed: {failure}")]
    Stage { stage: AgentName, failure: Box<Self> },
    #[error("`{0}` cannot be reached: it runs on another server, and there is no connection to it")]
    Unavailable(AgentName),
    /// A remote agent gave no answer.
    #[error("the remote agent `{agent}` gave no answer: {error}")]
    Remote { agent: AgentName, error: RemoteError },
    /// The time limit of a sub-agent has expired. `partial` is the text of its reply up to then, if there is any.
    #[error("no answer within {limit}")]
    TimedOut { limit: HumanDuration, partial: Option<String> },
    #[error(transparent)]
    Refused(#[from] InvocationError),
    #[error("this needs the permission `{0}`, which the person does not have")]
    NotAllowed(String),
    #[error("the advice of `{agent}` is required, and it gave none: {reason}")]
    NoAdvice { agent: AgentName, reason: String },
    /// `missing` has a line for each advisor without advice.
    #[error("{got} of {asked} advisors answered, and at least {needed} have to: {}", .missing.join("; "))]
    TooLittleAdvice { got: usize, asked: usize, needed: u32, missing: Vec<String> },
    /// No member of a team has posted anything. `members` has a line for each of them.
    #[error("no member of the team of `{coordinator}` contributed: {}", .members.join("; "))]
    NoContribution { coordinator: AgentName, members: Vec<String> },
    #[error("`{router}` chose no agent: {reason}. It may choose {}", list(.candidates))]
    NotRouted { router: AgentName, reason: String, candidates: Vec<AgentName> },
    #[error("the condition of `{agent}` for handing on cannot be evaluated: {message}")]
    Condition { agent: AgentName, message: String },
    /// A bug in this program, not in the request.
    #[error("`{0}` stopped with an internal error; the log says more")]
    Panicked(AgentName),
    /// A handoff is active on the thread. The sentence is for the user.
    #[error("{0}")]
    HandoffActive(String),
    /// The agent rejects the handoff.
    #[error("`{agent}` does not take over: {reason}")]
    HandoffRejected { agent: AgentName, reason: String },
    /// The agent cannot take the thread over at the moment. The sentence is for the user.
    #[error("{0}")]
    HandoffUnavailable(String),
    /// No handoff is active on the thread.
    #[error("{0}")]
    NoHandoff(&'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The claim is lost: another process has taken over the run.
    #[error("another process has taken over the run")]
    Superseded,
    /// The run cannot be continued after a crash.
    #[error("the run was interrupted and cannot go on: {0}")]
    Interrupted(String),
    /// Recorded by another process or by an earlier attempt of the run.
    #[error("{message}")]
    EndedElsewhere { code: String, message: String },
    #[error("the run was cancelled")]
    Cancelled,
    /// A call waits for a person. It passes through all patterns, after their other branches have finished, and parks the run.
    #[error("the run waits for a decision")]
    Waiting,
    /// A message is no valid answer to the open question of its thread.
    #[error("a question is open, and this does not answer it: {0}")]
    InvalidAnswer(String),
    /// The session's deadline has cut off a turn. The session then answers with a closing turn.
    #[error("the time limit was met")]
    DeadlineReached,
}

impl Failure {
    /// Stable error code for programs.
    pub fn code(&self) -> &str {
        match self {
            Self::Model(error) => error.kind.word(),
            Self::NoModel(_) => "no_model",
            Self::Prompt { .. } => "invalid_prompt",
            Self::InvalidInput { .. } => "invalid_input",
            Self::InvalidOutput(_) => "invalid_output",
            Self::Unpriced(_) => "unknown_price",
            Self::BudgetExhausted { .. } => "budget_exhausted",
            Self::Guardrail { .. } => "guardrail_violation",
            Self::NoAgent(_) => "agent_not_found",
            Self::Stage { failure, .. } => failure.code(),
            Self::Unavailable(_) | Self::HandoffUnavailable(_) => "agent_unavailable",
            Self::Remote { error, .. } if error.kind.is_down() => "agent_unavailable",
            Self::Remote { .. } => "remote_agent_failed",
            Self::TimedOut { .. } => "timeout",
            Self::Refused(_) => "refused",
            Self::NotAllowed(_) => "permission_denied",
            Self::NoAdvice { .. } | Self::TooLittleAdvice { .. } => "advice_missing",
            Self::NoContribution { .. } => "no_contribution",
            Self::NotRouted { .. } => "routing_failed",
            Self::Condition { .. } => "invalid_condition",
            Self::Panicked(_) => "internal",
            Self::HandoffActive(_) => "handoff_active",
            Self::HandoffRejected { .. } => "handoff_rejected",
            Self::NoHandoff(_) => "no_active_handoff",
            Self::Store(error) => error.code(),
            Self::Superseded => "superseded",
            Self::Interrupted(_) => "interrupted",
            Self::EndedElsewhere { code, .. } => code,
            Self::Cancelled => "cancelled",
            Self::Waiting => "waiting",
            Self::InvalidAnswer(_) => "invalid_request",
            Self::DeadlineReached => "time",
        }
    }
}

impl Failure {
    /// The limit that a session reports if it answers in spite of this failure.
    pub(crate) fn limit_met(&self) -> LimitKind {
        match self {
            Self::BudgetExhausted { limit, .. } => *limit,
            _ => LimitKind::Time,
        }
    }

    /// The failure without the stages that wrap it.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Stage { failure, .. } => failure.cause(),
            _ => self,
        }
    }

    /// Adds the name of the stage that failed. Cancellations, timeouts and fatal failures stay as they are. So does a failure
    /// that names a stage, because the innermost name is the most precise.
    pub(crate) fn in_stage(self, stage: &AgentName, run: &CancellationToken) -> Self {
        match self {
            Self::Stage { .. } | Self::Cancelled | Self::TimedOut { .. } => self,
            _ if self.is_fatal(run) => self,
            _ => Self::Stage { stage: stage.clone(), failure: Box::new(self) },
        }
    }

    /// Changes the partial text of a [`Failure::TimedOut`].
    pub(crate) fn with_partial(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::TimedOut { limit, partial } => Self::TimedOut { limit, partial: partial.map(change) },
            other => other,
        }
    }

    /// Whether the failure ends the whole run, so that no pattern handles it. A child that was cancelled alone merely has no
    /// answer.
    pub(crate) fn is_fatal(&self, run: &CancellationToken) -> bool {
        match self {
            Self::Store(_) | Self::Superseded | Self::Interrupted(_) | Self::Waiting => true,
            Self::Cancelled => run.is_cancelled(),
            Self::Stage { failure, .. } => failure.is_fatal(run),
            _ => false,
        }
    }
}

fn list(names: &[AgentName]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
