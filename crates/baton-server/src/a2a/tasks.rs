//! Builds tasks from runs.

use std::collections::HashMap;

use baton_a2a::extension::{self, HandoffAccept, HandoffOutcome, HandoffPart, HandoffReturn};
use baton_a2a::model::{Artifact, Message, Metadata, Part, Role, Task, TaskState, TaskStatus};
use baton_core::message::{Role as AuthorRole, Visibility};
use baton_core::store::{
    Approval, ApprovalKind, ApprovalStatus, HandoffSession, HandoffState, MessageQuery, PageRequest,
    RunRecord, RunStatus, ThreadMessage,
};
use baton_core::{AgentName, RunId, TenantStore, Usage};
use serde_json::{Value, json};

use super::chain::{Chain, MessageRecord};
use super::failure::A2aResult;
use super::parts;

/// How far behind the last run's own message its answers may be. Fewer than are read, so that its own message is among them.
const ANSWERS: u64 = 40;
/// Codes of runs in which the agent refused the work rather than failed at it.
const REFUSALS: [&str; 4] = ["guardrail_violation", "handoff_rejected", "permission_denied", "refused"];

/// What of a task is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Newest messages; `None` is all.
    pub history: Option<u32>,
    pub artifacts: bool,
    /// The address of this server, for links.
    pub base: Option<&'a str>,
}

/// The task as it is now.
pub async fn task(store: &dyn TenantStore, chain: &Chain, wanted: Wanted<'_>) -> A2aResult<Task> {
    let messages = messages(store, chain).await?;
    let (context_id, id) = (context_id(chain), chain.first().run_id.to_string());
    let records: HashMap<RunId, MessageRecord> =
        chain.runs.iter().map(|run| (run.run_id, MessageRecord::of_run(run))).collect();
    let converted = messages.iter().map(|message| Message {
        context_id: Some(context_id.clone()),
        task_id: Some(id.clone()),
        ..converted(message, &records, wanted.base)
    });
    let mut history: Vec<Message> = converted.collect();
    let status = status(chain, &history);
    if let Some(newest) = wanted.history {
        history.drain(..history.len().saturating_sub(newest as usize));
    }
    let artifacts =
        if wanted.artifacts { artifacts(store, chain, &messages, wanted.base).await? } else { Vec::new() };
    Ok(Task { id, context_id, status, history, artifacts, metadata: metadata(chain) })
}

/// The context id as the client knows it.
pub fn context_id(chain: &Chain) -> String {
    record(chain).context_id.unwrap_or_else(|| chain.first().thread_id.to_string())
}

/// What the first message said. The run of a handoff has no message, so the handoff keeps it.
fn record(chain: &Chain) -> MessageRecord {
    match &chain.handoff {
        Some(handoff) => MessageRecord::read(Some(&handoff.metadata)),
        None => MessageRecord::of_run(chain.first()),
    }
}

/// The messages of the task's runs that a user sees, oldest first, at most 200.
async fn messages(store: &dyn TenantStore, chain: &Chain) -> A2aResult<Vec<ThreadMessage>> {
    let last = chain.last();
    let limit = if chain.runs.len() == 1 { 50 } else { PageRequest::MAX_LIMIT };
    let query = MessageQuery { before: Some(last.message_number + ANSWERS), ..MessageQuery::last(limit) };
    let found = store.messages(last.thread_id, query).await?;
    let is_ours = |message: &ThreadMessage| chain.runs.iter().any(|run| run.run_id == message.message.run_id);
    Ok(found.into_iter().filter(is_ours).filter(is_visible).collect())
}

fn is_visible(message: &ThreadMessage) -> bool {
    message.message.visibility == Visibility::User && message.message.role != AuthorRole::System
}

/// A client's message has the id that the client gave it.
fn converted(
    message: &ThreadMessage,
    records: &HashMap<RunId, MessageRecord>,
    base: Option<&str>,
) -> Message {
    let message = &message.message;
    let is_user = message.role == AuthorRole::User;
    let record = records.get(&message.run_id).filter(|_| is_user);
    let given = record.and_then(|record| record.message_id.clone());
    let role = if is_user { Role::User } else { Role::Agent };
    let id = given.unwrap_or_else(|| message.id.to_string());
    let references = record.map(|record| record.reference_task_ids.clone()).unwrap_or_default();
    Message {
        reference_task_ids: references,
        ..Message::new(id, role, parts::outgoing(&message.parts, base))
    }
}

