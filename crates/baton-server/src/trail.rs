//! Audit records of changes and refusals, with their trace id.

use baton_core::store::AuditEntry;
use baton_core::{RunId, ThreadId};
use serde_json::{Value, json};

use crate::app::App;
use crate::identity::Principal;
use crate::problem::ApiResult;
use crate::trace::Trace;

/// An action that a caller performed or attempted.
#[derive(Debug, Default)]
pub struct AuditRecord<'a> {
    /// `thread.delete`, `artifact.create`, …
    pub action: &'a str,
    pub thread_id: Option<ThreadId>,
    pub run_id: Option<RunId>,
    /// `allowed`, `denied`, or the outcome.
    pub decision: &'a str,
    pub detail: Value,
}

/// Writes an audit record before the response is sent. If this fails, the request fails.
pub async fn record(
    app: &App,
    caller: &Principal,
    trace: Option<&Trace>,
    audit_record: AuditRecord<'_>,
) -> ApiResult<()> {
    let AuditRecord { action, thread_id, run_id, decision, detail } = audit_record;
    let entry = AuditEntry {
        actor: caller.user.to_string(),
        on_behalf_of: None,
        action: action.to_owned(),
        thread_id,
        run_id,
        decision: decision.to_owned(),
        trace_id: trace.map(|trace| trace.0.trace_id()),
        detail,
    };
    app.data(caller).record(entry).await.map_err(Into::into)
}

/// Records a refusal. A failure to write it is only logged.
pub async fn refused(app: &App, caller: &Principal, trace: Option<&Trace>, permission: &str, route: &str) {
    let detail = json!({ "permission": permission, "route": route });
    let audit_record =
        AuditRecord { action: "permission.refuse", decision: "denied", detail, ..AuditRecord::default() };
    if let Err(problem) = record(app, caller, trace, audit_record).await {
        tracing::warn!(detail = problem.detail, "a refusal could not be put on record");
    }
}

/// Checks a permission that only the handler knows, and records a refusal.
pub async fn demand(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    permission: &str,
    route: &str,
) -> ApiResult<()> {
    let demanded = caller.demand(permission);
    if demanded.is_err() {
        refused(app, caller, Some(trace), permission, route).await;
    }
    demanded
}
