//! One model call: streamed, retried where that helps, moved to the next model where it does not, and accounted for.

use std::time::Duration;

use baton_core::chat::{Messages, Reasoning, Reply, ToolCall};
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::model::{Chunk, Finish, ModelError, ModelErrorKind, ModelRequest, ToolChoice};
use baton_core::store::work::CallUnderWay;
use baton_core::store::{NewEvent, Step, StepKind};
use baton_core::usage::{Cost, Tokens};
use baton_core::{MessageId, ToolSpec};
use futures_util::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::budget::Limit;
use crate::failure::Failure;
use crate::journal::Record;
use crate::models::Candidate;
use crate::scope::{RunState, Scope};
use crate::telemetry::{self, Spanned};
use crate::window::estimate;

/// More calls in one reply than anybody means,
const MAX_CALLS: usize = 128;
/// and more text, reasoning and arguments.
const MAX_REPLY_BYTES: usize = 8 * 1024 * 1024;

/// What a turn is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) system: &'a str,
    pub(crate) messages: Messages<'a>,
    pub(crate) tools: &'a [&'a ToolSpec],
    pub(crate) tool_choice: ToolChoice<'a>,
    pub(crate) output_schema: Option<&'a Value>,
    /// Tokens of all of it, estimated.
    pub(crate) input_estimate: u64,
    pub(crate) deadline: Instant,
    /// The limit after which this is the last turn.
    pub(crate) closing: Option<Limit>,
}

/// What a turn came to.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) reply: Reply,
    pub(crate) finish: Finish,
    /// The limit after which it was the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closing: Option<Limit>,
    /// What its text was heard as, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<MessageId>,
}

/// Calls that were under way when the run's process died: they are paid for, and what listeners saw of them is taken back.
pub(crate) fn settle_interrupted(run: &RunState) -> Record {
    let mut record = Record::default();
    let open = run.steps.values().filter_map(|step| Some((step, step.call_under_way()?)));
    let mut open: Vec<(&Step, CallUnderWay)> = open.collect();
    open.sort_by_key(|(step, _)| step.at);
    for (step, CallUnderWay { message_id, visibility, row }) in open {
        let row = run.before.lasted(row);
        // The task of the call was dropped while its run still wrote, so the row is there and the step is not.
        let is_paid = run.ledger.holds(&row);
        let (agent, path) = (row.agent.clone(), step.path.as_str().into());
        let kind = EventKind::TurnRestarted { message_id };
        record.events.push(NewEvent { at: Timestamp::now(), agent, path, visibility, kind });
        record.rows.extend((!is_paid).then_some(row));
        record.steps.push(Step { data: Value::Null, ..step.clone() });
    }
    run.ledger.count(&record.rows);
    record
}

/// Takes one turn: tries each candidate, each some times. One that was taken before a crash is not taken again.
pub(crate) async fn take(scope: &Scope, candidates: &[Candidate], ask: Ask<'_>) -> Result<Taken, Failure> {
    if let Some(taken) = scope.finished()? {
        return Ok(taken);
    }
    let patience = scope.run.engine.parts.patience;
    let attempts = patience.attempts.max(1);
    let mut last = None;
    for (at, candidate) in candidates.iter().enumerate() {
        for attempt in 1..=attempts {
            let call = telemetry::chat(scope, candidate, &ask);
            // On the heap: whoever waits for a turn is large enough without it.
            let trying = Box::pin(attempt_once(scope, candidate, ask, &call)).instrument(call.span.clone());
            let broken = match trying.await? {
                Ok(taken) => return Ok(taken),
                Err(broken) => broken,
            };
            let Failure::Model(error) = &broken.failure else {
                let restarts = matches!(broken.failure, Failure::TimeUp) && ask.closing.is_none();
                return Err(broken.end(scope, restarts).await?);
            };
            tracing::warn!(agent = %scope.name(), model = %candidate.model, attempt, %error, "model call failed");
            let wait = error.retry_after.unwrap_or_else(|| back_off(patience.back_off, attempt));
            let again = error.kind.is_passing() && attempt < attempts && wait <= patience.longest_wait;
            let restarts = again || at + 1 < candidates.len() || scope.bounds.is_passed_on();
            last = Some(broken.end(scope, restarts).await?);
            if !again {
                break;
            }
            pause(scope, wait, ask.deadline).await?;
        }
    }
    Err(last.unwrap_or_else(|| Failure::NoModel(scope.name().to_string())))
}

