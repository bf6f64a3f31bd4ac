//! The handoff extension: a client hands its conversation to an agent of this server.

use baton_a2a::extension::{self, HandoffDecline, HandoffPart, HandoffRequest};
use baton_a2a::model::{Message, Metadata, Role, Task, TaskState, TaskStatus};
use baton_core::store::{AcceptedRun, Artifact, HandoffSession, PageRequest, RunQuery};
use baton_core::{AgentName, MessageId, StoreError, ThreadId};
use baton_engine::{HandoffStarted, OnConflict, StartHandoff};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::chain::{self, MessageRecord};
use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};
use crate::identity::roles::HANDOFF_INITIATE;
use crate::named;
use crate::problem::{Code, Problem};
use crate::routes::handoff;
use crate::routes::messages::engine_caller;
use crate::trail::{self, AuditRecord};

const MAX_SUMMARY: usize = 2000;
const MAX_REASON: usize = 500;
const MAX_NAME: usize = 255;
const MAX_RECENT: usize = 20;
/// Characters of the recent messages that the target sees, beside the summary.
const MAX_RECENT_CHARS: usize = 8000;
const MAX_RECENT_BYTES: usize = 64 * 1024;
const MAX_METADATA: usize = 16 * 1024;

/// What the agent said to the request.
#[derive(Debug)]
pub enum Requested {
    /// It has the thread, and greets the user in a run.
    Accepted(AcceptedRun),
    /// It does not take the thread. The task is rejected and not stored.
    Declined(Box<Task>),
}

/// The request in a message, if it lists the extension.
pub fn requested(message: &Message) -> Option<HandoffRequest> {
    let is_listed = message.extensions.iter().any(|uri| uri == extension::URI);
    match HandoffPart::find(message).filter(|_| is_listed)? {
        HandoffPart::Request(request) => Some(request),
        _ => None,
    }
}

/// Asks the agent of the path to take the thread, as `POST /api/v1/threads/{thread_id}/handoff` does.
pub async fn begin(
    exchange: &Exchange,
    thread: ThreadId,
    context_id: &str,
    request: HandoffRequest,
    record: &MessageRecord,
) -> A2aResult<Requested> {
    let Exchange { app, caller, trace, .. } = exchange;
    trail::demand(app, caller, trace, HANDOFF_INITIATE, &exchange.path).await?;
    check(&request)?;
    let target = target(exchange, &request)?;
    if let Some(accepted) = repeated(exchange, thread, record).await? {
        return Ok(Requested::Accepted(accepted));
    }
    begin_thread(exchange, thread, &request).await?;
    let start = StartHandoff {
        caller: engine_caller(caller, thread),
        source: None,
        fallback: handoff::main(app, caller)?,
        target: target.clone(),
        context_summary: context(&request),
        reason: request.handoff_reason.clone(),
        recent_messages: 5,
        preserve_state: request.preserve_state,
        // The agent that comments on the result is the client's.
        return_expected: false,
        metadata: metadata(&request, record),
        on_conflict: OnConflict::Reject,
        rights: caller.rights.clone(),
        trace: Some((*trace.0).clone()),
        address: trace.address(),
    };
    match handoff::start(app, caller, trace, start).await {
        Ok(HandoffStarted::Now { run_id, .. }) => Ok(Requested::Accepted(AcceptedRun {
            run_id,
            message_id: MessageId::from_uuid(Uuid::nil()),
            is_new: true,
            behind: None,
            after: 0,
        })),
        Ok(HandoffStarted::Queued) => Err(A2aFailure::unsupported("the handoff is queued")),
        Err(problem) => declined(context_id, &request, &target, problem),
    }
}

/// The run of a handoff that the same message has begun, if the message was sent again because its result was not received.
async fn repeated(
    exchange: &Exchange,
    thread: ThreadId,
    record: &MessageRecord,
) -> A2aResult<Option<AcceptedRun>> {
    let store = exchange.app.data(&exchange.caller);
    let open = match store.open_handoff_of(thread).await {
        Err(StoreError::ThreadNotFound) => return Ok(None),
        open => open?,
    };
    let is_same = |handoff: &HandoffSession| {
        record.message_id.is_some()
            && handoff.user_id == exchange.caller.user
            && MessageRecord::read(Some(&handoff.metadata)).message_id == record.message_id
    };
    let Some(handoff) = open.filter(is_same) else { return Ok(None) };
    let query = RunQuery { thread_id: Some(thread), ..RunQuery::default() };
    let runs = store.runs(query, PageRequest::first(PageRequest::MAX_LIMIT)).await?.data;
    let begun = runs.iter().find(|run| chain::handoff_id(run) == Some(handoff.handoff_id));
    Ok(begun.map(|run| AcceptedRun {
        run_id: run.run_id,
        message_id: MessageId::from_uuid(Uuid::nil()),
        is_new: false,
        behind: None,
        after: 0,
    }))
}

