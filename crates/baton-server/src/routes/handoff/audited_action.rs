//! A requested change of a handoff. The engine stores its audit entry with the change; a refusal is recorded here.

use baton_core::ThreadId;
use baton_engine::Failure;
use serde_json::json;

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

    pub(super) async fn finish<T>(self, result: Result<T, Failure>) -> ApiResult<T> {
        match result {
            Ok(done) => Ok(done),
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
                let audit_record = AuditRecord {
                    action: self.action,
                    thread_id: Some(self.thread_id),
                    run_id: None,
                    decision: "denied",
                    detail: json!({ "code": other.code() }),
                };
                if let Err(problem) =
                    trail::record(self.app, self.caller, Some(self.trace), audit_record).await
                {
                    tracing::warn!(
                        detail = problem.detail,
                        "a refusal could not be recorded in the audit trail"
                    );
                }
            }
        }
        failure.into()
    }
}
