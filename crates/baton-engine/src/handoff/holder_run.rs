//! Runs the agent that [`crate::routing`] selected: the holder, the source agent after the handoff, or the target of a trigger.

use std::sync::Arc;

use baton_core::HandoffId;
use baton_core::agent::Return;
use baton_core::chat::ChatMessage;
use baton_core::message::{Part, Visibility};
use baton_core::store::{
    Cancel, HandoffEnd, HandoffSession, HandoffState, NotifiedParty, StepKind, StepState,
};
use serde_json::{Map, Value};

use super::announcement::Announcement;
use super::negotiation::{activate, negotiate};
use super::parked::parked_runs;
use super::start::{self, HandoffOffer, StartOutcome};
use super::{conflict, elsewhere, finish, messages};
use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::fence::Fence;
use crate::history::ThreadHistory;
use crate::input::Input;
use crate::invocation;
use crate::journal::Record;
use crate::lease::{self, HandoffLease};
use crate::outcome::Outcome;
use crate::redaction::redact_messages;
use crate::remote;
use crate::routing::{HolderCue, RoutingDecision, RunRoute};
use crate::run;
use crate::scope::Scope;
use crate::workflow;

/// The message to a model that goes on with its work.
pub(super) const RESUMED_NOTE: &str = "(The person comes back to this conversation. Say in one sentence where you are, and go on with what is open.)";
/// A handoff ends after this many failed runs of its holder in a row.
const MAX_FAILURES: u32 = 2;

/// Runs the agent of `routing`. Returns `None` for [`RunRoute::Nothing`]. If the handoff has ended, starts the next one in its
/// queue, also when the run fails.
pub(crate) async fn run(
    scope: Scope,
    routing: RoutingDecision,
    lease: Option<HandoffLease>,
    thread_history: &ThreadHistory,
    input: Input,
) -> Result<Option<Outcome>, Failure> {
    let lease = lease.map(Arc::new);
    if let (RunRoute::Elsewhere(step), Some(lease)) = (&routing.route, &lease) {
        return Box::pin(elsewhere::run(scope, lease, *step, input)).await.map(Some);
    }
    let mut outcome = run_route(scope.clone(), routing.route, lease.as_ref(), thread_history, input).await;
    if let (Ok(Some(answer)), Some(ended)) = (&outcome, lease.as_ref().filter(|lease| !lease.is_open())) {
        let queued = conflict::carry_out_queued(&scope, ended, thread_history, answer.clone());
        outcome = Box::pin(queued).await.map(Some);
    }
    let is_empty = |outcome: &Outcome| outcome.answer.text.is_empty() && outcome.answer.value.is_none();
    outcome = outcome.map(|outcome| outcome.filter(|outcome| !is_empty(outcome)));
    if let Some(ended) = lease.filter(|lease| !lease.is_open()) {
        let _ = scope.run.progress.ended_handoff.set(ended.session().handoff_id);
        cancel_parked(&scope, &ended.session()).await?;
    }
    outcome
}

async fn run_route(
    scope: Scope,
    route: RunRoute,
    lease: Option<&Arc<HandoffLease>>,
    thread_history: &ThreadHistory,
    input: Input,
) -> Result<Option<Outcome>, Failure> {
    match (route, lease) {
        (RunRoute::Nothing, _) => Ok(None),
        (RunRoute::Held(cue), Some(lease)) => {
            run_holder(scope, lease, cue, thread_history, input).await.map(Some)
        }
        (RunRoute::SecondRequest(step), Some(lease)) => {
            Box::pin(conflict::run(scope, lease, step, thread_history, input)).await.map(Some)
        }
        (RunRoute::Leave, Some(lease)) => exit(&scope, lease).await.map(Some),
        (RunRoute::HandoffEnded, Some(lease)) => {
            finish::acknowledge_end(&scope, lease, input).await.map(Some)
        }
        (RunRoute::Trigger(target), _) => {
            let input = finish::with_end_notice(&scope, lease, input).await?;
            run_triggered(scope, &target, input, None).await.map(Some)
        }
        _ => match finish::welcome_back(&scope, lease, &input).await? {
            Some(outcome) => Ok(Some(outcome)),
            None => {
                let input = finish::with_end_notice(&scope, lease, input).await?;
                run::run(scope, input).await.map(Some)
            }
        },
    }
}

