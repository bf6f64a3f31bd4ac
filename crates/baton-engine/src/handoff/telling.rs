//! A handoff has ended: the person is told, and whoever has the thread again says something about it.

use std::sync::Arc;

use baton_core::message::Part;
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState, Told, Topic};

use super::lease::{self, Lease};
use super::opening::Offer;
use super::saying::is_greeting;
use super::way::is_resumable;
use super::{holding, notices, wording};
use crate::bounds::Edge;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::patterns::fence::{Enriched, Written};
use crate::patterns::handover::{shared, tail};
use crate::run::{self, Input, Sent, show};
use crate::scope::Scope;
use crate::session::Answer;

/// The holder has given it back in this run: its last words are kept, the person hears that they go back, and then whoever has the
/// thread again.
pub(crate) async fn hand_back(
    scope: &Scope,
    lease: &Arc<Lease>,
    outcome: Outcome,
    input: Input,
) -> Result<Outcome, Failure> {
    holding::keep_words(scope, &outcome).await?;
    back(scope, lease).await?;
    let handoff = lease.session();
    if !handoff.notes.return_expected {
        holding::settle(scope, lease, Told::Agent).await;
        return Ok(outcome);
    }
    let source = scope.run.agents.get(&handoff.source_agent_id);
    let spoken = match source {
        Some(source) if speaks(scope, &handoff) => match scope.enter(source, Edge::Return).await {
            Ok(child) => Some(run::run(child, news(scope, &handoff, &input)).await),
            Err(_) => None,
        },
        _ => None,
    };
    let outcome = match spoken {
        Some(Ok(outcome)) => outcome,
        Some(Err(failure)) if failure.ends_the_run(scope) => return Err(failure),
        _ => shown(scope, by_rule(scope, lease, wording::acknowledged(&scope.run.agents, &handoff))).await?,
    };
    holding::settle(scope, lease, Told::Agent).await;
    Ok(outcome)
}

/// It came back within the call that gave it away: whoever made the call hears what came of it, and goes on.
pub(crate) async fn back_at_once(scope: &Scope, lease: &Arc<Lease>) -> Result<String, Failure> {
    back(scope, lease).await?;
    holding::settle(scope, lease, Told::Agent).await;
    Ok(format!("The conversation is yours again.\n{}", note(scope, &lease.session())))
}

/// The person hears that it goes back, and it does.
pub(crate) async fn back(scope: &Scope, lease: &Arc<Lease>) -> Result<(), Failure> {
    notices::returning(scope, &lease.session()).await?;
    if lease.session().state == HandoffState::Returning {
        let (end, run) = (lease.session().notes.end.unwrap_or(HandoffEnd::Completed), scope.run.run_id);
        scope.change(lease, |handoff| lease::ended(handoff, end, Some(run))).await;
    }
    notices::ended(scope, &lease.session(), String::new()).await?;
    holding::settle(scope, lease, Told::Person).await;
    Ok(())
}

/// It ended outside of a run, or with the person's own word. The scope's agent has the thread again.
pub(crate) async fn told(scope: &Scope, lease: &Arc<Lease>, input: Input) -> Result<Outcome, Failure> {
    let handoff = lease.session();
    notices::ended(scope, &handoff, wording::returning(&scope.run.agents, &handoff)).await?;
    holding::settle(scope, lease, Told::Person).await;
    let is_its_own = scope.name() == &handoff.source_agent_id && handoff.notes.return_expected;
    let spoken = if is_its_own && speaks(scope, &handoff) {
        Some(run::run(scope.clone(), news(scope, &handoff, &input)).await)
    } else {
        None
    };
    let outcome = match spoken {
        Some(Ok(outcome)) => outcome,
        Some(Err(failure)) if failure.ends_the_run(scope) => return Err(failure),
        _ => shown(scope, by_rule(scope, lease, wording::acknowledged(&scope.run.agents, &handoff))).await?,
    };
    holding::settle(scope, lease, Told::Agent).await;
    Ok(outcome)
}

/// Whether there is more to say than can be said by rule, and a model to say it with.
fn speaks(scope: &Scope, handoff: &HandoffSession) -> bool {
    let has_result = matches!(handoff.notes.end, Some(HandoffEnd::Completed | HandoffEnd::Declined));
    let source = scope.run.agents.get(&handoff.source_agent_id);
    has_result && source.is_some_and(|source| !scope.run.engine.parts.models.is_stand_in(source))
}

/// What whoever has the thread again is told.
fn news(scope: &Scope, handoff: &HandoffSession, input: &Input) -> Input {
    let name = scope.run.agents.get(&handoff.target_agent_id).map(|target| target.display_name.as_str());
    let name = name.unwrap_or(handoff.target_agent_id.as_str());
    let instruction = format!(
        "The conversation is yours again: {name} had it, and the note says what came of it. The person has just been told that they \
         are back with you. In one or two sentences, acknowledge the result by its name, and offer a natural next step. Do not repeat \
         the work, and do not pass the conversation on."
    );
    let sent = Some(Sent { by: handoff.target_agent_id.clone(), reason: "the handoff has ended".into() });
    let message = Enriched::of(input)
        .with(Written::Note, &handoff.target_agent_id, note(scope, handoff))
        .with_instruction(instruction);
    let told = Input { history: Arc::clone(&input.history), sent, ..Input::default() };
    message.render(scope.run.engine.parts.policy.enrich_format, told)
}

