//! Spans of a run, named by OpenTelemetry's semantic conventions for generative AI. All attribute names are here.
//!
//! Spans are `tracing` spans under one target. While no subscriber enables the target, they cost nothing. Span ids are chosen
//! here and not by the exporter, because a provider or a server that is called within a span receives its id.

mod content;

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::chat::{Messages, Reply, ToolCall};
use baton_core::model::Finish;
use baton_core::store::{HopKind, RunRecord};
use baton_core::tool::{ToolError, ToolOutput};
use baton_core::usage::{Cost, Usage};
use baton_core::{LedgerRow, TenantId, ToolSpec, TraceParent};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

pub use content::capture;

use crate::bounds::InvocationKind;
use crate::call_span::CallSpan;
use crate::failure::Failure;
use crate::input::InputSource;
use crate::models::ModelCandidate;
use crate::outcome::Outcome;
use crate::outcome::RunResult;
use crate::remote::billing::PROVIDER;
use crate::request::StoredRequest;
use crate::scope::Scope;

/// The target of all spans. Logs leave it out.
pub const TARGET: &str = "baton::span";
/// The target of spans that give log lines their run or request.
pub const CONTEXT: &str = "baton::span::context";
/// The field with a span's id. A span inside another one needs no further field.
pub const ID: &str = "baton.span";
/// The field with the `traceparent` of a root span, as the callees within it see it.
pub const TRACE: &str = "baton.trace";
/// The field with the id of a root span's remote parent.
pub const PARENT: &str = "baton.parent";

/// A random span id, never 0.
pub fn new_span_id() -> u64 {
    fastrand::u64(1..)
}

/// Starts a trace. It is marked as sampled, so that callees may record it even if this process exports nothing.
pub fn new_trace() -> TraceParent {
    TraceParent::new(fastrand::u128(1..), new_span_id(), true).expect("neither is zero")
}

/// The span of a run, as far as this process executes it.
pub(crate) fn run(tenant: &TenantId, record: &RunRecord) -> Span {
    let trace = || StoredRequest::trace_of(&record.request);
    tracing::info_span!(
        target: CONTEXT, parent: None, "run", otel.name = format!("invoke_workflow {}", record.agent),
        { TRACE } = String::from(trace().unwrap_or_else(new_trace).at_span(new_span_id())),
        { PARENT } = trace().map(|trace| trace.ids().1),
        gen_ai.operation.name = "invoke_workflow", gen_ai.workflow.name = record.agent.as_str(),
        gen_ai.conversation.id = %record.thread_id, baton.run.id = %record.run_id, baton.tenant.id = %tenant,
        baton.run.attempt = record.attempts, baton.run.status = Empty,
        gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty, gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        baton.cost.usd = Empty, baton.cost.unknown = Empty, "error.type" = Empty, otel.status_code = Empty,
    )
}

pub(crate) fn run_ended(span: &Span, finished: &RunResult) {
    if span.is_disabled() {
        return;
    }
    span.record("baton.run.status", finished.status.word());
    record_tokens(span, finished.usage);
    if let Some(failure) = finished.failure.as_ref().filter(|failure| !matches!(failure, Failure::Cancelled))
    {
        record_error(span, failure.code());
    }
}

