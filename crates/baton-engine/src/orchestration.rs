//! Delegations and handoffs for programs that embed the engine, with errors by family.
//!
//! [`OrchestrationError`] is the base of the families: [`HandoffError`] if a handoff cannot be started, ended or resumed,
//! [`DelegationError`] if another agent was asked and gave no result, [`RunError`] for everything that has to do with one agent alone.
//! Each [`Failure`] belongs to one family ([`OrchestrationError::from`]) and has a stable code. What an operation on handoffs or a
//! delegation returns is always of its own family, whatever the cause: a handoff on a missing conversation is a [`HandoffError`] with
//! the code `thread_not_found`.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use baton_engine::{DelegationPlan, Engine, OrchestrationError, RunRequest, delegate, response_of};
//! # async fn example(engine: Arc<Engine>, request: RunRequest, plan: DelegationPlan) -> Result<(), OrchestrationError> {
//! for result in delegate(&engine, request, plan).await? {
//!     println!("{}", response_of(result)?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The failure of a run by its family:
//!
//! ```
//! use baton_engine::{Failure, OrchestrationError};
//!
//! let failure = Failure::HandoffActive("You're currently in a debugging session.".to_owned());
//! match OrchestrationError::from(failure) {
//!     OrchestrationError::Handoff(error) => assert_eq!(error.code(), "handoff_active"),
//!     OrchestrationError::Delegation(error) => println!("no result: {error}"),
//!     OrchestrationError::Run(error) => println!("{}: {error}", error.code()),
//! }
//! ```

use std::sync::Arc;

use baton_core::store::HandoffSession;
use baton_core::{HandoffId, RunId, SubAgentResult};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::handoff::{ExitRequest, HandoffResult, HandoffStarted, StartHandoff};
use crate::request::RunRequest;
use crate::results::results;
use crate::task::{DelegationPlan, RunTask};

/// Agents could not work together.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OrchestrationError {
    #[error(transparent)]
    Handoff(#[from] HandoffError),
    #[error(transparent)]
    Delegation(#[from] DelegationError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The family of a failure. A failed stage has the family of its cause.
impl From<Failure> for OrchestrationError {
    fn from(failure: Failure) -> Self {
        match failure.cause() {
            Failure::HandoffActive(_)
            | Failure::HandoffRejected { .. }
            | Failure::HandoffUnavailable(_)
            | Failure::NoHandoff(_) => HandoffError(failure).into(),
            Failure::Store(error) if error.is_about_handoff() => HandoffError(failure).into(),
            Failure::NoAgent(_)
            | Failure::Unavailable(_)
            | Failure::Remote { .. }
            | Failure::TimedOut { .. }
            | Failure::Refused(_)
            | Failure::InvalidInput { .. }
            | Failure::NoAdvice { .. }
            | Failure::TooLittleAdvice { .. }
            | Failure::NoContribution { .. }
            | Failure::NotRouted { .. } => DelegationError(failure).into(),
            // Each kind is named, so that a new one gets a family.
            Failure::Model(_)
            | Failure::NoModel(_)
            | Failure::Prompt { .. }
            | Failure::InvalidOutput(_)
            | Failure::Unpriced(_)
            | Failure::BudgetExhausted { .. }
            | Failure::Guardrail { .. }
            | Failure::Stage { .. }
            | Failure::NotAllowed(_)
            | Failure::Condition { .. }
            | Failure::Panicked(_)
            | Failure::Store(_)
            | Failure::Superseded
            | Failure::Interrupted(_)
            | Failure::EndedElsewhere { .. }
            | Failure::Cancelled
            | Failure::Waiting
            | Failure::InvalidAnswer(_)
            | Failure::DeadlineReached => RunError(failure).into(),
        }
    }
}

impl OrchestrationError {
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Handoff(HandoffError(failure))
            | Self::Delegation(DelegationError(failure))
            | Self::Run(RunError(failure)) => failure,
        }
    }

    /// Stable error code for programs.
    pub fn code(&self) -> &str {
        self.failure().code()
    }
}

/// A handoff was not started, ended or resumed.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct HandoffError(#[from] pub Failure);

/// A delegation has no results, or an agent has no response.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct DelegationError(#[from] pub Failure);

/// An agent has no answer, for a reason that has nothing to do with other agents.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct RunError(#[from] pub Failure);

