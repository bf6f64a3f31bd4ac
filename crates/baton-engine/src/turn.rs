//! One turn: a streamed model call with retries, fallback models and a ledger row for each attempt.

use std::pin::Pin;
use std::time::Duration;

use baton_core::agent::Sampling;
use baton_core::chat::{Messages, Reasoning, Reply, ToolCall};
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::message::Visibility;
use baton_core::model::{
    CallTimeouts, Chunk, Finish, ModelError, ModelErrorKind, ModelRequest, ReplyStream, ToolChoice,
};
use baton_core::store::work::InterruptedCall;
use baton_core::store::{NewEvent, Step, StepKind};
use baton_core::usage::{Cost, Tokens};
use baton_core::{MessageId, ToolCallId, ToolSpec};
use futures_util::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tracing::Instrument as _;
use uuid::Uuid;

use crate::budget::LimitKind;
use crate::engine::ModelTimeouts;
use crate::failure::Failure;
use crate::journal::Record;
use crate::models::ModelCandidate;
use crate::scope::{RunState, Scope};
use crate::structured_output;
use crate::telemetry::{self, CallSpan};
use crate::text_calls::holdback::HoldBack;
use crate::text_calls::{self, TextCall};
use crate::toolset::Toolset;
use crate::window::estimate;

/// Maximum tool calls of one reply.
const MAX_CALLS: usize = 128;
/// Maximum bytes of a reply's text, reasoning and arguments.
const MAX_REPLY_BYTES: usize = 8 * 1024 * 1024;

/// The request of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnRequest<'a> {
    pub(crate) system: &'a str,
    pub(crate) messages: Messages<'a>,
    pub(crate) tools: &'a [&'a ToolSpec],
    /// Validates calls that the model writes as text. `None` if text is always text.
    pub(crate) text_calls: Option<&'a Toolset>,
    pub(crate) tool_choice: ToolChoice,
    pub(crate) output_schema: Option<&'a Value>,
    /// Estimated tokens of the whole request.
    pub(crate) input_estimate: u64,
    pub(crate) deadline: Instant,
    /// The limit that makes this the closing turn.
    pub(crate) closing: Option<LimitKind>,
}

/// The result of a turn, as its step records it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TurnResult {
    pub(crate) reply: Reply,
    pub(crate) finish: Finish,
    /// The limit that made it the closing turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closing: Option<LimitKind>,
    /// The id of the published message, if the reply has text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<MessageId>,
}

