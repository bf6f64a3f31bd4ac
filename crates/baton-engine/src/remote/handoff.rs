//! Offers a thread to a remote agent, and reads how it returns the thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::remote::{
    HandoffReply, RemoteAgent, RemoteEnd, RemoteError, RemoteErrorKind, RemoteEvent, RemoteHandoff,
    RemoteLink, RemoteMessage, RemoteState, RemoteTask, ReturnOutcome,
};
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState};
use baton_core::text::head;
use futures_util::StreamExt as _;

use super::exchange::{FinishedExchange, OpenExchange};
use super::{connect, context, message};
use crate::extensions::Extensions;
use crate::failure::Failure;
use crate::input::Input;
use crate::lease::{self, HandoffLease};
use crate::scope::Scope;

/// How long an agent may take to accept or decline a thread.
const DECISION_TIME: Duration = Duration::from_mins(1);
/// Maximum characters of a text of the agent that an error quotes.
const MAX_QUOTED_CHARS: usize = 500;

/// Whether an agent takes a thread, as far as an event says so.
enum Decision {
    Accepted,
    Declined(String),
    Open,
}

/// An explicit acceptance, text or an end with an answer means that the agent takes the thread.
fn decision(event: &RemoteEvent) -> Decision {
    match event {
        RemoteEvent::Accepted(_) | RemoteEvent::Progress(_) => Decision::Open,
        RemoteEvent::HandoffAccepted | RemoteEvent::Text(_) => Decision::Accepted,
        RemoteEvent::Ended(end) => match (&end.handoff, end.state) {
            (Some(HandoffReply::Declined { reason }), _) => Decision::Declined(quoted(reason)),
            (_, RemoteState::Rejected | RemoteState::Failed | RemoteState::Canceled) => {
                let said = end.answer();
                let reason = if said.is_empty() { end.state.word().to_owned() } else { said };
                Decision::Declined(quoted(&reason))
            }
            _ => Decision::Accepted,
        },
    }
}

/// Offers the thread to the agent of `child` with the first message of its session. The session goes on with the same reply.
pub(crate) async fn offer(child: &Scope, handoff: &HandoffSession, input: &Input) -> Result<(), Failure> {
    let place = child.at("turn:1");
    if place.step().is_finished() {
        return Ok(());
    }
    let remote = connect(&child.run.extensions, child.agent())?;
    let task = RemoteTask::new_in(context::of_thread(child).await);
    let parts = message::first_parts(&place, input, None);
    let message = message::build(&place, task, parts, Some(message::offer(child, handoff, input)));
    let mut open = OpenExchange::new(&place, remote, message)?;
    let mut read = VecDeque::new();
    let deciding = async {
        loop {
            match open.next().await {
                Some(Ok(event)) => {
                    if let RemoteEvent::Accepted(task) = &event {
                        open.task = task.clone();
                    }
                    let decision = decision(&event);
                    if !matches!(event, RemoteEvent::Progress(_)) {
                        read.push_back(event);
                    }
                    match decision {
                        Decision::Open => {}
                        Decision::Accepted => return Ok(()),
                        Decision::Declined(reason) => return Err(declined(child.agent(), reason)),
                    }
                }
                Some(Err(error)) => return Err(Failure::Remote { agent: child.name().clone(), error }),
                None => return Err(unanswered(child.agent(), "it did not answer the handoff")),
            }
        }
    };
    let deadline = child.session.bounds.deadline;
    let decided = tokio::select! {
        biased;
        () = child.cancel.cancelled() => Err(Failure::Cancelled),
        decided = deciding => decided,
        () = tokio::time::sleep(DECISION_TIME) => Err(unanswered(child.agent(), NOT_IN_TIME)),
        () = tokio::time::sleep_until(deadline) => Err(unanswered(child.agent(), NOT_IN_TIME)),
    };
    if let Err(failure) = decided {
        if let Some(task) = &open.task.task_id {
            open.remote.cancel_in_background(task);
        }
        return Err(failure);
    }
    open.accept(read);
    child.run.progress.keep_exchange(place.path(), open);
    Ok(())
}

