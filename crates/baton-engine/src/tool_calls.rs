//! Executes the tool calls of a turn: in parallel up to the limit, with results in the order of the calls.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::slice;
use std::sync::Arc;

use baton_core::chat::{ChatMessage, ToolCall, ToolResult};
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::message::Visibility;
use baton_core::store::{SpooledOutput, StepKind};
use baton_core::tool::{CallContext, Effect, Tool, ToolError, ToolOutput};
use baton_core::usage::{Cost, Tokens};
use baton_core::{HumanDuration, MessageId};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::approvals::gate::{self, Consent, Permit, segment};
use crate::engine_tool::{CallSite, EngineTool, SessionEnding, ToolOutcome};
use crate::failure::Failure;
use crate::fence::Fence;
use crate::output_spool::{self, Fitted};
use crate::run_files::{self, CallFiles};
use crate::scope::Scope;
use crate::steps::Attachments;
use crate::telemetry;
use crate::toolset::{SessionTool, Toolset};
use crate::window::Conversation;

/// Characters of an error that are recorded with its call.
const MAX_ERROR_CHARS: usize = 20_000;

/// The limits of tool calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimits {
    pub(crate) max_parallel: usize,
    /// The session's deadline.
    pub(crate) deadline: Instant,
}

/// The results of a turn's calls.
#[derive(Debug)]
pub(crate) struct ToolResults {
    /// In the order of the calls, one for each.
    pub(crate) results: Vec<ToolResult>,
    /// Set if one of the calls ended the session.
    pub(crate) ending: Option<SessionEnding>,
}

/// The result of a call, as its step records it.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedToolResult {
    #[serde(flatten)]
    result: ToolResult,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
    /// What the call created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ending: Option<SessionEnding>,
    /// The mark that fences untrusted output for the model. Recorded, so that the model reads the same text after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
    /// How many bytes are spooled, if the output is too long for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spooled_bytes: Option<u64>,
    /// Text before the output for the model: a person has changed the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl RecordedToolResult {
    /// The result as a model reads it. It is marked after it was shortened, so that the closing mark is never cut off.
    fn for_model(&self) -> ToolResult {
        let content = match &self.mark {
            Some(mark) => Fence::marked(mark).output(&self.result.name, &self.result.content),
            None if self.note.is_none() => return self.result.clone(),
            None => self.result.content.to_string(),
        };
        let content = self.note.as_ref().map(|note| format!("{note}\n{content}")).unwrap_or(content);
        ToolResult { content: content.into(), ..self.result.clone() }
    }

    /// The result as the engine reads it.
    fn into_result(self) -> Result<ToolOutput, ToolError> {
        let text = self.result.content.to_string();
        match self.error {
            Some(error) => Err(error),
            // Steps of earlier versions only record that the call failed.
            None if self.result.failed => Err(ToolError::Execution(text)),
            None => Ok(ToolOutput { text, artifacts: self.artifacts, files: Vec::new() }),
        }
    }
}

/// What the calls of a turn share.
#[derive(Clone, Copy)]
struct CallBatch<'a> {
    scope: &'a Scope,
    toolset: &'a Toolset,
    conversation: &'a Conversation,
    /// The id of the turn's text, if it was streamed to the user.
    shown: Option<MessageId>,
    limits: CallLimits,
    /// Results of the calls that do not end the session.
    other_results: &'a [ToolResult],
    /// What each call may do, in the order of the calls.
    permits: &'a [Permit],
}

/// Executes all calls of a turn, whose text has the id `shown` if it was streamed to the user. Each call gets exactly one result, also
/// if it fails. Calls that end the session run last, because the results of the others are passed on.
pub(crate) async fn run(
    scope: &Scope,
    toolset: &Toolset,
    calls: &[ToolCall],
    conversation: &Conversation,
    shown: Option<MessageId>,
    limits: CallLimits,
) -> Result<ToolResults, Failure> {
    let scope = &scope.cancellable();
    let passes: Vec<Option<String>> = calls.iter().map(|call| toolset.ends_with(call)).collect();
    let permits = &gate::evaluate(scope, toolset, calls, Consent::None).await?;
    let turn = CallBatch { scope, toolset, conversation, shown, limits, other_results: &[], permits };
    let normal: Vec<usize> = (0..calls.len()).filter(|at| passes[*at].is_none()).collect();
    let mut returned = turn.run_all(calls, normal).await?;
    turn.run_ending_calls(calls, &passes, &mut returned).await?;
    let ending = returned.values().find_map(|one| one.ending.clone());
    Ok(ToolResults { results: returned.values().map(RecordedToolResult::for_model).collect(), ending })
}