/// The span of an agent's stage, including the agents it invokes. If an agent invoked it, the span says how.
pub(crate) fn agent(scope: &Scope, sent: Option<&InputSource>) -> Span {
    let span = tracing::info_span!(
        target: TARGET, "invoke_agent", otel.name = format!("invoke_agent {}", scope.name()), { ID } = new_span_id(),
        gen_ai.operation.name = "invoke_agent", gen_ai.provider.name = Empty, gen_ai.request.model = Empty,
        gen_ai.agent.id = scope.name().as_str(), gen_ai.agent.name = scope.name().as_str(),
        gen_ai.agent.description = scope.agent().description.as_str(), gen_ai.agent.version = %scope.agent().version,
        gen_ai.conversation.id = %scope.run.caller.thread_id, baton.run.id = %scope.run.run_id,
        baton.session.id = %scope.session.id, baton.path = scope.path(),
        baton.transfer.id = Empty, baton.transfer.kind = Empty, baton.transfer.by = Empty, baton.transfer.source = Empty,
        baton.transfer.target = Empty, baton.transfer.waits = Empty, baton.transfer.phase = Empty,
        gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty, gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        baton.cost.usd = Empty, baton.cost.unknown = Empty, "error.type" = Empty, otel.status_code = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(first) = scope.models().candidates(scope.agent()).ok().and_then(|all| all.into_iter().next())
    {
        span.record("gen_ai.provider.name", first.provider.provider());
        span.record("gen_ai.request.model", first.model.as_str());
    }
    if let (Some(invocation), Some(sent)) = (scope.session.bounds.invocation, sent) {
        record_invocation(&span, invocation, sent.by.as_str(), scope.name().as_str());
        span.record("baton.transfer.id", scope.session.id.as_str());
    }
    span
}

pub(crate) fn agent_ended(span: &Span, scope: &Scope, result: &Result<Outcome, Failure>) {
    if span.is_disabled() {
        return;
    }
    record_tokens(span, scope.run.recorder.ledger.spent(scope.path()));
    if scope.session.bounds.invocation.is_some() {
        span.record("baton.transfer.phase", phase(result.is_ok()));
    }
    if let Err(failure) = result {
        record_error(span, failure.code());
    }
}

/// Marks the span of the current tool call as a transfer or a delegation.
pub(crate) fn transfer(scope: &Scope, invocation: InvocationKind, targets: &[Arc<Agent>]) {
    if let Some(call) = &scope.span {
        let targets: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        record_invocation(&call.span, invocation, scope.name().as_str(), &targets.join(", "));
    }
}

fn record_invocation(span: &Span, invocation: InvocationKind, source: &str, target: &str) {
    let passes_baton = invocation.hop().is_some_and(HopKind::passes_baton);
    let kind = if passes_baton { "handoff" } else { "delegation" };
    span.record("baton.transfer.kind", kind).record("baton.transfer.by", invocation.word());
    span.record("baton.transfer.source", source).record("baton.transfer.target", target);
    span.record("baton.transfer.waits", !passes_baton);
}

fn phase(is_ok: bool) -> &'static str {
    if is_ok { "completed" } else { "error" }
}

/// The span of one model call.
pub(crate) fn chat(
    scope: &Scope,
    candidate: &ModelCandidate,
    system: &str,
    messages: Messages<'_>,
) -> CallSpan {
    let (id, sampling) = (new_span_id(), &scope.agent().sampling);
    let span = tracing::info_span!(
        target: TARGET, "chat", otel.name = format!("chat {}", candidate.model), otel.kind = "client", { ID } = id,
        gen_ai.operation.name = "chat", gen_ai.provider.name = candidate.provider.provider(),
        gen_ai.request.model = candidate.model.as_str(), gen_ai.request.stream = true,
        gen_ai.request.temperature = sampling.temperature, gen_ai.request.top_p = sampling.top_p,
        gen_ai.request.max_tokens = sampling.max_output_tokens, gen_ai.agent.name = scope.name().as_str(),
        gen_ai.conversation.id = %scope.run.caller.thread_id, baton.path = scope.path(),
        gen_ai.response.finish_reasons = Empty, gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty, gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        baton.cost.usd = Empty, baton.cost.unknown = Empty, "error.type" = Empty, otel.status_code = Empty,
        gen_ai.system_instructions = Empty, gen_ai.input.messages = Empty, gen_ai.output.messages = Empty,
    );
    if !span.is_disabled() && content::is_captured() {
        span.record("gen_ai.system_instructions", content::instructions(system).as_str());
        span.record("gen_ai.input.messages", content::messages(messages).as_str());
    }
    CallSpan::new(id, span)
}

