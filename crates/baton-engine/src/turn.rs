//! One turn: a streamed model call with retries, fallback models and a ledger row for each attempt.

mod attempt;

use std::pin::Pin;
use std::time::Duration;

use baton_core::agent::{Guard, PlanningStrategy, Sampling};
use baton_core::chat::{Messages, Reply};
use baton_core::event::EventKind;
use baton_core::model::{
    CallTimeouts, Chunk, Finish, ModelError, ModelErrorKind, ModelRequest, ReplyStream, ToolChoice,
};
use baton_core::store::work::InterruptedCall;
use baton_core::store::{NewEvent, Step, StepData};
use baton_core::{FileRef, MessageId, ToolSpec};
use futures_util::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tracing::Instrument as _;

use crate::bounds::LimitKind;
use crate::call_span::CallSpan;
use crate::failure::Failure;
use crate::guard::Violation;
use crate::journal::Record;
use crate::models::{ModelCandidate, ModelTimeouts};
use crate::reservation::{self, CallGrant, CallRequest};
use crate::run_state::RunState;
use crate::scope::Scope;
use crate::telemetry;
use crate::toolset::Toolset;
use attempt::{Attempt, FailedAttempt};

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
    /// Checks of the reply's text.
    pub(crate) guards: &'a [Guard],
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
    /// Why a guardrail withheld the text. The reply has [`WITHHELD`] in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) withheld: Option<Violation>,
    /// The text, if a judge has to decide on it. It is not part of the reply until then, because replies are shown to readers of
    /// traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unjudged: Option<String>,
    /// Files that the model made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<FileRef>,
}

/// In place of a text that a guardrail withheld.
pub(crate) const WITHHELD: &str = "[withheld]";

/// Settles the model calls that were in progress when the run's process died: adds their ledger rows, and withdraws the text that
/// listeners saw of them.
pub(crate) fn settle_interrupted(run: &RunState) -> Record {
    let mut record = Record::default();
    let open = run.recorder.steps.values().filter_map(|step| Some((step, step.interrupted_call()?)));
    let mut open: Vec<(&Step, InterruptedCall)> = open.collect();
    open.sort_by_key(|(step, _)| step.at);
    for (step, InterruptedCall { message_id, visibility, row }) in open {
        let row = run.recorder.prior_durations.lasted(row);
        // A call that was dropped before the process died has its row, but no finished step.
        let is_paid = run.recorder.ledger.holds(&row);
        let (agent, path) = (row.agent.clone(), step.path.as_str().into());
        let kind = EventKind::TurnRestarted { message_id };
        record.events.push(NewEvent { at: Timestamp::now(), agent, path, visibility, kind });
        record.rows.extend((!is_paid).then_some(row));
        record.steps.push(Step { data: StepData::default(), ..step.clone() });
    }
    run.recorder.ledger.count(&record.rows);
    record
}

/// Takes one turn, with retries of each candidate in turn. A turn that was recorded before a crash is not taken again.
pub(crate) async fn run_turn(
    scope: &Scope,
    candidates: &[ModelCandidate],
    turn_request: TurnRequest<'_>,
) -> Result<TurnResult, Failure> {
    if let Some(taken) = scope.step().finished()? {
        return Ok(taken);
    }
    let model_timeouts = scope.models().timeouts;
    let attempts = model_timeouts.attempts.max(1);
    // Not multiplied for slow models: how fast a model is says nothing about how long its server takes to start.
    let patience = Instant::now() + scope.agent().limits.timeout.get();
    let wait_until = patience.min(turn_request.deadline);
    let mut last = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let is_last = at + 1 == candidates.len();
        for attempt in 1.. {
            // Held until the row of the attempt is in the ledger.
            let request = CallRequest {
                input_tokens: turn_request.input_estimate,
                deadline: turn_request.deadline,
                is_closing: turn_request.closing.is_some(),
            };
            let grant = reservation::reserve(scope, candidate, request).await?;
            let call = telemetry::chat(scope, candidate, turn_request.system, turn_request.messages);
            // Boxed, to keep the futures that await a turn small.
            let trying = Box::pin(attempt_once(scope, candidate, turn_request, &call, &grant))
                .instrument(call.span.clone());
            let broken = match trying.await? {
                Ok(taken) => return Ok(taken),
                Err(broken) => broken,
            };
            let Failure::Model(error) = &broken.failure else {
                keep_partial(scope, broken.text());
                let restarts =
                    matches!(broken.failure, Failure::DeadlineReached) && turn_request.closing.is_none();
                return Err(Box::pin(broken.end(scope, restarts)).await?);
            };
            tracing::warn!(agent = %scope.name(), model = %candidate.model, attempt, %error, "model call failed");
            let wait = error.retry_after.unwrap_or_else(|| back_off(model_timeouts.back_off, attempt));
            let waits = is_last && error.kind == ModelErrorKind::Unreachable && is_needed(scope, candidate);
            let again = if waits {
                // A server that is still starting. Nothing else can answer, so the deadline decides.
                Instant::now() + wait < wait_until
            } else {
                error.kind.is_transient() && attempt < attempts && wait <= model_timeouts.longest_wait
            };
            if waits && again && attempt == 1 {
                let text = format!("waiting for the server of {}: {}", error.provider, error.message);
                Box::pin(scope.emit(scope.visibility(), EventKind::Status { text })).await;
            }
            let restarts = again || !is_last || scope.session.bounds.caller_can_continue();
            // Boxed, like the other ends of failed attempts: a turn is as large as the largest future that it awaits.
            last = Some(Box::pin(broken.end(scope, restarts)).await?);
            if !again {
                break;
            }
            Box::pin(pause(scope, wait, turn_request.deadline)).await?;
        }
    }
    Err(last.unwrap_or_else(|| Failure::NoModel(scope.name().to_string())))
}

