//! Runs an agent and, recursively, the agents it invokes. In this order:
//!
//! 1. [`run_recorded`]: the agent's own stage, unless it finished before a crash: the advisors, then the team, the router or the
//!    session, in whose turns the agent calls others or passes the baton.
//! 2. [`run_chain`]: the agents that its file hands the answer on to, one after the other.
//! 3. [`show`]: publishes the answer to the user, if it was held back so far.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use baton_core::MessageId;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::{NewEvent, StepKind};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::failure::Failure;
use crate::guard::GuardSide;
use crate::guardrails;
use crate::input::Input;
use crate::learning;
use crate::outcome::{Answer, Outcome, RecordedSession};
use crate::patterns::calling::targets;
use crate::patterns::chain::Chain;
use crate::patterns::{self, advisors, router, team};
use crate::remote;
use crate::scope::Scope;
use crate::session::{self, SessionSpec};
use crate::stage;
use crate::structured_input;
use crate::telemetry;
use crate::workflow;

/// Runs the scope's agent on `input` and the agents it invokes: advisors, its session or its team, those it passes the baton to,
/// and last its own `handoff`. Returns the answer of the agent that had the baton last. If it is for the user, it has been
/// published.
pub(crate) fn run(scope: Scope, input: Input) -> BoxFuture<'static, Result<Outcome, Failure>> {
    if scope.session.is_root() {
        return Box::pin(run_agent(scope, input));
    }
    // Its own task, because nested agents would exceed the stack. Dropping the future aborts the task.
    Box::pin(async move {
        let (place, tasks) = (scope.clone(), scope.run.control.tasks.clone());
        match AbortOnDropHandle::new(tasks.spawn(run_agent(scope, input).in_current_span())).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => Err(panic_failure(&place, &*error.into_panic())),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        }
    })
}

async fn run_agent(scope: Scope, input: Input) -> Result<Outcome, Failure> {
    if scope.session.is_root()
        && let Some(violation) = Box::pin(guardrails::check_input(&scope, &input)).await?
    {
        let answer = Answer::without_turn(violation.for_user(GuardSide::Input));
        let agent = scope.name().clone();
        let mut refused = Outcome { answer, agent, is_shown: false, dissent: Vec::new() };
        show(&scope, &mut refused).await?;
        return Ok(refused);
    }
    let result = run_recorded(&scope, &input).await;
    let mut outcome = if scope.agent().handoff.is_empty() {
        result?
    } else {
        let first = result.map_err(|failure| failure.in_stage(scope.name(), &scope.run.control.cancel))?;
        Box::pin(run_chain(&scope, &input, first)).await?
    };
    show(&scope, &mut outcome).await?;
    Ok(outcome)
}

/// Runs the stages after the first one. A failure ends the chain and is attributed to its stage. A loop and no recursion, because
/// chains may be long.
async fn run_chain(scope: &Scope, input: &Input, first: Outcome) -> Result<Outcome, Failure> {
    let (mut chain, mut outcome) = (Chain::new(scope, input), first);
    while let Some((stage, input)) = chain.next(&outcome).await? {
        let result = Box::pin(run_recorded(&stage, &input)).await;
        outcome = result.map_err(|failure| failure.in_stage(stage.name(), &stage.run.control.cancel))?;
    }
    Ok(outcome)
}

/// Executes the agent's stage, or returns its recorded result. The root session is recorded with the run.
async fn run_recorded(scope: &Scope, input: &Input) -> Result<Outcome, Failure> {
    if scope.session.is_root() {
        return run_catching_panic(scope, input).await;
    }
    if let Some(recorded) = scope.step().finished::<RecordedSession>()? {
        return recorded.result();
    }
    // Boxed: they write records, and last shorter than the stage.
    Box::pin(stage::begin(scope, input)).await?;
    let result = run_catching_panic(scope, input).await.map_err(|failure| scope.or_timeout(failure));
    Box::pin(stage::finish(scope, input, &result)).await?;
    result
}

