//! Others look at the request before the agent does, in parallel. Their advice is material, not instruction.

use baton_core::agent::{Advisor, Advisors, OnQuorumFail};
use baton_core::{AgentName, HumanDuration};
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::fence::{Enriched, Written};
use super::handover::{head, shared};
use crate::bounds::Edge;
use crate::children;
use crate::failure::Failure;
use crate::run::{Input, Sent};
use crate::scope::Scope;

/// Why advisors are asked: nobody decided it in this run.
const REASON: &str = "consulted before the answer";

/// In characters, of all advisors together. One that does not come to an end must not keep the agent from its answer.
const MOST_ADVICE: usize = 100_000;

/// What became of asking an advisor.
#[derive(Debug)]
struct Heard {
    /// Its place in the list of the agent's file.
    at: usize,
    advisor: AgentName,
    advice: Result<String, Failure>,
}

/// The input with the advice of the agent's advisors. Those who gave none are told of, not hidden.
pub(crate) async fn consult(scope: &Scope, input: &Input) -> Result<Input, Failure> {
    let advisors = &scope.agent.advisors;
    if advisors.agents.is_empty() {
        return Ok(input.clone());
    }
    let heard = Consultation::new(scope, advisors, input).hold().await?;
    let got = heard.iter().filter(|heard| heard.advice.is_ok()).count();
    let is_enough = got as u64 >= u64::from(advisors.min_success);
    if !is_enough && advisors.on_quorum_fail == OnQuorumFail::Refuse {
        return Err(Failure::TooLittleAdvice { got, asked: heard.len(), needed: advisors.min_success });
    }
    Ok(enriched(scope, input, heard))
}

/// What was asked first, then the advice in the order of the file, whoever was faster.
fn enriched(scope: &Scope, input: &Input, heard: Vec<Heard>) -> Input {
    let mut message = Enriched::of(input);
    let most = longest(&heard);
    for Heard { advisor, advice, .. } in heard {
        message = match advice {
            Ok(advice) => message.with(Written::Advice, &advisor, head(&advice, most)),
            Err(failure) => {
                message.with(Written::Failure, &advisor, shared(&scope.agent, &failure.to_string()))
            }
        };
    }
    message.render(scope.run.engine.parts.policy.enrich_format, input.clone())
}

/// The same as if each of them had written what `advice` says.
pub(crate) fn imagined(scope: &Scope, input: &Input, advice: impl Fn(&AgentName) -> String) -> Input {
    if scope.agent.advisors.agents.is_empty() {
        return input.clone();
    }
    let advisors = scope.agent.advisors.agents.iter().enumerate();
    let heard =
        advisors.map(|(at, one)| Heard { at, advisor: one.agent.clone(), advice: Ok(advice(&one.agent)) });
    enriched(scope, input, heard.collect())
}

/// What the advisors of the scope's agent are asked.
pub(crate) fn question(scope: &Scope, input: &Input) -> Input {
    let sent = Some(Sent { by: scope.name().clone(), reason: REASON.into() });
    let format = scope.run.engine.parts.policy.enrich_format;
    let shared = Enriched::of(input).shared(&scope.agent);
    shared.render(format, Input { sent, ..Input::default() })
}

/// How much of each advice is heard: all of it, unless all together is too much.
fn longest(heard: &[Heard]) -> usize {
    let advice = || heard.iter().filter_map(|heard| heard.advice.as_ref().ok());
    let total: usize = advice().map(|advice| advice.chars().count()).sum();
    if total > MOST_ADVICE { MOST_ADVICE / advice().count() } else { usize::MAX }
}

/// All advisors at work on the same question.
#[derive(Debug, Clone)]
struct Consultation {
    /// With a token of its own: what ends it ends all that are still at work.
    scope: Scope,
    question: Input,
    deadline: HumanDuration,
    until: Instant,
}

impl Consultation {
    fn new(scope: &Scope, advisors: &Advisors, input: &Input) -> Self {
        let (question, deadline) = (question(scope, input), advisors.deadline);
        Self { scope: scope.cancellable(), question, deadline, until: Instant::now() + deadline.get() }
    }

    /// Asks all of them, as many at once as may be at work, and waits for each: also for those that are told to end because a
    /// required one failed.
    async fn hold(&self) -> Result<Vec<Heard>, Failure> {
        let at_once = self.scope.run.engine.parts.policy.max_live_children.max(1);
        let advisors = self.scope.agent.advisors.agents.clone();
        let work = advisors.into_iter().enumerate().map(|(at, advisor)| {
            let consultation = self.clone();
            async move {
                let advice = consultation.ask(&advisor).await;
                (advisor.required, Heard { at, advisor: advisor.agent, advice })
            }
        });
        let mut at_work = stream::iter(work).buffer_unordered(at_once as usize);
        let (mut all, mut end) = (Vec::new(), None);
        while let Some((required, heard)) = at_work.next().await {
            if let Err(failure) = &heard.advice {
                end = self.end_after(end, failure, required, &heard.advisor);
            }
            all.push(heard);
        }
        all.sort_unstable_by_key(|heard| heard.at);
        end.map_or(Ok(all), Err)
    }

    /// Why there is no use in the others' advice any more, if so. They are told to end. What ends the run goes before everything.
    fn end_after(
        &self,
        end: Option<Failure>,
        failure: &Failure,
        required: bool,
        agent: &AgentName,
    ) -> Option<Failure> {
        let end = match end {
            _ if failure.ends_the_run(&self.scope) => Some(failure.clone()),
            None if self.scope.cancel.is_cancelled() => Some(Failure::Cancelled),
            None if required => Some(Failure::NoAdvice { agent: agent.clone(), reason: failure.to_string() }),
            end => end,
        };
        if end.is_some() {
            self.scope.cancel.cancel();
        }
        end
    }

    /// One advisor's answer, or that of whoever ends its chain.
    async fn ask(&self, advisor: &Advisor) -> Result<String, Failure> {
        let scope = &self.scope;
        if scope.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let agents = &scope.run.agents;
        let agent = agents.get(&advisor.agent).ok_or_else(|| Failure::NoAgent(advisor.agent.clone()))?;
        let child = scope.enter_in_turn(agent, Edge::Advisor).await?;
        let limit = advisor.timeout.min(self.deadline);
        // One that was at work before a crash has a record to answer from.
        if Instant::now() >= self.until && !scope.run.steps.contains_key(child.path()) {
            return Err(Failure::Late(limit));
        }
        let outcome = children::within_both(child, self.question.clone(), limit, self.until).await?;
        let speaker = agents.get(&outcome.agent).unwrap_or(agent);
        Ok(shared(agent, &shared(speaker, &outcome.answer.text)))
    }
}
