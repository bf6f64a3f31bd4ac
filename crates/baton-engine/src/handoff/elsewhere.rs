//! Unfinished work of the user in another thread (K10). A greeting in a new thread is answered with the question whether to continue it,
//! once; a program that embeds the engine can ask itself, with [`Engine::record_offer`]. If the user agrees, the work moves to the new thread: a new handoff gets
//! the workflow's state, and the old one can no longer be resumed. [`crate::routing`] finds the work.

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::message::Part;
use baton_core::store::HandoffSession;
use baton_core::store::handoff::ResumeQuestion;
use baton_core::{HandoffId, TenantId, ThreadId};
use serde_json::Map;

use super::announcement::Announcement;
use super::holder_run;
use super::negotiation::negotiate;
use super::start::{self, HandoffOffer, StartOutcome};
use super::{finish, messages};
use crate::bounds::InvocationKind;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::input::Input;
use crate::invocation;
use crate::journal::Record;
use crate::lease::{HandoffLease, change_stored};
use crate::outcome::{Answer, Outcome};
use crate::routing::{ElsewhereStep, may_resume_elsewhere};
use crate::run::{self, show};
use crate::scope::Scope;

/// The messages of a new thread are the greeting, the engine's question, and the reply to it.
pub(crate) const REPLY_TO_ENGINE: u64 = 3;
/// A client asks before the first message.
const REPLY_TO_CLIENT: u64 = 1;

/// Executes `step`. The lease is that of the other thread's handoff.
pub(crate) async fn run(
    scope: Scope,
    lease: &Arc<HandoffLease>,
    step: ElsewhereStep,
    input: Input,
) -> Result<Outcome, Failure> {
    match step {
        ElsewhereStep::Offer => offer(&scope, lease).await,
        ElsewhereStep::Continue => continue_here(scope, lease, input).await,
        ElsewhereStep::Decline => {
            say(&scope, messages::later_message(&scope.run.agents, &lease.session())).await
        }
    }
}

impl Engine {
    /// Records that the program has asked the user, before the first message of `thread`, whether to continue the handoff of another
    /// thread. Call it before the reply is submitted as that first message. The engine then understands the reply and does not ask
    /// again. Does nothing if `reply` is about something else, or if the handoff was resumed in between.
    pub async fn record_offer(
        &self,
        tenant: &TenantId,
        handoff: HandoffId,
        thread: ThreadId,
        reply: &str,
    ) -> Result<(), Failure> {
        if !may_resume_elsewhere(reply) {
            return Ok(());
        }
        let store = self.parts.store.tenant(tenant);
        let left = store.handoff(handoff).await?;
        if left.state.is_open() {
            return Ok(());
        }
        let ask = |handoff: &mut HandoffSession| {
            if !handoff.state.is_open() {
                handoff.notes.offered = Some(ResumeQuestion { thread, reply: REPLY_TO_CLIENT });
            }
        };
        change_stored(&*store, left, ask).await.map(drop)
    }
}

/// Asks whether to continue, and records that the user was asked in this thread.
async fn offer(scope: &Scope, lease: &HandoffLease) -> Result<Outcome, Failure> {
    let asked = ResumeQuestion { thread: scope.run.caller.thread_id, reply: REPLY_TO_ENGINE };
    change_other(scope, lease, |handoff| handoff.notes.offered = Some(asked)).await;
    say(scope, messages::welcome_back_message(&scope.run.agents, &lease.session())).await
}

/// Gives this thread to the agent, with what the other handoff has collected. If the agent does not take it, the scope's agent
/// answers.
async fn continue_here(scope: Scope, lease: &HandoffLease, input: Input) -> Result<Outcome, Failure> {
    let left = lease.session();
    let Some(target) = scope.run.agents.get(&left.target_agent_id).cloned() else {
        return run::run(scope, input).await;
    };
    if let Err(failure) = negotiate(&scope.run.models, &target, &scope.run.request.rights) {
        return say(&scope, failure.to_string()).await;
    }
    let giver =
        scope.clone().with_session(|session| session.bounds = Arc::new(session.bounds.for_dispatcher()));
    let Ok(child) = invocation::enter(&giver, &target, InvocationKind::Transfer).await else {
        return run::run(scope, input).await;
    };
    let offer = HandoffOffer {
        reason: left.handoff_reason.clone(),
        summary: left.context_summary.clone(),
        known: Map::new(),
        paused: None,
        moved: Some(Box::new(left)),
        announcement: Announcement::Resumed,
        target,
    };
    let received = resumed_input(&scope, &offer.target, &input);
    let started = start::start(&giver, child, &offer, received).await?;
    // After the new handoff is stored: a crash in between leaves the work in both threads, never in none.
    change_other(&scope, lease, |handoff| {
        handoff.workflow = None;
        handoff.notes.preserve_state = false;
    })
    .await;
    match started {
        StartOutcome::Answered(outcome) => Ok(*outcome),
        StartOutcome::Returned(lease) => {
            finish::finish_in_run(&giver, &lease, Outcome::nothing(giver.name()), input).await
        }
        StartOutcome::Refused(failure) => say(&scope, failure.to_string()).await,
    }
}

/// Without words for a guide, which then repeats its question.
fn resumed_input(scope: &Scope, target: &Agent, input: &Input) -> Input {
    let parts = match scope.run.models.guide(target).filter(|_| target.workflow.is_some()) {
        Some(_) => Vec::new(),
        None => vec![Part::text(holder_run::RESUMED_NOTE)],
    };
    Input { history: Arc::clone(&input.history), parts: parts.into(), ..Input::default() }
}

/// Changes the handoff of the other thread with this run's next append. The run does not depend on it.
async fn change_other(scope: &Scope, lease: &HandoffLease, change: impl FnOnce(&mut HandoffSession)) {
    let handoffs = vec![lease.change(change)];
    scope.run.recorder.journal.commit_soon(Record { handoffs, is_note: true, ..Record::default() }).await;
}

async fn say(scope: &Scope, text: String) -> Result<Outcome, Failure> {
    let answer = Answer::without_turn(text);
    let mut outcome = Outcome { answer, agent: scope.name().clone(), is_shown: false, dissent: Vec::new() };
    show(scope, &mut outcome).await?;
    Ok(outcome)
}
