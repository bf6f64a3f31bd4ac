//! `handoff:` in an agent's file: a chain of stages. Each stage passes its answer to the next one; the last stage answers.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;
use serde::Serialize;

use crate::failure::Failure;
use crate::input::{BlockKind, PromptEnvelope};
use crate::input::{Input, InputSource};
use crate::invocation;
use crate::outcome::Outcome;
use crate::prompt;
use crate::redaction::redact;
use crate::scope::Scope;

/// Recorded reason of a pass to the next stage, which the file declares and no agent decides.
const CHAIN_REASON: &str = "the file of the stage before hands its answer on";

/// A running chain. All stages are children of the scope in which the chain started, so its length does not add to the depth.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    start: &'a Scope,
    /// The input of the first stage.
    input: &'a Input,
    /// The request as the next stage may see it. Redactions accumulate: what one stage masks stays masked for all that follow.
    asked: PromptEnvelope,
    giver: Arc<Agent>,
    /// Stages after the first one that have been entered.
    passed: Vec<AgentName>,
}

/// Variables of a condition in `handoff:`. Validation of agent files uses the same names.
#[derive(Debug, Serialize)]
struct ConditionVariables<'a> {
    output: &'a str,
    input: &'a str,
    user: &'a str,
}

impl<'a> Chain<'a> {
    pub(crate) fn new(start: &'a Scope, input: &'a Input) -> Self {
        let giver = Arc::clone(start.agent());
        Self { start, input, asked: PromptEnvelope::of(input), giver, passed: Vec::new() }
    }

    /// Enters the next stage and builds its input. Returns `None` if no destination matches, so the answer is final. Fails with
    /// [`Failure::Cancelled`] if the scope is cancelled.
    pub(crate) async fn next(&mut self, outcome: &Outcome) -> Result<Option<(Scope, Input)>, Failure> {
        let Some(to) = self.destination(outcome)? else { return Ok(None) };
        if self.start.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let entered = self.enter(&to).await;
        let (target, scope) =
            entered.map_err(|failure| failure.in_stage(&to, &self.start.run.control.cancel))?;
        let input = self.next_input(outcome);
        self.giver = target;
        self.passed.push(to);
        Ok(Some((scope, input)))
    }

    async fn enter(&self, to: &AgentName) -> Result<(Arc<Agent>, Scope), Failure> {
        let target = self.start.run.agents.get(to).ok_or_else(|| Failure::NoAgent(to.clone()))?;
        Ok((Arc::clone(target), invocation::enter_stage(self.start, target, &self.passed).await?))
    }

    /// The first destination whose condition holds.
    fn destination(&self, outcome: &Outcome) -> Result<Option<AgentName>, Failure> {
        if self.giver.handoff.is_empty() {
            return Ok(None);
        }
        let input = PromptEnvelope::of(self.input).request();
        for destination in &self.giver.handoff {
            let Some(condition) = &destination.when else { return Ok(Some(destination.to.clone())) };
            let user = self.start.run.caller.user.as_str();
            let names = ConditionVariables { output: &outcome.answer.text, input: &input, user };
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

    /// Builds the next stage's input: the request and the answer so far, without the history. The output schema of the caller is
    /// passed along; only the last stage applies it.
    pub(crate) fn next_input(&mut self, outcome: &Outcome) -> Input {
        self.asked = self.asked.clone().redacted_by(&self.giver);
        let by = &self.giver.name;
        // The giver may have passed the baton on, so the answer can be another agent's.
        let speaker = self.start.run.agents.get(&outcome.agent).unwrap_or(&self.giver);
        let answer = redact(&self.giver, &redact(speaker, &outcome.answer.text));
        let message = self.asked.clone().with(BlockKind::Answer, by, answer);
        let output_schema = self.input.output_schema.clone();
        let sent = Some(InputSource { by: by.clone(), reason: CHAIN_REASON.into() });
        let format = self.start.run.policy.enrich_format;
        let draft = Some(Arc::new(outcome.clone()));
        message.render(format, Input { output_schema, sent, draft, ..Input::default() })
    }
}