/// An attempt that failed, with the text that listeners have already seen of it.
struct Broken {
    failure: Failure,
    message: Option<(MessageId, String)>,
    row: LedgerRow,
}

impl Broken {
    /// Settles the attempt, and ends its message for listeners: it comes again from the start, or this is all there will be.
    async fn end(self, scope: &Scope, restarts: bool) -> Result<Failure, Failure> {
        let kind = self.message.map(|(message_id, text)| {
            if restarts {
                EventKind::TurnRestarted { message_id }
            } else {
                EventKind::TextFinished { message_id, speaker: scope.agent.display_name.clone(), text }
            }
        });
        let events = kind.map(|kind| scope.event(kind)).into_iter().collect();
        scope.begin_soon(StepKind::Turn, &Value::Null, events, vec![self.row]).await?;
        Ok(self.failure)
    }
}

/// Half of it certain, half of it chance.
fn back_off(base: Duration, attempt: u32) -> Duration {
    let full = base.saturating_mul(1 << (attempt - 1).min(5));
    full / 2 + full.mul_f64(fastrand::f64() / 2.0)
}

async fn pause(scope: &Scope, wait: Duration, deadline: Instant) -> Result<(), Failure> {
    tokio::select! {
        () = tokio::time::sleep(wait) => Ok(()),
        () = tokio::time::sleep_until(deadline) => Err(Failure::TimeUp),
        () = scope.cancel.cancelled() => Err(Failure::Cancelled),
    }
}

/// The outer error is for the run, the inner one for the next attempt.
async fn attempt_once(
    scope: &Scope,
    candidate: &Candidate,
    ask: Ask<'_>,
    call: &Spanned,
) -> Result<Result<Taken, Broken>, Failure> {
    let trace = call.trace(&scope.run);
    let request = ModelRequest {
        agent: scope.name(),
        model: &candidate.model,
        system: ask.system,
        messages: ask.messages,
        tools: ask.tools,
        tool_choice: ask.tool_choice,
        sampling: &scope.agent.sampling,
        output_schema: ask.output_schema,
        trace: trace.as_ref(),
    };
    let mut attempt = Attempt::new(scope, candidate, &ask, call);
    attempt.announce().await?;
    let mut stream = candidate.provider.stream(&request);
    let patience = scope.run.engine.parts.patience;
    let mut wait = patience.first_chunk;
    let result = loop {
        // What is there already is taken without setting alarms, but not beyond the end.
        let goes_on = !scope.cancel.is_cancelled() && Instant::now() < ask.deadline;
        let next = match stream.next().now_or_never().filter(|_| goes_on) {
            Some(next) => Ok(next),
            None => tokio::select! {
                biased;
                () = scope.cancel.cancelled() => break Err(Failure::Cancelled),
                () = tokio::time::sleep_until(ask.deadline) => break Err(Failure::TimeUp),
                next = tokio::time::timeout(wait, stream.next()) => next,
            },
        };
        let waited = std::mem::replace(&mut wait, patience.between_chunks);
        match next {
            Err(_) => break Err(silent(candidate, waited).into()),
            Ok(None) => break Err(cut(candidate).into()),
            Ok(Some(Err(error))) => break Err(error.into()),
            Ok(Some(Ok(Chunk::Done(finish)))) => break attempt.finished(finish),
            Ok(Some(Ok(chunk))) => {
                if let Err(error) = attempt.add(chunk).await {
                    break Err(error.into());
                }
            }
        }
    };
    // Closing the connection comes before anything that may wait.
    drop(stream);
    attempt.close(result, ask.closing).await
}

fn silent(candidate: &Candidate, wait: Duration) -> ModelError {
    let message = format!("nothing was heard for {} s", wait.as_secs());
    ModelError::new(ModelErrorKind::Timeout, candidate.provider.provider(), message)
}

