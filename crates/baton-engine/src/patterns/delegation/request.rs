//! A delegation that a person asked for: who is asked, and how, is decided before the run begins.

use std::pin::pin;
use std::sync::Arc;

use baton_core::SubAgentResult;
use baton_core::agent::{Agent, PlanningStrategy, Strategy, Synthesis};
use baton_core::event::EventKind;

use super::buffer::{Buffer, synthesis};
use super::fan::{self, Hearer, Terms};
use super::{at_once, report};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::patterns::calling::voice::Voice;
use crate::patterns::fence::{Enriched, Written};
use crate::patterns::handover::{head, shared};
use crate::run::{Input, show};
use crate::scope::Scope;
use crate::session::{self, Answer, Brief};
use crate::task::Delegation;

/// In characters, of all results together. One that does not come to an end must not keep the answer from being written.
const MOST_RESULTS: usize = 100_000;

/// Asks them, and makes one answer of what they bring, if one is wanted. `scope` is the run's own; its agent works only when it has
/// to write that answer.
pub(crate) async fn answer(
    scope: &Scope,
    input: &Input,
    delegation: &Delegation,
) -> Result<Option<Outcome>, Failure> {
    let results = gather(scope, input, delegation).await?;
    let mut outcome = match delegation.synthesis {
        Synthesis::None => return Ok(None),
        Synthesis::Concat => concatenated(scope, &results),
        Synthesis::Model => written(scope, input, &results, delegation.strategy).await?,
    };
    show(scope, &mut outcome).await?;
    Ok(Some(outcome))
}

/// What each of them brought, in the order in which they are listed. Those who ended before a crash are not asked again.
async fn gather(
    scope: &Scope,
    input: &Input,
    delegation: &Delegation,
) -> Result<Vec<SubAgentResult>, Failure> {
    if let Some(results) = scope.kept_results()? {
        return Ok(results);
    }
    let (asked, agents) = (delegation.asked(), &scope.run.agents);
    let known: Vec<Arc<Agent>> = asked.iter().filter_map(|name| agents.get(*name).cloned()).collect();
    let mut results = in_time(scope, &known, input, delegation).await?.results();
    for (at, name) in asked.into_iter().enumerate() {
        // It was there when the message came in.
        if !agents.contains_key(name) {
            let gone = Failure::NoAgent(name.clone());
            results.insert(at, SubAgentResult::failed(name.clone(), gone.to_string(), gone.code()));
        }
    }
    scope.keep_results(&results).await?;
    Ok(results)
}

/// All of them together have no more time than the run's agent has for everything: then those who are late are told to end.
async fn in_time(
    scope: &Scope,
    agents: &[Arc<Agent>],
    input: &Input,
    delegation: &Delegation,
) -> Result<Buffer, Failure> {
    let Delegation { strategy, timeout, .. } = *delegation;
    let terms = Terms { strategy, limit: timeout, at_once: at_once(scope), hearer: Hearer::Caller };
    let message = shared(&scope.agent, input.words().trim());
    let (scope, voice) = (scope.timed(), Voice::default());
    let mut work = pin!(voice.while_waiting(&scope, terms.limit, fan::out(&scope, agents, &message, terms)));
    tokio::select! {
        biased;
        done = &mut work => done,
        () = tokio::time::sleep_until(scope.bounds.deadline) => {
            scope.run_out(scope.bounds.limits.timeout);
            work.await
        }
    }
}

fn concatenated(scope: &Scope, results: &[SubAgentResult]) -> Outcome {
    let answer = Answer::words(synthesis(results));
    Outcome { answer, agent: scope.name().clone(), is_shown: false, dissent: Vec::new() }
}

/// The run's agent writes one answer. What others found is not lost when its model is away.
async fn written(
    scope: &Scope,
    input: &Input,
    results: &[SubAgentResult],
    strategy: Strategy,
) -> Result<Outcome, Failure> {
    let seat = seat(scope);
    let mut brief = Brief::new(&seat, &told(scope, input, &relevant(results, strategy)), Vec::new());
    brief.own_tools = false;
    match session::hold(&seat, brief).await {
        Ok(ended) => Ok(ended.outcome(&seat)),
        Err(failure @ (Failure::Model(_) | Failure::NoModel(_))) => {
            let text =
                format!("nobody could write an answer of the results, so they stand side by side: {failure}");
            scope.at("say").trace(EventKind::Status { text }).await;
            Ok(concatenated(scope, results))
        }
        Err(failure) => Err(failure),
    }
}

/// It only writes: nothing is left to plan.
fn seat(scope: &Scope) -> Scope {
    let mut seat = scope.clone();
    seat.agent =
        Arc::new(Agent { planning_strategy: PlanningStrategy::NativeReact, ..Agent::clone(&scope.agent) });
    seat
}

/// Where one success is enough, it does not matter who failed.
fn relevant(results: &[SubAgentResult], strategy: Strategy) -> Vec<&SubAgentResult> {
    let is_won = strategy == Strategy::FirstSuccess && results.iter().any(|result| result.success);
    results.iter().filter(|result| result.is_used() && (result.success || !is_won)).collect()
}

/// What was asked, and what each of them brought.
fn told(scope: &Scope, input: &Input, results: &[&SubAgentResult]) -> Input {
    let most = longest(results);
    let mut message = Enriched::of(input);
    for result in results {
        let (agent, error) = (&result.agent_id, result.error.clone().unwrap_or_default());
        message = match &result.response {
            Some(response) => message.with(Written::Result, agent, head(response, most)),
            None => message.with(Written::NoResult, agent, error),
        };
    }
    let message = message.with_instruction(report::instruction(results));
    message.render(scope.run.engine.parts.policy.enrich_format, input.clone())
}

/// How much of each result is read: all of it, unless all together is too much.
fn longest(results: &[&SubAgentResult]) -> usize {
    let responses = || results.iter().filter_map(|result| result.response.as_ref());
    let total: usize = responses().map(|response| response.chars().count()).sum();
    if total > MOST_RESULTS { MOST_RESULTS / responses().count() } else { usize::MAX }
}
