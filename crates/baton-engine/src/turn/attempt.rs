//! One attempt of a turn: assembles the reply from its chunks, publishes its text, and writes its ledger row.

use baton_core::chat::{Reasoning, Reply, ToolCall};
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::media::sniff;
use baton_core::message::Visibility;
use baton_core::model::{Chunk, Finish, ModelError, ModelErrorKind};
use baton_core::store::work::InterruptedCall;
use baton_core::store::{NewEvent, StepKind};
use baton_core::usage::{Cost, Tokens};
use baton_core::{MessageId, ProducedFile, ToolCallId};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::{TurnRequest, TurnResult, WITHHELD};
use crate::call_span::CallSpan;
use crate::failure::Failure;
use crate::guard::{OutputGuard, Violation};
use crate::models::ModelCandidate;
use crate::run_files::{self, CallFiles};
use crate::scope::Scope;
use crate::steps::Attachments;
use crate::structured_output;
use crate::text_calls::holdback::HoldBack;
use crate::text_calls::{self, TextCall};
use crate::toolset::Toolset;
use crate::window::estimate;

/// Maximum tool calls of one reply.
const MAX_CALLS: usize = 128;
/// Maximum bytes of a reply's text, reasoning and arguments.
const MAX_REPLY_BYTES: usize = 8 * 1024 * 1024;
/// Maximum bytes of a reply's files.
const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of text that a reply may have before a tool call that is required: two sentences. A slow model needs many seconds for more.
const MAX_TEXT_BEFORE_CALL: usize = 300;

/// A reply in progress. Its ledger row is written even if it is dropped.
pub(super) struct Attempt<'a> {
    scope: &'a Scope,
    candidate: &'a ModelCandidate,
    call: &'a CallSpan,
    reply: Reply,
    /// The provider's index of each call, in the order in which calls began.
    indices: Vec<u32>,
    /// Files that the model made.
    files: Vec<ProducedFile>,
    /// Whether the reply asks for more tools than the model may ask for at once.
    is_cut_to_one_call: bool,
    message: StreamedMessage,
    guard: Option<OutputGuard<'a>>,
    reasoning_id: Option<MessageId>,
    meter: CallMeter,
}

/// The reply's text as listeners see it.
struct StreamedMessage {
    id: MessageId,
    is_begun: bool,
    /// How many bytes of the text have been published.
    published: usize,
    /// Set if the text may turn out to be a tool call.
    hold_back: Option<HoldBack>,
}