fn cut(candidate: &Candidate) -> ModelError {
    let message = "the answer ended in the middle";
    ModelError::new(ModelErrorKind::Malformed, candidate.provider.provider(), message)
}

fn size(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Text(text) | Chunk::Reasoning(text) | Chunk::ReasoningSignature(text) => text.len(),
        Chunk::Call { name, .. } => name.len(),
        Chunk::Arguments { delta, .. } => delta.len(),
        Chunk::Tokens(_) | Chunk::Done(_) => 0,
    }
}

fn fresh_id() -> MessageId {
    MessageId::from_uuid(Uuid::now_v7())
}

/// A reply as it grows, and the row it will leave in the ledger.
struct Attempt<'a> {
    scope: &'a Scope,
    candidate: &'a Candidate,
    call: &'a Spanned,
    reply: Reply,
    /// The provider's index of each call, in the order in which calls began.
    indices: Vec<u32>,
    /// The message that listeners see growing, once it has begun.
    message_id: MessageId,
    is_begun: bool,
    reasoning_id: Option<MessageId>,
    tokens: Option<Tokens>,
    /// Of everything that was said so far.
    bytes: usize,
    input_estimate: u64,
    at: Timestamp,
    started: Instant,
    written: bool,
}

impl<'a> Attempt<'a> {
    fn new(scope: &'a Scope, candidate: &'a Candidate, ask: &Ask<'_>, call: &'a Spanned) -> Self {
        Self {
            scope,
            candidate,
            call,
            reply: Reply::default(),
            indices: Vec::new(),
            message_id: fresh_id(),
            is_begun: false,
            reasoning_id: None,
            tokens: None,
            bytes: 0,
            input_estimate: ask.input_estimate,
            at: Timestamp::now(),
            started: Instant::now(),
            written: false,
        }
    }

    async fn add(&mut self, chunk: Chunk) -> Result<(), ModelError> {
        if self.bytes == 0 {
            self.call.heard(self.started);
        }
        self.grow(size(&chunk))?;
        match chunk {
            Chunk::Text(delta) => self.text(delta).await,
            Chunk::Reasoning(delta) => {
                let message_id = *self.reasoning_id.get_or_insert_with(fresh_id);
                self.reasoning().text.push_str(&delta);
                self.scope.trace(EventKind::Reasoning { message_id, delta }).await;
            }
            Chunk::ReasoningSignature(signature) => self.reasoning().signature = Some(signature),
            Chunk::Call { index, id, name, signature } => {
                if self.indices.len() == MAX_CALLS {
                    return Err(self.malformed("the reply asks for more than 128 tools at once"));
                }
                self.indices.push(index);
                self.reply.calls.push(ToolCall { id, name, arguments: String::new(), signature });
            }
            Chunk::Arguments { index, delta } => match self.indices.iter().rposition(|known| *known == index)
            {
                Some(at) => self.reply.calls[at].arguments.push_str(&delta),
                None => return Err(self.malformed("arguments came for a call that was never begun")),
            },
            Chunk::Tokens(tokens) => self.tokens = Some(tokens),
            Chunk::Done(_) => {}
        }
        Ok(())
    }

    async fn text(&mut self, delta: String) {
        if delta.is_empty() {
            return;
        }
        let message_id = self.message().await;
        self.reply.text.push_str(&delta);
        self.scope.emit(EventKind::TextDelta { message_id, delta }).await;
    }

    /// The reasoning that is being written: a signed one is finished.
    fn reasoning(&mut self) -> &mut Reasoning {
        if self.reply.reasoning.last().is_none_or(|last| last.signature.is_some()) {
            self.reply.reasoning.push(Reasoning::default());
        }
        self.reply.reasoning.last_mut().expect("one was just added")
    }

    /// Written down while the call is made, and before anything of it is heard.
    async fn announce(&self) -> Result<(), Failure> {
        let row = self.row(CallOutcome::Cancelled, Some("interrupted".to_owned()));
        let visibility = self.scope.visibility();
        let under_way = CallUnderWay { message_id: self.message_id, visibility, row };
        self.scope.begin_soon(StepKind::Turn, &under_way, Vec::new(), Vec::new()).await
    }

