//! The question that a workflow waits with, as a request that stands in the list of approvals.
//!
//! The run that asks ends as every other one: no run waits for the answer. The request is stored with the end of that run
//! ([`ask`]). It is settled by the run of the user's next message ([`settle`]), by an answer to the request itself, which is such a
//! message too, and by the end of the handoff, in the same write ([`closed`]). Each of these changes the handoff, whose version
//! orders them.

use baton_core::agent::{Agent, Slot};
use baton_core::event::{ApprovalEvent, EventKind};
use baton_core::message::{Part, Visibility};
use baton_core::store::{
    Approval, ApprovalKind, ApprovalOutcome, ApprovalPreview, ApprovalRequest, ApprovalStatus,
    HandoffSession, HandoffState, RunRecord,
};
use baton_core::tool::Risk;
use baton_core::workflow::consent::bare;
use baton_core::workflow::{Machine, Waits, label, value};
use baton_core::{RunId, StoreError};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::advance::TOOL_NAME;
use super::reply;
use crate::approvals::request::{approval_id, digest};
use crate::audit;
use crate::failure::Failure;
use crate::input::text_of;
use crate::journal::Record;
use crate::lease::HandoffLease;
use crate::models::ModelRegistry;
use crate::retry::{MAX_RETRIES, RETRY_DELAY, retry};
use crate::run_end::event;
use crate::run_state::RunState;
use crate::scope::Scope;

pub(crate) const YES: &str = "yes";
pub(crate) const NO: &str = "no";

/// What a workflow asks.
#[derive(Debug, PartialEq)]
pub(crate) struct WorkflowQuestion {
    text: String,
    choices: Vec<String>,
    schema: Value,
    /// The value that is asked for.
    key: Option<String>,
    /// Whether the user is to agree to something.
    is_confirmation: bool,
}

impl WorkflowQuestion {
    /// Whether the user is asked for things that people say, such as the triggers of a skill.
    pub(crate) fn takes_requests(&self) -> bool {
        const SAYING: &[&str] = &[
            "say",
            "said",
            "ask",
            "example",
            "examples",
            "request",
            "requests",
            "question",
            "questions",
            "phrase",
            "phrases",
        ];
        bare(&self.text).split(' ').any(|word| SAYING.contains(&word))
    }

    /// Whether the text is one of the choices and nothing else.
    pub(crate) fn is_choice(&self, text: &str) -> bool {
        let text = value::joined(text.trim().trim_end_matches(['.', '!']));
        self.choices.iter().any(|choice| value::joined(choice) == text)
    }

    /// Whether a text can be an answer. A yes or no cannot be distinguished from one to another question.
    pub(crate) fn takes(&self, text: &str) -> bool {
        let is_free = self.choices.is_empty() || value::choice(&self.choices, text).is_some();
        is_free && !self.is_confirmation
    }

    /// The question with its choices.
    pub(crate) fn full_text(&self) -> String {
        let has_choices = !self.choices.is_empty() && self.key.is_some();
        match (self.is_confirmation, has_choices) {
            (true, _) => format!("{} (yes or no)", self.text),
            (false, true) => format!("{} ({})", self.text, self.choices.join(", ")),
            (false, false) => self.text.clone(),
        }
    }
}

/// The question that the workflow of an active handoff waits with.
pub(crate) fn pending(
    models: &ModelRegistry,
    agent: &Agent,
    handoff: &HandoffSession,
) -> Option<WorkflowQuestion> {
    let machine = Machine::read(agent.workflow.as_ref()?, handoff.workflow.as_ref())?;
    let guided = models.guide(agent).and_then(|_| next_slot(&machine));
    question(&machine, guided)
}

/// Whether the message of this run was sent as the answer to the open question, in the list of approvals.
pub(crate) async fn is_answered_by(state: &RunState, handoff: &HandoffSession) -> Result<bool, Failure> {
    let asked = find(state, handoff).await?;
    Ok(asked.is_some_and(|asked| asked.outcome.answer_run_id == Some(state.run_id)))
}

