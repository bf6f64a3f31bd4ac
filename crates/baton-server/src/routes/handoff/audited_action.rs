//! A requested change of a handoff and its outcome: both are audited.

use baton_core::{RunId, ThreadId};
use baton_engine::Failure;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Problem};
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};

pub(super) struct AuditedAction<'a> {
    app: &'a App,
    caller: &'a Caller,
    trace: &'a Trace,
    thread_id: ThreadId,
    action: &'static str,
}

impl<'a> AuditedAction<'a> {
    pub(super) fn new(
        app: &'a App,
        caller: &'a Caller,
        trace: &'a Trace,
        thread_id: ThreadId,
        action: &'static str,
    ) -> Self {
        Self { app, caller, trace, thread_id, action }
    }

    /// Written before it is announced. `about` may name the run that announces it.
    pub(super) async fn finish<T>(
        self,
        result: Result<T, Failure>,
        about: impl FnOnce(&T) -> Value,
    ) -> ApiResult<T> {
        match result {
            Ok(done) => {
                self.record("allowed", about(&done)).await?;
                Ok(done)
            }
            Err(failure) => Err(self.refused(failure).await),
        }
    }

    async fn refused(&self, failure: Failure) -> Problem {
        match &failure {
            // A change that the store cannot take cannot be audited either, and a foreign thread is not mentioned.
            Failure::Store(_) => {}
            Failure::NotAllowed(permission) => {
                trail::refused(self.app, self.caller, Some(self.trace), permission, self.action).await;
            }
            other => {
                let detail = json!({ "code": other.code() });
                if let Err(problem) = self.record("denied", detail).await {
                    tracing::warn!(detail = problem.detail, "a refusal could not be put on record");
                }
            }
        }
        failure.into()
    }

    async fn record(&self, decision: &str, detail: Value) -> ApiResult<()> {
        let run_id = detail.get("run_id").and_then(|run| RunId::deserialize(run).ok());
        let thread_id = Some(self.thread_id);
        let audit_record = AuditRecord { action: self.action, thread_id, run_id, decision, detail };
        trail::record(self.app, self.caller, Some(self.trace), audit_record).await
    }
}
