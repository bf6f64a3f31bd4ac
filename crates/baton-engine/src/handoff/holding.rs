//! A run of the holder, and of whoever has the thread again.

use std::sync::Arc;

use baton_core::HandoffId;
use baton_core::agent::Return;
use baton_core::chat::ChatMessage;
use baton_core::message::{Part, Visibility};
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState, StepKind, StepState, Told};
use serde_json::{Map, Value};

use super::lease::{self, Lease};
use super::opening::{self, Offer, Opened};
use super::terms::{activate, negotiate};
use super::way::{Begun, Cue, Way};
use super::{notices, returning, telling, wording};
use crate::bounds::Edge;
use crate::failure::Failure;
use crate::history::Said;
use crate::journal::Record;
use crate::outcome::Outcome;
use crate::patterns::fence::Fence;
use crate::patterns::handover::shared_words;
use crate::run::{self, Input};
use crate::scope::Scope;
use crate::workflow;

/// A holder that fails so often in a row cannot go on.
const MOST_FAILURES: u32 = 2;

/// The part of whoever takes the run. There is no answer where there is nothing to say.
pub(crate) async fn take(
    scope: Scope,
    begun: Begun,
    lease: Option<Lease>,
    said: &Said,
    input: Input,
) -> Result<Option<Outcome>, Failure> {
    let lease = lease.map(Arc::new);
    let outcome = part(scope.clone(), begun.way, lease.as_ref(), said, input).await;
    if let Some(ended) = lease.filter(|lease| !lease.is_open()) {
        start_next(&scope, ended.session().handoff_id).await?;
    }
    outcome
}

/// Starts what waited for the end of a handoff. That has to be kept before; what comes to wait later is started after the run.
async fn start_next(scope: &Scope, ended: HandoffId) -> Result<(), Failure> {
    let run = &scope.run;
    let _ = run.ended_handoff.set(ended);
    if run.store.handoff(ended).await.is_ok_and(|handoff| handoff.next.is_some()) {
        run.journal.flush().await?;
        run.engine.start_next(&run.store, ended).await;
    }
    Ok(())
}

async fn part(
    scope: Scope,
    way: Way,
    lease: Option<&Arc<Lease>>,
    said: &Said,
    input: Input,
) -> Result<Option<Outcome>, Failure> {
    match (way, lease) {
        (Way::Nothing, _) => Ok(None),
        (Way::Held(cue), Some(lease)) => hold(scope, lease, cue, said, input).await.map(Some),
        (Way::Leave, Some(lease)) => leave(&scope, lease).await.map(Some),
        (Way::Told, Some(lease)) => telling::told(&scope, lease, input).await.map(Some),
        (Way::Trigger(target), _) => {
            let input = telling::with_news(&scope, lease, input).await?;
            triggered(scope, &target, input).await.map(Some)
        }
        _ => match telling::welcome(&scope, lease, &input).await? {
            Some(outcome) => Ok(Some(outcome)),
            None => {
                let input = telling::with_news(&scope, lease, input).await?;
                run::run(scope, input).await.map(Some)
            }
        },
    }
}

/// The holder answers. Nobody else is asked.
async fn hold(
    scope: Scope,
    lease: &Arc<Lease>,
    cue: Cue,
    said: &Said,
    input: Input,
) -> Result<Outcome, Failure> {
    if let Some(outcome) = take_up(&scope, lease, cue).await? {
        return Ok(outcome);
    }
    let told = holders_input(&scope, &lease.session(), cue, said, input.clone());
    let scope = scope.holding(lease);
    match run::run(scope.clone(), told).await {
        Ok(outcome) => match after(&scope, lease, &outcome).await? {
            After::Held => Ok(outcome),
            After::Ended => telling::hand_back(&scope, lease, outcome, input).await,
        },
        Err(failure) if failure.ends_the_run(&scope) => Err(failure),
        Err(failure) => failed(&scope, lease, failure).await,
    }
}

/// Says that it has the thread, where that is news. An answer is why it does not get it back.
async fn take_up(scope: &Scope, lease: &Arc<Lease>, cue: Cue) -> Result<Option<Outcome>, Failure> {
    let target = &scope.agent;
    match cue {
        Cue::Message if !is_news(&lease.session()) => return Ok(None),
        // Also when whoever gave it the thread died before anybody was told.
        Cue::Message | Cue::Begun => {
            notices::connecting(scope, &lease.session()).await?;
            notices::active(scope, &lease.session(), String::new()).await?;
        }
        Cue::Resumed => {
            if !lease.is_open() {
                if let Err(failure) = negotiate(&scope.run.engine, target, &scope.run.rights) {
                    return Ok(Some(telling::by_rule(scope, lease, failure.to_string())));
                }
                let handoffs = vec![lease.change(|handoff| activate(handoff, target, &Map::new()))];
                scope.run.journal.keep(Record { handoffs, ..Record::default() }).await?;
            }
            notices::active(scope, &lease.session(), wording::going_on(target)).await?;
        }
    }
    settle(scope, lease, Told::Person).await;
    Ok(None)
}

/// Whether it has the thread and nobody was told.
fn is_news(handoff: &HandoffSession) -> bool {
    handoff.state == HandoffState::Active && handoff.notes.told == Told::Nobody
}

