//! What traces say about a run, in the words of OpenTelemetry's conventions for generative AI. All names are here.
//!
//! Spans are `tracing` spans under one target; who wants them switches that target on, and for everybody else they cost nothing. Ids
//! are chosen here and not by whoever exports: a provider or a server that is called within a span has to be told which one it is.

mod content;

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::chat::{Reply, ToolCall};
use baton_core::store::RunRecord;
use baton_core::tool::{ToolError, ToolOutput};
use baton_core::usage::{Cost, Usage};
use baton_core::{LedgerRow, TenantId, ToolSpec, TraceParent};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

pub use content::capture;

use crate::bounds::Edge;
use crate::engine::{Finished, Request};
use crate::failure::Failure;
use crate::models::Candidate;
use crate::outcome::Outcome;
use crate::run::Sent;
use crate::scope::{RunState, Scope};
use crate::turn::{Ask, Taken};

/// Where spans come from. Logs leave it out.
pub const TARGET: &str = "baton::span";
/// Those among them that say to which run or request a line of a log belongs.
pub const CONTEXT: &str = "baton::span::context";
/// The field with a span's own id. One that stands in a span needs no more.
pub const ID: &str = "baton.span";
/// The field of a span that stands in no other: its `traceparent`, as those see it who are called in it.
pub const TRACE: &str = "baton.trace";
/// The field with the id of the span that it comes from, somewhere else.
pub const PARENT: &str = "baton.parent";

/// An id for a span.
pub fn fresh() -> u64 {
    fastrand::u64(1..)
}

/// A trace that begins here. Whoever is called in it may record what they do, also when nobody records anything here.
pub fn begin() -> TraceParent {
    TraceParent::new(fastrand::u128(1..), fresh(), true).expect("neither is zero")
}