/// Each text that the user sees is an artifact, and so is each file that a run made.
async fn artifacts(
    store: &dyn TenantStore,
    chain: &Chain,
    messages: &[ThreadMessage],
    base: Option<&str>,
) -> A2aResult<Vec<Artifact>> {
    let answers = messages.iter().filter(|message| message.message.role == AuthorRole::Assistant);
    let mut found: Vec<Artifact> = answers
        .map(|message| Artifact {
            name: Some(ANSWER.to_owned()),
            ..Artifact::new(message.message.id.to_string(), parts::outgoing(&message.message.parts, base))
        })
        .collect();
    if let Some(value) = chain.last().end.as_ref().and_then(|end| end.value.clone())
        && let Some(answer) = found.last_mut()
    {
        answer.parts.push(Part::data(value));
    }
    found.extend(files(store, chain, base).await?);
    found.extend(created(chain.handoff.as_ref()));
    Ok(found)
}

/// The name of the artifact of an answer.
pub const ANSWER: &str = "answer";

/// The files that the task's runs made, oldest first. Only a run that ended or waits is asked for them.
pub async fn files(store: &dyn TenantStore, chain: &Chain, base: Option<&str>) -> A2aResult<Vec<Artifact>> {
    let last = chain.last();
    if !(last.status.is_final() || last.status == RunStatus::Waiting) {
        return Ok(Vec::new());
    }
    let stored = store.artifacts(last.thread_id).await?;
    let is_ours = |run: RunId| chain.runs.iter().any(|known| known.run_id == run);
    let ours = stored.iter().rev().filter(|artifact| artifact.run_id.is_some_and(is_ours));
    Ok(ours
        .map(|stored| Artifact {
            name: Some(stored.name.clone()),
            ..Artifact::new(stored.artifact_id.to_string(), vec![parts::file(stored, base)])
        })
        .collect())
}

/// What a finished handoff created, such as skills, by name.
pub fn created(handoff: Option<&HandoffSession>) -> Vec<Artifact> {
    let names = handoff.filter(|handoff| !handoff.state.is_open()).map(|handoff| &handoff.artifacts_created);
    let names = names.into_iter().flatten().enumerate();
    names
        .map(|(at, name)| Artifact {
            name: Some(name.clone()),
            extensions: vec![extension::URI.to_owned()],
            ..Artifact::new(
                format!("created-{at}"),
                vec![Part::data(json!({ "type": "created", "name": name }))],
            )
        })
        .collect()
}

fn metadata(chain: &Chain) -> Metadata {
    let record = record(chain);
    let answered_by = chain.last().end.as_ref().and_then(|end| end.answered_by.clone());
    let agent = answered_by.unwrap_or_else(|| chain.last().agent.clone());
    let mut metadata = end_metadata(&agent, usage(chain));
    if let Some(parent) = record.parent_task_id {
        metadata.insert("parent_task_id".to_owned(), json!(parent));
    }
    metadata
}

/// Who answered, and what it cost.
pub fn end_metadata(agent: &AgentName, usage: Usage) -> Metadata {
    let usage = json!({ "usage": usage });
    Metadata::from_iter([("agent".to_owned(), json!(agent)), (extension::URI.to_owned(), usage)])
}

/// What all runs of the task have used so far. A client that is a Baton adds it to its own ledger.
fn usage(chain: &Chain) -> Usage {
    chain.runs.iter().fold(Usage::default(), |mut total, run| {
        total += run.usage;
        total
    })
}

/// The state of a task.
pub fn state(chain: &Chain) -> TaskState {
    let last = chain.last();
    match last.status {
        RunStatus::Queued if chain.runs.len() == 1 => TaskState::Submitted,
        RunStatus::Queued | RunStatus::Running => TaskState::Working,
        RunStatus::Waiting if chain.pending().any(needs_authentication) => TaskState::AuthRequired,
        RunStatus::Waiting => TaskState::InputRequired,
        RunStatus::Cancelled => TaskState::Canceled,
        RunStatus::Failed | RunStatus::Interrupted => failed(last),
        RunStatus::Completed => match chain.handoff.as_ref().or(chain.withdrawn_by.as_ref()) {
            Some(handoff) => held(handoff),
            None => answered(chain.question()),
        },
    }
}

/// Whether a question is about credentials of another service, as the engine marks it.
fn needs_authentication(approval: &Approval) -> bool {
    approval.request.arguments["auth_required"] == true
}

fn failed(run: &RunRecord) -> TaskState {
    let code = run.end.as_ref().and_then(|end| end.code.as_deref()).unwrap_or_default();
    if REFUSALS.contains(&code) { TaskState::Rejected } else { TaskState::Failed }
}

