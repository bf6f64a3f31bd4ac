//! Who did what: every change, every refusal, with the trace under which more is found.

use baton_core::store::AuditEntry;
use baton_core::{RunId, ThreadId};
use serde_json::{Value, json};

use crate::app::App;
use crate::identity::Principal;
use crate::problem::Answer;
use crate::trace::Trace;

/// Something that a caller did or wanted to do.
#[derive(Debug, Default)]
pub struct Deed<'a> {
    /// `thread.delete`, `artifact.create`, …
    pub action: &'a str,
    pub thread_id: Option<ThreadId>,
    pub run_id: Option<RunId>,
    /// `allowed`, `denied`, or how it ended.
    pub decision: &'a str,
    pub detail: Value,
}

/// Written before the answer is sent: what is not on record did not happen.
pub async fn record(app: &App, caller: &Principal, trace: Option<&Trace>, deed: Deed<'_>) -> Answer<()> {
    let Deed { action, thread_id, run_id, decision, detail } = deed;
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

/// A refusal is on record too. That it cannot be written changes nothing for whoever was refused.
pub async fn refused(app: &App, caller: &Principal, trace: Option<&Trace>, permission: &str, route: &str) {
    let detail = json!({ "permission": permission, "route": route });
    let deed = Deed { action: "permission.refuse", decision: "denied", detail, ..Deed::default() };
    if let Err(problem) = record(app, caller, trace, deed).await {
        tracing::warn!(detail = problem.detail, "a refusal could not be put on record");
    }
}

/// What only a handler knows to demand: whoever does not have it is refused, and that is on record.
pub async fn demand(
    app: &App,
    caller: &Principal,
    trace: &Trace,
    permission: &str,
    route: &str,
) -> Answer<()> {
    let demanded = caller.demand(permission);
    if demanded.is_err() {
        refused(app, caller, Some(trace), permission, route).await;
    }
    demanded
}