macro_rules! codes {
    ($($family:ident),+) => {
        $(impl $family {
            /// Stable error code for programs.
            pub fn code(&self) -> &str {
                self.0.code()
            }
        })+
    };
}

codes!(HandoffError, DelegationError, RunError);

/// Asks the agents of `plan` and waits. Returns one result for each of them, in their order; that an agent failed is its result.
///
/// Dropping the future cancels the run.
pub async fn delegate(
    engine: &Arc<Engine>,
    request: RunRequest,
    plan: DelegationPlan,
) -> Result<Vec<SubAgentResult>, DelegationError> {
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let run = engine.start(RunRequest { task: RunTask::Delegate(plan), ..request }).await?;
    let run_id: RunId = run.id;
    match run.finish().await.failure {
        Some(failure) => Err(failure.into()),
        None => results(&*store, run_id).await.map_err(|error| Failure::from(error).into()),
    }
}

/// The response of one agent, or why it has none.
pub fn response_of(result: SubAgentResult) -> Result<String, DelegationError> {
    let SubAgentResult { agent_id, response, error, error_type, .. } = result;
    response.ok_or_else(|| {
        let message = format!("`{agent_id}` gave no response: {}", error.unwrap_or_default());
        Failure::EndedElsewhere { code: error_type.unwrap_or_else(|| "failed".to_owned()), message }.into()
    })
}

/// Like [`Engine::start_handoff`].
pub async fn start_handoff(
    engine: &Arc<Engine>,
    request: StartHandoff,
) -> Result<HandoffStarted, HandoffError> {
    Ok(engine.start_handoff(request).await?)
}

/// Like [`Engine::exit_handoff`].
pub async fn exit_handoff(engine: &Arc<Engine>, exit: ExitRequest) -> Result<HandoffSession, HandoffError> {
    Ok(engine.exit_handoff(exit).await?)
}

/// Like [`Engine::return_handoff`].
pub async fn return_handoff(
    engine: &Arc<Engine>,
    exit: ExitRequest,
    returned: HandoffResult,
) -> Result<HandoffSession, HandoffError> {
    Ok(engine.return_handoff(exit, returned).await?)
}

/// Like [`Engine::resume_handoff`].
pub async fn resume_handoff(
    engine: &Arc<Engine>,
    exit: ExitRequest,
    handoff: HandoffId,
) -> Result<(HandoffSession, RunId), HandoffError> {
    Ok(engine.resume_handoff(exit, handoff).await?)
}

#[cfg(test)]
mod tests {
    use baton_core::{AgentName, HandoffId, HumanDuration, StoreError};

    use super::*;
    use crate::bounds::InvocationError;

    fn family(failure: Failure) -> (&'static str, String) {
        let code = failure.code().to_owned();
        let error = OrchestrationError::from(failure);
        assert_eq!(error.code(), code, "the code stays");
        let family = match error {
            OrchestrationError::Handoff(_) => "handoff",
            OrchestrationError::Delegation(_) => "delegation",
            OrchestrationError::Run(_) => "run",
        };
        (family, code)
    }

    /// B20, C-28: each failure has one family and a stable code, and a stage that of its cause.
    #[test]
    fn b20_c_28_each_failure_has_one_family() {
        let agent = || AgentName::parse("a").unwrap();
        let handoff = HandoffId::from_uuid(uuid::Uuid::nil());
        let stage = |failure| Failure::Stage { stage: agent(), failure: Box::new(failure) };
        let timeout = Failure::TimedOut { limit: HumanDuration::from_secs(1), partial: None };
        let cases = [
            (Failure::HandoffActive(String::new()), "handoff", "handoff_active"),
            (Failure::NoHandoff("none"), "handoff", "no_active_handoff"),
            (Failure::Store(StoreError::HandoffActive(handoff)), "handoff", "handoff_active"),
            (Failure::NoAgent(agent()), "delegation", "agent_not_found"),
            (stage(InvocationError::NotOrchestrated(agent()).into()), "delegation", "refused"),
            (stage(timeout), "delegation", "timeout"),
            (Failure::NoModel("m".to_owned()), "run", "no_model"),
            (stage(Failure::Cancelled), "run", "cancelled"),
        ];
        for (failure, expected, code) in cases {
            assert_eq!(family(failure), (expected, code.to_owned()));
        }
    }
}
