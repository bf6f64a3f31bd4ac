//! A request for something else while an agent holds the thread (C-13, X15). The user is asked whether to finish first. The request and
//! the question are part of the handoff, so that any process can act on the reply. [`crate::routing`] reads the messages.

use std::sync::Arc;

use baton_core::message::Part;
use baton_core::store::{
    HandoffEnd, HandoffNotes, MessageQuery, NotifiedParty, SecondRequest, SecondRequestState, StepKind,
    StepState,
};
use baton_core::{AgentName, HandoffId, RunId};
use jiff::Timestamp;

use super::{holder_run, messages};
use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::history::ThreadHistory;
use crate::input::Input;
use crate::invocation;
use crate::journal::Record;
use crate::lease::{self, HandoffLease};
use crate::outcome::{Answer, Outcome};
use crate::routing::{ConflictStep, HolderCue};
use crate::run::show;
use crate::scope::Scope;
use crate::workflow::question;

/// Runs about second requests whose messages are kept from the holder. Older ones are far back in its history.
const MAX_ASIDE: usize = 32;

/// Executes `step`. The scope's agent is the holder or, for [`ConflictStep::Switch`], the agent that gets the thread back.
pub(crate) async fn run(
    scope: Scope,
    lease: &Arc<HandoffLease>,
    step: ConflictStep,
    thread_history: &ThreadHistory,
    input: Input,
) -> Result<Outcome, Failure> {
    match step {
        ConflictStep::Ask(agent) => {
            let request = SecondRequest {
                message: scope.run.request.message_number,
                agent,
                state: SecondRequestState::Asked,
                asked_at: Timestamp::now(),
                times_asked: 1,
            };
            set_aside(&scope, lease, |notes| notes.second = Some(request)).await;
            say(&scope, lease, messages::occupied_message(scope.agent())).await
        }
        ConflictStep::AskAgain => {
            let ask = |notes: &mut HandoffNotes| {
                if let Some(second) = &mut notes.second {
                    (second.times_asked, second.asked_at) = (2, Timestamp::now());
                }
            };
            set_aside(&scope, lease, ask).await;
            say(&scope, lease, messages::occupied_again_message(scope.agent())).await
        }
        ConflictStep::Finish => {
            set_aside(&scope, lease, |notes| notes.second = None).await;
            match pending_question(&scope, lease) {
                Some(question) => {
                    say(&scope, lease, format!("{}\n\n{question}", messages::FINISH_FIRST)).await
                }
                None => holder_run::run_holder(scope, lease, HolderCue::Kept, thread_history, input).await,
            }
        }
        ConflictStep::Queue => queue(&scope, lease).await,
        ConflictStep::Answer(message) => {
            let parts = message_parts(&scope, message).await?;
            scope.run.request.replace_message(&parts);
            let input = Input { parts, ..input };
            holder_run::run_holder(scope, lease, HolderCue::Message, thread_history, input).await
        }
        ConflictStep::Switch { message, agent } => switch(scope, lease, message, agent, thread_history).await,
    }
}

/// Changes the notes of the handoff, and keeps the messages of this run from the holder.
async fn set_aside(scope: &Scope, lease: &HandoffLease, change: impl FnOnce(&mut HandoffNotes)) {
    let run = scope.run.run_id;
    lease::commit_change(&scope.run, lease, |handoff| {
        let notes = &mut handoff.notes;
        change(notes);
        keep_aside(&mut notes.aside, run);
    })
    .await;
}

fn keep_aside(aside: &mut Vec<RunId>, run: RunId) {
    if !aside.contains(&run) {
        let excess = (aside.len() + 1).saturating_sub(MAX_ASIDE);
        aside.drain(..excess);
        aside.push(run);
    }
}

/// Publishes a sentence of the holder that needs no model.
async fn say(scope: &Scope, lease: &HandoffLease, text: String) -> Result<Outcome, Failure> {
    messages::announce_progress(scope, &lease.session()).await?;
    let answer = Answer::without_turn(text);
    let mut outcome = Outcome { answer, agent: scope.name().clone(), is_shown: false, dissent: Vec::new() };
    show(scope, &mut outcome).await?;
    Ok(outcome)
}

fn pending_question(scope: &Scope, lease: &HandoffLease) -> Option<String> {
    let asked = question::pending(&scope.run.models, scope.agent(), &lease.session())?;
    Some(asked.full_text())
}

