//! Whom a router may choose, and how the request gets there.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{Agent, Router};

use crate::bounds::Edge;
use crate::failure::Failure;
use crate::given::Site;
use crate::outcome::Outcome;
use crate::patterns::fence::{Enriched, Written};
use crate::patterns::handover::{head, shared, tail};
use crate::patterns::past::Past;
use crate::patterns::transfers::REASON;
use crate::run::{self, Input, Sent};
use crate::scope::Scope;

/// What a router can do with a request.
#[derive(Debug)]
pub(super) struct Destinations {
    router: AgentName,
    /// Those that would not be refused.
    open: Vec<Arc<Agent>>,
    fallback: Option<Arc<Agent>>,
    /// As it was asked, without advice.
    input: Input,
}

impl Destinations {
    pub(super) fn of(scope: &Scope, router: &Router, input: &Input) -> Self {
        let known = |name: &AgentName| {
            let agent = scope.run.agents.get(name)?;
            scope.admits(agent, Edge::Route).is_ok().then(|| Arc::clone(agent))
        };
        Self {
            router: scope.name().clone(),
            open: router.destinations.iter().filter_map(known).collect(),
            fallback: router.fallback.as_ref().and_then(known),
            input: input.clone(),
        }
    }

    /// Nobody to choose from; what was asked can be shown all the same.
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

    /// The chosen one failed with `failure`: the fallback gets the request, if it is somebody else.
    pub(super) async fn instead_of(
        &self,
        site: &Site<'_>,
        failed: &AgentName,
        failure: Failure,
        mut input: Input,
    ) -> Result<Outcome, Failure> {
        let fallback = self.fallback.as_ref().filter(|fallback| fallback.name != *failed);
        let entered = match fallback {
            Some(fallback) => site.scope.enter(fallback, Edge::Route).await.ok(),
            None => None,
        };
        let Some(child) = entered else { return Err(failure.at_stage(failed, &site.scope)) };
        input.sent = Some(self.sent(&site.scope, &format!("`{failed}` failed: {failure}")));
        run_stage(child, input).await
    }

    /// Nobody was chosen, and `said` is what was heard instead.
    pub(super) async fn without_choice(&self, scope: &Scope, said: String) -> Result<Outcome, Failure> {
        let Some(fallback) = &self.fallback else {
            let candidates = self.open.iter().map(|agent| agent.name.clone()).collect();
            return Err(Failure::NotRouted { router: self.router.clone(), reason: said, candidates });
        };
        let child = scope.enter(fallback, Edge::Route).await?;
        let mut input = self.onward(scope, None, "").await?;
        input.sent = Some(self.sent(scope, &format!("nobody was chosen: {said}")));
        run_stage(child, input).await
    }

    pub(super) fn sent(&self, scope: &Scope, reason: &str) -> Sent {
        Sent { by: self.router.clone(), reason: head(&shared(&scope.agent, reason), REASON).into() }
    }

    /// The original input, as the router may show it, with what it adds.
    pub(super) async fn onward(
        &self,
        scope: &Scope,
        site: Option<&Site<'_>>,
        note: &str,
    ) -> Result<Input, Failure> {
        let giver = &scope.agent;
        let Past { history, summary, transcript } = Past::of(scope, &self.input.history, site).await?;
        let note = tail(&shared(giver, note), scope.run.engine.parts.policy.context_max_chars);
        let message = Enriched::of(&self.input)
            .shared(giver)
            .with_any(Written::Note, &giver.name, note)
            .with_any(Written::Summary, &giver.name, summary)
            .with_any(Written::Transcript, &giver.name, transcript);
        let output_schema = self.input.output_schema.clone();
        let format = scope.run.engine.parts.policy.enrich_format;
        Ok(message.render(format, Input { history: history.into(), output_schema, ..Input::default() }))
    }
}

/// What goes wrong is under the name of whoever had the request.
async fn run_stage(child: Scope, input: Input) -> Result<Outcome, Failure> {
    let place = child.clone();
    run::run(child, input).await.map_err(|failure| failure.at_stage(place.name(), &place))
}
