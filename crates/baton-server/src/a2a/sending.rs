//! Accepting a message: it begins a task, or continues one that waits.

use baton_a2a::WireForm;
use baton_a2a::model::{Message, Metadata, SendParams, Task, TaskPushConfig};
use baton_core::store::run::Idempotency;
use baton_core::store::{AcceptedRun, RunStatus};
use baton_core::{AgentName, ThreadId};
use baton_engine::{Interest, SubmitOptions, Subscription};
use serde_json::Value;

use super::chain::{self, Chain, MessageRecord};
use super::context::{is_derived, thread_of};
use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};
use super::handoff::{self, Requested};
use super::replies::{self, Reply};
use super::{parts, push, tasks};
use crate::problem::{Code, Problem};
use crate::routes::messages;
use crate::wire::message::PartView;
use crate::wire::send::{Content, SendMessage};

/// References to other tasks that a message may have.
const MAX_REFERENCES: usize = 16;
/// Bytes of such a reference.
const MAX_REFERENCE: usize = 256;

/// What became of a message.
#[derive(Debug)]
pub enum Sent {
    /// A run works on it.
    Run(Box<BegunTask>),
    /// Nothing runs, and this is the result: a declined handoff, or a reply that is not understood.
    Settled(Box<Task>),
}

/// A task on which a run has begun or continues. The subscription is older than that.
#[derive(Debug)]
pub struct BegunTask {
    pub task_id: String,
    pub context_id: String,
    pub thread: ThreadId,
    pub accepted: AcceptedRun,
    pub subscription: Subscription,
    /// The message, unless it was stored with other parts.
    pub message: Message,
}

/// The conditions of a message.
#[derive(Debug)]
pub struct SendTerms {
    pub form: WireForm,
    pub interest: Interest,
    pub idempotency: Option<Idempotency>,
}

pub async fn send(exchange: &Exchange, params: SendParams, terms: SendTerms) -> A2aResult<Sent> {
    if exchange.app.is_draining() {
        return Err(Problem::draining().into());
    }
    push::check(exchange, &params)?;
    check_output_modes(&params.configuration.accepted_output_modes)?;
    parts::check_media_types(&params.message.parts)?;
    let parent = parent_task(&params.message.metadata).or_else(|| parent_task(&params.metadata));
    let record = MessageRecord {
        message_id: Some(params.message.message_id.clone()),
        parent_task_id: parent,
        reference_task_ids: references(&params.message),
        ..MessageRecord::default()
    };
    let form = terms.form;
    let sent = match params.message.task_id.clone() {
        Some(task_id) => resume(exchange, params.message, record, &task_id, terms).await?,
        None => begin(exchange, params.message, record, terms).await?,
    };
    if let (Sent::Run(begun), Some(config)) = (&sent, params.configuration.push) {
        push::set(exchange, TaskPushConfig { task_id: begun.task_id.clone(), config }, form).await?;
    }
    Ok(sent)
}

/// The first ones; longer texts are no ids.
fn references(message: &Message) -> Vec<String> {
    let ids = message.reference_task_ids.iter().filter(|id| id.len() <= MAX_REFERENCE);
    ids.take(MAX_REFERENCES).cloned().collect()
}

/// Whether the message names the task that it is a part of.
pub fn has_parent(params: &SendParams) -> bool {
    parent_task(&params.message.metadata).or_else(|| parent_task(&params.metadata)).is_some()
}

fn parent_task(metadata: &Metadata) -> Option<String> {
    let parent = metadata.get("parent_task_id").and_then(Value::as_str)?;
    (parent.len() <= MAX_REFERENCE).then(|| parent.to_owned())
}

/// Answers are text and JSON. A client that accepts neither could not read them.
fn check_output_modes(modes: &[String]) -> A2aResult<()> {
    let is_readable = |mode: &String| {
        let mode = mode.trim().to_ascii_lowercase();
        mode.starts_with("text")
            || mode.starts_with("application/json")
            || mode == "*/*"
            || mode == "application/*"
    };
    if modes.is_empty() || modes.iter().any(is_readable) {
        return Ok(());
    }
    Err(A2aFailure::content_type("the agent answers with text/plain and application/json"))
}