/// Whether the run cannot do without the provider of this model: its own agent uses the same one. A sub-agent with another
/// provider fails early instead, so that the agent that invoked it can continue.
fn is_needed(scope: &Scope, candidate: &ModelCandidate) -> bool {
    let root = scope.run.agents.get(scope.session.bounds.root_agent());
    let candidates = root.and_then(|root| scope.run.models.candidates(root).ok());
    let own = candidates.as_ref().and_then(|candidates| candidates.first());
    own.is_none_or(|own| own.provider.provider() == candidate.provider.provider())
}

/// Keeps the text of a reply that a time limit cut off, if it would have been the agent's answer. A plan, or the draft of an agent
/// that hands off, is not kept.
fn keep_partial(scope: &Scope, text: &str) {
    let agent = scope.agent();
    if agent.handoff.is_empty() && agent.planning_strategy == PlanningStrategy::NativeReact {
        scope.cancel.keep_partial(scope.path(), text);
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
    grant: &CallGrant,
) -> Result<Result<TurnResult, FailedAttempt>, Failure> {
    let trace = call.trace(scope.run.request.trace.as_ref());
    let supports = candidate.facts.supports;
    let own = &scope.agent().sampling;
    let sampling = Sampling {
        max_output_tokens: grant
            .max_output_tokens
            .or(own.max_output_tokens)
            .or(candidate.facts.max_output_tokens),
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
    let mut attempt = Attempt::new(scope, candidate, &turn_request, call, grant.at);
    attempt.announce().await;
    let mut chunks = Chunks::new(candidate, &request, scope, turn_request.deadline);
    let result = loop {
        match chunks.next(candidate).await {
            Err(failure) => break Err(failure),
            Ok(None) => break Err(cut_error(candidate).into()),
            Ok(Some(Err(error))) => break Err(explained(error, candidate, &turn_request).into()),
            Ok(Some(Ok(Chunk::Done(finish)))) => break attempt.finished(finish).await,
            Ok(Some(Ok(chunk))) => {
                if let Err(error) = attempt.add(chunk).await {
                    break Err(error.into());
                }
                if request.tool_choice == ToolChoice::Required && attempt.only_talks() {
                    break Ok(Finish::Stop);
                }
            }
        }
    };
    // Closes the connection before anything is awaited.
    drop(chunks);
    // Boxed: it is needed once the reply has ended, and this future lasts as long as the reply.
    Box::pin(attempt.close(result, &turn_request)).await
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
        let ModelTimeouts { first_chunk, between_chunks, .. } = scope.models().timeouts;
        let CallTimeouts { first_token, silence, factor, .. } = candidate.facts.timeouts;
        let first_chunk = first_token.unwrap_or(first_chunk.saturating_mul(factor.get()));
        let between_chunks = silence.unwrap_or(between_chunks.saturating_mul(factor.get()));
        let now = Instant::now();
        Self {
            stream: candidate.provider.stream(request),
            cancel: &scope.cancel.token,
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
    let (provider, model) = (candidate.provider.provider(), &candidate.model);
    if error.kind == ModelErrorKind::Unreachable {
        error.message = format!(
            "{}; start the server, or set `base_url` under `[models.providers.{provider}]` in baton.toml to its address",
            error.message
        );
    }
    if error.kind == ModelErrorKind::ContextTooLong {
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
    let message = format!("no data for {} s", wait.as_secs());
    ModelError::new(ModelErrorKind::Timeout, candidate.provider.provider(), message)
}

fn cut_error(candidate: &ModelCandidate) -> ModelError {
    let message = "the reply was cut off";
    ModelError::new(ModelErrorKind::Malformed, candidate.provider.provider(), message)
}
