//! A question of a remote agent, for which the run waits.

use baton_core::event::{ApprovalEvent, EventKind};
use baton_core::message::Visibility;
use baton_core::remote::{RemoteEnd, RemoteState, RemoteTask};
use baton_core::store::{
    Approval, ApprovalKind, ApprovalOutcome, ApprovalPreview, ApprovalRequest, ApprovalStatus, NewEvent,
    StepKind, StepState,
};
use baton_core::text::head;
use baton_core::tool::Risk;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::policy::ASK_USER;
use super::request::{WAIT, approval_id, digest};
use crate::agents::Agents;
use crate::audit;
use crate::extensions::Extensions;
use crate::failure::Failure;
use crate::guardrails;
use crate::journal::Record;
use crate::remote;
use crate::scope::Scope;

/// Maximum characters of a question.
const MAX_QUESTION_CHARS: usize = 4_000;

/// The argument with the id of the task that waits for the answer.
const REMOTE_TASK: &str = "remote_task_id";

/// What became of a question.
#[derive(Debug)]
pub(crate) enum QuestionOutcome {
    Answered(String),
    /// There is no answer, for this reason.
    Refused(String),
}

/// Asks the user what the agent wants to know. Fails with [`Failure::Waiting`] until there is an answer.
pub(crate) async fn ask(
    place: &Scope,
    end: &RemoteEnd,
    task: &RemoteTask,
) -> Result<QuestionOutcome, Failure> {
    let wait = place.at(WAIT);
    if let Some(outcome) = wait.step().finished::<ApprovalOutcome>()? {
        return read(&wait, &outcome).await;
    }
    if let Some(asked) = wait.step().interrupted::<ApprovalRequest>()? {
        return find_decision(&wait, asked).await;
    }
    if place.run.control.stop.is_cancelled() {
        return Ok(QuestionOutcome::Refused("a stop was requested before its question was answered".into()));
    }
    let question = question(end);
    if let Some(violation) = guardrails::check_question(&wait, &question).await? {
        return Ok(QuestionOutcome::Refused(format!("its question may not be asked: {}", violation.reason)));
    }
    let request = request(place, question, end.state, task);
    let detail = json!({
        "approval_id": request.approval_id, "path": request.path, "tool": request.tool,
        "risk": request.risk, "digest": request.digest,
    });
    let record = Record {
        steps: vec![wait.step().build(StepKind::Wait, StepState::Started, &request)?],
        events: vec![event(&wait, request.clone(), ApprovalOutcome::pending())],
        audit: vec![audit::approval(&wait, "approval.request", "pending", detail)],
        approvals: vec![request.clone()],
        ..Record::default()
    };
    place.run.recorder.journal.commit(record).await?;
    place.run.waits.open(request);
    Err(Failure::Waiting)
}

/// Finds the decision about a question that was asked before.
async fn find_decision(wait: &Scope, asked: ApprovalRequest) -> Result<QuestionOutcome, Failure> {
    let run = &wait.run;
    let approval = run.waits.approval(&*run.store, run.run_id, asked.approval_id).await?;
    let outcome = approval.map_or_else(ApprovalOutcome::pending, |approval| approval.outcome);
    if outcome.status == ApprovalStatus::Pending {
        if run.control.stop.is_cancelled() {
            let reason = "a stop was requested before its question was answered";
            return Ok(QuestionOutcome::Refused(reason.to_owned()));
        }
        run.waits.open(asked);
        return Err(Failure::Waiting);
    }
    run.waits.settle(asked.approval_id);
    let record = Record {
        steps: vec![wait.step().build(StepKind::Wait, StepState::Finished, &outcome)?],
        events: vec![event(wait, asked, outcome.clone())],
        ..Record::default()
    };
    run.recorder.journal.commit_soon(record).await;
    read(wait, &outcome).await
}

async fn read(wait: &Scope, outcome: &ApprovalOutcome) -> Result<QuestionOutcome, Failure> {
    let answer = match (&outcome.answer, outcome.status) {
        (Some(Value::String(text)), ApprovalStatus::Answered) => text.clone(),
        (Some(other), ApprovalStatus::Answered) => other.to_string(),
        (_, ApprovalStatus::Expired) => {
            return Ok(QuestionOutcome::Refused("its question was not answered in time".to_owned()));
        }
        _ => return Ok(QuestionOutcome::Refused("its question was not answered".to_owned())),
    };
    match guardrails::check_answer(wait, &answer).await? {
        Some(violation) => {
            Ok(QuestionOutcome::Refused(format!("the answer is withheld: {}", violation.reason)))
        }
        None => Ok(QuestionOutcome::Answered(answer)),
    }
}

/// The question as the user reads it.
fn question(end: &RemoteEnd) -> String {
    let said = end.answer();
    let text = match (end.state, said.trim()) {
        (RemoteState::AuthRequired, "") => "The agent needs an authorization to go on.".to_owned(),
        (RemoteState::AuthRequired, said) => format!("The agent needs an authorization to go on: {said}"),
        (_, "") => "The agent needs more information to go on.".to_owned(),
        (_, said) => said.to_owned(),
    };
    head(&text, MAX_QUESTION_CHARS)
}

/// Cancels the remote tasks whose questions were cancelled together with their run, in the background.
pub(crate) fn cancel_tasks(extensions: &Extensions, agents: &Agents, approvals: &[Approval]) {
    for approval in approvals.iter().filter(|one| one.outcome.status == ApprovalStatus::Cancelled) {
        let task = approval.request.arguments[REMOTE_TASK].as_str();
        let agent = agents.get(&approval.request.agent).filter(|agent| agent.kind.is_remote());
        if let (Some(task), Some(agent)) = (task, agent) {
            match remote::connect(extensions, agent) {
                Ok(remote) => remote.cancel_in_background(task),
                Err(failure) => tracing::warn!(%failure, "a remote task could not be cancelled"),
            }
        }
    }
}

fn request(place: &Scope, question: String, state: RemoteState, task: &RemoteTask) -> ApprovalRequest {
    // Read by the A2A server, whose own task then waits for the same.
    let auth_required = state == RemoteState::AuthRequired;
    let arguments =
        json!({ "question": question, "auth_required": auth_required, REMOTE_TASK: task.task_id });
    let digest = digest(ASK_USER, &arguments);
    let created_at = Timestamp::now();
    let expiry = place.run.extensions.approvals.of(&place.run.caller.tenant).expiry;
    let expiry = SignedDuration::try_from(expiry).unwrap_or(SignedDuration::MAX);
    ApprovalRequest {
        approval_id: approval_id(place.run.run_id, place.path(), &digest),
        kind: ApprovalKind::Question,
        path: place.path().to_owned(),
        agent: place.name().clone(),
        tool: ASK_USER.to_owned(),
        arguments,
        digest,
        risk: Risk::Low,
        preview: ApprovalPreview { heading: question, fields: Vec::new() },
        schema: json!({ "type": "string", "minLength": 1 }),
        choices: Vec::new(),
        handoff_id: None,
        created_at,
        expires_at: created_at.saturating_add(expiry).unwrap_or(Timestamp::MAX),
    }
}

fn event(wait: &Scope, request: ApprovalRequest, outcome: ApprovalOutcome) -> NewEvent {
    wait.event(Visibility::User, EventKind::Approval(Box::new(ApprovalEvent { request, outcome })))
}