/// What is measured of a call, for its ledger row.
struct CallMeter {
    at: Timestamp,
    started: Instant,
    input_estimate: u64,
    /// Bytes of the reply so far.
    bytes: usize,
    /// As the provider has counted them so far.
    tokens: Option<Tokens>,
    /// Whether the reply has ended, so that the provider's count is final.
    is_complete: bool,
    is_recorded: bool,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        scope: &'a Scope,
        candidate: &'a ModelCandidate,
        turn_request: &TurnRequest<'a>,
        call: &'a CallSpan,
        at: Timestamp,
    ) -> Self {
        let recognizes = turn_request.text_calls.is_some() && candidate.facts.assists.text_tool_calls;
        Self {
            scope,
            candidate,
            call,
            reply: Reply::default(),
            indices: Vec::new(),
            files: Vec::new(),
            is_cut_to_one_call: false,
            message: StreamedMessage {
                id: new_message_id(),
                is_begun: false,
                published: 0,
                hold_back: recognizes.then(|| HoldBack::new(turn_request.tools)),
            },
            guard: OutputGuard::new(turn_request.guards),
            reasoning_id: None,
            meter: CallMeter {
                at,
                started: Instant::now(),
                input_estimate: turn_request.input_estimate,
                bytes: 0,
                tokens: None,
                is_complete: false,
                is_recorded: false,
            },
        }
    }

    pub(super) async fn add(&mut self, chunk: Chunk) -> Result<(), ModelError> {
        if self.meter.bytes == 0 {
            self.call.record_first_chunk(self.meter.started);
        }
        self.grow(size(&chunk))?;
        match chunk {
            Chunk::Text(delta) => self.text(delta).await,
            Chunk::Reasoning(delta) => {
                let message_id = *self.reasoning_id.get_or_insert_with(new_message_id);
                self.reasoning().text.push_str(&delta);
                // It may have what the guardrails withhold of the text.
                if self.guard.is_none() {
                    self.scope.trace(EventKind::Reasoning { message_id, delta }).await;
                }
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
            Chunk::File(file) => self.add_file(file)?,
            Chunk::Tokens(tokens) => self.meter.tokens = Some(tokens),
            Chunk::Done(_) => {}
        }
        Ok(())
    }

    /// Whether the reply has become a long text without a tool call. Where a call is required, some servers let a model write before
    /// it and do not let it end, so that a model that only writes never does.
    pub(super) fn only_talks(&self) -> bool {
        self.reply.calls.is_empty() && self.reply.text.len() > MAX_TEXT_BEFORE_CALL && !self.may_become_call()
    }

    /// Whether some of the text is held back because it may be a call.
    fn may_become_call(&self) -> bool {
        self.message.hold_back.is_some() && self.message.published < self.reply.text.len()
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
            Box::pin(self.scope.trace(EventKind::Status { text: text.to_owned() })).await;
        }
    }

    async fn text(&mut self, delta: String) {
        if delta.is_empty() {
            return;
        }
        self.reply.text.push_str(&delta);
        let until = match &mut self.message.hold_back {
            Some(hold_back) => hold_back.publishable(&self.reply.text),
            None => self.reply.text.len(),
        };
        let until = match &mut self.guard {
            Some(guard) => guard.publishable(&self.reply.text).min(until),
            None => until,
        };
        let holds_nothing = until == self.reply.text.len() && self.message.published + delta.len() == until;
        if holds_nothing {
            self.publish(delta).await;
        } else {
            self.publish_until(until).await;
        }
    }

    /// Publishes the text up to this byte that is not published yet.
    async fn publish_until(&mut self, until: usize) {
        if until > self.message.published {
            self.publish(self.reply.text[self.message.published..until].to_owned()).await;
        }
    }

    async fn publish(&mut self, delta: String) {
        self.message.published += delta.len();
        let message_id = self.begin_message().await;
        self.scope.emit(self.scope.visibility(), EventKind::TextDelta { message_id, delta }).await;
    }

    /// Replaces a reply that is a tool call written as text by that call. Returns the names of the tools.
    fn settle_text(&mut self, turn_request: &TurnRequest<'_>) -> Vec<String> {
        let found = match (&self.message.hold_back, turn_request.text_calls) {
            (Some(_), Some(toolset)) if self.reply.calls.is_empty() => {
                written_calls(&self.reply.text, turn_request, toolset)
            }
            _ => None,
        };
        let Some((calls, text_before)) =
            found.filter(|(_, text_before)| self.message.published <= *text_before)
        else {
            return Vec::new();
        };
        self.reply.text.truncate(text_before);
        let names = calls.iter().map(|call| call.name.clone()).collect();
        let place = self.scope.uuid().simple();
        self.reply.calls = (1..)
            .zip(calls)
            .map(|(number, call)| tool_call(&format!("text_{place}_{number}"), call))
            .collect();
        names
    }

    /// Publishes the text that was held back, unless a guardrail withholds it. Returns why it does, and the text if a judge has to
    /// decide on it first.
    async fn release_text(&mut self) -> (Option<Violation>, Option<String>) {
        if let Some(guard) = self.guard.as_ref().filter(|_| !self.reply.text.trim().is_empty()) {
            let is_answer = self.reply.calls.is_empty();
            let (violation, has_judge) = (guard.violation(&self.reply.text, is_answer), guard.has_judge());
            if violation.is_some() || has_judge {
                let text = std::mem::take(&mut self.reply.text);
                if is_answer {
                    // It may have the same words, and only a turn with tool calls has to repeat it to the model.
                    self.reply.reasoning.clear();
                }
                if violation.is_some() && is_answer {
                    WITHHELD.clone_into(&mut self.reply.text);
                }
                let unjudged = Some(text).filter(|_| is_answer && violation.is_none());
                return (violation, unjudged);
            }
        }
        self.publish_until(self.reply.text.len()).await;
        (None, None)
    }

    /// The current reasoning block. A signed block is complete.
    fn reasoning(&mut self) -> &mut Reasoning {
        if self.reply.reasoning.last().is_none_or(|last| last.signature.is_some()) {
            self.reply.reasoning.push(Reasoning::default());
        }
        self.reply.reasoning.last_mut().expect("one was just added")
    }

    /// Records the call as started, in parallel to the call and before any of its text is published.
    pub(super) async fn announce(&self) {
        let row = self.row(CallOutcome::Cancelled, Some("interrupted".to_owned()));
        let visibility = self.scope.visibility();
        let interrupted = InterruptedCall { message_id: self.message.id, visibility, row };
        self.scope.step().begin_turn(interrupted).await;
    }

    /// Publishes the start of the message before its first delta.
    async fn begin_message(&mut self) -> MessageId {
        if !self.message.is_begun {
            self.message.is_begun = true;
            let speaker = self.scope.speaker(self.scope.agent());
            self.scope
                .emit(
                    self.scope.visibility(),
                    EventKind::TextStarted { message_id: self.message.id, speaker },
                )
                .await;
        }
        self.message.id
    }

    fn malformed(&self, message: &str) -> ModelError {
        ModelError::new(ModelErrorKind::Malformed, self.candidate.provider.provider(), message)
    }

    /// Counts bytes and fails above [`MAX_REPLY_BYTES`].
    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.meter.bytes += bytes;
        if self.meter.bytes > MAX_REPLY_BYTES {
            return Err(self.malformed("the reply is longer than 8 MiB"));
        }
        Ok(())
    }

    fn add_file(&mut self, file: ProducedFile) -> Result<(), ModelError> {
        let bytes = self.files.iter().map(|file| file.bytes.len()).sum::<usize>() + file.bytes.len();
        if bytes > MAX_FILE_BYTES {
            return Err(self.malformed("the files of the reply have more than 32 MiB"));
        }
        self.files.push(file);
        Ok(())
    }

    pub(super) async fn finished(&mut self, finish: Finish) -> Result<Finish, Failure> {
        self.meter.is_complete = true;
        if !self.files.is_empty() && self.reply.text.trim().is_empty() && self.reply.calls.is_empty() {
            // Callers of the agent and clients that show only text read this in place of the file.
            let is_image =
                |file: &ProducedFile| sniff(&file.bytes).is_some_and(|kind| kind.starts_with("image/"));
            let text = if self.files.iter().all(is_image) { "(image)" } else { "(file)" };
            Box::pin(self.text(text.to_owned())).await;
        }
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
    pub(super) async fn close(
        mut self,
        result: Result<Finish, Failure>,
        turn_request: &TurnRequest<'_>,
    ) -> Result<Result<TurnResult, FailedAttempt>, Failure> {
        let (outcome, error) = match &result {
            Ok(_) => (CallOutcome::Ok, None),
            Err(Failure::Cancelled | Failure::DeadlineReached) => (CallOutcome::Cancelled, None),
            Err(failure) => (CallOutcome::Failed, Some(failure.code().to_owned())),
        };
        self.meter.is_recorded = true;
        let row = self.row(outcome, error);
        self.call.record_usage(&row);
        if result.is_ok() {
            self.candidate.record_speed(row.tokens, self.meter.started.elapsed());
        }
        match result {
            Ok(finish) => {
                let written = self.settle_text(turn_request);
                let finish = if written.is_empty() { finish } else { Finish::ToolCalls };
                let (withheld, unjudged) = self.release_text().await;
                let reply = std::mem::take(&mut self.reply);
                let is_withdrawn = withheld.is_some() && self.message.is_begun;
                let said = self.message.is_begun.then(|| {
                    if is_withdrawn {
                        return EventKind::TurnRestarted { message_id: self.message.id };
                    }
                    EventKind::TextFinished {
                        message_id: self.message.id,
                        speaker: self.scope.speaker(self.scope.agent()),
                        text: reply.text.clone(),
                    }
                });
                let mut events: Vec<NewEvent> =
                    said.map(|said| self.scope.event(self.scope.visibility(), said)).into_iter().collect();
                if !written.is_empty() {
                    let text = format!("a tool call written as text was executed: {}", written.join(", "));
                    events.push(self.scope.event(Visibility::Internal, EventKind::Status { text }));
                }
                let message_id = (self.message.is_begun && !is_withdrawn).then_some(self.message.id);
                let closing = turn_request.closing;
                let mut files = self.prepare_files(withheld.is_some()).await;
                let refs = files.refs.clone();
                let taken =
                    TurnResult { reply, finish, closing, message_id, withheld, unjudged, files: refs };
                self.call.record_reply(taken.finish, &taken.reply);
                let artifacts = std::mem::take(&mut files.new);
                let attachments = Attachments { artifacts, ..Attachments::default() };
                let step = self.scope.step();
                step.finish_with(StepKind::Turn, &taken, events, vec![row], attachments).await?;
                self.scope.run.recorder.files.add_stored(&files);
                Ok(Ok(taken))
            }
            Err(failure) => {
                let mut text = std::mem::take(&mut self.reply.text);
                if self.guard.is_some() {
                    // The rest was not checked, or not to its end.
                    text.truncate(self.message.published);
                }
                let message = self.message.is_begun.then_some((self.message.id, text));
                Ok(Err(FailedAttempt { failure, message, row }))
            }
        }
    }

    /// The files of the reply, to be stored with its step. Those of a reply that a guardrail withheld are dropped.
    async fn prepare_files(&mut self, is_withheld: bool) -> CallFiles {
        let files = std::mem::take(&mut self.files);
        if files.is_empty() || is_withheld {
            return CallFiles::default();
        }
        Box::pin(run_files::prepare(self.scope, files)).await
    }

    fn row(&self, outcome: CallOutcome, error: Option<String>) -> LedgerRow {
        // A call that failed before its first chunk consumed nothing.
        let heard = self.meter.bytes > 0 || self.meter.tokens.is_some();
        let consumed = outcome != CallOutcome::Failed || heard;
        let estimate = Tokens {
            input_tokens: self.meter.input_estimate,
            output_tokens: estimate::reply(&self.reply),
            ..Tokens::default()
        };
        let tokens = match self.meter.tokens {
            Some(counted) if self.meter.is_complete => counted,
            // Some providers count the output only at its end, and 1 token at its start.
            Some(counted) => {
                let output_tokens = counted.output_tokens.max(estimate.output_tokens);
                Tokens { output_tokens, ..counted }
            }
            None if consumed => estimate,
            None => Tokens::default(),
        };
        let cost = match self.candidate.facts.price {
            Some(price) => Cost::Known(price.of(tokens)),
            None if tokens == Tokens::default() => Cost::default(),
            None => Cost::Unknown(baton_core::Usd::default()),
        };
        LedgerRow {
            run_id: self.scope.run.run_id,
            session_id: self.scope.session.id.clone(),
            agent: self.scope.agent().name.clone(),
            path: self.scope.path().to_owned(),
            call: Called::Model {
                provider: self.candidate.provider.provider().to_owned(),
                model: self.candidate.model.clone(),
            },
            tokens,
            estimated: consumed && !(self.meter.is_complete && self.meter.tokens.is_some()),
            cost,
            started_at: self.meter.at,
            latency_ms: u64::try_from(self.meter.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome,
            error,
        }
    }
}

/// An attempt that is dropped, as at a deadline, is billed too.
impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.meter.is_recorded {
            let row = self.row(CallOutcome::Cancelled, None);
            self.call.record_usage(&row);
            self.scope.run.recorder.ledger.write(row);
        }
    }
}

