//! The agents that a router may choose, and the input that they get.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{Agent, Router};

use crate::bounds::InvocationKind;
use crate::engine_tool::CallSite;
use crate::failure::Failure;
use crate::input::{BlockKind, PromptEnvelope};
use crate::input::{Input, InputSource};
use crate::invocation;
use crate::outcome::Outcome;
use crate::patterns::shared_history::SharedHistory;
use crate::patterns::transfers::MAX_REASON_CHARS;
use crate::redaction::{head, redact, tail};
use crate::run;
use crate::scope::Scope;

/// The candidates and the fallback of a router, with the request.
#[derive(Debug)]
pub(super) struct Destinations {
    router: AgentName,
    /// Candidates that `Scope::admits` does not refuse.
    open: Vec<Arc<Agent>>,
    fallback: Option<Arc<Agent>>,
    /// The request without advice.
    input: Input,
}

impl Destinations {
    pub(super) fn of(scope: &Scope, router: &Router, input: &Input) -> Self {
        let known = |name: &AgentName| {
            let agent = scope.run.agents.get(name)?;
            invocation::admits(scope, agent, InvocationKind::Route).is_ok().then(|| Arc::clone(agent))
        };
        Self {
            router: scope.name().clone(),
            open: router.destinations.iter().filter_map(known).collect(),
            fallback: router.fallback.as_ref().and_then(known),
            input: input.clone(),
        }
    }

    /// No candidates. Used to build the input of a chosen agent.
    pub(super) fn none(scope: &Scope, input: &Input) -> Self {
        Self { router: scope.name().clone(), open: Vec::new(), fallback: None, input: input.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn has_fallback(&self) -> bool {
        self.fallback.is_some()
    }

    pub(super) fn input(&self) -> &Input {
        &self.input
    }

    pub(super) fn all(&self) -> &[Arc<Agent>] {
        &self.open
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<Agent>> {
        self.open.iter().find(|agent| agent.name.as_str() == name)
    }

    pub(super) fn names(&self) -> String {
        self.open.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Passes the request to the fallback after `failed` has failed. Returns `failure` if there is no other agent to try.
    pub(super) async fn run_fallback(
        &self,
        site: &CallSite<'_>,
        failed: &AgentName,
        failure: Failure,
        mut input: Input,
    ) -> Result<Outcome, Failure> {
        let fallback = self.fallback.as_ref().filter(|fallback| fallback.name != *failed);
        let entered = match fallback {
            Some(fallback) => invocation::enter(&site.scope, fallback, InvocationKind::Route).await.ok(),
            None => None,
        };
        let Some(child) = entered else {
            return Err(failure.in_stage(failed, &site.scope.run.control.cancel));
        };
        input.sent = Some(self.sent(&site.scope, &format!("`{failed}` failed: {failure}")));
        run_stage(child, input).await
    }

    /// Passes the request to the fallback because the router chose no agent. `said` is the router's text or error.
    pub(super) async fn without_choice(&self, scope: &Scope, said: String) -> Result<Outcome, Failure> {
        let Some(fallback) = &self.fallback else {
            let candidates = self.open.iter().map(|agent| agent.name.clone()).collect();
            return Err(Failure::NotRouted { router: self.router.clone(), reason: said, candidates });
        };
        let child = invocation::enter(scope, fallback, InvocationKind::Route).await?;
        let mut input = self.destination_input(scope, None, "").await?;
        input.sent = Some(self.sent(scope, &format!("no agent was chosen: {said}")));
        run_stage(child, input).await
    }

    pub(super) fn sent(&self, scope: &Scope, reason: &str) -> InputSource {
        InputSource {
            by: self.router.clone(),
            reason: head(&redact(scope.agent(), reason), MAX_REASON_CHARS).into(),
        }
    }

    /// The input for a chosen agent: the redacted request and history, with the router's `note`.
    pub(super) async fn destination_input(
        &self,
        scope: &Scope,
        site: Option<&CallSite<'_>>,
        note: &str,
    ) -> Result<Input, Failure> {
        let giver = scope.agent();
        let SharedHistory { history, summary, transcript } =
            SharedHistory::of(scope, &self.input.history, site).await?;
        let note = tail(&redact(giver, note), scope.run.policy.context_max_chars);
        let message = PromptEnvelope::of(&self.input)
            .redacted_by(giver)
            .with_any(BlockKind::Note, &giver.name, note)
            .with_any(BlockKind::Summary, &giver.name, summary)
            .with_any(BlockKind::Transcript, &giver.name, transcript);
        let output_schema = self.input.output_schema.clone();
        let format = scope.run.policy.enrich_format;
        Ok(message.render(format, Input { history: history.into(), output_schema, ..Input::default() }))
    }
}

/// Runs the child and attributes a failure to it.
async fn run_stage(child: Scope, input: Input) -> Result<Outcome, Failure> {
    let place = child.clone();
    run::run(child, input).await.map_err(|failure| failure.in_stage(place.name(), &place.run.control.cancel))
}
