//! The tools a turn asked for: in parallel up to the limit, answered in the order of the calls.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use baton_core::agent::ToolPattern;
use baton_core::chat::{ToolCall, ToolResult};
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::message::Visibility;
use baton_core::store::StepKind;
use baton_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use baton_core::usage::{Cost, Tokens};
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::engine::Approve;
use crate::failure::Failure;
use crate::scope::Scope;
use crate::toolset::{Toolset, checked_arguments};

/// Under which terms calls happen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) at_once: usize,
    pub(crate) approve: Approve,
    /// When the session's time is over.
    pub(crate) deadline: Instant,
}

/// Runs all calls of a turn. Each gets exactly one result, whatever happens to it.
pub(crate) async fn run(
    scope: &Scope,
    toolset: &Toolset,
    calls: &[ToolCall],
    terms: Terms,
) -> Result<Vec<ToolResult>, Failure> {
    let mut started = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        started.push(one(scope.at(&format!("tool:{}", at + 1)), toolset, call, terms));
    }
    stream::iter(started).buffered(terms.at_once).try_collect().await
}

async fn one(scope: Scope, toolset: &Toolset, call: &ToolCall, terms: Terms) -> Result<ToolResult, Failure> {
    if let Some(result) = scope.finished()? {
        return Ok(result);
    }
    let before = begin(&scope, call).await?;
    let mut row =
        Row { scope: &scope, tool: &call.name, at: Timestamp::now(), started: Instant::now(), open: true };
    let result = execute(&scope, toolset, call, terms, before).await;
    row.close(&result);
    let (content, failed): (Arc<str>, bool) = match result {
        Ok(output) => (fit(&scope, output.text).await.into(), false),
        Err(error) => (fit(&scope, told(&error)).await.into(), true),
    };
    let returned = EventKind::ToolReturned { call_id: call.id.clone(), output: content.to_string(), failed };
    let result = ToolResult { call_id: call.id.clone(), name: call.name.clone(), content, failed };
    scope
        .finish(StepKind::Tool, &result, vec![scope.event_as(Visibility::Internal, returned)], Vec::new())
        .await?;
    Ok(result)
}

/// Whether a call may have been under way before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Never,
    /// The process ended while it ran; nobody knows how far it came.
    Perhaps,
}

/// Written down before the tool is touched: after a crash it is known that it may have had its effect.
async fn begin(scope: &Scope, call: &ToolCall) -> Result<Before, Failure> {
    if scope.interrupted::<Value>()?.is_some() {
        return Ok(Before::Perhaps);
    }
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
    let called = EventKind::ToolCalled { call_id: call.id.clone(), tool: call.name.clone(), arguments };
    let events = vec![scope.event_as(Visibility::Internal, called)];
    scope.begin(StepKind::Tool, &json!({ "tool": call.name }), events).await?;
    Ok(Before::Never)
}

/// The error as the model reads it: what went wrong, and whether trying again can help.
fn told(error: &ToolError) -> String {
    let executed = if error.was_executed() { "" } else { " (the tool was not run)" };
    format!("error: {error}{executed}")
}

async fn fit(scope: &Scope, text: String) -> String {
    match &scope.run.room {
        Some(room) => room.fit(&scope.call_context(), text).await,
        None => text,
    }
}

async fn execute(
    scope: &Scope,
    toolset: &Toolset,
    call: &ToolCall,
    terms: Terms,
    before: Before,
) -> Result<ToolOutput, ToolError> {
    let tool: &Arc<dyn Tool> = toolset.find(&call.name)?;
    let spec = tool.spec();
    allowed(scope, spec, terms.approve)?;
    let arguments = checked_arguments(spec, &call.arguments)?;
    if before == Before::Perhaps && spec.effect != Effect::ReadOnly {
        return Err(ToolError::OutcomeUnknown);
    }
    // A tool that panics fails like any other; the run and its other calls go on.
    let work = AssertUnwindSafe(tool.call(arguments, scope.call_context())).catch_unwind();
    let own = Instant::now() + spec.timeout.get();
    let within = tokio::time::timeout_at(own.min(terms.deadline), work);
    let ended = tokio::select! {
        biased;
        () = scope.run.cancel.cancelled() => return Err(ToolError::Cancelled),
        ended = within => ended,
    };
    match ended {
        Err(_) if own > terms.deadline => {
            Err(ToolError::Execution("the time of the session was over".into()))
        }
        Err(_) => Err(ToolError::Timeout(spec.timeout)),
        Ok(Err(_)) => Err(ToolError::Execution("the tool stopped with an internal error".into())),
        Ok(Ok(result)) => result,
    }
}

/// What the agent's file and the server's policy say about this call.
fn allowed(scope: &Scope, spec: &ToolSpec, approve: Approve) -> Result<(), ToolError> {
    let rules = &scope.agent.approvals;
    let any = |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(&spec.name));
    if any(&rules.deny) {
        return Err(ToolError::NotPermitted(format!("`{}` is denied for this agent", spec.name)));
    }
    let risky = scope.run.engine.parts.ask_at.is_some_and(|level| spec.risk >= level);
    let asks = any(&rules.ask) || (risky && !any(&rules.auto));
    let granted = match approve {
        Approve::All => true,
        Approve::Read => spec.effect == Effect::ReadOnly,
        Approve::None => false,
    };
    if asks && !granted {
        let text = format!("`{}` needs a person's approval, and nobody can be asked here", spec.name);
        return Err(ToolError::NotPermitted(text));
    }
    Ok(())
}

/// Writes its row when it ends, also when it is dropped in the middle because the run was cancelled.
struct Row<'a> {
    scope: &'a Scope,
    tool: &'a str,
    at: Timestamp,
    started: Instant,
    open: bool,
}

impl Row<'_> {
    fn close(&mut self, result: &Result<ToolOutput, ToolError>) {
        match result {
            Ok(_) => self.write(CallOutcome::Ok, None),
            Err(ToolError::Cancelled) => self.write(CallOutcome::Cancelled, None),
            Err(error) => self.write(CallOutcome::Failed, Some(error.code())),
        }
    }

    fn write(&mut self, outcome: CallOutcome, error: Option<&str>) {
        self.open = false;
        self.scope.run.ledger.write(LedgerRow {
            run_id: self.scope.run.run_id,
            session_id: self.scope.session_id.clone(),
            agent: self.scope.agent.name.clone(),
            path: self.scope.path().to_owned(),
            call: Called::Tool { tool: self.tool.to_owned() },
            tokens: Tokens::default(),
            estimated: false,
            cost: Cost::default(),
            started_at: self.at,
            latency_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome,
            error: error.map(str::to_owned),
        });
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        if self.open {
            self.write(CallOutcome::Cancelled, None);
        }
    }
}