/// Executes one call that no model asked for, under the same rules. Also returns whether the output is of untrusted authors, as
/// recorded with the result: after a crash, the toolset may no longer know the tool.
pub(crate) async fn run_one(
    scope: &Scope,
    toolset: &Toolset,
    call: &ToolCall,
    limits: CallLimits,
    consent: Consent,
) -> Result<(Result<ToolOutput, ToolError>, bool), Failure> {
    let conversation = &Conversation::new(Arc::default(), ChatMessage::user(""));
    let permits = &gate::evaluate(scope, toolset, slice::from_ref(call), consent).await?;
    let turn = CallBatch { scope, toolset, conversation, shown: None, limits, other_results: &[], permits };
    let returned = turn.run_single(0, call, None).await?;
    let is_untrusted = returned.mark.is_some();
    Ok((returned.into_result(), is_untrusted))
}

impl CallBatch<'_> {
    /// Executes calls with limited parallelism. A failure that ends the run cancels all of them, and each is awaited, so that
    /// none is left unfinished or unbilled. A call that waits for a person does not affect the others.
    async fn run_all(
        self,
        calls: &[ToolCall],
        which: Vec<usize>,
    ) -> Result<BTreeMap<usize, RecordedToolResult>, Failure> {
        let (mut returned, mut end, mut waits) = (BTreeMap::new(), None, false);
        let started: Vec<_> = which.into_iter().map(|at| self.run_indexed(at, &calls[at])).collect();
        let mut work = stream::iter(started).buffer_unordered(self.limits.max_parallel);
        while let Some((at, done)) = work.next().await {
            match done {
                Ok(one) => drop(returned.insert(at, one)),
                Err(Failure::Waiting) => waits = true,
                Err(failure) => {
                    self.scope.cancel.cancel();
                    end.get_or_insert(failure);
                }
            }
        }
        match end {
            Some(failure) => Err(failure),
            None if waits => Err(Failure::Waiting),
            None => Ok(returned),
        }
    }

    async fn run_indexed(self, at: usize, call: &ToolCall) -> (usize, Result<RecordedToolResult, Failure>) {
        // A call that is still queued when the run is cancelled does not start.
        let is_over = self.scope.cancel.is_cancelled() && !self.scope.at(&segment(at)).step().is_finished();
        (at, if is_over { Err(Failure::Cancelled) } else { self.run_single(at, call, None).await })
    }

    /// Executes the calls that end the session. Duplicates count once; different ones contradict each other and are all refused.
    async fn run_ending_calls(
        self,
        calls: &[ToolCall],
        passes: &[Option<String>],
        returned: &mut BTreeMap<usize, RecordedToolResult>,
    ) -> Result<(), Failure> {
        let targets: BTreeSet<&String> = passes.iter().flatten().collect();
        if targets.is_empty() {
            return Ok(());
        }
        let contradiction = (targets.len() > 1).then(|| {
            let targets: Vec<&str> = targets.iter().map(|target| target.as_str()).collect();
            ToolError::InvalidArguments(format!(
                "only one of {} can happen in one turn; choose one",
                targets.join(", ")
            ))
        });
        let waits = |at: usize| passes[at].is_some() && self.permits[at] == Permit::Waiting;
        if contradiction.is_none() && (0..calls.len()).any(waits) {
            return Err(Failure::Waiting);
        }
        let other_results: Vec<ToolResult> = returned.values().map(RecordedToolResult::for_model).collect();
        let turn = CallBatch { other_results: &other_results, ..self };
        let mut first: Option<ToolError> = None;
        for (at, call) in calls.iter().enumerate().filter(|(at, _)| passes[*at].is_some()) {
            let refused = contradiction.clone().or_else(|| first.clone());
            let one = turn.run_single(at, call, refused).await?;
            first = Some(ToolError::InvalidArguments("the same call came twice; it counts once".into()));
            returned.insert(at, one);
        }
        Ok(())
    }

    /// Executes one call, or records its refusal.
    async fn run_single(
        self,
        at: usize,
        call: &ToolCall,
        refused: Option<ToolError>,
    ) -> Result<RecordedToolResult, Failure> {
        let scope = self.scope.at(&segment(at));
        if let Some(returned) = scope.step().finished()? {
            return Ok(returned);
        }
        let (refused, edited) = match (refused, &self.permits[at]) {
            (None, Permit::Waiting) => return Err(Failure::Waiting),
            (None, Permit::Refused(error)) => (Some(error.clone()), None),
            (refused, Permit::Run(edited)) => (refused, edited.as_ref()),
            (refused, _) => (refused, None),
        };
        let before = self.begin(&scope, call, edited).await?;
        let span = telemetry::tool(&scope, call, self.toolset.find(&call.name).ok().map(SessionTool::spec));
        let scope = scope.with_span(&span);
        let mut row = LedgerGuard {
            scope: &scope,
            tool: &call.name,
            at: Timestamp::now(),
            started: Instant::now(),
            open: true,
        };
        let (result, ending) = match (refused, &self.permits[at]) {
            (Some(refused), _) => (Err(refused), None),
            (None, Permit::Answered(answer)) => (Ok(answer.clone().into()), None),
            (None, _) => match self.execute(&scope, call, edited, before).instrument(span.span.clone()).await
            {
                Ok(executed) => executed,
                // An agent below waits for a person. The call goes on when the run does.
                Err(Failure::Waiting) => {
                    row.open = false;
                    return Err(Failure::Waiting);
                }
                Err(failure) => {
                    span.fail(&failure);
                    row.fail(&failure);
                    return Err(failure);
                }
            },
        };
        span.record_result(&result);
        row.close(&result);
        let note = edited.map(edit_note);
        self.record(&scope, call, result, ending, note).await
    }

    /// Records the result of a call, with its files.
    async fn record(
        self,
        scope: &Scope,
        call: &ToolCall,
        result: Result<ToolOutput, ToolError>,
        ending: Option<SessionEnding>,
        note: Option<String>,
    ) -> Result<RecordedToolResult, Failure> {
        let (ToolOutput { text, artifacts, files }, error) = match result {
            Ok(output) => (output, None),
            Err(error) => (error_text(&error).into(), Some(error.shortened(MAX_ERROR_CHARS))),
        };
        let Fitted { text: mut output, spooled } = output_spool::fit(scope, text).await;
        // Boxed: most calls produce none.
        let mut files = if files.is_empty() {
            CallFiles::default()
        } else {
            Box::pin(run_files::prepare(scope, files)).await
        };
        for line in &files.lines {
            let separator = if output.is_empty() { "" } else { "\n" };
            output.push_str(separator);
            output.push_str(line);
        }
        let failed = error.is_some();
        let mark = self.toolset.is_untrusted(&call.name).then(|| Fence::new().mark().to_owned());
        let mut result = ToolResult::text(call.id.clone(), call.name.as_str(), output.as_str(), failed);
        result.files.clone_from(&files.refs);
        let event =
            EventKind::ToolReturned { call_id: call.id.clone(), output, failed, files: files.refs.clone() };
        let spooled_bytes = spooled.as_ref().map(SpooledOutput::size);
        let returned = RecordedToolResult { result, error, artifacts, ending, mark, spooled_bytes, note };
        let events = vec![scope.event(Visibility::Internal, event)];
        let outputs = spooled.into_iter().collect();
        let attachments = Attachments { outputs, artifacts: std::mem::take(&mut files.new) };
        scope.step().finish_with(StepKind::Tool, &returned, events, Vec::new(), attachments).await?;
        scope.run.recorder.files.add_stored(&files);
        Ok(returned)
    }

    /// Records the start of a call, so that after a crash it is known that the call may have had its effect. Only a tool that
    /// must not be called twice waits for the append.
    async fn begin(
        self,
        scope: &Scope,
        call: &ToolCall,
        edited: Option<&Value>,
    ) -> Result<PriorAttempt, Failure> {
        if scope.step().interrupted::<Value>()?.is_some() {
            return Ok(PriorAttempt::Possible);
        }
        let parse = || crate::json::parse(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
        let arguments = edited.cloned().unwrap_or_else(parse);
        let called = EventKind::ToolCalled { call_id: call.id.clone(), tool: call.name.clone(), arguments };
        let events = vec![scope.event(Visibility::Internal, called)];
        let data = json!({ "tool": call.name });
        match self.toolset.find(&call.name) {
            Ok(SessionTool::Tool(tool)) if tool.spec().effect == Effect::Writes => {
                scope.step().begin(StepKind::Tool, &data, events).await?;
            }
            _ => scope.step().begin_soon(StepKind::Tool, &data, events, Vec::new()).await?,
        }
        Ok(PriorAttempt::None)
    }

    async fn execute(
        self,
        scope: &Scope,
        call: &ToolCall,
        edited: Option<&Value>,
        before: PriorAttempt,
    ) -> Result<Executed, Failure> {
        let found = match self.toolset.find(&call.name) {
            Ok(found) => found,
            Err(error) => return Ok((Err(error), None)),
        };
        let checked = match edited {
            Some(edited) => found.checked(&edited.to_string()),
            None => found.checked(&call.arguments),
        };
        let arguments = match checked {
            Ok(arguments) => arguments,
            Err(error) => return Ok((Err(error), None)),
        };
        match found {
            SessionTool::Tool(tool) => Ok((self.call_tool(scope, tool, arguments, before).await, None)),
            SessionTool::Engine(tool) => self.call_engine_tool(scope, &**tool, arguments).await,
        }
    }

    /// Calls a tool of the engine, which invokes other agents. At the deadline they are cancelled and awaited, so that none is
    /// left unfinished or unbilled.
    async fn call_engine_tool(
        self,
        scope: &Scope,
        tool: &dyn EngineTool,
        arguments: Value,
    ) -> Result<Executed, Failure> {
        let (scope, started) = (scope.with_time_limit(), Instant::now());
        let site = CallSite {
            scope: scope.clone(),
            messages: self.conversation.after_task(),
            shown: self.shown,
            other_results: self.other_results,
        };
        // The agent that receives the baton has the same deadline and closes by itself.
        let passes = tool.ends_with(&arguments).is_some();
        let mut work = tool.call(arguments, site);
        let done = tokio::select! {
            biased;
            done = &mut work => done?,
            () = tokio::time::sleep_until(self.limits.deadline), if !passes => {
                let seconds = started.elapsed().as_millis().div_ceil(1_000);
                scope.cancel.time_out(HumanDuration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)));
                match work.await {
                    Err(failure) if failure.is_fatal(&self.scope.run.control.cancel) => return Err(failure),
                    // Some agents may have finished in time. Their results count.
                    Ok(ToolOutcome::Output(text)) => ToolOutcome::Output(text),
                    _ => ToolOutcome::Refused(timeout_error()),
                }
            }
        };
        Ok(match done {
            ToolOutcome::Output(text) => (Ok(text.into()), None),
            ToolOutcome::Refused(error) => (Err(error), None),
            ToolOutcome::Ended { output, ending } => (Ok(output.into()), Some(ending)),
        })
    }

    async fn call_tool(
        self,
        scope: &Scope,
        tool: &Arc<dyn Tool>,
        arguments: Value,
        before: PriorAttempt,
    ) -> Result<ToolOutput, ToolError> {
        let spec = tool.spec();
        if before == PriorAttempt::Possible && spec.effect == Effect::Writes {
            return Err(ToolError::OutcomeUnknown);
        }
        let storage_left = match spec.effect {
            Effect::Writes => storage_left(scope).await?,
            _ => None,
        };
        let result = self.call_within(scope, tool, arguments, storage_left).await;
        if storage_left.is_some() {
            measure_files(scope).await;
        }
        result
    }

    async fn call_within(
        self,
        scope: &Scope,
        tool: &Arc<dyn Tool>,
        arguments: Value,
        storage_left: Option<u64>,
    ) -> Result<ToolOutput, ToolError> {
        let spec = tool.spec();
        let mut context = scope.call_context();
        if storage_left.is_some() {
            context = Arc::new(CallContext { storage_left, ..(*context).clone() });
        }
        // A panic is a failed call. The run and its other calls continue.
        let work = AssertUnwindSafe(tool.call(arguments, context)).catch_unwind();
        let (own, deadline) = (Instant::now() + spec.timeout.get(), self.limits.deadline);
        let within = tokio::time::timeout_at(own.min(deadline), work);
        let ended = tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Err(ToolError::Cancelled),
            ended = within => ended,
        };
        match ended {
            Err(_) if own > deadline => Err(timeout_error()),
            Err(_) => Err(ToolError::Timeout(spec.timeout)),
            Ok(Err(_)) => Err(ToolError::Execution("the tool stopped with an internal error".into())),
            Ok(Ok(result)) => result,
        }
    }
}

