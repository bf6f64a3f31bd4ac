//! Audit entries of a run: who started and ended it, and which agent invoked which. Entries never contain message text.
//!
//! Each entry is written in the same append as its step, so both are stored together and once.

use baton_core::store::{AuditEntry, RunRecord, StepKind, StepState};
use baton_core::{AgentName, TraceParent};
use serde_json::{Value, json};

use crate::bounds::{InvocationError, InvocationKind};
use crate::failure::Failure;
use crate::handoff::ExitRequest;
use crate::journal::Record;
use crate::outcome::Outcome;
use crate::request::StoredRequest;
use crate::run_state::RunState;
use crate::scope::Scope;
use crate::task::RunTask;

pub(crate) const ALLOWED: &str = "allowed";
pub(crate) const DENIED: &str = "denied";

/// The start of a run. The actor is the user. The request is taken from `request`: `record` need not contain it.
pub(crate) fn start(record: &RunRecord, request: &StoredRequest) -> AuditEntry {
    let mut detail = json!({ "agent": record.agent, "task": request.task.word() });
    if let RunTask::Delegate(delegation) = &request.task {
        detail["agents"] = json!(delegation.agents);
        detail["strategy"] = json!(delegation.strategy);
    }
    let entry = of_run(record, record.user_id.as_str(), "run.start", ALLOWED);
    let trace_id = request.trace.as_ref().map(TraceParent::trace_id);
    AuditEntry { on_behalf_of: None, trace_id, detail, ..entry }
}

/// An entry about the run as a whole.
pub(crate) fn of_run(record: &RunRecord, actor: &str, action: &str, decision: &str) -> AuditEntry {
    AuditEntry {
        actor: actor.to_owned(),
        on_behalf_of: Some(record.user_id.to_string()),
        action: action.to_owned(),
        thread_id: Some(record.thread_id),
        run_id: Some(record.run_id),
        decision: decision.to_owned(),
        trace_id: StoredRequest::trace_of(&record.request).map(|trace| trace.trace_id()),
        ..AuditEntry::default()
    }
}

/// A change of a handoff that a caller requested from outside of a run.
pub(crate) fn requested(exit: &ExitRequest, action: &str, detail: Value) -> AuditEntry {
    AuditEntry {
        actor: exit.caller.user.to_string(),
        action: action.to_owned(),
        thread_id: Some(exit.caller.thread_id),
        decision: ALLOWED.to_owned(),
        trace_id: exit.trace.as_ref().map(TraceParent::trace_id),
        address: exit.address.clone(),
        detail,
        ..AuditEntry::default()
    }
}

/// The audit decision for the end of a session.
pub(crate) fn decision(result: &Result<Outcome, Failure>) -> &'static str {
    match result {
        Ok(_) => "completed",
        Err(Failure::Cancelled) => "cancelled",
        Err(_) => "failed",
    }
}

/// `by` invokes the scope's agent. Each invocation has two entries, one for its start and one for its end. Both carry the
/// same path, which no other invocation has. Returns `None` for the root session.
pub(crate) fn involved(
    scope: &Scope,
    by: &AgentName,
    decision: &str,
    code: Option<&str>,
) -> Option<AuditEntry> {
    let mut detail = json!({ "from": by, "to": scope.name(), "path": scope.path() });
    if let Some(code) = code {
        detail["code"] = json!(code);
    }
    mark_unmasked(&scope.run, [by, scope.name()], &mut detail);
    Some(entry(&scope.run, by, scope.session.bounds.invocation?.action(), decision, detail))
}

/// Records that `by` may not invoke `to` from here, unless an earlier attempt of the run has recorded it.
pub(crate) async fn refuse(
    scope: &Scope,
    by: &AgentName,
    to: &AgentName,
    invocation: InvocationKind,
    refusal: &InvocationError,
) {
    let place = scope.at(&format!("refused:{to}"));
    if scope.run.recorder.steps.contains_key(place.path()) {
        return;
    }
    let path = format!("{}/{}:{to}", scope.path(), invocation.word());
    let detail = json!({ "from": by, "to": to, "path": path, "code": refusal.code() });
    let audit = vec![entry(&scope.run, by, invocation.action(), DENIED, detail)];
    // Serializing `Null` cannot fail.
    let steps = place.step().build(StepKind::Note, StepState::Finished, &Value::Null).into_iter().collect();
    scope.run.recorder.journal.commit_soon(Record { steps, audit, ..Record::default() }).await;
}

/// The scope's agent has agents to delegate to, but the user lacks `permission`.
pub(crate) fn denied(scope: &Scope, permission: &str) -> AuditEntry {
    let detail = json!({ "from": scope.name(), "path": scope.path(), "permission": permission });
    entry(&scope.run, scope.name(), InvocationKind::Delegate.action(), DENIED, detail)
}

/// An entry about an approval of the scope's agent.
pub(crate) fn approval(scope: &Scope, action: &str, decision: &str, detail: Value) -> AuditEntry {
    entry(&scope.run, scope.name(), action, decision, detail)
}

/// An entry about a handoff.
pub(crate) fn of_handoff(
    run: &RunState,
    actor: &AgentName,
    action: &str,
    decision: &str,
    mut detail: Value,
) -> AuditEntry {
    mark_unmasked(run, [actor, actor], &mut detail);
    entry(run, actor, action, decision, detail)
}

/// Adds `unmasked` with those of the two agents whose files set `sanitize: false`: they pass on personal data as it is.
fn mark_unmasked(run: &RunState, agents: [&AgentName; 2], detail: &mut Value) {
    let is_unmasked = |name: &&AgentName| run.agents.get(*name).is_some_and(|agent| !agent.sanitize);
    let mut unmasked: Vec<&AgentName> = agents.into_iter().filter(is_unmasked).collect();
    unmasked.dedup();
    if !unmasked.is_empty() {
        detail["unmasked"] = json!(unmasked);
    }
}

/// A guardrail of the scope's agent refused a text.
pub(crate) fn guardrail(scope: &Scope, side: &str, check: &str) -> AuditEntry {
    let detail = json!({ "agent": scope.name(), "path": scope.path(), "check": check });
    entry(&scope.run, scope.name(), &format!("guardrail.{side}"), DENIED, detail)
}

fn entry(run: &RunState, actor: &AgentName, action: &str, decision: &str, detail: Value) -> AuditEntry {
    AuditEntry {
        actor: actor.to_string(),
        on_behalf_of: Some(run.caller.user.to_string()),
        action: action.to_owned(),
        thread_id: Some(run.caller.thread_id),
        run_id: Some(run.run_id),
        decision: decision.to_owned(),
        trace_id: run.request.trace.as_ref().map(TraceParent::trace_id),
        address: None,
        detail,
    }
}
