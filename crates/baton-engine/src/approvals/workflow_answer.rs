//! A decision about a workflow's question: its answer is the user's next message.

use std::sync::Arc;

use baton_core::message::Part;
use baton_core::store::{Approval, ApprovalStatus, Decision, OnBusy, RunLimits};
use baton_core::{Rights, RunId, StoreError, TenantId};
use serde_json::Value;
use uuid::Uuid;

use super::decide::DecideError;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::request::{Overrides, RunCaller, RunRequest, SubmitOptions};
use crate::task::RunTask;
use crate::workers::new_run;
use crate::workflow::question::NO;

impl Engine {
    /// Accepts the answer as a message and settles the question in the same write. Refused while the thread is busy: the answer
    /// would reach the workflow after another message, in another state.
    pub(super) async fn answer_workflow(
        self: &Arc<Self>,
        tenant: &TenantId,
        asked: &Approval,
        decision: Decision,
        rights: Rights,
        limits: RunLimits,
    ) -> Result<Approval, DecideError> {
        if decision.by != asked.user_id {
            return Err(DecideError::NotTheUser);
        }
        let store = self.parts.store.tenant(tenant);
        let caller =
            RunCaller { tenant: tenant.clone(), user: decision.by.clone(), thread_id: asked.thread_id };
        let request = RunRequest {
            caller,
            agent: asked.request.agent.clone(),
            input: vec![Part::text(text(&decision))],
            overrides: Overrides::default(),
            on_busy: OnBusy::Reject,
            entry: None,
            task: RunTask::Answer,
            rights,
            trace: None,
            metadata: None,
        };
        self.check(&request).map_err(DecideError::Message)?;
        let options = SubmitOptions { idempotency: decision.idempotency.clone(), limits };
        let mut new = new_run(RunId::from_uuid(Uuid::now_v7()), request, options).map_err(refusal)?;
        new.run.unless_asked = false;
        new.run.answers = Some(Box::new(decision));
        let key = (tenant.clone(), asked.thread_id);
        let accepted = self.accept_and_work(key, new).await.unwrap_or(Err(Failure::Cancelled));
        let now = store.approval(asked.request.approval_id).await?;
        match accepted {
            Ok(_) => Ok(now),
            Err(Failure::Store(StoreError::Conflict(_))) => Err(DecideError::Settled(Box::new(now))),
            Err(failure) => Err(refusal(failure)),
        }
    }
}

fn refusal(failure: Failure) -> DecideError {
    match failure {
        Failure::Store(error) => DecideError::Store(error),
        other => DecideError::Message(other),
    }
}

/// The answer as the user would write it.
fn text(decision: &Decision) -> String {
    match (&decision.answer, &decision.reason) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(other), _) => other.to_string(),
        (None, Some(reason)) if decision.status == ApprovalStatus::Denied => format!("{NO}, {reason}"),
        (None, _) => NO.to_owned(),
    }
}