/// Queues the request until the handoff has ended. A request for the main agent needs no queue: it gets the thread back anyway.
async fn queue(scope: &Scope, lease: &HandoffLease) -> Result<Outcome, Failure> {
    let second = lease.session().notes.second;
    let target = second.as_ref().and_then(|second| second.agent.as_ref());
    let target = target.and_then(|target| scope.run.agents.get(target));
    let sentence = messages::queued_message(target.map(|target| &**target));
    let is_for_agent = target.is_some();
    let queued = |notes: &mut HandoffNotes| {
        notes.second = notes.second.take().filter(|_| is_for_agent);
        if let Some(second) = &mut notes.second {
            second.state = SecondRequestState::Queued;
        }
    };
    set_aside(scope, lease, queued).await;
    let question = pending_question(scope, lease).map(|question| format!("\n\n{question}"));
    say(scope, lease, format!("{sentence}{}", question.unwrap_or_default())).await
}

/// Pauses the handoff and carries the request out.
async fn switch(
    scope: Scope,
    lease: &Arc<HandoffLease>,
    message: u64,
    agent: Option<AgentName>,
    thread_history: &ThreadHistory,
) -> Result<Outcome, Failure> {
    let Some(agent) = agent else { return holder_run::exit(&scope, lease).await };
    if lease.is_open() {
        lease::commit_end(&scope.run, lease, HandoffEnd::Left).await;
        holder_run::cancel_remote_task(&scope, lease);
    }
    let handoff = lease.session();
    messages::announce_ended(&scope, &handoff, messages::paused_message(&scope.run.agents, &handoff)).await?;
    holder_run::mark_announced(&scope, lease, NotifiedParty::Agent).await;
    carry_out(scope, message, &agent, Some(handoff.handoff_id), thread_history).await
}

/// Carries out the request that was queued until the handoff ended. The answer that ended it precedes what follows.
pub(crate) async fn carry_out_queued(
    scope: &Scope,
    lease: &Arc<HandoffLease>,
    thread_history: &ThreadHistory,
    answer: Outcome,
) -> Result<Outcome, Failure> {
    let place = scope.at("queued");
    let queued = match place.step().finished::<SecondRequest>()? {
        Some(queued) => queued,
        None => match lease.session().notes.second.filter(SecondRequest::is_queued) {
            Some(queued) => queued,
            None => return Ok(answer),
        },
    };
    let source = scope.run.agents.get(&lease.session().source_agent_id).cloned();
    let (Some(agent), Some(source)) = (&queued.agent, source) else { return Ok(answer) };
    if !place.step().is_finished() {
        let record = Record {
            steps: vec![place.step().build(StepKind::Note, StepState::Finished, &queued)?],
            handoffs: vec![lease.change(|handoff| handoff.notes.second = None)],
            is_note: true,
            ..Record::default()
        };
        scope.run.recorder.journal.commit_soon(record).await;
    }
    holder_run::commit_answer(&place, &answer).await?;
    let giver = if source.name == *scope.name() {
        place
    } else {
        invocation::enter(&place, &source, InvocationKind::Return).await?
    };
    carry_out(giver, queued.message, agent, None, thread_history).await
}

/// Gives the thread to `agent` with the message of the request as its task. If the agent does not take it, the scope's agent answers.
async fn carry_out(
    scope: Scope,
    message: u64,
    agent: &AgentName,
    paused: Option<HandoffId>,
    thread_history: &ThreadHistory,
) -> Result<Outcome, Failure> {
    let parts = message_parts(&scope, message).await?;
    scope.run.request.replace_message(&parts);
    let input = Input { history: thread_history.history(), parts, ..Input::default() };
    holder_run::run_triggered(scope, agent, input, paused).await
}

/// The parts of an earlier message of the thread, or of the run's own. Empty if the message was deleted.
async fn message_parts(scope: &Scope, number: u64) -> Result<Arc<Vec<Part>>, Failure> {
    let query = MessageQuery { before: Some(number + 1), ..MessageQuery::last(1) };
    let found = scope.run.store.messages(scope.run.caller.thread_id, query).await?;
    let said = found.into_iter().find(|said| said.number == number);
    Ok(Arc::new(said.map(|said| said.message.parts).unwrap_or_default()))
}

/// The question with which an ended handoff offers to go on with the one that was paused for it, if that is possible.
pub(crate) async fn paused_offer(scope: &Scope, lease: &HandoffLease) -> Result<Option<String>, Failure> {
    let Some(paused) = lease.session().notes.paused else { return Ok(None) };
    let paused = scope.run.store.handoff(paused).await?;
    let target = scope.run.agents.get(&paused.target_agent_id);
    let is_open = target.is_some_and(|target| crate::routing::is_resumable(target, &paused));
    Ok(is_open.then(|| messages::resume_question(&scope.run.agents, &paused)))
}