/// A panic becomes a failure of the agent, and the invoking agent continues.
async fn run_catching_panic(scope: &Scope, input: &Input) -> Result<Outcome, Failure> {
    let span = telemetry::agent(scope, input.sent.as_ref());
    // Boxed first, because each wrapper moves the future.
    let stage = Box::pin(run_stage(scope, input)).instrument(span.clone());
    let result = AssertUnwindSafe(stage).catch_unwind().await;
    let result = result.unwrap_or_else(|panic| Err(panic_failure(scope, &*panic)));
    telemetry::agent_ended(&span, scope, &result);
    result
}

/// Logs a panic and turns it into a failure.
fn panic_failure(scope: &Scope, panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(run = %scope.run.run_id, path = scope.path(), panic = text, "an agent's part panicked");
    Failure::Panicked(scope.name().clone())
}

/// Executes the agent's stage without recording it.
async fn run_stage(scope: &Scope, input: &Input) -> Result<Outcome, Failure> {
    if scope.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    if !scope.session.is_root()
        && let Some(violation) = Box::pin(guardrails::check_input(scope, input)).await?
    {
        return Err(guardrails::failure(scope.name(), GuardSide::Input, violation));
    }
    structured_input::check(scope, input)?;
    // The text of a stage of a chain is not the final answer, or not yet.
    let scope = &if scope.agent().handoff.is_empty() { scope.clone() } else { scope.internal() };
    // An agent that always hands off does not give the answer that the schema describes.
    let output_schema = input.output_schema.clone().filter(|_| !scope.agent().always_hands_off());
    let history = guardrails::allowed_history(scope, input).unwrap_or_else(|| Arc::clone(&input.history));
    let input = &Input { output_schema, history, draft: None, ..input.clone() };
    let is_remote = scope.agent().kind.is_remote();
    if !is_remote {
        scope.models().learn(scope.agent()).await;
    }
    targets::record_denied_delegation(scope).await?;
    let mut advised_input = advisors::consult(scope, input).await?;
    if is_remote {
        return Box::pin(remote::session::run(scope, &advised_input)).await;
    }
    if let Some(team) = &scope.agent().team {
        return Box::pin(team::discuss(scope, team, input, &advised_input)).await;
    }
    if let Some(router) = &scope.agent().router {
        return Box::pin(router::route(scope, router, input, &advised_input)).await;
    }
    if let Some(guide) = workflow::guide(scope).filter(|_| scope.session.lease.is_some()) {
        return Box::pin(workflow::guided::answer(scope, &*guide, input)).await;
    }
    if scope.session.lease.is_some() {
        Box::pin(workflow::run_automatic_steps(scope)).await?;
    }
    Box::pin(learning::add_hint_for_main(scope, &mut advised_input)).await?;
    let spec = SessionSpec::new(scope, &advised_input, patterns::tools(scope, input));
    Ok(session::run_session(scope, spec).await?.outcome(scope))
}

/// Publishes an answer that was held back until its agent was certain.
pub(crate) async fn show(scope: &Scope, outcome: &mut Outcome) -> Result<(), Failure> {
    if outcome.is_shown || !scope.is_user_facing() {
        return Ok(());
    }
    outcome.is_shown = true;
    let place = scope.at("say");
    let message_id = MessageId::from_uuid(place.uuid());
    outcome.answer.message_id = Some(message_id);
    if place.step().is_finished() {
        return Ok(());
    }
    let speaker = scope.run.agents.get(&outcome.agent).unwrap_or(scope.agent());
    let said = EventKind::TextFinished {
        message_id,
        speaker: scope.speaker(speaker),
        text: outcome.answer.text.clone(),
    };
    let event = NewEvent { agent: outcome.agent.clone(), ..place.event(Visibility::User, said) };
    Box::pin(place.step().finish(StepKind::Say, &outcome.answer.text, vec![event], Vec::new())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<F>(_: impl FnOnce(&'static Scope, &'static Input) -> F) -> usize {
        size_of::<F>()
    }

    /// A future lasts as long as the model's reply, so what is rarely awaited is boxed.
    #[test]
    fn futures_of_an_agent_are_small() {
        let agent = size(|scope, input| run_agent(scope.clone(), input.clone()));
        let stage = size(run_stage);
        assert!(agent <= 1_024 && stage <= 3_072, "agent {agent}, stage {stage}");
    }
}