/// A failed attempt, with the text that listeners have seen of it.
pub(super) struct FailedAttempt {
    pub(super) failure: Failure,
    message: Option<(MessageId, String)>,
    row: LedgerRow,
}

impl FailedAttempt {
    /// The text of the reply so far.
    pub(super) fn text(&self) -> &str {
        self.message.as_ref().map_or("", |(_, text)| text)
    }

    /// Records the attempt's row and ends its message: with `restarts` the text is withdrawn, otherwise it is final.
    pub(super) async fn end(self, scope: &Scope, restarts: bool) -> Result<Failure, Failure> {
        let kind = self.message.map(|(message_id, text)| {
            if restarts {
                EventKind::TurnRestarted { message_id }
            } else {
                EventKind::TextFinished { message_id, speaker: scope.speaker(scope.agent()), text }
            }
        });
        let events = kind.map(|kind| scope.event(scope.visibility(), kind)).into_iter().collect();
        scope.step().begin_soon(StepKind::Turn, &Value::Null, events, vec![self.row]).await?;
        Ok(self.failure)
    }
}

fn size(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Text(text) | Chunk::Reasoning(text) | Chunk::ReasoningSignature(text) => text.len(),
        Chunk::Call { name, .. } => name.len(),
        Chunk::Arguments { delta, .. } => delta.len(),
        Chunk::File(_) | Chunk::Tokens(_) | Chunk::Done(_) => 0,
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
