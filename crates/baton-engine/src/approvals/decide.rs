//! Decisions of people about what runs wait for.

use std::sync::Arc;

use baton_core::store::run::Idempotency;
use baton_core::store::{Approval, ApprovalKind, ApprovalRequest, ApprovalStatus, Decision, RunLimits};
use baton_core::{Rights, RunId, StoreError, TenantId, ThreadId, UserId};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::{Engine, RunHandle};
use crate::failure::Failure;
use crate::listener::Listener;
use crate::registry::{Waiter, WorkerLifetime};
use crate::workers::EVENT_QUEUE;
use crate::workflow::question;
use crate::{compile_cache, json};

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    Deny,
}

/// A decision as a person gives it. [`Engine::decide`] validates it.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionInput {
    pub verdict: Verdict,
    pub reason: Option<String>,
    /// With an approval of a call: the arguments to use instead.
    pub arguments: Option<Value>,
    /// Whether the decision also holds for later calls of the tool in the thread.
    pub remember: bool,
    /// With an approval of a question: its answer.
    pub answer: Option<Value>,
    /// The digest of what the person has seen, if the client sends it.
    pub digest: Option<String>,
    /// The same request is not processed twice.
    pub idempotency: Option<Idempotency>,
    /// For the audit trail.
    pub trace_id: Option<String>,
    /// With the answer to a workflow's question, which is a message: the rights of its run.
    pub rights: Rights,
    /// The same: how many runs may be active.
    pub limits: RunLimits,
}

impl DecisionInput {
    /// A decision with all rights and without limits.
    pub fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            reason: None,
            arguments: None,
            remember: false,
            answer: None,
            digest: None,
            idempotency: None,
            trace_id: None,
            rights: Rights::all(),
            limits: RunLimits::default(),
        }
    }
}

/// Why a decision is refused.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DecideError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was decided before, has expired, or was withdrawn. Contains the approval as it is.
    #[error("{}", settled_text(.0))]
    Settled(Box<Approval>),
    /// The call is not the one that the person has seen.
    #[error("the call has changed since it was shown: look at it again")]
    Changed(Box<Approval>),
    /// The arguments or the answer are invalid. `pointer` is a JSON pointer into the decision.
    #[error("{pointer}: {detail}")]
    Invalid { pointer: String, detail: String },
    /// The answer to a workflow's question is a message of the thread's user, so only they can give it.
    #[error("only the user of the conversation can answer its workflow")]
    NotTheUser,
    /// The message with the answer is refused.
    #[error(transparent)]
    Message(Failure),
}

fn settled_text(approval: &Approval) -> String {
    match approval.outcome.status {
        ApprovalStatus::Expired => "the approval expired; the call was not made".to_owned(),
        ApprovalStatus::Cancelled => {
            "withdrawn: its result is no longer needed, or the run has ended".to_owned()
        }
        status => format!("this was decided before: it is {status}"),
    }
}

impl Engine {
    /// Decides about a call or a question and wakes a worker for its run. Does not check whether `by` may decide. The answer to a
    /// workflow's question is accepted as the user's next message, whose run is [`ApprovalOutcome::answer_run_id`](baton_core::store::ApprovalOutcome::answer_run_id).
    ///
    /// The decision is stored when this returns. If the run is still busy with other calls, it finds the decision when it parks.
    pub async fn decide(
        self: &Arc<Self>,
        tenant: &TenantId,
        approval_id: Uuid,
        by: &UserId,
        input: DecisionInput,
    ) -> Result<Approval, DecideError> {
        let store = self.parts.store.tenant(tenant);
        let asked = store.approval(approval_id).await?;
        let (rights, limits) = (input.rights.clone(), input.limits);
        let decision = check_decision(&asked, by, input)?;
        if asked.request.is_workflow_question() {
            return Box::pin(self.answer_workflow(tenant, &asked, decision, rights, limits)).await;
        }
        let decided = match store.decide(decision).await {
            Err(StoreError::Conflict(_)) => {
                return Err(DecideError::Settled(Box::new(store.approval(approval_id).await?)));
            }
            decided => decided?,
        };
        self.wake_decided(tenant, decided.thread_id);
        Ok(decided)
    }

    /// Wakes a worker for a run that a decision has made claimable. A process that only serves its own callers leaves it to
    /// them: see [`Engine::attend`].
    pub(crate) fn wake_decided(self: &Arc<Self>, tenant: &TenantId, thread: ThreadId) {
        if self.parts.worker_lifetime == WorkerLifetime::UntilDone {
            self.wake_thread(tenant, thread);
        }
    }