/// Runs the holder and handles its return or its failure. The requested agent is not involved. A second request that the user has
/// not decided about is dropped: the message is for the holder.
pub(super) async fn run_holder(
    scope: Scope,
    lease: &Arc<HandoffLease>,
    cue: HolderCue,
    thread_history: &ThreadHistory,
    input: Input,
) -> Result<Outcome, Failure> {
    if let Some(outcome) = announce_holder(&scope, lease, cue).await? {
        return Ok(outcome);
    }
    drop_undecided(&scope, lease).await;
    let told = holder_input(&scope, &lease.session(), cue, thread_history, input.clone());
    let scope = scope.with_lease(lease);
    match run::run(scope.clone(), told).await {
        Ok(outcome) => match after_answer(&scope, lease, &outcome).await? {
            HolderState::Held => {
                messages::announce_progress(&scope, &lease.session()).await?;
                Ok(outcome)
            }
            HolderState::Ended => finish::finish_in_run(&scope, lease, outcome, input).await,
        },
        Err(failure) if failure.is_fatal(&scope.run.control.cancel) => Err(failure),
        Err(failure) => holder_failed(&scope, lease, failure).await,
    }
}

/// Drops a second request that the user was asked about before this message was sent.
async fn drop_undecided(scope: &Scope, lease: &HandoffLease) {
    let second = lease.session().notes.second;
    if second.is_some_and(|second| !second.is_queued() && scope.run.request.said_at >= second.asked_at) {
        lease::commit_change(&scope.run, lease, |handoff| handoff.notes.second = None).await;
    }
}

/// Announces the holder unless the user already knows it. Returns an answer if the handoff cannot be resumed.
async fn announce_holder(
    scope: &Scope,
    lease: &Arc<HandoffLease>,
    cue: HolderCue,
) -> Result<Option<Outcome>, Failure> {
    let target = scope.agent();
    match cue {
        HolderCue::Message | HolderCue::Kept if !needs_announcement(&lease.session()) => return Ok(None),
        // Also reached when the run that opened the handoff died before its announcement.
        HolderCue::Message | HolderCue::Kept | HolderCue::Begun => {
            note_origin(scope, lease).await;
            messages::announce_connecting(scope, &lease.session()).await?;
            messages::announce_active(scope, &lease.session(), target.mode()).await?;
        }
        HolderCue::Resumed => {
            if !lease.is_open() {
                if let Err(failure) = negotiate(&scope.run.models, target, &scope.run.request.rights) {
                    return Ok(Some(finish::fixed_answer(scope, lease, failure.to_string())));
                }
                let handoffs = vec![lease.change(|handoff| activate(handoff, target, &Map::new()))];
                scope.run.recorder.journal.commit(Record { handoffs, ..Record::default() }).await?;
            }
            messages::announce_active(scope, &lease.session(), messages::resumed_message(target)).await?;
        }
    }
    mark_announced(scope, lease, NotifiedParty::Person).await;
    Ok(None)
}

/// Names this run as the one that a handoff from outside of a run began in. Stored with the announcement.
async fn note_origin(scope: &Scope, lease: &HandoffLease) {
    let Some(mut origin) = lease.session().notes.origin.filter(|origin| origin.opened_in.is_none()) else {
        return;
    };
    origin.opened_in = Some((scope.run.run_id, scope.path().to_owned()));
    lease::commit_change(&scope.run, lease, |handoff| handoff.notes.origin = Some(origin)).await;
}

/// Whether the handoff is active and was never announced.
fn needs_announcement(handoff: &HandoffSession) -> bool {
    handoff.state == HandoffState::Active && handoff.notes.told == NotifiedParty::Nobody
}