/// Bytes that may be added to the workspace; `None` without a workspace or limits.
async fn storage_left(scope: &Scope) -> Result<Option<u64>, ToolError> {
    let run = &scope.run;
    if !run.storage.has_limits() || run.extensions.workspaces.is_none() {
        return Ok(None);
    }
    let left = run.storage.left(&*run.store, &run.caller.user).await;
    left.map_err(|error| ToolError::Execution(format!("cannot find out how much storage is left: {error}")))
}

/// Records how many bytes the files of the workspace have. If that fails, the next call that may write does it.
async fn measure_files(scope: &Scope) {
    let (run, caller) = (&scope.run, &scope.run.caller);
    let Some(workspaces) = &run.extensions.workspaces else { return };
    let recorded = match workspaces.size(&caller.tenant, caller.thread_id).await {
        Ok(bytes) => {
            let recording = run.storage.record_files(&*run.store, &caller.user, caller.thread_id, bytes);
            recording.await.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = recorded {
        tracing::warn!(thread = %caller.thread_id, %error, "the files of a workspace are not counted");
    }
}

/// Tells the model with which arguments a call was made instead of its own.
fn edit_note(edited: &Value) -> String {
    format!("(A person approved this call with other arguments: {edited})")
}

/// The result of a call, and whether it ended the session.
type Executed = (Result<ToolOutput, ToolError>, Option<SessionEnding>);

fn timeout_error() -> ToolError {
    ToolError::Execution("the session's time limit was reached".into())
}

/// Whether an earlier attempt may have executed the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PriorAttempt {
    None,
    /// The process died while the call was in progress. Its effect is unknown.
    Possible,
}

/// The error as the model reads it. The engine itself reads [`RecordedToolResult::error`].
fn error_text(error: &ToolError) -> String {
    format!("error: {}", error.for_model())
}

/// RAII guard: writes the call's ledger row when it ends. On drop without an end, writes it as cancelled.
struct LedgerGuard<'a> {
    scope: &'a Scope,
    tool: &'a str,
    at: Timestamp,
    started: Instant,
    open: bool,
}