/// Stores the question of the workflow, if its agent holds the thread at the end of the run, with the run's last append. Without
/// effect if the handoff has ended meanwhile.
pub(crate) async fn ask(state: &RunState, record: &RunRecord) -> Result<(), Failure> {
    let Some(lease) = state.progress.lease() else { return Ok(()) };
    let handoff = lease.session();
    if handoff.state != HandoffState::Active {
        return Ok(());
    }
    let mut asked = supersede(state, record, &handoff).await?;
    let agent = state.agents.get(&handoff.target_agent_id);
    let request = agent.and_then(|agent| request(state, agent, &handoff));
    if request.is_none() && asked.closed_approvals.is_empty() {
        return Ok(());
    }
    let id = request.as_ref().map(|request| request.approval_id);
    asked.handoffs.push(lease.change(|handoff| handoff.notes.question = id));
    if let Some(request) = request {
        let mut entry = audit::of_run(record, request.agent.as_str(), "approval.request", "pending");
        entry.detail = detail(&request);
        asked.audit.push(entry);
        asked.events.push(event(record, Visibility::User, kind(request.clone(), ApprovalOutcome::pending())));
        asked.approvals.push(request);
    }
    state.recorder.journal.commit_soon(asked).await;
    Ok(())
}

/// Closes a question that another run has asked while this one was parked.
async fn supersede(
    state: &RunState,
    record: &RunRecord,
    handoff: &HandoffSession,
) -> Result<Record, Failure> {
    let mut record_of_earlier = Record { is_note: true, ..Record::default() };
    let found = find(state, handoff).await?;
    if let Some(earlier) = found.filter(|one| one.outcome.status == ApprovalStatus::Pending) {
        let outcome = ApprovalOutcome::closed(ApprovalStatus::Cancelled);
        record_of_earlier.closed_approvals.push((earlier.request.approval_id, outcome.clone()));
        record_of_earlier.events.push(event(record, Visibility::User, kind(earlier.request, outcome)));
    }
    Ok(record_of_earlier)
}

/// Records that the message of this run answers the open question, unless it is settled already. A message that was sent before
/// the question answers nothing: the question is withdrawn, and asked again at the end of the run. In all cases the subscribers of
/// the thread get the outcome.
pub(crate) async fn settle(
    scope: &Scope,
    record: &RunRecord,
    lease: &HandoffLease,
    message: &[Part],
) -> Result<(), Failure> {
    let Some(asked) = find(&scope.run, &lease.session()).await? else { return Ok(()) };
    let mut settled = Record { is_note: true, ..Record::default() };
    let mut outcome = asked.outcome;
    let is_pending = outcome.status == ApprovalStatus::Pending;
    if is_pending && record.created_at < asked.request.created_at {
        outcome = ApprovalOutcome::closed(ApprovalStatus::Cancelled);
        settled.closed_approvals.push((asked.request.approval_id, outcome.clone()));
    } else if is_pending {
        outcome = answered(record, text_of(message));
        let mut entry =
            audit::of_run(record, record.user_id.as_str(), "approval.decide", outcome.status.word());
        entry.detail = detail(&asked.request);
        settled.audit.push(entry);
        settled.closed_approvals.push((asked.request.approval_id, outcome.clone()));
    }
    settled.events.push(event(record, Visibility::User, kind(asked.request, outcome)));
    settled.handoffs.push(lease.change(|handoff| handoff.notes.question = None));
    scope.run.recorder.journal.commit_soon(settled).await;
    Ok(())
}

/// The event for a question that the end of its handoff has closed.
pub(crate) async fn closed(scope: &Scope, handoff: &HandoffSession) -> Result<Option<EventKind>, Failure> {
    let Some(Approval { request, mut outcome, .. }) = find(&scope.run, handoff).await? else {
        return Ok(None);
    };
    // The end may not be committed yet. The store closes the question with it.
    if outcome.status == ApprovalStatus::Pending {
        outcome = ApprovalOutcome::closed(ApprovalStatus::Cancelled);
    }
    Ok(Some(kind(request, outcome)))
}

async fn find(state: &RunState, handoff: &HandoffSession) -> Result<Option<Approval>, Failure> {
    let Some(question) = handoff.notes.question else { return Ok(None) };
    match retry(MAX_RETRIES, RETRY_DELAY, || state.store.approval(question)).await {
        // Without the request the workflow goes on, and asks again.
        Err(StoreError::NotFound(_) | StoreError::Unreadable(_)) => Ok(None),
        found => Ok(Some(found?)),
    }
}

fn answered(record: &RunRecord, text: String) -> ApprovalOutcome {
    ApprovalOutcome {
        decided_at: Some(Timestamp::now()),
        decided_by: Some(record.user_id.clone()),
        answer: Some(Value::String(text)),
        answer_run_id: Some(record.run_id),
        ..ApprovalOutcome::closed(ApprovalStatus::Answered)
    }
}

fn kind(request: ApprovalRequest, outcome: ApprovalOutcome) -> EventKind {
    EventKind::Approval(Box::new(ApprovalEvent { request, outcome }))
}

