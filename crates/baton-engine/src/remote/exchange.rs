//! One message to a remote agent and its reply.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_core::chat::Reply;
use baton_core::event::EventKind;
use baton_core::remote::{
    RemoteAgent, RemoteEnd, RemoteError, RemoteErrorKind, RemoteEvent, RemoteMessage, RemoteState,
    RemoteStream, RemoteTask,
};
use baton_core::store::work::InterruptedCall;
use baton_core::store::{StepKind, StepState};
use baton_core::usage::Usage;
use baton_core::{FileRef, MessageId};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::billing::BillGuard;
use super::publish::StreamedReply;
use crate::bounds::LimitKind;
use crate::call_span::CallSpan;
use crate::failure::Failure;
use crate::journal::Record;
use crate::run_files::{self, CallFiles};
use crate::scope::Scope;
use crate::steps::Attachments;
use crate::telemetry;

/// Path segment of the note with the ids of the remote task.
const TASK: &str = "task";
/// How long a cancelled session waits for the remote agent to confirm.
const CANCEL_WAIT: Duration = Duration::from_secs(3);
/// Progress messages of one reply that are stored.
const MAX_PROGRESS: usize = 200;
/// Maximum characters of one progress message.
const MAX_PROGRESS_CHARS: usize = 500;

/// A stream that is being read, and what was read of it in advance.
pub(crate) struct OpenExchange {
    pub(crate) remote: Arc<dyn RemoteAgent>,
    stream: RemoteStream,
    pub(crate) read: VecDeque<RemoteEvent>,
    pub(crate) task: RemoteTask,
    /// Whether the agent has the message, so that its task is followed after a crash and the message is not sent again.
    is_accepted: bool,
}

impl fmt::Debug for OpenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenExchange").field("task", &self.task).finish_non_exhaustive()
    }
}

impl OpenExchange {
    /// Follows the task that an earlier attempt recorded at `place`, or sends the message.
    pub(crate) fn new(
        place: &Scope,
        remote: Arc<dyn RemoteAgent>,
        message: RemoteMessage,
    ) -> Result<Self, Failure> {
        let known = place.at(TASK).step().finished::<RemoteTask>()?;
        let task = known.clone().unwrap_or_else(|| message.task.clone());
        let is_accepted = known.is_some();
        let stream = match known {
            Some(task) => remote.follow(task),
            None => remote.send(message),
        };
        Ok(Self { remote, stream, read: VecDeque::new(), task, is_accepted })
    }

    /// Follows a task that is known otherwise, or returns an end that was read before.
    pub(crate) fn following(
        remote: Arc<dyn RemoteAgent>,
        task: RemoteTask,
        end: Option<Box<RemoteEnd>>,
    ) -> Self {
        let stream = remote.follow(task.clone());
        let read = end.map(RemoteEvent::Ended).into_iter().collect();
        Self { remote, stream, read, task, is_accepted: true }
    }

    /// Notes that the agent has the message, and what was read since.
    pub(crate) fn accept(&mut self, read: VecDeque<RemoteEvent>) {
        (self.read, self.is_accepted) = (read, true);
    }

    pub(crate) async fn next(&mut self) -> Option<Result<RemoteEvent, RemoteError>> {
        match self.read.pop_front() {
            Some(event) => Some(Ok(event)),
            None => self.stream.next().await,
        }
    }

    /// Cancels the remote task, and waits a short time for it.
    async fn cancel(&mut self) {
        let Some(task) = &self.task.task_id else { return };
        match tokio::time::timeout(CANCEL_WAIT, self.remote.cancel(task)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a remote task could not be cancelled"),
            Err(_) => tracing::warn!("a remote agent did not confirm a cancellation in time"),
        }
    }
}

/// How a message is exchanged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeTerms {
    pub(crate) deadline: Instant,
    /// Whether the text is shown while it is streamed.
    pub(crate) is_streamed: bool,
    /// Whether a question of the agent is its answer, because the agent holds the thread.
    pub(crate) shows_questions: bool,
    /// What the ledger has of the task's usage.
    pub(crate) billed: Usage,
}

/// A finished exchange, as its step records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FinishedExchange {
    /// What a transcript shows.
    pub(crate) reply: Reply,
    pub(crate) end: RemoteEnd,
    pub(crate) task: RemoteTask,
    /// The id of the published message, if the text was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<MessageId>,
    /// The limit that cut the reply off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<LimitKind>,
    /// What the ledger has of the task's usage now.
    #[serde(default)]
    pub(crate) billed: Usage,
    /// Files that the agent sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<FileRef>,
}

/// Sends a message at `place`, which is a turn of the session, and reads the reply. Returns the recorded one after a crash. `known`
/// gets the ids of the task as soon as they are known, also if the exchange fails.
pub(crate) async fn run(
    place: &Scope,
    terms: ExchangeTerms,
    known: &mut RemoteTask,
    open: impl FnOnce() -> Result<OpenExchange, Failure>,
) -> Result<FinishedExchange, Failure> {
    if let Some(finished) = place.step().finished()? {
        return Ok(finished);
    }
    let call = telemetry::remote(place);
    let mut open = match place.run.progress.take_exchange(place.path()) {
        Some(open) => open,
        None => open()?,
    };
    let reading = Box::pin(read(place, terms, &mut open, &call)).instrument(call.span.clone());
    let result = reading.await;
    known.clone_from(&open.task);
    result
}

