//! Evaluates the calls of a turn before the first one runs.
//!
//! All calls are evaluated together, so that a person sees them together and no allowed call waits for a decision about another
//! one. The approvals of the calls that wait are committed with one append, before anything waits.

use baton_core::chat::ToolCall;
use baton_core::event::{ApprovalEvent, EventKind};
use baton_core::message::Visibility;
use baton_core::store::{
    ApprovalKind, ApprovalOutcome, ApprovalRequest, ApprovalStatus, RememberedDecision, StepKind, StepState,
};
use baton_core::tool::ToolError;
use serde_json::{Value, json};

use super::policy::{self, ASK_USER, CallPolicy};
use super::request::{WAIT, request};
use crate::audit;
use crate::failure::Failure;
use crate::guardrails;
use crate::journal::Record;
use crate::scope::Scope;
use crate::toolset::{SessionTool, Toolset};

/// What a call may do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Permit {
    /// It runs, with the arguments that a person edited, if any.
    Run(Option<Value>),
    Refused(ToolError),
    /// The answer to a question is the result.
    Answered(String),
    /// A person has not decided yet.
    Waiting,
}

/// Whether the user has agreed to the call in the conversation, as a workflow's confirmation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    None,
    Given,
}

/// The path segment of a call below its turn.
pub(crate) fn segment(at: usize) -> String {
    format!("tool:{}", at + 1)
}

/// Evaluates the calls of the turn at `scope`. When this returns, the approvals of all calls that wait are stored.
pub(crate) async fn evaluate(
    scope: &Scope,
    toolset: &Toolset,
    calls: &[ToolCall],
    consent: Consent,
) -> Result<Vec<Permit>, Failure> {
    let mut gate = Gate { scope, toolset, consent, remembered: None, record: Record::default() };
    let mut permits = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        permits.push(gate.permit(at, call).await?);
    }
    let record = gate.record;
    if !record.approvals.is_empty() {
        scope.run.recorder.journal.commit(record).await?;
    } else if !record.steps.is_empty() || !record.audit.is_empty() || !record.closed_approvals.is_empty() {
        scope.run.recorder.journal.commit_soon(record).await;
    }
    Ok(permits)
}

struct Gate<'a> {
    scope: &'a Scope,
    toolset: &'a Toolset,
    consent: Consent,
    /// Remembered decisions of the thread, read when the first call would ask.
    remembered: Option<Vec<RememberedDecision>>,
    /// What the evaluation records.
    record: Record,
}

