//! Delegations and handoffs for programs that embed the engine, with errors by family.
//!
//! [`OrchestrationError`] is the base of both families: [`DelegationError`] if a delegation has no results or one agent has no response,
//! [`HandoffError`] if a handoff cannot be started, ended or resumed. Each has the [`Failure`] and its stable code.
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
}

impl OrchestrationError {
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Handoff(HandoffError(failure)) | Self::Delegation(DelegationError(failure)) => failure,
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
