//! Who did what in a run, for the trail: who began and ended it, and who involved whom. Never what was said.
//!
//! Each entry is written with the step that it belongs to, so it is there exactly when the step is, and once.

use baton_core::store::{AuditEntry, RunRecord, StepKind, StepState};
use baton_core::{AgentName, TraceParent};
use serde_json::{Value, json};

use crate::bounds::{Edge, Refusal};
use crate::engine::Request;
use crate::failure::Failure;
use crate::journal::Record;
use crate::outcome::Outcome;
use crate::scope::{RunState, Scope};
use crate::task::Task;

pub(crate) const ALLOWED: &str = "allowed";
pub(crate) const DENIED: &str = "denied";

/// The run begins, because a person asked for it.
pub(crate) fn start(record: &RunRecord, task: &Task) -> AuditEntry {
    let mut detail = json!({ "agent": record.agent, "task": task.word() });
    if let Task::Delegate(delegation) = task {
        detail["agents"] = json!(delegation.agents);
        detail["strategy"] = json!(delegation.strategy);
    }
    let entry = of_run(record, record.user_id.as_str(), "run.start", ALLOWED);
    AuditEntry { on_behalf_of: None, detail, ..entry }
}

/// Something that happens to a run as a whole.
pub(crate) fn of_run(record: &RunRecord, actor: &str, action: &str, decision: &str) -> AuditEntry {
    AuditEntry {
        actor: actor.to_owned(),
        on_behalf_of: Some(record.user_id.to_string()),
        action: action.to_owned(),
        thread_id: Some(record.thread_id),
        run_id: Some(record.run_id),
        decision: decision.to_owned(),
        trace_id: Request::trace_of(&record.request).map(|trace| trace.trace_id()),
        detail: Value::Null,
    }
}

/// How somebody's part ended, in the words of the trail.
pub(crate) fn decision(result: &Result<Outcome, Failure>) -> &'static str {
    match result {
        Ok(_) => "completed",
        Err(Failure::Cancelled) => "cancelled",
        Err(_) => "failed",
    }
}

impl Scope {
    /// `by` involves the scope's agent. There are two entries for each involvement, one for its beginning and one for its end; their
    /// path is the same, and nobody else's.
    pub(crate) fn involved(&self, by: &AgentName, decision: &str, code: Option<&str>) -> Option<AuditEntry> {
        let mut detail = json!({ "from": by, "to": self.name(), "path": self.path() });
        if let Some(code) = code {
            detail["code"] = json!(code);
        }
        Some(entry(&self.run, by, self.bounds.edge?.action(), decision, detail))
    }

    /// `by` wanted to involve an agent from here, and may not. On record once for each place.
    pub(crate) async fn refuse(&self, by: &AgentName, to: &AgentName, edge: Edge, refusal: &Refusal) {
        let place = self.at(&format!("refused:{to}"));
        if self.run.steps.contains_key(place.path()) {
            return;
        }
        let path = format!("{}/{}:{to}", self.path(), edge.word());
        let detail = json!({ "from": by, "to": to, "path": path, "code": refusal.code() });
        let audit = vec![entry(&self.run, by, edge.action(), DENIED, detail)];
        // A note without data can always be written.
        let steps = place.step(StepKind::Note, StepState::Finished, &Value::Null).into_iter().collect();
        self.run.journal.keep_soon(Record { steps, audit, ..Record::default() }).await;
    }

    /// The scope's agent has others it could ask, and may not ask them, because the person lacks a permission.
    pub(crate) fn denied(&self, permission: &str) -> AuditEntry {
        let detail = json!({ "from": self.name(), "path": self.path(), "permission": permission });
        entry(&self.run, self.name(), Edge::Delegate.action(), DENIED, detail)
    }
}

/// A thread goes from hand to hand.
pub(crate) fn of_handoff(
    run: &RunState,
    actor: &AgentName,
    action: &str,
    decision: &str,
    detail: Value,
) -> AuditEntry {
    entry(run, actor, action, decision, detail)
}

fn entry(run: &RunState, actor: &AgentName, action: &str, decision: &str, detail: Value) -> AuditEntry {
    AuditEntry {
        actor: actor.to_string(),
        on_behalf_of: Some(run.caller.user.to_string()),
        action: action.to_owned(),
        thread_id: Some(run.caller.thread_id),
        run_id: Some(run.run_id),
        decision: decision.to_owned(),
        trace_id: run.trace.as_ref().map(TraceParent::trace_id),
        detail,
    }
}
