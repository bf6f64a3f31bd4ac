//! The tools a turn asked for: in parallel up to the limit, answered in the order of the calls.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use baton_core::HumanDuration;
use baton_core::agent::ToolPattern;
use baton_core::chat::{ChatMessage, ToolCall, ToolResult};
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::message::Visibility;
use baton_core::store::StepKind;
use baton_core::tool::{Effect, Tool, ToolError, ToolOutput};
use baton_core::usage::{Cost, Tokens};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::engine::Approve;
use crate::failure::Failure;
use crate::given::{Done, Ending, Given, Site};
use crate::scope::Scope;
use crate::telemetry;
use crate::toolset::{Offered, Toolset};
use crate::window::Conversation;

/// Under which terms calls happen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) at_once: usize,
    /// When the session's time is over.
    pub(crate) deadline: Instant,
}

/// What came of the calls of a turn.
#[derive(Debug)]
pub(crate) struct Answered {
    /// In the order of the calls, one for each.
    pub(crate) results: Vec<ToolResult>,
    /// One of them ended the session.
    pub(crate) ending: Option<Ending>,
}

/// The answer to a call as it is recorded.
#[derive(Debug, Serialize, Deserialize)]
struct Returned {
    #[serde(flatten)]
    result: ToolResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
}

/// A turn's calls and everything they need.
#[derive(Clone, Copy)]
struct Turn<'a> {
    scope: &'a Scope,
    toolset: &'a Toolset,
    conversation: &'a Conversation,
    terms: Terms,
    /// What came of the calls that do not end the session.
    beside: &'a [ToolResult],
    /// Whether the person has said yes to what is done here.
    has_consent: bool,
}

/// Runs all calls of a turn. Each gets exactly one result, whatever happens to it. Those that end the session come last: what the
/// others bring is known by then, and belongs to what is passed on.
pub(crate) async fn run(
    scope: &Scope,
    toolset: &Toolset,
    calls: &[ToolCall],
    conversation: &Conversation,
    terms: Terms,
) -> Result<Answered, Failure> {
    let scope = &scope.cancellable();
    let turn = Turn { scope, toolset, conversation, terms, beside: &[], has_consent: false };
    let passes: Vec<Option<String>> = calls.iter().map(|call| toolset.ends_with(call)).collect();
    let normal: Vec<usize> = (0..calls.len()).filter(|at| passes[*at].is_none()).collect();
    let mut returned = turn.all(calls, normal).await?;
    turn.pass(calls, &passes, &mut returned).await?;
    let ending = returned.values().find_map(|one| one.ending.clone());
    Ok(Answered { results: returned.into_values().map(|one| one.result).collect(), ending })
}

/// One call that no model asked for, at the same terms as those of models. `has_consent`: the person has said yes to it.
pub(crate) async fn run_one(
    scope: &Scope,
    toolset: &Toolset,
    call: &ToolCall,
    terms: Terms,
    has_consent: bool,
) -> Result<ToolResult, Failure> {
    let conversation = &Conversation::new(Arc::default(), ChatMessage::user(""));
    let turn = Turn { scope, toolset, conversation, terms, beside: &[], has_consent };
    Ok(turn.one(0, call, None).await?.result)
}