/// The span of one message to a remote agent and its reply.
pub(crate) fn remote(scope: &Scope) -> CallSpan {
    let id = new_span_id();
    let span = tracing::info_span!(
        target: TARGET, "message", otel.name = format!("message {}", scope.name()), otel.kind = "client", { ID } = id,
        gen_ai.operation.name = "invoke_agent", gen_ai.provider.name = PROVIDER, gen_ai.agent.name = scope.name().as_str(),
        gen_ai.conversation.id = %scope.run.caller.thread_id, baton.path = scope.path(),
        gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty, gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        baton.cost.usd = Empty, baton.cost.unknown = Empty, "error.type" = Empty, otel.status_code = Empty,
    );
    CallSpan::new(id, span)
}

impl CallSpan {
    /// Records the time to the first chunk.
    pub(crate) fn record_first_chunk(&self, asked: Instant) {
        if !self.span.is_disabled() {
            self.span.record("gen_ai.response.time_to_first_chunk", asked.elapsed().as_secs_f64());
        }
    }

    pub(crate) fn record_reply(&self, finish: Finish, reply: &Reply) {
        if !self.span.is_disabled() {
            self.span.record("gen_ai.response.finish_reasons", finish.word());
            self.record_text(reply);
        }
    }

    fn record_text(&self, reply: &Reply) {
        if content::is_captured() {
            self.span.record("gen_ai.output.messages", content::reply(reply).as_str());
        }
    }

    /// Records the tokens, the cost and the error, if any.
    pub(crate) fn record_usage(&self, row: &LedgerRow) {
        if self.span.is_disabled() {
            return;
        }
        record_tokens(&self.span, row.usage());
        if let Some(code) = &row.error {
            record_error(&self.span, code);
        }
    }
}

/// The span of one tool call.
pub(crate) fn tool(scope: &Scope, call: &ToolCall, spec: Option<&ToolSpec>) -> CallSpan {
    let id = new_span_id();
    let span = tracing::info_span!(
        target: TARGET, "execute_tool", otel.name = format!("execute_tool {}", call.name), { ID } = id,
        gen_ai.operation.name = "execute_tool", gen_ai.tool.name = call.name.as_str(),
        "gen_ai.tool.type" = if call.name.starts_with("mcp:") { "extension" } else { "function" },
        gen_ai.tool.call.id = call.id.as_str(), gen_ai.tool.description = spec.map(|spec| spec.description.as_str()),
        gen_ai.agent.name = scope.name().as_str(), baton.path = scope.path(),
        baton.transfer.kind = Empty, baton.transfer.by = Empty, baton.transfer.source = Empty,
        baton.transfer.target = Empty, baton.transfer.waits = Empty,
        "error.type" = Empty, otel.status_code = Empty,
        gen_ai.tool.call.arguments = Empty, gen_ai.tool.call.result = Empty,
    );
    if !span.is_disabled() && content::is_captured() {
        span.record("gen_ai.tool.call.arguments", content::text(&call.arguments).as_str());
    }
    CallSpan::new(id, span)
}

impl CallSpan {
    pub(crate) fn record_result(&self, result: &Result<ToolOutput, ToolError>) {
        match result {
            _ if self.span.is_disabled() => {}
            Ok(output) if content::is_captured() => {
                self.span.record("gen_ai.tool.call.result", content::text(&output.text).as_str());
            }
            Ok(_) => {}
            Err(error) => record_error(&self.span, error.code()),
        }
    }
}

impl CallSpan {
    /// Records a failure that ends more than the call.
    pub(crate) fn fail(&self, failure: &Failure) {
        if !self.span.is_disabled() {
            record_error(&self.span, failure.code());
        }
    }
}

fn record_tokens(span: &Span, usage: Usage) {
    let tokens = usage.tokens;
    span.record("gen_ai.usage.input_tokens", tokens.input_tokens);
    span.record("gen_ai.usage.output_tokens", tokens.output_tokens);
    span.record("gen_ai.usage.cache_read.input_tokens", tokens.cached_tokens);
    span.record("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write_tokens);
    span.record("gen_ai.usage.reasoning.output_tokens", tokens.reasoning_tokens);
    span.record("baton.cost.usd", f64::from(usage.cost.known_part()));
    if matches!(usage.cost, Cost::Unknown(_)) {
        span.record("baton.cost.unknown", true);
    }
}

fn record_error(span: &Span, code: &str) {
    span.record("error.type", code).record("otel.status_code", "ERROR");
}