fn detail(request: &ApprovalRequest) -> Value {
    json!({
        "approval_id": request.approval_id, "path": request.path, "tool": request.tool, "digest": request.digest,
    })
}

fn request(state: &RunState, agent: &Agent, handoff: &HandoffSession) -> Option<ApprovalRequest> {
    let asked = pending(&state.models, agent, handoff)?;
    let machine = Machine::read(agent.workflow.as_ref()?, handoff.workflow.as_ref())?;
    let expiry = state.extensions.approvals.of(&state.caller.tenant).expiry;
    let created_at = Timestamp::now();
    let default_expiry = SignedDuration::try_from(expiry).unwrap_or(SignedDuration::MAX);
    let expires_at = handoff.expires_at.or_else(|| created_at.saturating_add(default_expiry).ok());
    let expires_at = expires_at.unwrap_or(Timestamp::MAX);
    // As exact as the handoff is stored.
    let expires_at = Timestamp::from_microsecond(expires_at.as_microsecond()).unwrap_or(expires_at);
    Some(build(state.run_id, agent, handoff, machine.name(), asked, (created_at, expires_at)))
}

fn build(
    run: RunId,
    agent: &Agent,
    handoff: &HandoffSession,
    state: &str,
    asked: WorkflowQuestion,
    (created_at, expires_at): (Timestamp, Timestamp),
) -> ApprovalRequest {
    let mut arguments = json!({ "state": state, "question": asked.text });
    match asked.key {
        Some(key) => arguments["key"] = Value::String(key),
        None if asked.is_confirmation => arguments["confirm"] = Value::Bool(true),
        None => {}
    }
    let (path, digest) = (format!("{}/workflow:{state}", agent.name), digest(TOOL_NAME, &arguments));
    ApprovalRequest {
        approval_id: approval_id(run, &path, &digest),
        kind: ApprovalKind::Question,
        path,
        agent: agent.name.clone(),
        // The tool that records the answer. It distinguishes these questions from those of `ask_user`.
        tool: TOOL_NAME.to_owned(),
        arguments,
        digest,
        risk: Risk::Low,
        preview: ApprovalPreview { heading: asked.text, fields: Vec::new() },
        schema: asked.schema,
        choices: asked.choices,
        handoff_id: Some(handoff.handoff_id),
        created_at,
        expires_at,
    }
}

/// Whether a no answers the question.
pub(crate) fn is_confirmation(request: &ApprovalRequest) -> bool {
    request.is_workflow_question() && request.arguments["confirm"] == true
}

/// `guided` is the value that a guide asks for: it asks for optional ones too, before it goes on.
fn question(machine: &Machine<'_>, guided: Option<&Slot>) -> Option<WorkflowQuestion> {
    let text = json!({ "type": "string", "minLength": 1 });
    let free = |text_asked: String, choices: Vec<String>| WorkflowQuestion {
        text: text_asked,
        choices,
        schema: text.clone(),
        key: None,
        is_confirmation: false,
    };
    match machine.waits() {
        Waits::Values(_) | Waits::Confirm(_) | Waits::Onward(_) | Waits::Choice(_) if guided.is_some() => {
            guided.map(of_slot)
        }
        Waits::Values(slots) => slots.first().copied().map(of_slot),
        Waits::Confirm(question) => Some(WorkflowQuestion {
            is_confirmation: true,
            ..free(question.to_owned(), vec![YES.to_owned(), NO.to_owned()])
        }),
        Waits::Choice(ways) => {
            let ways = ways.iter().map(|way| label(&way.0)).collect();
            Some(free(reply::question(machine)?, ways))
        }
        Waits::Change(_) => Some(free(reply::question(machine)?, Vec::new())),
        Waits::Tool(_) | Waits::Onward(_) | Waits::Done => None,
    }
}

/// The value that a guide asks for next: the one that the person wants to change, or the first that is open.
fn next_slot<'a>(machine: &Machine<'a>) -> Option<&'a Slot> {
    let named = machine.data.asked.as_ref().and_then(|key| machine.slot(key));
    named.or_else(|| machine.open().first().copied())
}

fn of_slot(slot: &Slot) -> WorkflowQuestion {
    let mut schema = json!({ "type": "string", "minLength": 1, "maxLength": value::MOST_CHARS });
    if !slot.choices.is_empty() {
        schema = json!({ "type": "string", "enum": slot.choices });
    }
    WorkflowQuestion {
        text: slot.ask.clone(),
        choices: slot.choices.clone(),
        schema,
        key: Some(slot.key.clone()),
        is_confirmation: false,
    }
}