impl Gate<'_> {
    async fn permit(&mut self, at: usize, call: &ToolCall) -> Result<Permit, Failure> {
        // A call that is unknown is refused when it runs, as one with invalid arguments is.
        let Ok(tool) = self.toolset.find(&call.name) else { return Ok(Permit::Run(None)) };
        let place = self.scope.at(&segment(at));
        match policy::of_tool(self.scope, tool.spec()) {
            // A person may have denied or changed the call before the rules were relaxed.
            CallPolicy::Auto if !place.at(WAIT).step().is_recorded() => Ok(Permit::Run(None)),
            CallPolicy::Deny => {
                let text = format!("`{}` is denied for this agent", tool.spec().name);
                Ok(Permit::Refused(ToolError::NotPermitted(text)))
            }
            CallPolicy::Ask if self.consent == Consent::Given && tool.spec().name != ASK_USER => {
                Ok(Permit::Run(None))
            }
            CallPolicy::Auto | CallPolicy::Ask => Box::pin(self.ask(&place, call, tool)).await,
        }
    }

    /// Applies the decision about a call, or asks for one.
    async fn ask(&mut self, place: &Scope, call: &ToolCall, tool: &SessionTool) -> Result<Permit, Failure> {
        if place.step().is_finished() {
            return Ok(Permit::Run(None));
        }
        let Ok(arguments) = tool.checked(&call.arguments) else { return Ok(Permit::Run(None)) };
        let wait = place.at(WAIT);
        if let Some(outcome) = wait.step().finished::<ApprovalOutcome>()? {
            return allow_answer(&wait, permit(&outcome)).await;
        }
        let request = request(place, tool, arguments);
        if let Some(asked) = wait.step().interrupted::<ApprovalRequest>()? {
            if asked.digest == request.digest {
                return self.find_decision(&wait, asked).await;
            }
            // The call differs from what a person has seen, so no decision about it counts.
            let outcome = ApprovalOutcome::closed(ApprovalStatus::Invalidated);
            self.record.closed_approvals.push((asked.approval_id, outcome.clone()));
            self.scope.run.waits.settle(asked.approval_id);
            self.record.events.push(event(&wait, asked, outcome));
        } else if let Some(permit) = self.apply_remembered(&wait, &request).await? {
            return Ok(permit);
        }
        if self.scope.run.control.stop.is_cancelled() {
            return Ok(Permit::Refused(stopped()));
        }
        if request.kind == ApprovalKind::Question
            && let Some(violation) = guardrails::check_question(&wait, &texts(&request.arguments)).await?
        {
            let text = format!("this may not be asked: {}", violation.reason);
            return Ok(Permit::Refused(ToolError::NotPermitted(text)));
        }
        self.request(&wait, request)
    }

    /// Applies a decision that the user has asked to remember for the thread.
    async fn apply_remembered(
        &mut self,
        wait: &Scope,
        request: &ApprovalRequest,
    ) -> Result<Option<Permit>, Failure> {
        if request.kind == ApprovalKind::Question {
            return Ok(None);
        }
        let run = &self.scope.run;
        // Read once per turn, so that a revocation counts from the next one on.
        if self.remembered.is_none() {
            self.remembered = Some(run.store.remembered_decisions(run.caller.thread_id).await?);
        }
        let known = self.remembered.iter().flatten().find(|known| known.tool == request.tool);
        let Some(known) = known else { return Ok(None) };
        let status = if known.is_approved { ApprovalStatus::Approved } else { ApprovalStatus::Denied };
        let detail = json!({
            "approval_id": known.approval_id, "path": request.path, "tool": request.tool, "digest": request.digest,
        });
        self.record.audit.push(audit::approval(wait, "approval.remembered", status.word(), detail));
        if known.is_approved {
            return Ok(Some(Permit::Run(None)));
        }
        let reason = "the person has denied this tool for the conversation";
        Ok(Some(Permit::Refused(denied(Some(reason)))))
    }

    /// Asks a person.
    fn request(&mut self, wait: &Scope, request: ApprovalRequest) -> Result<Permit, Failure> {
        let detail = json!({
            "approval_id": request.approval_id, "path": request.path, "tool": request.tool,
            "risk": request.risk, "digest": request.digest,
        });
        self.record.audit.push(audit::approval(wait, "approval.request", "pending", detail));
        self.record.steps.push(wait.step().build(StepKind::Wait, StepState::Started, &request)?);
        self.record.events.push(event(wait, request.clone(), ApprovalOutcome::pending()));
        self.record.approvals.push(request.clone());
        self.scope.run.waits.open(request);
        Ok(Permit::Waiting)
    }

    /// Finds the decision about a call that waited before.
    async fn find_decision(&mut self, wait: &Scope, asked: ApprovalRequest) -> Result<Permit, Failure> {
        let run = &self.scope.run;
        let approval = run.waits.approval(&*run.store, run.run_id, asked.approval_id).await?;
        let outcome = approval.map_or_else(ApprovalOutcome::pending, |approval| approval.outcome);
        if outcome.status == ApprovalStatus::Pending {
            if run.control.stop.is_cancelled() {
                return Ok(Permit::Refused(stopped()));
            }
            run.waits.open(asked);
            return Ok(Permit::Waiting);
        }
        run.waits.settle(asked.approval_id);
        let permit = allow_answer(wait, permit(&outcome)).await?;
        self.record.steps.push(wait.step().build(StepKind::Wait, StepState::Finished, &outcome)?);
        self.record.events.push(event(wait, asked, outcome));
        Ok(permit)
    }
}

/// Applies the agent's input guardrails to the answer to a question, which the model reads as it reads a message.
async fn allow_answer(wait: &Scope, permit: Permit) -> Result<Permit, Failure> {
    let Permit::Answered(text) = &permit else { return Ok(permit) };
    let Some(violation) = guardrails::check_answer(wait, text).await? else { return Ok(permit) };
    let text = format!("the answer is withheld: {}", violation.reason);
    Ok(Permit::Refused(ToolError::NotPermitted(text)))
}

/// All strings of a JSON value, one per line: escaped as JSON, a text could pass a check.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => fields.values().map(texts).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// The user sees an approval with the path of the agent that asks, wherever in the run that is.
fn event(wait: &Scope, request: ApprovalRequest, outcome: ApprovalOutcome) -> baton_core::store::NewEvent {
    wait.event(Visibility::User, EventKind::Approval(Box::new(ApprovalEvent { request, outcome })))
}

/// What a decision means for the call.
fn permit(outcome: &ApprovalOutcome) -> Permit {
    match outcome.status {
        ApprovalStatus::Approved => Permit::Run(outcome.edited.clone()),
        ApprovalStatus::Answered => Permit::Answered(match outcome.answer.as_ref() {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }),
        ApprovalStatus::Denied => Permit::Refused(denied(outcome.reason.as_deref())),
        ApprovalStatus::Expired => Permit::Refused(ToolError::NotPermitted(
            "the approval expired; the call was not made. Go on without it and say what is missing"
                .to_owned(),
        )),
        ApprovalStatus::Pending | ApprovalStatus::Cancelled | ApprovalStatus::Invalidated => {
            Permit::Refused(ToolError::NotPermitted("the request for approval was closed".to_owned()))
        }
    }
}

fn denied(reason: Option<&str>) -> ToolError {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    ToolError::NotPermitted(format!("a person denied this{reason}. Do not try it again in another way"))
}

fn stopped() -> ToolError {
    ToolError::NotPermitted("a stop was requested before a person decided".to_owned())
}