async fn begin(
    exchange: &Exchange,
    message: Message,
    record: MessageRecord,
    terms: SendTerms,
) -> A2aResult<Sent> {
    let context_id = message.context_id.clone().unwrap_or_else(|| ThreadId::random().to_string());
    let thread = thread_of(&exchange.caller, &context_id);
    let stored = is_derived(&context_id, thread).then(|| context_id.clone());
    let record = MessageRecord { context_id: stored, ..record };
    let subscription = exchange.app.subscribe(&exchange.caller, thread, terms.interest);
    if let Some(request) = handoff::requested(&message) {
        return Ok(match handoff::begin(exchange, thread, &context_id, request, &record).await? {
            Requested::Accepted(accepted) => Sent::Run(Box::new(BegunTask {
                task_id: accepted.run_id.to_string(),
                context_id,
                thread,
                accepted,
                subscription,
                message,
            })),
            Requested::Declined(task) => Sent::Settled(task),
        });
    }
    let agent = exchange.agent.as_ref().map(|agent| agent.name.clone());
    let accepted = submit(exchange, thread, &message, agent, &record, terms.idempotency).await?;
    let task_id = accepted.run_id.to_string();
    Ok(Sent::Run(Box::new(BegunTask { task_id, context_id, thread, accepted, subscription, message })))
}

/// Continues a task that waits for its client.
async fn resume(
    exchange: &Exchange,
    message: Message,
    record: MessageRecord,
    task_id: &str,
    terms: SendTerms,
) -> A2aResult<Sent> {
    let chain = chain::find(&exchange.app, &exchange.caller, task_id).await?;
    let context_id = tasks::context_id(&chain);
    let thread = chain.first().thread_id;
    let is_other = |given: &String| *given != context_id && *given != thread.to_string();
    if message.context_id.as_ref().is_some_and(is_other) {
        return Err(A2aFailure::invalid("message.contextId is not the context of the task"));
    }
    check_waits(&chain, terms.form)?;
    let subscription = exchange.app.subscribe(&exchange.caller, thread, terms.interest);
    let accepted = if chain.last().status == RunStatus::Waiting {
        match replies::answer(exchange, &chain, &message).await? {
            Reply::Decided(accepted) => accepted,
            Reply::Unclear(explanation) => {
                return replies::explained(exchange, &chain, explanation)
                    .await
                    .map(|task| Sent::Settled(Box::new(task)));
            }
        }
    } else {
        let stored = is_derived(&context_id, thread).then(|| context_id.clone());
        let record = MessageRecord { task_id: Some(task_id.to_owned()), context_id: stored, ..record };
        // Without an agent: the one that holds the thread asked, and answers.
        submit(exchange, thread, &message, None, &record, terms.idempotency).await?
    };
    let task_id = task_id.to_owned();
    Ok(Sent::Run(Box::new(BegunTask { task_id, context_id, thread, accepted, subscription, message })))
}

fn check_waits(chain: &Chain, form: WireForm) -> A2aResult<()> {
    let state = tasks::state(chain);
    if state.is_interrupted() {
        return Ok(());
    }
    if !state.is_terminal() {
        let message =
            "the task is being worked on: wait until it needs input, or send the message without taskId";
        return Err(A2aFailure::unsupported(message));
    }
    let message = "the task has ended: send the message without taskId, with its contextId to go on in the same context";
    // The official SDKs of the two versions differ here.
    Err(match form {
        WireForm::V10 => A2aFailure::unsupported(message),
        _ => A2aFailure::invalid(message),
    })
}

/// Submits the message to the agent of the path, or to the holder of the thread if a handoff has another one.
async fn submit(
    exchange: &Exchange,
    thread: ThreadId,
    message: &Message,
    agent: Option<AgentName>,
    record: &MessageRecord,
    idempotency: Option<Idempotency>,
) -> A2aResult<AcceptedRun> {
    let Exchange { app, caller, trace, .. } = exchange;
    let content = parts::incoming(exchange, thread, message.parts.clone()).await?;
    let body = |content: Vec<PartView>, agent: Option<&AgentName>| SendMessage {
        content: Content(content),
        agent: agent.map(ToString::to_string),
        on_busy: None,
        metadata: Some(record.to_metadata()),
        resume: Vec::new(),
    };
    let options =
        || SubmitOptions { idempotency: idempotency.clone(), limits: app.run_limits(&exchange.caller) };
    let named = body(content.clone(), agent.as_ref());
    match messages::submit(app, caller, trace, thread, named, options()).await {
        Err(problem) if problem.code == Code::HandoffActive && agent.is_some() => {
            Ok(messages::submit(app, caller, trace, thread, body(content, None), options()).await?)
        }
        accepted => Ok(accepted?),
    }
}