/// Builds the holder's input: the briefing, the last messages before the handoff (redacted), and all messages since.
fn holder_input(
    scope: &Scope,
    handoff: &HandoffSession,
    cue: HolderCue,
    thread_history: &ThreadHistory,
    input: Input,
) -> Input {
    let mut history = vec![ChatMessage::user(holder_briefing(handoff))];
    let before = thread_history.recent(handoff.notes.since, handoff.notes.recent);
    let giver = scope.run.agents.get(&handoff.source_agent_id);
    history.extend(giver.map_or(Vec::new(), |giver| redact_messages(giver, &before)));
    history.extend(thread_history.since_handoff(handoff));
    let is_guided = workflow::guide(scope).is_some();
    let parts = match cue {
        HolderCue::Message => return Input { history: history.into(), ..input },
        HolderCue::Begun => vec![Part::text(handoff.context_summary.clone())],
        // A guide repeats its last question when the input is empty.
        HolderCue::Resumed | HolderCue::Kept if is_guided => Vec::new(),
        HolderCue::Resumed | HolderCue::Kept => vec![Part::text(RESUMED_NOTE)],
    };
    Input { history: history.into(), parts: parts.into(), ..input }
}

fn holder_briefing(handoff: &HandoffSession) -> String {
    let fence = Fence::new();
    let block = fence.block(
        "handoff",
        "## WHY YOU HAVE THIS CONVERSATION",
        &format!("{}\n\n{}", handoff.handoff_reason, handoff.context_summary),
    );
    format!("{}\n\n{block}", fence.material())
}

/// Whether the holder keeps the thread after its answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HolderState {
    Held,
    Ended,
}

/// Ends the handoff if the workflow is complete and the target returns on completion. Resets the failure count otherwise.
pub(crate) async fn after_answer(
    scope: &Scope,
    lease: &Arc<HandoffLease>,
    outcome: &Outcome,
) -> Result<HolderState, Failure> {
    let handoff = lease.session();
    let Some(target) = scope.run.agents.get(&handoff.target_agent_id).cloned() else {
        return Ok(HolderState::Held);
    };
    if handoff.notes.ended_in == Some(scope.run.run_id) {
        return Ok(HolderState::Ended);
    }
    let returns = target.accepts_handoff.as_ref().is_some_and(|terms| terms.returns == Return::OnComplete);
    let is_done = handoff.workflow.as_ref().is_some_and(|state| workflow::is_done(&target, state));
    if is_done && returns && handoff.state == HandoffState::Active {
        let (summary, artifacts) = workflow::result(&target, &handoff);
        let summary = summary.unwrap_or_else(|| outcome.answer.text.clone());
        finish::start_return(scope, lease, HandoffEnd::Completed, &summary, &artifacts).await;
        return Ok(HolderState::Ended);
    }
    if handoff.notes.failures > 0 {
        lease::commit_change(&scope.run, lease, |handoff| handoff.notes.failures = 0).await;
    }
    Ok(HolderState::Held)
}

/// Ends the runs of an ended handoff that wait for a person. This run is the active one of the thread, so no worker executes them.
/// The end of the handoff is stored first: after a crash this run may end otherwise, and then they still wait.
async fn cancel_parked(scope: &Scope, handoff: &HandoffSession) -> Result<(), Failure> {
    let mut runs = parked_runs(&*scope.run.store, handoff).await?;
    runs.retain(|run| *run != scope.run.run_id);
    if !runs.is_empty() {
        scope.run.recorder.journal.flush().await?;
    }
    for run in runs {
        scope.run.store.cancel_run(run, Cancel::Abort).await?;
    }
    Ok(())
}

/// Ends the handoff, because the user's message is an exit word.
pub(super) async fn exit(scope: &Scope, lease: &Arc<HandoffLease>) -> Result<Outcome, Failure> {
    if lease.is_open() {
        lease::commit_end(&scope.run, lease, HandoffEnd::Left).await;
        cancel_remote_task(scope, lease);
    }
    finish::acknowledge_end(scope, lease, Input::default()).await
}