/// What came of it, in a few lines.
pub(crate) fn note(scope: &Scope, handoff: &HandoffSession) -> String {
    let end = handoff.notes.end.map_or("ended", HandoffEnd::word);
    let mut lines = vec![format!("State: {end}"), format!("It was about: {}", handoff.handoff_reason)];
    lines.extend(handoff.result_summary.as_ref().map(|summary| format!("Result: {summary}")));
    if !handoff.artifacts_created.is_empty() {
        lines.push(format!("Made: {}", handoff.artifacts_created.join(", ")));
    }
    let target = scope.run.agents.get(&handoff.target_agent_id);
    if target.is_some_and(|target| is_resumable(target, handoff)) {
        lines.push(
            "It is not done, and what was collected is kept: the person can say \"continue\".".to_owned(),
        );
    }
    lines.join("\n")
}

/// Who comes back to something undone is asked about it, where that is all there is to say.
pub(crate) async fn welcome(
    scope: &Scope,
    lease: Option<&Arc<Lease>>,
    input: &Input,
) -> Result<Option<Outcome>, Failure> {
    let Some(lease) = lease else { return Ok(None) };
    let handoff = lease.session();
    let target = scope.run.agents.get(&handoff.target_agent_id);
    let is_news = handoff.notes.end == Some(HandoffEnd::Expired) && handoff.notes.told != Told::Agent;
    if !is_news
        || !target.is_some_and(|target| is_resumable(target, &handoff))
        || !is_greeting(&input.words())
    {
        return Ok(None);
    }
    notices::ended(scope, &handoff, wording::returning(&scope.run.agents, &handoff)).await?;
    let sentence = wording::welcome_back(&scope.run.agents, &handoff);
    let outcome = shown(scope, by_rule(scope, lease, sentence)).await?;
    let asked = |handoff: &mut HandoffSession| {
        (handoff.notes.told, handoff.notes.topic) = (Told::Agent, Topic::Question);
    };
    scope.change(lease, asked).await;
    Ok(Some(outcome))
}

/// The message with what the scope's agent does not know yet: that a handoff has ended since it spoke last.
pub(crate) async fn with_news(
    scope: &Scope,
    lease: Option<&Arc<Lease>>,
    input: Input,
) -> Result<Input, Failure> {
    let Some(lease) = lease else { return Ok(input) };
    let handoff = lease.session();
    let place = scope.at("news");
    let is_known = handoff.notes.told == Told::Agent && !place.is_finished();
    if is_known {
        // It was asked about, and is not what the person talks about now.
        scope.change(lease, |handoff| handoff.notes.topic = Topic::Other).await;
        return Ok(input);
    }
    let target = scope.run.agents.get(&handoff.target_agent_id);
    let is_expired = handoff.notes.end == Some(HandoffEnd::Expired);
    let is_offered = is_expired && target.is_some_and(|target| is_resumable(target, &handoff));
    let sentence = if is_offered {
        wording::welcome_back(&scope.run.agents, &handoff)
    } else {
        wording::returning(&scope.run.agents, &handoff)
    };
    if handoff.notes.told == Told::Nobody {
        notices::ended(scope, &handoff, sentence).await?;
    }
    if !place.is_finished() {
        place.finish(baton_core::store::StepKind::Note, &(), Vec::new(), Vec::new()).await?;
    }
    let topic = if is_offered { Topic::Question } else { Topic::Other };
    let told = |handoff: &mut HandoffSession| {
        (handoff.notes.told, handoff.notes.topic) = (Told::Agent, topic);
    };
    scope.change(lease, told).await;
    let message = Enriched::of(&input).with(Written::Note, &handoff.target_agent_id, note(scope, &handoff));
    let told = Input { parts: Arc::default(), rendered: None, ..input.clone() };
    Ok(message.render(scope.run.engine.parts.policy.enrich_format, told))
}

/// What the target of a trigger is told.
pub(crate) fn handed(scope: &Scope, input: &Input, offer: &Offer) -> Input {
    let giver = &scope.agent;
    let sent = Some(Sent { by: giver.name.clone(), reason: offer.reason.as_str().into() });
    let said = tail(&shared(giver, &input.words()), scope.run.engine.parts.policy.context_max_chars);
    Input {
        history: Arc::clone(&input.history),
        parts: Arc::new(vec![Part::text(said)]),
        sent,
        ..Input::default()
    }
}

/// Words of whoever has the thread again that no model chose.
pub(crate) fn by_rule(scope: &Scope, lease: &Lease, text: String) -> Outcome {
    let source = lease.session().source_agent_id;
    let agent = if scope.run.agents.contains_key(&source) { source } else { scope.name().clone() };
    Outcome { answer: Answer::words(text), agent, is_shown: false, dissent: Vec::new() }
}

async fn shown(scope: &Scope, mut outcome: Outcome) -> Result<Outcome, Failure> {
    // A place of its own: whoever had the thread may have been shown at this one.
    show(&scope.at("back"), &mut outcome).await?;
    Ok(outcome)
}
