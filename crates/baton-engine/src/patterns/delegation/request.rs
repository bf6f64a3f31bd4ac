//! A delegation that a client requests. Agents and strategy are fixed before the run begins.

use std::pin::pin;
use std::sync::Arc;

use baton_core::SubAgentResult;
use baton_core::agent::{Agent, PlanningStrategy, Strategy, Synthesis};
use baton_core::event::EventKind;

use super::buffer::{ResultBuffer, synthesis};
use super::fan_out::{self, FanOutOptions, ResultAudience};
use super::{max_parallel, report};
use crate::failure::Failure;
use crate::input::Input;
use crate::input::{BlockKind, PromptEnvelope};
use crate::outcome::Answer;
use crate::outcome::Outcome;
use crate::patterns::calling::progress::ProgressNotifier;
use crate::redaction::{head, redact};
use crate::results;
use crate::run::show;
use crate::scope::Scope;
use crate::session::{self, SessionSpec};
use crate::task::DelegationPlan;

/// Maximum length of all results together, in characters. Keeps a verbose agent from filling the context of the synthesis.
const MAX_RESULT_CHARS: usize = 100_000;

/// Runs the agents of the plan and synthesizes one answer. Returns `None` for [`Synthesis::None`]. `scope` is the run's own; its
/// agent runs only for [`Synthesis::Model`].
pub(crate) async fn answer(
    scope: &Scope,
    input: &Input,
    delegation: &DelegationPlan,
) -> Result<Option<Outcome>, Failure> {
    let results = collect_results(scope, input, delegation).await?;
    let mut outcome = match delegation.synthesis {
        Synthesis::None => return Ok(None),
        Synthesis::Concat => concatenated(scope, &results),
        Synthesis::Model => synthesize(scope, input, &results, delegation.strategy).await?,
    };
    show(scope, &mut outcome).await?;
    Ok(Some(outcome))
}

/// Results in the order of the plan. Taken from the journal if they were committed before a crash.
async fn collect_results(
    scope: &Scope,
    input: &Input,
    delegation: &DelegationPlan,
) -> Result<Vec<SubAgentResult>, Failure> {
    if let Some(results) = results::kept_results(scope)? {
        return Ok(results);
    }
    let (asked, agents) = (delegation.asked(), &scope.run.agents);
    let known: Vec<Arc<Agent>> = asked.iter().filter_map(|name| agents.get(*name).cloned()).collect();
    let mut results = run_with_deadline(scope, &known, input, delegation).await?.results();
    for (at, name) in asked.into_iter().enumerate() {
        // The agent was removed after the request was accepted.
        if !agents.contains_key(name) {
            let gone = Failure::NoAgent(name.clone());
            results.insert(at, SubAgentResult::failed(name.clone(), gone.to_string(), gone.code()));
        }
    }
    results::keep_results(scope, &results).await?;
    Ok(results)
}

/// Limits the whole delegation to the run's deadline. Agents that are late are cancelled and awaited.
async fn run_with_deadline(
    scope: &Scope,
    agents: &[Arc<Agent>],
    input: &Input,
    delegation: &DelegationPlan,
) -> Result<ResultBuffer, Failure> {
    let DelegationPlan { strategy, timeout, .. } = *delegation;
    let options = FanOutOptions {
        strategy,
        limit: scope.run.models.for_sub_agents().scaled_timeout(timeout, agents),
        max_parallel: max_parallel(scope),
        audience: ResultAudience::Caller,
    };
    let message = redact(scope.agent(), input.words().trim());
    let (scope, notifier) = (scope.with_time_limit(), ProgressNotifier::default());
    let mut work =
        pin!(notifier.while_waiting(&scope, options.limit, fan_out::run(&scope, agents, &message, options)));
    tokio::select! {
        biased;
        done = &mut work => done,
        () = tokio::time::sleep_until(scope.session.bounds.deadline) => {
            scope.cancel.time_out(scope.session.bounds.limits.timeout);
            work.await
        }
    }
}

fn concatenated(scope: &Scope, results: &[SubAgentResult]) -> Outcome {
    let answer = Answer::without_turn(synthesis(results));
    Outcome { answer, agent: scope.name().clone(), is_shown: false, dissent: Vec::new() }
}

/// Lets the run's agent write one answer. If its model fails, the results are concatenated instead.
async fn synthesize(
    scope: &Scope,
    input: &Input,
    results: &[SubAgentResult],
    strategy: Strategy,
) -> Result<Outcome, Failure> {
    let session_scope = synthesis_scope(scope);
    let mut spec = SessionSpec::new(
        &session_scope,
        &synthesis_input(scope, input, &relevant(results, strategy)),
        Vec::new(),
    );
    spec.own_tools = false;
    match session::run_session(&session_scope, spec).await {
        Ok(ended) => Ok(ended.outcome(&session_scope)),
        Err(failure @ (Failure::Model(_) | Failure::NoModel(_))) => {
            let text = format!("no answer could be written from the results, so they are listed: {failure}");
            scope.at("say").trace(EventKind::Status { text }).await;
            Ok(concatenated(scope, results))
        }
        Err(failure) => Err(failure),
    }
}

/// The synthesis does not plan.
fn synthesis_scope(scope: &Scope) -> Scope {
    let agent = Agent { planning_strategy: PlanningStrategy::NativeReact, ..Agent::clone(scope.agent()) };
    scope.clone().with_session(|session| session.agent = Arc::new(agent))
}

/// The results that count. After a first success, failures are left out.
fn relevant(results: &[SubAgentResult], strategy: Strategy) -> Vec<&SubAgentResult> {
    let is_won = strategy == Strategy::FirstSuccess && results.iter().any(|result| result.success);
    results.iter().filter(|result| result.is_used() && (result.success || !is_won)).collect()
}

/// The request with all results as blocks.
fn synthesis_input(scope: &Scope, input: &Input, results: &[&SubAgentResult]) -> Input {
    let most = max_chars_each(results);
    let mut message = PromptEnvelope::of(input);
    for result in results {
        let (agent, error) = (&result.agent_id, result.error.clone().unwrap_or_default());
        message = match &result.response {
            Some(response) => message.with(BlockKind::Result, agent, head(response, most)),
            None => message.with(BlockKind::NoResult, agent, error),
        };
    }
    let message = message.with_instruction(report::instruction(results));
    message.render(scope.run.policy.enrich_format, input.clone())
}

/// Maximum length of each result, in characters. Unlimited unless all together exceed [`MAX_RESULT_CHARS`].
fn max_chars_each(results: &[&SubAgentResult]) -> usize {
    let responses = || results.iter().filter_map(|result| result.response.as_ref());
    let total: usize = responses().map(|response| response.chars().count()).sum();
    if total > MAX_RESULT_CHARS { MAX_RESULT_CHARS / responses().count() } else { usize::MAX }
}