    /// Begins the message when its first piece arrives.
    async fn message(&mut self) -> MessageId {
        if !self.is_begun {
            self.is_begun = true;
            let speaker = self.scope.agent.display_name.clone();
            self.scope.emit(EventKind::TextStarted { message_id: self.message_id, speaker }).await;
        }
        self.message_id
    }

    fn malformed(&self, message: &str) -> ModelError {
        ModelError::new(ModelErrorKind::Malformed, self.candidate.provider.provider(), message)
    }

    /// Memory is never as large as a provider likes.
    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes += bytes;
        if self.bytes > MAX_REPLY_BYTES {
            return Err(self.malformed("the reply is longer than 8 MiB"));
        }
        Ok(())
    }

    fn finished(&mut self, finish: Finish) -> Result<Finish, Failure> {
        if !self.reply.text.trim().is_empty() || !self.reply.calls.is_empty() {
            return Ok(finish);
        }
        let (kind, message) = match finish {
            Finish::ContentFilter => (ModelErrorKind::ContentFilter, "the provider refused to answer"),
            _ => (ModelErrorKind::Malformed, "the answer is empty"),
        };
        Err(ModelError::new(kind, self.candidate.provider.provider(), message).into())
    }

    /// Writes the row, and what came of the turn if it is whole.
    async fn close(
        mut self,
        result: Result<Finish, Failure>,
        closing: Option<Limit>,
    ) -> Result<Result<Taken, Broken>, Failure> {
        let (outcome, error) = match &result {
            Ok(_) => (CallOutcome::Ok, None),
            Err(Failure::Cancelled | Failure::TimeUp) => (CallOutcome::Cancelled, None),
            Err(failure) => (CallOutcome::Failed, Some(failure.code().to_owned())),
        };
        self.written = true;
        let row = self.row(outcome, error);
        self.call.paid(&row);
        let reply = std::mem::take(&mut self.reply);
        match result {
            Ok(finish) => {
                let said = self.is_begun.then(|| EventKind::TextFinished {
                    message_id: self.message_id,
                    speaker: self.scope.agent.display_name.clone(),
                    text: reply.text.clone(),
                });
                let events = said.map(|said| self.scope.event(said)).into_iter().collect();
                let message_id = self.is_begun.then_some(self.message_id);
                let taken = Taken { reply, finish, closing, message_id };
                self.call.answered(&taken);
                self.scope.finish(StepKind::Turn, &taken, events, vec![row]).await?;
                Ok(Ok(taken))
            }
            Err(failure) => {
                let message = self.is_begun.then_some((self.message_id, reply.text));
                Ok(Err(Broken { failure, message, row }))
            }
        }
    }

    fn row(&self, outcome: CallOutcome, error: Option<String>) -> LedgerRow {
        // A call that was refused before it began consumed nothing.
        let heard = self.bytes > 0 || self.tokens.is_some();
        let consumed = outcome != CallOutcome::Failed || heard;
        let estimate = Tokens {
            input_tokens: self.input_estimate,
            output_tokens: estimate::reply(&self.reply),
            ..Tokens::default()
        };
        let tokens = self.tokens.unwrap_or(if consumed { estimate } else { Tokens::default() });
        let cost = match self.candidate.facts.price {
            Some(price) => Cost::Known(price.of(tokens)),
            None if tokens == Tokens::default() => Cost::default(),
            None => Cost::Unknown(baton_core::Usd::default()),
        };
        LedgerRow {
            run_id: self.scope.run.run_id,
            session_id: self.scope.session_id.clone(),
            agent: self.scope.agent.name.clone(),
            path: self.scope.path().to_owned(),
            call: Called::Model {
                provider: self.candidate.provider.provider().to_owned(),
                model: self.candidate.model.clone(),
            },
            tokens,
            estimated: self.tokens.is_none() && consumed,
            cost,
            started_at: self.at,
            latency_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome,
            error,
        }
    }
}

/// A turn that is dropped in the middle, as when time runs out, is accounted for as well.
impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.written {
            let row = self.row(CallOutcome::Cancelled, None);
            self.call.paid(&row);
            self.scope.run.ledger.write(row);
        }
    }
}