impl LedgerGuard<'_> {
    fn close(&mut self, result: &Result<ToolOutput, ToolError>) {
        match result {
            Ok(_) => self.write(CallOutcome::Ok, None),
            Err(ToolError::Cancelled) => self.write(CallOutcome::Cancelled, None),
            Err(error) => self.write(CallOutcome::Failed, Some(error.code())),
        }
    }

    /// Writes the row of a call whose failure ends more than the call.
    fn fail(&mut self, failure: &Failure) {
        match failure {
            Failure::Cancelled => self.write(CallOutcome::Cancelled, None),
            failure => self.write(CallOutcome::Failed, Some(failure.code())),
        }
    }

    fn write(&mut self, outcome: CallOutcome, error: Option<&str>) {
        self.open = false;
        self.scope.run.recorder.ledger.write(LedgerRow {
            run_id: self.scope.run.run_id,
            session_id: self.scope.session.id.clone(),
            agent: self.scope.agent().name.clone(),
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

impl Drop for LedgerGuard<'_> {
    fn drop(&mut self) {
        if self.open {
            self.write(CallOutcome::Cancelled, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_core::ToolCallId;

    use super::*;
    use crate::output_spool::SPOOLED_BYTES;

    #[test]
    fn a_step_records_how_much_was_spooled() {
        let call_id = ToolCallId::parse("call_1").unwrap();
        let result = ToolResult::text(call_id, "look", "seen", false);
        let recorded = |spooled_bytes| {
            let result = result.clone();
            let (error, artifacts, ending, mark, note) = (None, Vec::new(), None, None, None);
            let returned = RecordedToolResult { result, error, artifacts, ending, mark, spooled_bytes, note };
            serde_json::to_value(returned).unwrap().get(SPOOLED_BYTES).cloned()
        };
        assert_eq!((recorded(Some(7)), recorded(None)), (Some(json!(7)), None));
    }
}