/// Offers a thread outside of a run. Returns the task whose first answer is still to be read.
pub(crate) async fn offer_outside(
    extensions: &Extensions,
    target: &Agent,
    message: RemoteMessage,
) -> Result<RemoteLink, Failure> {
    let remote = connect(extensions, target)?;
    let mut link = RemoteLink { task: message.task.clone(), is_unread: true, ..RemoteLink::default() };
    let mut stream = remote.send(message);
    let reading = async {
        while let Some(event) = stream.next().await {
            let event = event.map_err(|error| Failure::Remote { agent: target.name.clone(), error })?;
            let decision = decision(&event);
            match event {
                RemoteEvent::Accepted(task) => link.task = task,
                // A task can be followed; a plain message cannot.
                RemoteEvent::Ended(end) if link.task.task_id.is_none() => link.opening = Some(end),
                _ => {}
            }
            match decision {
                // Without a task there is nothing to follow, so the whole answer is read now.
                Decision::Accepted if link.task.task_id.is_some() || link.opening.is_some() => return Ok(()),
                Decision::Accepted | Decision::Open => {}
                Decision::Declined(reason) => return Err(declined(target, reason)),
            }
        }
        Err(unanswered(target, "it did not answer the handoff"))
    };
    let decided = tokio::time::timeout(DECISION_TIME, reading).await;
    let decided = decided.unwrap_or_else(|_| Err(unanswered(target, NOT_IN_TIME)));
    match decided {
        Ok(()) => Ok(link),
        Err(failure) => {
            cancel(&*remote, &link.task);
            Err(failure)
        }
    }
}

fn declined(target: &Agent, reason: String) -> Failure {
    Failure::HandoffRejected { agent: target.name.clone(), reason }
}

const NOT_IN_TIME: &str = "it did not accept the handoff in time";

/// The failure of an agent that neither accepts nor declines.
fn unanswered(target: &Agent, message: &str) -> Failure {
    let error = RemoteError::new(RemoteErrorKind::Timeout, message);
    Failure::Remote { agent: target.name.clone(), error }
}

/// A failure of the scope's agent.
pub(super) fn failure(scope: &Scope, message: &str) -> Failure {
    let error = RemoteError::new(RemoteErrorKind::Refused, message);
    Failure::Remote { agent: scope.name().clone(), error }
}

/// A text of the agent, as an error quotes it.
pub(super) fn quoted(text: &str) -> String {
    head(text.trim(), MAX_QUOTED_CHARS)
}

/// How the agent returns the thread: explicitly, or by the end of its task if its file says so.
pub(super) fn returned(
    done: &FinishedExchange,
    returns_on_end: bool,
) -> Option<(HandoffEnd, String, Vec<String>)> {
    let RemoteEnd { state, artifacts, handoff, .. } = &done.end;
    match handoff {
        Some(HandoffReply::Declined { reason }) => {
            Some((HandoffEnd::Declined, reason.clone(), artifacts.clone()))
        }
        Some(HandoffReply::Returned { outcome, summary, artifacts: named }) => {
            let end = match outcome {
                ReturnOutcome::Completed => HandoffEnd::Completed,
                ReturnOutcome::Cancelled => HandoffEnd::Declined,
                ReturnOutcome::Failed => HandoffEnd::Failed,
            };
            let artifacts = if named.is_empty() { artifacts } else { named };
            Some((end, summary.clone(), artifacts.clone()))
        }
        None if *state == RemoteState::Completed && returns_on_end && done.limit.is_none() => {
            Some((HandoffEnd::Completed, done.reply.text.clone(), artifacts.clone()))
        }
        None => None,
    }
}

/// Stores the remote task with the lease.
pub(super) async fn keep_link(scope: &Scope, lease: &Arc<HandoffLease>, link: RemoteLink) {
    let handoff = lease.session();
    if handoff.state != HandoffState::Active || handoff.notes.remote.as_deref() == Some(&link) {
        return;
    }
    lease::commit_change(&scope.run, lease, |handoff| handoff.notes.remote = Some(Box::new(link))).await;
}

/// Cancels the remote task of a handoff that has ended here, in the background. The agent's consent is not needed.
pub(crate) fn cancel_held(extensions: &Extensions, target: &Agent, link: Option<&RemoteLink>) {
    let Some(link) = link.filter(|link| link.task.task_id.is_some() && target.kind.is_remote()) else {
        return;
    };
    match connect(extensions, target) {
        Ok(remote) => cancel(&*remote, &link.task),
        Err(failure) => tracing::warn!(%failure, "the task of a handoff could not be cancelled"),
    }
}

fn cancel(remote: &dyn RemoteAgent, task: &RemoteTask) {
    if let Some(task) = &task.task_id {
        remote.cancel_in_background(task);
    }
}

/// The offer of a thread outside of a run.
pub(crate) fn outside_offer(
    handoff: &baton_core::store::NewHandoff,
    recent: Vec<(baton_core::Role, String)>,
) -> RemoteHandoff {
    RemoteHandoff {
        thread_id: handoff.thread_id,
        source_agent_id: handoff.source_agent_id.clone(),
        context_summary: handoff.context_summary.clone(),
        history_count: handoff.notes.since.saturating_sub(1),
        recent_messages: recent,
        reason: handoff.handoff_reason.clone(),
        preserve_state: handoff.notes.preserve_state,
        return_expected: handoff.notes.return_expected,
        words: handoff.context_summary.clone(),
        metadata: handoff.metadata.clone(),
    }
}