/// What was agreed on when it got the thread, the last words before, and everything since.
fn holders_input(scope: &Scope, handoff: &HandoffSession, cue: Cue, said: &Said, input: Input) -> Input {
    let mut history = vec![ChatMessage::user(briefing(handoff))];
    let before = said.recent(handoff.notes.since, handoff.notes.recent);
    let giver = scope.run.agents.get(&handoff.source_agent_id);
    history.extend(giver.map_or(Vec::new(), |giver| shared_words(giver, &before)));
    history.extend(said.since(handoff.notes.since));
    let is_guided = workflow::is_guided(scope);
    let parts = match cue {
        Cue::Message => return Input { history: history.into(), ..input },
        Cue::Begun => vec![Part::text(handoff.context_summary.clone())],
        // Without a model nobody reads between the lines: what was asked last is asked again.
        Cue::Resumed if is_guided => Vec::new(),
        Cue::Resumed => vec![Part::text(
            "(The person comes back to this conversation. Say in one sentence where you are, and go on with what is open.)",
        )],
    };
    Input { history: history.into(), parts: parts.into(), ..input }
}

fn briefing(handoff: &HandoffSession) -> String {
    let fence = Fence::new();
    let block = fence.block(
        "handoff",
        "## WHY YOU HAVE THIS CONVERSATION",
        &format!("{}\n\n{}", handoff.handoff_reason, handoff.context_summary),
    );
    format!("{}\n\n{block}", fence.material())
}

/// Whether the holder still has the thread once it has spoken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    Held,
    Ended,
}

/// A workflow that is through is over: its agent has nothing left to do.
pub(crate) async fn after(scope: &Scope, lease: &Arc<Lease>, outcome: &Outcome) -> Result<After, Failure> {
    let handoff = lease.session();
    let Some(target) = scope.run.agents.get(&handoff.target_agent_id).cloned() else {
        return Ok(After::Held);
    };
    if handoff.notes.ended_in == Some(scope.run.run_id) {
        return Ok(After::Ended);
    }
    let returns = target.accepts_handoff.as_ref().is_some_and(|terms| terms.returns == Return::OnComplete);
    let is_done = handoff.workflow.as_ref().is_some_and(|state| workflow::is_done(&target, state));
    if is_done && returns && handoff.state == HandoffState::Active {
        let (summary, artifacts) = workflow::result(&target, &handoff);
        let summary = summary.unwrap_or_else(|| outcome.answer.text.clone());
        returning::give_back(scope, lease, HandoffEnd::Completed, &summary, &artifacts).await;
        return Ok(After::Ended);
    }
    if handoff.notes.failures > 0 {
        scope.change(lease, |handoff| handoff.notes.failures = 0).await;
    }
    Ok(After::Held)
}

/// The person said one of the words.
async fn leave(scope: &Scope, lease: &Arc<Lease>) -> Result<Outcome, Failure> {
    let run = scope.run.run_id;
    if lease.is_open() {
        scope.change(lease, |handoff| lease::ended(handoff, HandoffEnd::Left, Some(run))).await;
    }
    telling::told(scope, lease, Input::default()).await
}

/// The holder gave no answer. Once can happen to anybody: the person can say it again, or leave.
async fn failed(scope: &Scope, lease: &Arc<Lease>, failure: Failure) -> Result<Outcome, Failure> {
    let failures = lease.session().notes.failures + 1;
    let is_lost =
        matches!(failure.cause(), Failure::Prompt { .. } | Failure::NoModel(_) | Failure::Broken(_));
    let run = scope.run.run_id;
    if failures < MOST_FAILURES && !is_lost {
        scope.change(lease, |handoff| handoff.notes.failures = failures).await;
        return Err(failure);
    }
    tracing::warn!(thread_id = %scope.run.caller.thread_id, agent = %scope.name(), %failure, "a handoff failed");
    scope.change(lease, |handoff| lease::ended(handoff, HandoffEnd::Failed, Some(run))).await;
    telling::told(scope, lease, Input::default()).await
}

/// The message is a trigger of an agent that takes over by itself. If it may not, whoever was asked answers.
async fn triggered(scope: Scope, target: &baton_core::AgentName, input: Input) -> Result<Outcome, Failure> {
    let giver = scope.clone().asking();
    let Some(target) = scope.run.agents.get(target).cloned() else { return run::run(scope, input).await };
    let Ok(child) = giver.enter(&target, Edge::Transfer).await else { return run::run(scope, input).await };
    let (summary, reason) = (input.words(), "the person asked for it".to_owned());
    let offer = Offer { target, reason, summary, known: Map::new() };
    match opening::open(&giver, child, &offer, telling::handed(&giver, &input, &offer)).await? {
        Opened::Answered(outcome) => Ok(*outcome),
        Opened::Back(lease) => {
            telling::hand_back(&giver, &lease, Outcome::nothing(giver.name()), input).await
        }
        Opened::Refused(failure) => {
            let text = match &failure {
                Failure::NotAllowed(_) => failure.to_string(),
                _ => return run::run(scope, input).await,
            };
            scope.trace(baton_core::event::EventKind::Status { text }).await;
            run::run(scope, input).await
        }
    }
}

/// Keeps what the holder said last, before somebody else has the last word.
pub(crate) async fn keep_words(scope: &Scope, outcome: &Outcome) -> Result<(), Failure> {
    let place = scope.at("last_words");
    if outcome.answer.text.trim().is_empty() || place.is_finished() {
        return Ok(());
    }
    let record = Record {
        steps: vec![place.step(StepKind::Note, StepState::Finished, &Value::Null)?],
        messages: vec![outcome.message(scope.run.run_id, Visibility::User)],
        ..Record::default()
    };
    scope.run.journal.keep_soon(record).await;
    Ok(())
}

/// Everybody who has to know, knows.
pub(crate) async fn settle(scope: &Scope, lease: &Lease, told: Told) {
    let now = lease.session().notes.told;
    if now != told && now != Told::Agent {
        scope.change(lease, |handoff| handoff.notes.told = told).await;
    }
}