fn check(request: &HandoffRequest) -> A2aResult<()> {
    let long = |text: &str, most: usize| text.chars().count() > most;
    let problem = if request.handoff_reason.trim().is_empty() || long(&request.handoff_reason, MAX_REASON) {
        "handoff_reason must have 1 to 500 characters"
    } else if long(&request.context_summary, MAX_SUMMARY) {
        "context_summary must have at most 2000 characters"
    } else if request.recent_messages.len() > MAX_RECENT {
        "recent_messages must have at most 20 messages"
    } else if request.recent_messages.iter().map(|message| message.content.len()).sum::<usize>()
        > MAX_RECENT_BYTES
    {
        "recent_messages must have at most 64 KiB"
    } else if long(&request.source_agent_id, MAX_NAME) || long(&request.target_agent_id, MAX_NAME) {
        "source_agent_id and target_agent_id must have at most 255 characters"
    } else if Value::Object(request.handoff_metadata.clone()).to_string().len() > MAX_METADATA {
        "handoff_metadata must have at most 16 KiB"
    } else {
        return Ok(());
    };
    Err(A2aFailure::invalid(problem))
}

/// The agent of the path; at the root the one that the request names, or the main agent.
fn target(exchange: &Exchange, request: &HandoffRequest) -> A2aResult<AgentName> {
    if let Some(agent) = &exchange.agent {
        return Ok(agent.name.clone());
    }
    if request.target_agent_id.is_empty() {
        return Ok(handoff::main(&exchange.app, &exchange.caller)?);
    }
    let found = named::agent(&exchange.app, &exchange.caller, &request.target_agent_id);
    found.map(|agent| agent.name.clone()).map_err(|problem| A2aFailure::invalid(problem.detail))
}

/// A handoff needs a thread. One that does not exist begins with the request as a file, which keeps what was handed over.
async fn begin_thread(exchange: &Exchange, thread_id: ThreadId, request: &HandoffRequest) -> A2aResult<()> {
    let Exchange { app, caller, trace, .. } = exchange;
    let bytes = serde_json::to_vec_pretty(request).unwrap_or_default();
    let file = Artifact {
        artifact_id: Uuid::now_v7(),
        thread_id,
        run_id: None,
        name: "handoff-request.json".to_owned(),
        media_type: "application/json".to_owned(),
        size: bytes.len() as u64,
        created_at: Timestamp::now(),
    };
    let audit_record = AuditRecord {
        action: "artifact.create",
        thread_id: Some(thread_id),
        decision: "allowed",
        detail: json!({ "artifact_id": file.artifact_id, "name": file.name, "size": file.size }),
        ..AuditRecord::default()
    };
    let data = trail::audited(app, caller, trace, audit_record);
    Ok(data.put_artifact(file, Some(&caller.user), bytes).await?)
}

/// The summary with the client's last messages, which this server's thread does not have.
fn context(request: &HandoffRequest) -> String {
    let mut context = request.context_summary.clone();
    let mut room = MAX_RECENT_CHARS;
    let mut lines = Vec::new();
    for message in request.recent_messages.iter().rev() {
        let line = format!("{}: {}", message.role, message.content);
        let Some(left) = room.checked_sub(line.chars().count()) else { break };
        room = left;
        lines.push(line);
    }
    if !lines.is_empty() {
        lines.reverse();
        context.push_str("\n\nThe last messages of the conversation:\n");
        context.push_str(&lines.join("\n"));
    }
    context.trim().to_owned()
}

/// The client's metadata, and what the task needs of the message.
fn metadata(request: &HandoffRequest, record: &MessageRecord) -> Value {
    let mut metadata = request.handoff_metadata.clone();
    metadata.extend(record.to_metadata());
    metadata.insert("remote_source_agent_id".to_owned(), json!(request.source_agent_id));
    Value::Object(metadata)
}

fn declined(
    context_id: &str,
    request: &HandoffRequest,
    target: &AgentName,
    problem: Problem,
) -> A2aResult<Requested> {
    if !matches!(problem.code, Code::HandoffRejected | Code::HandoffActive | Code::AgentUnavailable) {
        return Err(problem.into());
    }
    let id = Uuid::now_v7().to_string();
    let decline = HandoffPart::Decline(HandoffDecline {
        thread_id: context_id.to_owned(),
        source_agent_id: request.source_agent_id.clone(),
        target_agent_id: target.to_string(),
        accepted: false,
        reason: problem.detail.clone(),
    });
    let parts = vec![baton_a2a::Part::text(problem.detail), decline.to_part()];
    let message = Message {
        context_id: Some(context_id.to_owned()),
        task_id: Some(id.clone()),
        extensions: vec![extension::URI.to_owned()],
        ..Message::new(format!("{id}-end"), Role::Agent, parts)
    };
    let timestamp = Some(Timestamp::now());
    Ok(Requested::Declined(Box::new(Task {
        id,
        context_id: context_id.to_owned(),
        status: TaskStatus { state: TaskState::Rejected, message: Some(message), timestamp },
        history: Vec::new(),
        artifacts: Vec::new(),
        metadata: Metadata::new(),
    })))
}