/// Settles the model calls that were in progress when the run's process died: adds their ledger rows, and withdraws the text that
/// listeners saw of them.
pub(crate) fn settle_interrupted(run: &RunState) -> Record {
    let mut record = Record::default();
    let open = run.steps.values().filter_map(|step| Some((step, step.interrupted_call()?)));
    let mut open: Vec<(&Step, InterruptedCall)> = open.collect();
    open.sort_by_key(|(step, _)| step.at);
    for (step, InterruptedCall { message_id, visibility, row }) in open {
        let row = run.prior_durations.lasted(row);
        // A call that was dropped before the process died has its row, but no finished step.
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

/// Takes one turn, with retries of each candidate in turn. A turn that was recorded before a crash is not taken again.
pub(crate) async fn run_turn(
    scope: &Scope,
    candidates: &[ModelCandidate],
    turn_request: TurnRequest<'_>,
) -> Result<TurnResult, Failure> {
    if let Some(taken) = scope.finished()? {
        return Ok(taken);
    }
    let model_timeouts = scope.run.engine.parts.model_timeouts;
    let attempts = model_timeouts.attempts.max(1);
    // Not multiplied for slow models: how fast a model is says nothing about how long its server takes to start.
    let patience = Instant::now() + scope.agent.limits.timeout.get();
    let wait_until = patience.min(turn_request.deadline);
    let mut last = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let is_last = at + 1 == candidates.len();
        for attempt in 1.. {
            let call = telemetry::chat(scope, candidate, &turn_request);
            // Boxed, to keep the futures that await a turn small.
            let trying =
                Box::pin(attempt_once(scope, candidate, turn_request, &call)).instrument(call.span.clone());
            let broken = match trying.await? {
                Ok(taken) => return Ok(taken),
                Err(broken) => broken,
            };
            let Failure::Model(error) = &broken.failure else {
                scope.keep_partial(broken.text());
                let restarts =
                    matches!(broken.failure, Failure::DeadlineReached) && turn_request.closing.is_none();
                return Err(broken.end(scope, restarts).await?);
            };
            tracing::warn!(agent = %scope.name(), model = %candidate.model, attempt, %error, "model call failed");
            let wait = error.retry_after.unwrap_or_else(|| back_off(model_timeouts.back_off, attempt));
            let waits = is_last && error.kind == ModelErrorKind::Unreachable && scope.needs(candidate);
            let again = if waits {
                // A server that is still starting. Nothing else can answer, so the deadline decides.
                Instant::now() + wait < wait_until
            } else {
                error.kind.is_transient() && attempt < attempts && wait <= model_timeouts.longest_wait
            };
            if waits && again && attempt == 1 {
                let text = format!("waiting for the server of {}: {}", error.provider, error.message);
                scope.emit(EventKind::Status { text }).await;
            }
            let restarts = again || !is_last || scope.bounds.caller_can_continue();
            last = Some(broken.end(scope, restarts).await?);
            if !again {
                break;
            }
            pause(scope, wait, turn_request.deadline).await?;
        }
    }
    Err(last.unwrap_or_else(|| Failure::NoModel(scope.name().to_string())))
}

/// A failed attempt, with the text that listeners have seen of it.
struct FailedAttempt {
    failure: Failure,
    message: Option<(MessageId, String)>,
    row: LedgerRow,
}

impl FailedAttempt {
    /// The text of the reply so far.
    fn text(&self) -> &str {
        self.message.as_ref().map_or("", |(_, text)| text)
    }

    /// Records the attempt's row and ends its message: with `restarts` the text is withdrawn, otherwise it is final.
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

/// Exponential back-off, randomized between half and all of the delay.
fn back_off(base: Duration, attempt: u32) -> Duration {
    let full = base.saturating_mul(1 << (attempt - 1).min(5));
    full / 2 + full.mul_f64(fastrand::f64() / 2.0)
}

async fn pause(scope: &Scope, wait: Duration, deadline: Instant) -> Result<(), Failure> {
    tokio::select! {
        () = tokio::time::sleep(wait) => Ok(()),
        () = tokio::time::sleep_until(deadline) => Err(Failure::DeadlineReached),
        () = scope.cancel.cancelled() => Err(Failure::Cancelled),
    }
}

/// Makes one model call. The outer error ends the turn; after the inner one another attempt may follow.
async fn attempt_once(
    scope: &Scope,
    candidate: &ModelCandidate,
    turn_request: TurnRequest<'_>,
    call: &CallSpan,
) -> Result<Result<TurnResult, FailedAttempt>, Failure> {
    let trace = call.trace(&scope.run);
    let supports = candidate.facts.supports;
    let own = &scope.agent.sampling;
    let sampling = Sampling {
        max_output_tokens: own.max_output_tokens.or(candidate.facts.max_output_tokens),
        ..own.clone()
    };
    let request = ModelRequest {
        agent: scope.name(),
        model: &candidate.model,
        system: turn_request.system,
        messages: turn_request.messages,
        tools: if supports.tools { turn_request.tools } else { &[] },
        tool_choice: candidate.tool_choice(turn_request.tool_choice),
        sampling: &sampling,
        output_schema: turn_request.output_schema,
        supports,
        trace: trace.as_ref(),
    };
    let mut attempt = Attempt::new(scope, candidate, &turn_request, call);
    attempt.announce().await?;
    let mut chunks = Chunks::new(candidate, &request, scope, turn_request.deadline);
    let result = loop {
        match chunks.next(candidate).await {
            Err(failure) => break Err(failure),
            Ok(None) => break Err(cut_error(candidate).into()),
            Ok(Some(Err(error))) => break Err(explained(error, candidate, &turn_request).into()),
            Ok(Some(Ok(Chunk::Done(finish)))) => break attempt.finished(finish),
            Ok(Some(Ok(chunk))) => {
                if let Err(error) = attempt.add(chunk).await {
                    break Err(error.into());
                }
            }
        }
    };
    // Closes the connection before anything is awaited.
    drop(chunks);
    attempt.close(result, &turn_request).await
}

/// Reads a reply's chunks until cancellation, the deadline or too long a silence.
struct Chunks<'a> {
    stream: ReplyStream,
    cancel: &'a CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFuture<'a>>>,
    /// The silence limit for every chunk after the first.
    later_limit: Duration,
    deadline: Instant,
    last_chunk_at: Instant,
    /// How long the next chunk may take.
    silence_limit: Duration,
    /// One timer for the whole reply. It is reset when it fires too early, not for each chunk.
    timer: Pin<Box<Sleep>>,
}

impl<'a> Chunks<'a> {
    fn new(
        candidate: &ModelCandidate,
        request: &ModelRequest<'_>,
        scope: &'a Scope,
        deadline: Instant,
    ) -> Self {
        let ModelTimeouts { first_chunk, between_chunks, .. } = scope.run.engine.parts.model_timeouts;
        let CallTimeouts { first_token, silence, factor, .. } = candidate.facts.timeouts;
        let first_chunk = first_token.unwrap_or(first_chunk.saturating_mul(factor.get()));
        let between_chunks = silence.unwrap_or(between_chunks.saturating_mul(factor.get()));
        let now = Instant::now();
        Self {
            stream: candidate.provider.stream(request),
            cancel: &scope.cancel,
            cancelled: Box::pin(scope.cancel.cancelled()),
            later_limit: between_chunks,
            deadline,
            last_chunk_at: now,
            silence_limit: first_chunk,
            timer: Box::pin(tokio::time::sleep_until(deadline.min(now + first_chunk))),
        }
    }

    async fn next(
        &mut self,
        candidate: &ModelCandidate,
    ) -> Result<Option<Result<Chunk, ModelError>>, Failure> {
        // A chunk that is ready is taken without waiting, unless the run is cancelled or the deadline has passed.
        let goes_on = !self.cancel.is_cancelled() && Instant::now() < self.deadline;
        let ready = if goes_on { self.stream.next().now_or_never() } else { None };
        let next = match ready {
            Some(next) => next,
            None => self.wait_for_chunk(candidate).await?,
        };
        (self.last_chunk_at, self.silence_limit) = (Instant::now(), self.later_limit);
        // After the first chunk, the limit may be shorter.
        let silent_at = self.last_chunk_at + self.silence_limit;
        if silent_at < self.timer.deadline() {
            self.timer.as_mut().reset(silent_at);
        }
        Ok(next)
    }

    async fn wait_for_chunk(
        &mut self,
        candidate: &ModelCandidate,
    ) -> Result<Option<Result<Chunk, ModelError>>, Failure> {
        loop {
            tokio::select! {
                biased;
                () = self.cancelled.as_mut() => return Err(Failure::Cancelled),
                () = self.timer.as_mut() => {}
                next = self.stream.next() => return Ok(next),
            }
            let (now, silent_at) = (Instant::now(), self.last_chunk_at + self.silence_limit);
            if now >= self.deadline {
                return Err(Failure::DeadlineReached);
            }
            if now >= silent_at {
                // This process may have been suspended, and not the provider silent.
                let ready = self.stream.next().now_or_never();
                return ready.ok_or_else(|| silence_error(candidate, self.silence_limit).into());
            }
            self.timer.as_mut().reset(self.deadline.min(silent_at));
        }
    }
}

/// Adds to the provider's message what can be changed in Baton.
fn explained(
    mut error: ModelError,
    candidate: &ModelCandidate,
    turn_request: &TurnRequest<'_>,
) -> ModelError {
    if error.kind == ModelErrorKind::ContextTooLong {
        let (provider, model) = (candidate.provider.provider(), &candidate.model);
        let assumed = match candidate.facts.context_window {
            Some(size) => format!("Baton assumes a context of {size} tokens"),
            None => "Baton does not know the size of its context".to_owned(),
        };
        error.message = format!(
            "{}; the request has about {} tokens, and {assumed}: set `context_window` under \
             `[models.providers.{provider}.models.\"{model}\"]` in baton.toml to what the server accepts, so that conversations \
             are shortened in time, or start the server with a larger context",
            error.message, turn_request.input_estimate
        );
    }
    error
}

fn silence_error(candidate: &ModelCandidate, wait: Duration) -> ModelError {
    let message = format!("nothing was heard for {} s", wait.as_secs());
    ModelError::new(ModelErrorKind::Timeout, candidate.provider.provider(), message)
}

fn cut_error(candidate: &ModelCandidate) -> ModelError {
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

/// The calls that a reply consists of, and how much text comes before them. `None` if it is a text, or if one of the calls would be
/// refused.
fn written_calls(
    text: &str,
    turn_request: &TurnRequest<'_>,
    toolset: &Toolset,
) -> Option<(Vec<TextCall>, usize)> {
    let is_answer = |schema: &Value| structured_output::validate(schema, text).is_ok();
    if turn_request.output_schema.is_some_and(is_answer) {
        return None;
    }
    let found = text_calls::recognize(text, turn_request.tools)?;
    let accepts = |call: &TextCall| {
        toolset.find(&call.name).is_ok_and(|tool| {
            // A reply with prose may quote a document, whose author must not make a tool write.
            let is_safe = !found.has_prose || tool.is_read_only();
            is_safe && tool.checked(&Value::Object(call.arguments.clone()).to_string()).is_ok()
        })
    };
    found.calls.iter().all(accepts).then_some((found.calls, found.text_before))
}

fn tool_call(id: &str, TextCall { name, arguments }: TextCall) -> ToolCall {
    let id = ToolCallId::parse(id).expect("a short id");
    ToolCall { id, name, arguments: Value::Object(arguments).to_string(), signature: None }
}

fn new_message_id() -> MessageId {
    MessageId::from_uuid(Uuid::now_v7())
}

/// A reply in progress. Its ledger row is written even if it is dropped.
struct Attempt<'a> {
    scope: &'a Scope,
    candidate: &'a ModelCandidate,
    call: &'a CallSpan,
    reply: Reply,
    /// The provider's index of each call, in the order in which calls began.
    indices: Vec<u32>,
    /// The streamed message, once it has begun.
    message_id: MessageId,
    is_begun: bool,
    /// How many bytes of the text have been published.
    published: usize,
    /// Set if the text may turn out to be a tool call.
    hold_back: Option<HoldBack>,
    reasoning_id: Option<MessageId>,
    tokens: Option<Tokens>,
    /// Whether the reply asks for more tools than the model may ask for at once.
    is_cut_to_one_call: bool,
    /// Bytes of the reply so far.
    bytes: usize,
    input_estimate: u64,
    at: Timestamp,
    started: Instant,
    written: bool,
}

impl<'a> Attempt<'a> {
    fn new(
        scope: &'a Scope,
        candidate: &'a ModelCandidate,
        turn_request: &TurnRequest<'_>,
        call: &'a CallSpan,
    ) -> Self {
        let recognizes = turn_request.text_calls.is_some() && candidate.facts.assists.text_tool_calls;
        Self {
            scope,
            candidate,
            call,
            reply: Reply::default(),
            indices: Vec::new(),
            message_id: new_message_id(),
            is_begun: false,
            published: 0,
            hold_back: recognizes.then(|| HoldBack::new(turn_request.tools)),
            reasoning_id: None,
            tokens: None,
            is_cut_to_one_call: false,
            bytes: 0,
            input_estimate: turn_request.input_estimate,
            at: Timestamp::now(),
            started: Instant::now(),
            written: false,
        }
    }

    async fn add(&mut self, chunk: Chunk) -> Result<(), ModelError> {
        if self.bytes == 0 {
            self.call.record_first_chunk(self.started);
        }
        self.grow(size(&chunk))?;
        match chunk {
            Chunk::Text(delta) => self.text(delta).await,
            Chunk::Reasoning(delta) => {
                let message_id = *self.reasoning_id.get_or_insert_with(new_message_id);
                self.reasoning().text.push_str(&delta);
                self.scope.trace(EventKind::Reasoning { message_id, delta }).await;
            }
            Chunk::ReasoningSignature(signature) => self.reasoning().signature = Some(signature),
            Chunk::Call { index, .. } if self.has_all_calls() => self.drop_call(index).await,
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
                None if self.is_cut_to_one_call => {}
                None => return Err(self.malformed("arguments came for a call that was never begun")),
            },
            Chunk::Tokens(tokens) => self.tokens = Some(tokens),
            Chunk::Done(_) => {}
        }
        Ok(())
    }

    /// Whether a further call is one too many: the model is configured to call one tool at a time, and has called it.
    fn has_all_calls(&self) -> bool {
        !self.candidate.facts.supports.parallel_calls && !self.indices.is_empty()
    }

    /// Leaves out a call. The model can ask for it again when it has seen the result of the first one.
    async fn drop_call(&mut self, index: u32) {
        // Some servers number every call 0. The arguments that follow are not those of the first one.
        if self.indices[0] == index {
            self.indices[0] = u32::MAX;
        }
        if !self.is_cut_to_one_call {
            self.is_cut_to_one_call = true;
            let text = "only the first tool call of the reply is executed, because the model is set to one call at a time";
            self.scope.trace(EventKind::Status { text: text.to_owned() }).await;
        }
    }

    async fn text(&mut self, delta: String) {
        if delta.is_empty() {
            return;
        }
        self.reply.text.push_str(&delta);
        let until = match &mut self.hold_back {
            Some(hold_back) => hold_back.publishable(&self.reply.text),
            None => self.reply.text.len(),
        };
        let holds_nothing = until == self.reply.text.len() && self.published + delta.len() == until;
        if holds_nothing {
            self.publish(delta).await;
        } else {
            self.publish_until(until).await;
        }
    }

    /// Publishes the text up to this byte that is not published yet.
    async fn publish_until(&mut self, until: usize) {
        if until > self.published {
            self.publish(self.reply.text[self.published..until].to_owned()).await;
        }
    }

    async fn publish(&mut self, delta: String) {
        self.published += delta.len();
        let message_id = self.message().await;
        self.scope.emit(EventKind::TextDelta { message_id, delta }).await;
    }

    /// Replaces a reply that is a tool call written as text by that call. Publishes the text that was held back otherwise. Returns
    /// the names of the tools.
    async fn settle_text(&mut self, turn_request: &TurnRequest<'_>) -> Vec<String> {
        let found = match (&self.hold_back, turn_request.text_calls) {
            (Some(_), Some(toolset)) if self.reply.calls.is_empty() => {
                written_calls(&self.reply.text, turn_request, toolset)
            }
            _ => None,
        };
        let Some((calls, text_before)) = found.filter(|(_, text_before)| self.published <= *text_before)
        else {
            self.publish_until(self.reply.text.len()).await;
            return Vec::new();
        };
        self.publish_until(text_before).await;
        self.reply.text.truncate(text_before);
        let names = calls.iter().map(|call| call.name.clone()).collect();
        let place = self.scope.uuid().simple();
        self.reply.calls = (1..)
            .zip(calls)
            .map(|(number, call)| tool_call(&format!("text_{place}_{number}"), call))
            .collect();
        names
    }

    /// The current reasoning block. A signed block is complete.
    fn reasoning(&mut self) -> &mut Reasoning {
        if self.reply.reasoning.last().is_none_or(|last| last.signature.is_some()) {
            self.reply.reasoning.push(Reasoning::default());
        }
        self.reply.reasoning.last_mut().expect("one was just added")
    }

    /// Records the call as started, in parallel to the call and before any of its text is published.
    async fn announce(&self) -> Result<(), Failure> {
        let row = self.row(CallOutcome::Cancelled, Some("interrupted".to_owned()));
        let visibility = self.scope.visibility();
        let under_way = InterruptedCall { message_id: self.message_id, visibility, row };
        self.scope.begin_soon(StepKind::Turn, &under_way, Vec::new(), Vec::new()).await
    }

    /// Publishes the start of the message before its first delta.
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

    /// Counts bytes and fails above [`MAX_REPLY_BYTES`].
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

    /// Makes the ledger row and, if the reply is complete, records the turn.
    async fn close(
        mut self,
        result: Result<Finish, Failure>,
        turn_request: &TurnRequest<'_>,
    ) -> Result<Result<TurnResult, FailedAttempt>, Failure> {
        let (outcome, error) = match &result {
            Ok(_) => (CallOutcome::Ok, None),
            Err(Failure::Cancelled | Failure::DeadlineReached) => (CallOutcome::Cancelled, None),
            Err(failure) => (CallOutcome::Failed, Some(failure.code().to_owned())),
        };
        self.written = true;
        let row = self.row(outcome, error);
        self.call.record_usage(&row);
        if result.is_ok() {
            self.candidate.record_speed(row.tokens, self.started.elapsed());
        }
        let written = if result.is_ok() { self.settle_text(turn_request).await } else { Vec::new() };
        let reply = std::mem::take(&mut self.reply);
        match result {
            Ok(finish) => {
                let finish = if written.is_empty() { finish } else { Finish::ToolCalls };
                let said = self.is_begun.then(|| EventKind::TextFinished {
                    message_id: self.message_id,
                    speaker: self.scope.agent.display_name.clone(),
                    text: reply.text.clone(),
                });
                let mut events: Vec<NewEvent> = said.map(|said| self.scope.event(said)).into_iter().collect();
                if !written.is_empty() {
                    let text = format!("a tool call written as text was executed: {}", written.join(", "));
                    events.push(self.scope.event_as(Visibility::Internal, EventKind::Status { text }));
                }
                let message_id = self.is_begun.then_some(self.message_id);
                let taken = TurnResult { reply, finish, closing: turn_request.closing, message_id };
                self.call.record_reply(&taken);
                self.scope.finish(StepKind::Turn, &taken, events, vec![row]).await?;
                Ok(Ok(taken))
            }
            Err(failure) => {
                let message = self.is_begun.then_some((self.message_id, reply.text));
                Ok(Err(FailedAttempt { failure, message, row }))
            }
        }
    }

    fn row(&self, outcome: CallOutcome, error: Option<String>) -> LedgerRow {
        // A call that failed before its first chunk consumed nothing.
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

/// An attempt that is dropped, as at a deadline, is billed too.
impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.written {
            let row = self.row(CallOutcome::Cancelled, None);
            self.call.record_usage(&row);
            self.scope.run.ledger.write(row);
        }
    }
}