/// A handoff is one task until the thread is back.
fn held(handoff: &HandoffSession) -> TaskState {
    match handoff.state {
        HandoffState::Pending | HandoffState::Active | HandoffState::Returning => TaskState::InputRequired,
        HandoffState::Completed => TaskState::Completed,
        HandoffState::Cancelled => TaskState::Canceled,
        HandoffState::Error => TaskState::Failed,
    }
}

/// A run that ended with a question of a workflow is not the end of its task. A withdrawn question has no answer any more.
fn answered(question: Option<&Approval>) -> TaskState {
    match question.map(|question| question.outcome.status) {
        Some(ApprovalStatus::Pending) => TaskState::InputRequired,
        Some(ApprovalStatus::Cancelled | ApprovalStatus::Expired | ApprovalStatus::Invalidated) => {
            TaskState::Canceled
        }
        _ => TaskState::Completed,
    }
}

fn status(chain: &Chain, history: &[Message]) -> TaskStatus {
    let last = chain.last();
    let state = state(chain);
    let mut parts = match state {
        TaskState::InputRequired | TaskState::AuthRequired if last.status == RunStatus::Waiting => {
            chain.pending().flat_map(request_parts).collect()
        }
        TaskState::InputRequired => question_parts(chain, history),
        TaskState::Failed | TaskState::Rejected => {
            let message = last.end.as_ref().and_then(|end| end.message.clone());
            message.map(Part::text).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let handoff = chain.handoff.as_ref();
    parts.extend(handoff.map(|handoff| handoff_part(handoff, chain).to_part()));
    let at = last.finished_at.or(last.started_at).unwrap_or(last.created_at);
    let message = (!parts.is_empty()).then(|| Message {
        context_id: Some(context_id(chain)),
        task_id: Some(chain.first().run_id.to_string()),
        extensions: handoff.map(|_| extension::URI.to_owned()).into_iter().collect(),
        ..Message::new(format!("{}-{}", last.run_id, state_word(state)), Role::Agent, parts)
    });
    TaskStatus { state, message, timestamp: Some(at) }
}

fn state_word(state: TaskState) -> &'static str {
    if state.is_terminal() { "end" } else { "status" }
}

/// What a run waits for: the question for a person, and all of it for a program.
fn request_parts(approval: &Approval) -> [Part; 2] {
    let request = &approval.request;
    let fields = request.preview.fields.iter().map(|field| format!("{}: {}", field.label, field.value));
    let mut lines: Vec<String> = std::iter::once(request.preview.heading.clone()).chain(fields).collect();
    if request.kind == ApprovalKind::Tool {
        lines.push("Answer yes or no.".to_owned());
    }
    [Part::text(lines.join("\n")), Part::data(describe(approval))]
}

fn describe(approval: &Approval) -> Value {
    let request = &approval.request;
    json!({
        "type": "input_request", "approval_id": request.approval_id, "kind": request.kind, "agent": request.agent,
        "tool": request.tool, "arguments": request.arguments, "choices": request.choices, "schema": request.schema,
        "expires_at": request.expires_at,
    })
}

/// The last answer, which asks; or the question itself if there is no answer.
fn question_parts(chain: &Chain, history: &[Message]) -> Vec<Part> {
    let asked =
        history.iter().rev().find(|message| message.role == Role::Agent).map(|message| message.parts.clone());
    let question = chain.question().filter(|one| one.outcome.status == ApprovalStatus::Pending);
    let text = || question.map(|one| Part::text(one.request.preview.heading.clone())).into_iter().collect();
    let mut parts = asked.unwrap_or_else(text);
    parts.extend(question.map(|one| Part::data(describe(one))));
    parts
}

/// What the extension says about the handoff: accepted while it is open, returned afterwards.
fn handoff_part(handoff: &HandoffSession, chain: &Chain) -> HandoffPart {
    let thread_id = context_id(chain);
    if handoff.state.is_open() {
        return HandoffPart::Accept(HandoffAccept {
            thread_id,
            source_agent_id: handoff.source_agent_id.to_string(),
            target_agent_id: handoff.target_agent_id.to_string(),
            accepted: true,
            estimated_duration_seconds: handoff.notes.estimated_seconds,
        });
    }
    let outcome = match handoff.state {
        HandoffState::Completed => HandoffOutcome::Completed,
        HandoffState::Cancelled => HandoffOutcome::Cancelled,
        _ => HandoffOutcome::Failed,
    };
    HandoffPart::Return(HandoffReturn {
        thread_id,
        source_agent_id: handoff.target_agent_id.to_string(),
        target_agent_id: handoff.source_agent_id.to_string(),
        outcome,
        result_summary: handoff.result_summary.clone(),
        artifacts_created: handoff.artifacts_created.clone(),
    })
}