/// A run, as far as this process works on it.
pub(crate) fn run(tenant: &TenantId, record: &RunRecord) -> Span {
    let trace = || Request::trace_of(&record.request);
    tracing::info_span!(
        target: CONTEXT, parent: None, "run", otel.name = format!("invoke_workflow {}", record.agent),
        { TRACE } = String::from(trace().unwrap_or_else(begin).at_span(fresh())),
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

pub(crate) fn run_ended(span: &Span, finished: &Finished) {
    if span.is_disabled() {
        return;
    }
    span.record("baton.run.status", finished.status.word());
    spent(span, finished.usage);
    if let Some(failure) = finished.failure.as_ref().filter(|failure| !matches!(failure, Failure::Cancelled))
    {
        failed(span, failure.code());
    }
}

/// One agent's part, with those it involves. How it was involved is on record if somebody did.
pub(crate) fn agent(scope: &Scope, sent: Option<&Sent>) -> Span {
    let span = tracing::info_span!(
        target: TARGET, "invoke_agent", otel.name = format!("invoke_agent {}", scope.name()), { ID } = fresh(),
        gen_ai.operation.name = "invoke_agent", gen_ai.provider.name = Empty, gen_ai.request.model = Empty,
        gen_ai.agent.id = scope.name().as_str(), gen_ai.agent.name = scope.name().as_str(),
        gen_ai.agent.description = scope.agent.description.as_str(), gen_ai.agent.version = %scope.agent.version,
        gen_ai.conversation.id = %scope.run.caller.thread_id, baton.run.id = %scope.run.run_id,
        baton.session.id = %scope.session_id, baton.path = scope.path(),
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
    if let Some(first) =
        scope.run.engine.parts.models.candidates(&scope.agent).ok().and_then(|all| all.into_iter().next())
    {
        span.record("gen_ai.provider.name", first.provider.provider());
        span.record("gen_ai.request.model", first.model.as_str());
    }
    if let (Some(edge), Some(sent)) = (scope.bounds.edge, sent) {
        involved(&span, edge, sent.by.as_str(), scope.name().as_str());
        span.record("baton.transfer.id", scope.session_id.as_str());
    }
    span
}

pub(crate) fn agent_ended(span: &Span, scope: &Scope, result: &Result<Outcome, Failure>) {
    if span.is_disabled() {
        return;
    }
    spent(span, scope.run.ledger.spent(scope.path()));
    if scope.bounds.edge.is_some() {
        span.record("baton.transfer.phase", phase(result.is_ok()));
    }
    if let Err(failure) = result {
        failed(span, failure.code());
    }
}

/// A tool call passes the baton, or has somebody else at work: says so on the span of the call.
pub(crate) fn transfer(scope: &Scope, edge: Edge, targets: &[Arc<Agent>]) {
    if let Some(call) = &scope.span {
        let targets: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        involved(&call.span, edge, scope.name().as_str(), &targets.join(", "));
    }
}

fn involved(span: &Span, edge: Edge, source: &str, target: &str) {
    let kind = if edge.hop().is_some() { "handoff" } else { "delegation" };
    span.record("baton.transfer.kind", kind).record("baton.transfer.by", edge.word());
    span.record("baton.transfer.source", source).record("baton.transfer.target", target);
    span.record("baton.transfer.waits", edge.hop().is_none());
}

fn phase(is_ok: bool) -> &'static str {
    if is_ok { "completed" } else { "error" }
}

/// A span within a run, and its id for whoever is called in it.
#[derive(Debug, Clone)]
pub(crate) struct Spanned {
    pub(crate) span: Span,
    /// 0 while nobody wants spans: the trace is then passed on as it came.
    id: u64,
}

impl Spanned {
    fn new(id: u64, span: Span) -> Self {
        Self { id: if span.is_disabled() { 0 } else { id }, span }
    }

    /// The run's trace as it is seen from here.
    pub(crate) fn trace(&self, run: &RunState) -> Option<TraceParent> {
        run.trace.as_ref().map(|trace| trace.at_span(self.id))
    }
}

/// One attempt at a turn.
pub(crate) fn chat(scope: &Scope, candidate: &Candidate, ask: &Ask<'_>) -> Spanned {
    let (id, sampling) = (fresh(), &scope.agent.sampling);
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
        span.record("gen_ai.system_instructions", content::instructions(ask.system).as_str());
        span.record("gen_ai.input.messages", content::messages(ask.messages).as_str());
    }
    Spanned::new(id, span)
}

impl Spanned {
    /// The model has said something.
    pub(crate) fn heard(&self, asked: Instant) {
        if !self.span.is_disabled() {
            self.span.record("gen_ai.response.time_to_first_chunk", asked.elapsed().as_secs_f64());
        }
    }

    pub(crate) fn answered(&self, taken: &Taken) {
        if !self.span.is_disabled() {
            self.span.record("gen_ai.response.finish_reasons", taken.finish.word());
            self.said(&taken.reply);
        }
    }

    fn said(&self, reply: &Reply) {
        if content::is_captured() {
            self.span.record("gen_ai.output.messages", content::reply(reply).as_str());
        }
    }

    /// What it cost, and why it failed if it did.
    pub(crate) fn paid(&self, row: &LedgerRow) {
        if self.span.is_disabled() {
            return;
        }
        spent(&self.span, row.usage());
        if let Some(code) = &row.error {
            failed(&self.span, code);
        }
    }
}

/// One tool call.
pub(crate) fn tool(scope: &Scope, call: &ToolCall, spec: Option<&ToolSpec>) -> Spanned {
    let id = fresh();
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
    Spanned::new(id, span)
}

impl Spanned {
    pub(crate) fn returned(&self, result: &Result<ToolOutput, ToolError>) {
        match result {
            _ if self.span.is_disabled() => {}
            Ok(output) if content::is_captured() => {
                self.span.record("gen_ai.tool.call.result", content::text(&output.text).as_str());
            }
            Ok(_) => {}
            Err(error) => failed(&self.span, error.code()),
        }
    }
}

impl Spanned {
    /// What went wrong ends more than the call.
    pub(crate) fn broke_off(&self, failure: &Failure) {
        if !self.span.is_disabled() {
            failed(&self.span, failure.code());
        }
    }
}

fn spent(span: &Span, usage: Usage) {
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

fn failed(span: &Span, code: &str) {
    span.record("error.type", code).record("otel.status_code", "ERROR");
}