impl Turn<'_> {
    /// Several calls, as many at once as may be. What ends the run ends all of them, and each is waited for: nothing is left half
    /// done or unpaid.
    async fn all(self, calls: &[ToolCall], which: Vec<usize>) -> Result<BTreeMap<usize, Returned>, Failure> {
        let (mut returned, mut end) = (BTreeMap::new(), None);
        let started: Vec<_> = which.into_iter().map(|at| self.numbered(at, &calls[at])).collect();
        let mut work = stream::iter(started).buffer_unordered(self.terms.at_once);
        while let Some((at, done)) = work.next().await {
            match done {
                Ok(one) => drop(returned.insert(at, one)),
                Err(failure) => {
                    self.scope.cancel.cancel();
                    end.get_or_insert(failure);
                }
            }
        }
        end.map_or(Ok(returned), Err)
    }

    async fn numbered(self, at: usize, call: &ToolCall) -> (usize, Result<Returned, Failure>) {
        // One whose turn comes when the run has ended is not begun.
        let is_over = self.scope.cancel.is_cancelled() && !self.scope.at(&place(at)).is_finished();
        (at, if is_over { Err(Failure::Cancelled) } else { self.one(at, call, None).await })
    }

    /// The calls that end the session. The same one twice counts once; two different ones are a contradiction.
    async fn pass(
        self,
        calls: &[ToolCall],
        passes: &[Option<String>],
        returned: &mut BTreeMap<usize, Returned>,
    ) -> Result<(), Failure> {
        let targets: BTreeSet<&String> = passes.iter().flatten().collect();
        let contradiction = (targets.len() > 1).then(|| {
            let targets: Vec<&str> = targets.iter().map(|target| target.as_str()).collect();
            ToolError::InvalidArguments(format!(
                "only one of {} can happen in one turn; choose one",
                targets.join(", ")
            ))
        });
        let beside: Vec<ToolResult> = returned.values().map(|one| one.result.clone()).collect();
        let turn = Turn { beside: &beside, ..self };
        let mut first: Option<ToolError> = None;
        for (at, call) in calls.iter().enumerate().filter(|(at, _)| passes[*at].is_some()) {
            let refused = contradiction.clone().or_else(|| first.clone());
            let one = turn.one(at, call, refused).await?;
            first = Some(ToolError::InvalidArguments("the same call came twice; it counts once".into()));
            returned.insert(at, one);
        }
        Ok(())
    }

    /// One call, or its refusal.
    async fn one(self, at: usize, call: &ToolCall, refused: Option<ToolError>) -> Result<Returned, Failure> {
        let scope = self.scope.at(&place(at));
        if let Some(returned) = scope.finished()? {
            return Ok(returned);
        }
        let before = self.begin(&scope, call).await?;
        let span = telemetry::tool(&scope, call, self.toolset.find(&call.name).ok().map(Offered::spec));
        let scope = scope.within(&span);
        let mut row = Row {
            scope: &scope,
            tool: &call.name,
            at: Timestamp::now(),
            started: Instant::now(),
            open: true,
        };
        let (result, ending) = match refused {
            Some(refused) => (Err(refused), None),
            None => match self.execute(&scope, call, before).instrument(span.span.clone()).await {
                Ok(executed) => executed,
                Err(failure) => {
                    span.broke_off(&failure);
                    row.fail(&failure);
                    return Err(failure);
                }
            },
        };
        span.returned(&result);
        row.close(&result);
        let (content, failed): (Arc<str>, bool) = match result {
            Ok(output) => (fit(&scope, output.text).await.into(), false),
            Err(error) => (fit(&scope, told(&error)).await.into(), true),
        };
        let output = content.to_string();
        let event = EventKind::ToolReturned { call_id: call.id.clone(), output, failed };
        let result = ToolResult { call_id: call.id.clone(), name: call.name.clone(), content, failed };
        let returned = Returned { result, ending };
        let events = vec![scope.event_as(Visibility::Internal, event)];
        scope.finish(StepKind::Tool, &returned, events, Vec::new()).await?;
        Ok(returned)
    }

    /// Written down before the tool is touched: after a crash it is known that it may have had its effect. Only a tool that must not
    /// be called twice waits for that.
    async fn begin(self, scope: &Scope, call: &ToolCall) -> Result<Before, Failure> {
        if scope.interrupted::<Value>()?.is_some() {
            return Ok(Before::Perhaps);
        }
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
        let called = EventKind::ToolCalled { call_id: call.id.clone(), tool: call.name.clone(), arguments };
        let events = vec![scope.event_as(Visibility::Internal, called)];
        let data = json!({ "tool": call.name });
        match self.toolset.find(&call.name) {
            Ok(Offered::Tool(tool)) if tool.spec().effect == Effect::Writes => {
                scope.begin(StepKind::Tool, &data, events).await?;
            }
            _ => scope.begin_soon(StepKind::Tool, &data, events, Vec::new()).await?,
        }
        Ok(Before::Never)
    }

    async fn execute(self, scope: &Scope, call: &ToolCall, before: Before) -> Result<Executed, Failure> {
        let found = match self.toolset.find(&call.name) {
            Ok(found) => found,
            Err(error) => return Ok((Err(error), None)),
        };
        let checked = match found.checked(&call.arguments) {
            Ok(arguments) => self.allowed(scope, found, &arguments).map(|()| arguments),
            Err(error) => Err(error),
        };
        let arguments = match checked {
            Ok(arguments) => arguments,
            Err(error) => return Ok((Err(error), None)),
        };
        match found {
            Offered::Tool(tool) => Ok((self.outside(scope, tool, arguments, before).await, None)),
            Offered::Given(given) => self.inside(scope, &**given, arguments).await,
        }
    }

    /// A tool of the engine, which involves others. When the time is over they are told to end, and waited for, so that nothing of
    /// theirs is left half done or unpaid.
    async fn inside(self, scope: &Scope, given: &dyn Given, arguments: Value) -> Result<Executed, Failure> {
        let (scope, started) = (scope.timed(), Instant::now());
        let site =
            Site { scope: scope.clone(), messages: self.conversation.after_task(), beside: self.beside };
        // Whoever gets the baton has the same deadline, and then closes by themselves.
        let passes = given.ends_with(&arguments).is_some();
        let mut work = given.call(arguments, site);
        let done = tokio::select! {
            biased;
            done = &mut work => done?,
            () = tokio::time::sleep_until(self.terms.deadline), if !passes => {
                let seconds = started.elapsed().as_millis().div_ceil(1_000);
                scope.run_out(HumanDuration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)));
                match work.await {
                    Err(failure) if failure.ends_the_run(self.scope) => return Err(failure),
                    // What some have brought is there, though others were late.
                    Ok(Done::Told(text)) => Done::Told(text),
                    _ => Done::Refused(time_over()),
                }
            }
        };
        Ok(match done {
            Done::Told(text) => (Ok(text.into()), None),
            Done::Refused(error) => (Err(error), None),
            Done::Ended { told, ending } => (Ok(told.into()), Some(ending)),
        })
    }

    async fn outside(
        self,
        scope: &Scope,
        tool: &Arc<dyn Tool>,
        arguments: Value,
        before: Before,
    ) -> Result<ToolOutput, ToolError> {
        let spec = tool.spec();
        if before == Before::Perhaps && spec.effect == Effect::Writes {
            return Err(ToolError::OutcomeUnknown);
        }
        // A tool that panics fails like any other; the run and its other calls go on.
        let work = AssertUnwindSafe(tool.call(arguments, scope.call_context())).catch_unwind();
        let (own, deadline) = (Instant::now() + spec.timeout.get(), self.terms.deadline);
        let within = tokio::time::timeout_at(own.min(deadline), work);
        let ended = tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Err(ToolError::Cancelled),
            ended = within => ended,
        };
        match ended {
            Err(_) if own > deadline => Err(time_over()),
            Err(_) => Err(ToolError::Timeout(spec.timeout)),
            Ok(Err(_)) => Err(ToolError::Execution("the tool stopped with an internal error".into())),
            Ok(Ok(result)) => result,
        }
    }

    /// What the agent's file and the server's policy say about this call.
    fn allowed(self, scope: &Scope, offered: &Offered, arguments: &Value) -> Result<(), ToolError> {
        let spec = offered.spec();
        let rules = &scope.agent.approvals;
        let any = |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(&spec.name));
        if any(&rules.deny) {
            return Err(ToolError::NotPermitted(format!("`{}` is denied for this agent", spec.name)));
        }
        let risky = scope.run.engine.parts.ask_at.is_some_and(|level| spec.risk >= level);
        let asks = any(&rules.ask) || (risky && !any(&rules.auto));
        let granted = match scope.bounds.approve {
            Approve::All => true,
            Approve::Read => spec.effect == Effect::ReadOnly,
            Approve::None => false,
        };
        if asks && !granted && !self.has_consent {
            let preview =
                offered.preview(arguments).map(|preview| format!(" ({preview})")).unwrap_or_default();
            let text =
                format!("`{}`{preview} needs a person's approval, and nobody can be asked here", spec.name);
            return Err(ToolError::NotPermitted(text));
        }
        Ok(())
    }
}

/// Where a call happens, below its turn.
fn place(at: usize) -> String {
    format!("tool:{}", at + 1)
}

/// What a call gave, and whether it ended the session.
type Executed = (Result<ToolOutput, ToolError>, Option<Ending>);

fn time_over() -> ToolError {
    ToolError::Execution("the time of the session was over".into())
}

/// Whether a call may have been under way before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Never,
    /// The process ended while it ran; nobody knows how far it came.
    Perhaps,
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

    /// It ends more than the call.
    fn fail(&mut self, failure: &Failure) {
        match failure {
            Failure::Cancelled => self.write(CallOutcome::Cancelled, None),
            failure => self.write(CallOutcome::Failed, Some(failure.code())),
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