async fn read(
    place: &Scope,
    terms: ExchangeTerms,
    open: &mut OpenExchange,
    call: &CallSpan,
) -> Result<FinishedExchange, Failure> {
    let mut reply = StreamedReply::new(terms.is_streamed);
    let mut bill = BillGuard::new(place, terms.billed, call);
    let row = bill.interrupted_row();
    let interrupted = InterruptedCall { message_id: reply.id, visibility: place.visibility(), row };
    place.step().begin_turn(interrupted).await;
    // Accepted in advance, so that a crash from here on finds the task.
    let mut is_recorded = place.at(TASK).step().is_finished();
    if open.is_accepted && open.task.task_id.is_some() && !is_recorded {
        record_task(place, &open.task).await?;
        is_recorded = true;
    }
    let (mut limit, mut progress) = (None, ProgressLimit::default());
    let end = loop {
        let event = tokio::select! {
            biased;
            () = place.cancel.cancelled() => {
                open.cancel().await;
                place.cancel.keep_partial(place.path(), &reply.text);
                return bill.fail(place, &reply, Failure::Cancelled).await;
            }
            () = place.run.control.stop.cancelled() => { limit = Some(LimitKind::Stopped); break None; }
            () = tokio::time::sleep_until(terms.deadline) => { limit = Some(LimitKind::Time); break None; }
            event = open.next() => event,
        };
        match event {
            Some(Ok(RemoteEvent::Accepted(task))) => {
                let is_new = open.task.task_id != task.task_id || !is_recorded;
                open.task = task;
                if is_new && open.task.task_id.is_some() {
                    record_task(place, &open.task).await?;
                    is_recorded = true;
                }
            }
            Some(Ok(RemoteEvent::HandoffAccepted)) => {}
            Some(Ok(RemoteEvent::Progress(text))) => {
                if let Some(text) = progress.admit(&text) {
                    place.trace(EventKind::Status { text }).await;
                }
            }
            Some(Ok(RemoteEvent::Text(delta))) => reply.add(place, delta).await,
            Some(Ok(RemoteEvent::Ended(end))) => break Some(*end),
            None | Some(Err(_)) => {
                let error = event.and_then(Result::err).unwrap_or_else(no_result);
                let failure = Failure::Remote { agent: place.name().clone(), error };
                return bill.fail(place, &reply, failure).await;
            }
        }
    };
    let end = match end {
        Some(end) => end,
        // A limit was met: the answer is what there is.
        None => {
            open.cancel().await;
            if reply.text.trim().is_empty() {
                return bill.fail(place, &reply, Failure::DeadlineReached).await;
            }
            cut_off(&reply.text)
        }
    };
    finish(place, terms, open.task.clone(), reply, bill, (end, limit)).await
}

/// Limits how many progress messages of a peer are stored, and leaves out repeated ones.
#[derive(Debug, Default)]
struct ProgressLimit {
    count: usize,
    last: String,
}

impl ProgressLimit {
    /// The text to store, if it is to be stored.
    fn admit(&mut self, text: &str) -> Option<String> {
        let text = baton_core::text::head(text.trim(), MAX_PROGRESS_CHARS);
        let is_new = self.count < MAX_PROGRESS && self.last != text;
        if is_new {
            self.count += 1;
            self.last.clone_from(&text);
        }
        is_new.then_some(text)
    }
}

fn no_result() -> RemoteError {
    RemoteError::new(RemoteErrorKind::Malformed, "its reply ended without a result")
}

/// The end of a reply that a limit has cut off.
fn cut_off(text: &str) -> RemoteEnd {
    RemoteEnd {
        state: RemoteState::Completed,
        text: text.to_owned(),
        message: String::new(),
        artifacts: Vec::new(),
        usage: None,
        handoff: None,
        files: Vec::new(),
    }
}

async fn finish(
    place: &Scope,
    terms: ExchangeTerms,
    task: RemoteTask,
    mut reply: StreamedReply,
    mut bill: BillGuard<'_>,
    (mut end, limit): (RemoteEnd, Option<LimitKind>),
) -> Result<FinishedExchange, Failure> {
    let has_answer = end.state == RemoteState::Completed || (end.state.is_waiting() && terms.shows_questions);
    let text = if has_answer { end.answer() } else { end.text.clone() };
    let (said, message_id) = if has_answer || end.state.is_waiting() {
        reply.finish(place, &text).await
    } else {
        (reply.withdraw(place), None)
    };
    let (row, billed) = bill.close(&end);
    let reply = Reply { text, ..Reply::default() };
    let sent = std::mem::take(&mut end.files);
    let mut files = if has_answer { run_files::prepare(place, sent).await } else { CallFiles::default() };
    let refs = files.refs.clone();
    let finished = FinishedExchange { reply, end, task, message_id, limit, billed, files: refs };
    let events = said.into_iter().collect();
    let attachments = Attachments { artifacts: std::mem::take(&mut files.new), ..Attachments::default() };
    place.step().finish_with(StepKind::Turn, &finished, events, vec![row], attachments).await?;
    place.run.recorder.files.add_stored(&files);
    Ok(finished)
}

/// Stores the ids of the remote task. Returns when they are stored.
async fn record_task(place: &Scope, task: &RemoteTask) -> Result<(), Failure> {
    let steps = vec![place.at(TASK).step().build(StepKind::Note, StepState::Finished, task)?];
    place.run.recorder.journal.commit(Record { steps, ..Record::default() }).await
}