    /// Waits for the next end of a stored run: until it has finished, or waits for another decision. Delivers the events with a
    /// number above `after`. This process executes the run if no other one does. Must be called within a runtime.
    pub fn attend(
        self: &Arc<Self>,
        tenant: &TenantId,
        thread: ThreadId,
        run: RunId,
        after: u64,
    ) -> RunHandle {
        let (events, heard) = mpsc::channel(EVENT_QUEUE);
        let (end, ended) = oneshot::channel();
        let cancel = CancellationToken::new();
        let listener = Listener::new(events, cancel.clone());
        listener.start_after(after);
        let key = (tenant.clone(), thread);
        let waiting = Waiter { key: key.clone(), listener, end, is_accepted: true, is_cancel_asked: false };
        self.workers.wait_again(run, waiting);
        drop(self.wake(key, self.parts.worker_lifetime, None));
        RunHandle { id: run, events: heard, cancel, end: ended }
    }
}

/// Makes a valid decision of the input, or says what is wrong with it. Stores nothing, so that several decisions can be checked
/// before the first one is made.
pub fn check_decision(asked: &Approval, by: &UserId, input: DecisionInput) -> Result<Decision, DecideError> {
    let is_seen = input.digest.as_ref().is_none_or(|digest| *digest == asked.request.digest);
    match asked.outcome.status {
        ApprovalStatus::Pending if is_seen => {}
        ApprovalStatus::Pending | ApprovalStatus::Invalidated => {
            return Err(DecideError::Changed(Box::new(asked.clone())));
        }
        _ => return Err(DecideError::Settled(Box::new(asked.clone()))),
    }
    let request = &asked.request;
    let (is_question, approves) = (request.kind == ApprovalKind::Question, input.verdict == Verdict::Approve);
    refuse_if(
        input.arguments.is_some() && (is_question || !approves),
        "/arguments",
        "only for a call that is approved",
    )?;
    refuse_if(
        input.answer.is_some() && !(is_question && approves),
        "/answer",
        "only for a question that is answered",
    )?;
    refuse_if(input.remember && is_question, "/remember", "an answer is not remembered")?;
    refuse_if(
        request.is_workflow_question() && !approves && !question::is_confirmation(request),
        "/decision",
        "a workflow's question is answered, or stays open until its agent is left",
    )?;
    refuse_if(
        input.remember && input.arguments.is_some(),
        "/remember",
        "a decision with other arguments is for this call only",
    )?;
    if let Some(edited) = &input.arguments {
        validate(&request.schema, edited, "/arguments")?;
    }
    let answer = input.answer.map(|answer| normalized(request, answer));
    match &answer {
        Some(answer) => validate(&request.schema, answer, "/answer")?,
        None => refuse_if(is_question && approves, "/answer", "the question needs an answer")?,
    }
    let status = match input.verdict {
        Verdict::Deny => ApprovalStatus::Denied,
        Verdict::Approve if is_question => ApprovalStatus::Answered,
        Verdict::Approve => ApprovalStatus::Approved,
    };
    Ok(Decision {
        approval_id: request.approval_id,
        status,
        by: by.clone(),
        reason: input.reason,
        edited: input.arguments,
        answer,
        remember: input.remember,
        message: None,
        idempotency: input.idempotency,
        trace_id: input.trace_id,
    })
}

fn refuse_if(is_wrong: bool, pointer: &str, detail: &str) -> Result<(), DecideError> {
    if !is_wrong {
        return Ok(());
    }
    Err(DecideError::Invalid { pointer: pointer.to_owned(), detail: detail.to_owned() })
}

/// Validates a value against a stored schema. The first mistake is reported with its position.
pub(super) fn validate(schema: &Value, value: &Value, pointer: &str) -> Result<(), DecideError> {
    let invalid =
        |at: String, detail: String| DecideError::Invalid { pointer: format!("{pointer}{at}"), detail };
    json::parse(&value.to_string()).map_err(|error| invalid(String::new(), error))?;
    let validator = compile_cache::validator(schema)
        .map_err(|error| invalid(String::new(), format!("the schema is invalid: {error}")))?;
    match validator.iter_errors(value).next() {
        Some(error) => Err(invalid(error.instance_path().to_string(), error.to_string())),
        None => Ok(()),
    }
}

/// An answer that names one of the choices, by its text in any case or by its number, is that choice.
pub(super) fn normalized(request: &ApprovalRequest, answer: Value) -> Value {
    let Some(text) = answer.as_str().map(str::trim) else { return answer };
    let number = text.parse::<usize>().ok().and_then(|number| request.choices.get(number.checked_sub(1)?));
    let named = request.choices.iter().find(|choice| choice.eq_ignore_ascii_case(text));
    Value::String(named.or(number).cloned().unwrap_or_else(|| text.to_owned()))
}
