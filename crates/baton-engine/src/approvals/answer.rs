//! A message that answers the only question of its thread that a run waits for.

use std::sync::Arc;

use baton_core::message::{IncludedParts, Message, parts_to_text};
use baton_core::store::{
    AcceptedRun, Approval, ApprovalKind, ApprovalRequest, ApprovalStatus, Decision, NewRun,
};
use baton_core::{StoreError, TenantStore};
use serde_json::Value;

use super::decide::{normalized, validate};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::input::text_of;
use crate::intent::is_exit;
use crate::json;
use crate::live::ThreadKey;

impl Engine {
    /// Answers the open question with the message of `run`. Returns `None` if it was settled meanwhile or the user leaves a handoff
    /// with an exit word, so that the message is an ordinary one.
    pub(crate) async fn answer_question(
        self: &Arc<Self>,
        key: &ThreadKey,
        run: &NewRun,
    ) -> Result<Option<AcceptedRun>, Failure> {
        let store = self.parts.store.tenant(&key.0);
        let open = store.open_approvals(run.thread_id).await?;
        let mut questions = open.into_iter().filter(|one| is_awaited(&one.request));
        let (Some(asked), None) = (questions.next(), questions.next()) else { return Ok(None) };
        if self.leaves(&*store, run).await? {
            return Ok(None);
        }
        let decision = decision(&asked, run)?;
        // Events of the resumed run have higher numbers.
        let after = store.thread(run.thread_id, None).await?.last_seq;
        match store.decide(decision).await {
            Ok(_) => {}
            Err(StoreError::Conflict(_) | StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let (run_id, message_id) = (asked.run_id, run.message.id);
        Ok(Some(AcceptedRun { run_id, message_id, is_new: true, behind: None, after }))
    }
}

impl Engine {
    /// Whether the message is an exit word of the agent that holds the thread.
    async fn leaves(&self, store: &dyn TenantStore, run: &NewRun) -> Result<bool, Failure> {
        let Some(open) = store.open_handoff_of(run.thread_id).await? else { return Ok(false) };
        let agents = self.agents(store.tenant());
        let holder = agents.get(&open.target_agent_id);
        let terms = holder.and_then(|holder| holder.accepts_handoff.as_ref());
        Ok(terms.is_some_and(|terms| is_exit(&terms.exit_words, &text_of(&run.message.parts))))
    }
}

/// Whether a run waits for the answer.
fn is_awaited(request: &ApprovalRequest) -> bool {
    request.kind == ApprovalKind::Question && !request.is_workflow_question()
}

fn decision(asked: &Approval, run: &NewRun) -> Result<Decision, Failure> {
    let answer = answer(&asked.request, &parts_to_text(&run.message.parts, IncludedParts::Text))?;
    Ok(Decision {
        approval_id: asked.request.approval_id,
        status: ApprovalStatus::Answered,
        by: run.user_id.clone(),
        reason: None,
        edited: None,
        answer: Some(answer),
        remember: false,
        message: Some(Message { run_id: asked.run_id, ..run.message.clone() }),
        idempotency: run.idempotency.clone(),
        trace_id: None,
    })
}

/// The text as the answer to a question: as it is if the schema wants text, otherwise as JSON.
fn answer(request: &ApprovalRequest, text: &str) -> Result<Value, Failure> {
    let wants_text = request.schema.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "string");
    let answer = if wants_text {
        normalized(request, Value::String(text.trim().to_owned()))
    } else {
        let not_json =
            |error| Failure::InvalidAnswer(format!("the answer has to be JSON of the form: {error}"));
        json::parse(text.trim()).map_err(not_json)?
    };
    validate(&request.schema, &answer, "").map_err(|error| Failure::InvalidAnswer(error.to_string()))?;
    Ok(answer)
}
