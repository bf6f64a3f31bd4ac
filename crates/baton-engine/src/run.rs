//! The walk: an agent and, recursively, whoever it involves. In this order:
//!
//! 1. [`stage::recorded`]: the agent's part, unless it was played before a crash. That is [`play`]: its advisors, then its team, its
//!    router or its session, in whose turns it calls others or passes the baton.
//! 2. [`Chain::next`]: those that its file hands the answer on to, one after the other.
//! 3. [`show`]: the person sees the answer, if it was held back so far.

use std::sync::Arc;

use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::message::{Part, Visibility};
use baton_core::store::{NewEvent, StepKind};
use baton_core::{AgentName, MessageId};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::patterns::calling::callable;
use crate::patterns::chain::Chain;
use crate::patterns::fence::Rendered;
use crate::patterns::{self, advisors, router, team};
use crate::scope::Scope;
use crate::session::{self, Brief};
use crate::stage;
use crate::workflow;

/// What an agent is to work on. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// What was said before, as far as it may be seen.
    pub(crate) history: Arc<Vec<ChatMessage>>,
    pub(crate) parts: Arc<Vec<Part>>,
    /// What the parts were made of, if others wrote some of it.
    pub(crate) rendered: Option<Arc<Rendered>>,
    /// What the answer to the person has to look like, if the caller said so.
    pub(crate) output_schema: Option<Arc<Value>>,
    pub(crate) sent: Option<Sent>,
    /// The answer of the stage before, in a chain.
    pub(crate) draft: Option<Arc<Outcome>>,
}

/// Who sent an input to an agent, and why.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) by: AgentName,
    pub(crate) reason: Arc<str>,
}

impl Input {
    /// A text, without anything that was said before.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { parts: Arc::new(vec![Part::text(text)]), ..Self::default() }
    }

    /// Its words, as an agent that reads only text would see them.
    pub(crate) fn words(&self) -> String {
        words(&self.parts)
    }
}

/// The text of a message, a line for each part.
pub(crate) fn words(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

/// Runs the scope's agent on `input` and whoever it involves: advisors, its session or its team, those it passes the baton to,
/// and last its own `handoff`. The answer is that of whoever had the baton last; if it is for the person, they have seen it.
pub(crate) fn run(scope: Scope, input: Input) -> BoxFuture<'static, Result<Outcome, Failure>> {
    if scope.is_root() {
        return Box::pin(walk(scope, input));
    }
    // A task of its own, because a stack is not as deep as agents are that involve agents. It ends with whoever waits for it.
    Box::pin(async move {
        let (place, tasks) = (scope.clone(), scope.run.tasks.clone());
        match AbortOnDropHandle::new(tasks.spawn(walk(scope, input).in_current_span())).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => Err(stage::broken(&place, &*error.into_panic())),
            // The runtime is going down, and nobody will hear of it here.
            Err(_) => std::future::pending().await,
        }
    })
}

async fn walk(scope: Scope, input: Input) -> Result<Outcome, Failure> {
    let mut chain = Chain::new(&scope, &input);
    let mut outcome = chain.first().await?;
    // A loop, because chains may be long.
    while let Some(link) = chain.next(&outcome).await? {
        outcome = link.follow().await?;
    }
    show(&scope, &mut outcome).await?;
    Ok(outcome)
}

/// What an agent's part is, before anybody writes it down.
pub(crate) async fn play(scope: &Scope, input: &Input) -> Result<Outcome, Failure> {
    if scope.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    if scope.agent.kind.is_remote() {
        return Err(Failure::Unavailable(scope.name().clone()));
    }
    // What a stage of a chain says is not the answer, or not yet.
    let scope = &if scope.agent.handoff.is_empty() { scope.clone() } else { scope.internal() };
    // Whoever always hands on does not give the answer that the caller described.
    let output_schema = input.output_schema.clone().filter(|_| !scope.agent.always_hands_off());
    let input = &Input { output_schema, draft: None, ..input.clone() };
    callable::mind_rights(scope).await?;
    let told = advisors::consult(scope, input).await?;
    if let Some(team) = &scope.agent.team {
        return team::discuss(scope, team, input, &told).await;
    }
    if let Some(router) = &scope.agent.router {
        return router::route(scope, router, input, &told).await;
    }
    if scope.lease.is_some() && workflow::is_guided(scope) {
        return Box::pin(workflow::guide::answer(scope, input)).await;
    }
    Box::pin(workflow::make_ready(scope)).await?;
    let brief = Brief::new(scope, &told, patterns::tools(scope, input));
    Ok(session::hold(scope, brief).await?.outcome(scope))
}

/// Shows an answer that was held back until it was certain whose it is.
pub(crate) async fn show(scope: &Scope, outcome: &mut Outcome) -> Result<(), Failure> {
    if outcome.is_shown || !scope.is_for_the_person() {
        return Ok(());
    }
    outcome.is_shown = true;
    let place = scope.at("say");
    let message_id = MessageId::from_uuid(place.uuid());
    outcome.answer.message_id = Some(message_id);
    if place.is_finished() {
        return Ok(());
    }
    let speaker = scope.run.agents.get(&outcome.agent).unwrap_or(&scope.agent);
    let said = EventKind::TextFinished {
        message_id,
        speaker: speaker.display_name.clone(),
        text: outcome.answer.text.clone(),
    };
    let event = NewEvent { agent: outcome.agent.clone(), ..place.event_as(Visibility::User, said) };
    place.finish(StepKind::Say, &outcome.answer.text, vec![event], Vec::new()).await
}