/// Cancels the task of a remote holder, in the background.
pub(super) fn cancel_remote_task(scope: &Scope, lease: &HandoffLease) {
    let handoff = lease.session();
    if let Some(target) = scope.run.agents.get(&handoff.target_agent_id) {
        remote::handoff::cancel_held(&scope.run.extensions, target, handoff.notes.remote.as_deref());
    }
}

/// Counts a failed run of the holder. The first failure is returned to the user, who can retry or leave. The handoff ends after
/// [`MAX_FAILURES`] failures, or at once if the holder cannot run at all.
async fn holder_failed(
    scope: &Scope,
    lease: &Arc<HandoffLease>,
    failure: Failure,
) -> Result<Outcome, Failure> {
    let failures = lease.session().notes.failures + 1;
    let is_lost =
        matches!(failure.cause(), Failure::Prompt { .. } | Failure::NoModel(_) | Failure::Panicked(_));
    if failures < MAX_FAILURES && !is_lost {
        lease::commit_change(&scope.run, lease, |handoff| handoff.notes.failures = failures).await;
        return Err(failure);
    }
    tracing::warn!(thread_id = %scope.run.caller.thread_id, agent = %scope.name(), %failure, "a handoff failed");
    lease::commit_end(&scope.run, lease, HandoffEnd::Failed).await;
    cancel_remote_task(scope, lease);
    finish::acknowledge_end(scope, lease, Input::default()).await
}

/// Hands the thread to the agent that the message asks for. If the target is not available or refuses, the scope's agent answers.
/// `paused` is the handoff that was paused for it.
pub(super) async fn run_triggered(
    scope: Scope,
    target: &baton_core::AgentName,
    input: Input,
    paused: Option<HandoffId>,
) -> Result<Outcome, Failure> {
    let giver =
        scope.clone().with_session(|session| session.bounds = Arc::new(session.bounds.for_dispatcher()));
    let Some(target) = scope.run.agents.get(target).cloned() else { return run::run(scope, input).await };
    let Ok(child) = invocation::enter(&giver, &target, InvocationKind::Transfer).await else {
        return run::run(scope, input).await;
    };
    let (summary, reason) = (input.words(), "the person asked for it".to_owned());
    let announcement = Announcement::Sentence(None);
    let offer =
        HandoffOffer { target, reason, summary, known: Map::new(), paused, moved: None, announcement };
    match start::start(&giver, child, &offer, finish::trigger_input(&giver, &input, &offer)).await? {
        StartOutcome::Answered(outcome) => Ok(*outcome),
        StartOutcome::Returned(lease) => {
            finish::finish_in_run(&giver, &lease, Outcome::nothing(giver.name()), input).await
        }
        StartOutcome::Refused(failure) => {
            let text = match &failure {
                Failure::NotAllowed(_) => failure.to_string(),
                _ => return run::run(scope, input).await,
            };
            scope.trace(baton_core::event::EventKind::Status { text }).await;
            run::run(scope, input).await
        }
    }
}

/// Commits the holder's last answer as a message before another agent answers in the same run. Does nothing when called again.
pub(crate) async fn commit_answer(scope: &Scope, outcome: &Outcome) -> Result<(), Failure> {
    let place = scope.at("last_words");
    if outcome.answer.text.trim().is_empty() || place.step().is_finished() {
        return Ok(());
    }
    let record = Record {
        steps: vec![place.step().build(StepKind::Note, StepState::Finished, &Value::Null)?],
        messages: vec![outcome.message(scope.run.run_id, Visibility::User)],
        ..Record::default()
    };
    scope.run.recorder.journal.commit_soon(record).await;
    Ok(())
}

/// Records who has been notified of the handoff's state. Never downgrades from [`NotifiedParty::Agent`].
pub(crate) async fn mark_announced(scope: &Scope, lease: &HandoffLease, told: NotifiedParty) {
    let now = lease.session().notes.told;
    if now != told && now != NotifiedParty::Agent {
        lease::commit_change(&scope.run, lease, |handoff| handoff.notes.told = told).await;
    }
}
