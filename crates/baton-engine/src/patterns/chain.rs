//! `handoff:` in the file: after an agent's part, who gives the final answer.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;
use serde::Serialize;

use super::fence::{Enriched, Written};
use super::handover::shared;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::prompt;
use crate::run::{Input, Sent};
use crate::scope::Scope;
use crate::stage;

/// Why a stage gets the baton: nobody decided it in this run.
const REASON: &str = "the file of the stage before hands its answer on";

/// A chain on its way. Its stages stand side by side below where it began, whatever its length.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    start: &'a Scope,
    /// What was asked where it began.
    input: &'a Input,
    /// The same as the next stage may see it. What one giver masks stays masked for all that follow.
    asked: Enriched,
    giver: Arc<Agent>,
    /// Stages after the first.
    passed: Vec<AgentName>,
}

/// The next stage of a chain.
#[derive(Debug)]
pub(crate) struct Link {
    scope: Scope,
    input: Input,
}

/// What conditions see. Validation knows the same names.
#[derive(Debug, Serialize)]
struct Names<'a> {
    output: &'a str,
    input: &'a str,
    user: &'a str,
}

impl<'a> Chain<'a> {
    pub(crate) fn new(start: &'a Scope, input: &'a Input) -> Self {
        let giver = Arc::clone(&start.agent);
        Self { start, input, asked: Enriched::of(input), giver, passed: Vec::new() }
    }

    /// The part of the agent that the chain begins with. Whoever hands nothing on is no stage.
    pub(crate) async fn first(&self) -> Result<Outcome, Failure> {
        let result = stage::recorded(self.start, self.input).await;
        if self.giver.handoff.is_empty() {
            return result;
        }
        result.map_err(|failure| failure.at_stage(&self.giver.name, self.start))
    }

    /// Who comes next and what they are told, or nobody if the answer is the last one.
    pub(crate) async fn next(&mut self, outcome: &Outcome) -> Result<Option<Link>, Failure> {
        let Some(to) = self.destination(outcome)? else { return Ok(None) };
        if self.start.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let entered = self.enter(&to).await;
        let (target, scope) = entered.map_err(|failure| failure.at_stage(&to, self.start))?;
        let input = self.told(outcome);
        self.giver = target;
        self.passed.push(to);
        Ok(Some(Link { scope, input }))
    }

    async fn enter(&self, to: &AgentName) -> Result<(Arc<Agent>, Scope), Failure> {
        let target = self.start.run.agents.get(to).ok_or_else(|| Failure::NoAgent(to.clone()))?;
        Ok((Arc::clone(target), self.start.enter_next(target, &self.passed).await?))
    }

    /// The first whose condition holds.
    fn destination(&self, outcome: &Outcome) -> Result<Option<AgentName>, Failure> {
        if self.giver.handoff.is_empty() {
            return Ok(None);
        }
        let input = Enriched::of(self.input).request();
        for destination in &self.giver.handoff {
            let Some(condition) = &destination.when else { return Ok(Some(destination.to.clone())) };
            let user = self.start.run.caller.user.as_str();
            let names = Names { output: &outcome.answer.text, input: &input, user };
            let holds = prompt::holds(condition, names).map_err(|error| Failure::Condition {
                agent: self.giver.name.clone(),
                message: format!("`{condition}`: {error}"),
            });
            if holds? {
                return Ok(Some(destination.to.clone()));
            }
        }
        Ok(None)
    }

    /// The answer so far and what was asked, nothing of what was said before. Only the last stage answers in the caller's form, and
    /// a stage that is not the last does not look at it.
    pub(crate) fn told(&mut self, outcome: &Outcome) -> Input {
        self.asked = self.asked.clone().shared(&self.giver);
        let by = &self.giver.name;
        // Somebody else may have spoken for the giver.
        let speaker = self.start.run.agents.get(&outcome.agent).unwrap_or(&self.giver);
        let answer = shared(&self.giver, &shared(speaker, &outcome.answer.text));
        let message = self.asked.clone().with(Written::Answer, by, answer);
        let output_schema = self.input.output_schema.clone();
        let sent = Some(Sent { by: by.clone(), reason: REASON.into() });
        let format = self.start.run.engine.parts.policy.enrich_format;
        let draft = Some(Arc::new(outcome.clone()));
        message.render(format, Input { output_schema, sent, draft, ..Input::default() })
    }
}

impl Link {
    /// The stage's part. What goes wrong ends the chain, under the stage's name.
    pub(crate) async fn follow(self) -> Result<Outcome, Failure> {
        let result = stage::recorded(&self.scope, &self.input).await;
        result.map_err(|failure| failure.at_stage(self.scope.name(), &self.scope))
    }
}
