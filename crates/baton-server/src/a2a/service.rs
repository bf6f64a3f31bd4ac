//! The operations of the protocol, without a transport.

use std::time::Duration;

use baton_a2a::model::{Metadata, Role, SendParams, Task, TaskQuery, TaskState, TaskStatus};
use baton_a2a::{ErrorCode, Message, WireForm};
use baton_core::MessageId;
use baton_core::store::run::Idempotency;
use baton_core::store::{AcceptedRun, Cancel};
use baton_engine::Interest;
use jiff::Timestamp;
use uuid::Uuid;

use super::chain::{self, Chain};
use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};
use super::sending::{self, BegunTask, SendTerms, Sent};
use super::stream::TaskStream;
use super::tasks::{self, Wanted};
use crate::await_end::await_end;
use crate::problem::Code;
use crate::routes::{handoff, runs};
use crate::stream::follow::{Follow, Of};
use crate::stream::permits::StreamPermit;
use crate::trail;

/// How long a cancellation waits for the run to end.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// Checks a permission that depends on the method.
pub async fn demand(exchange: &Exchange, permission: &str) -> A2aResult<()> {
    let Exchange { app, caller, trace, .. } = exchange;
    Ok(trail::demand(app, caller, trace, permission, &exchange.path).await?)
}

async fn load(exchange: &Exchange, chain: &Chain, history: Option<u32>) -> A2aResult<Task> {
    let wanted = Wanted { history, artifacts: true, base: exchange.base.as_deref() };
    tasks::task(&*exchange.app.data(&exchange.caller), chain, wanted).await
}

/// Sends a message. A blocking call returns when the task has ended or waits for its client.
pub async fn send(
    exchange: &Exchange,
    params: SendParams,
    form: WireForm,
    idempotency: Option<Idempotency>,
) -> A2aResult<Task> {
    let configuration = params.configuration.clone();
    let terms = SendTerms { form, interest: Interest::Ends, idempotency };
    let begun = match sending::send(exchange, params, terms).await? {
        Sent::Run(begun) => *begun,
        Sent::Settled(task) => return Ok(*task),
    };
    if !configuration.blocking && begun.accepted.is_new {
        return Ok(submitted(&begun, configuration.history_length));
    }
    let Exchange { app, caller, .. } = exchange;
    let BegunTask { task_id, accepted, subscription, .. } = begun;
    if configuration.blocking {
        await_end(app, &caller.tenant, &accepted, subscription).await?;
    }
    let chain = chain::find(app, caller, &task_id).await?;
    load(exchange, &chain, configuration.history_length).await
}

/// A task that has just begun, without reading it.
fn submitted(begun: &BegunTask, history: Option<u32>) -> Task {
    let message = Message {
        role: Role::User,
        context_id: Some(begun.context_id.clone()),
        task_id: Some(begun.task_id.clone()),
        ..begun.message.clone()
    };
    let is_first = begun.task_id == begun.accepted.run_id.to_string() && begun.accepted.after == 0;
    let state = if is_first { TaskState::Submitted } else { TaskState::Working };
    Task {
        id: begun.task_id.clone(),
        context_id: begun.context_id.clone(),
        status: TaskStatus { timestamp: Some(Timestamp::now()), ..TaskStatus::new(state) },
        history: if history == Some(0) { Vec::new() } else { vec![message] },
        artifacts: Vec::new(),
        metadata: Metadata::new(),
    }
}

/// Sends a message and follows its task.
pub async fn stream(
    exchange: &Exchange,
    params: SendParams,
    form: WireForm,
    idempotency: Option<Idempotency>,
) -> A2aResult<TaskStream> {
    let history = params.configuration.history_length;
    // What the end of such a task says is not known from its events alone.
    let continues = params.message.task_id.is_some() || sending::has_parent(&params);
    let terms = SendTerms { form, interest: Interest::Run, idempotency };
    // Before the run is started for it.
    let permit = exchange.app.streams.open(&exchange.caller)?;
    let begun = match sending::send(exchange, params, terms).await? {
        Sent::Run(begun) => *begun,
        Sent::Settled(task) => {
            let thread = super::context::thread_of(&exchange.caller, &task.context_id);
            let base = exchange.base.clone();
            return Ok(TaskStream { task: *task, follow: None, thread, base, sees_all: false, permit });
        }
    };
    let Exchange { app, caller, base, .. } = exchange;
    if !begun.accepted.is_new {
        return subscribe_to(exchange, &begun.task_id, history, permit).await;
    }
    let task = submitted(&begun, history);
    let sees_all = !continues && task.status.state == TaskState::Submitted;
    let BegunTask { thread, accepted, subscription, .. } = begun;
    let follow = Follow::of_new_run(app.data(caller), subscription, thread, accepted.run_id, accepted.after);
    let follow = Some(follow.counted(&app.metrics));
    Ok(TaskStream { task, follow, thread, base: base.clone(), sees_all, permit })
}

pub async fn get(exchange: &Exchange, query: &TaskQuery) -> A2aResult<Task> {
    let chain = chain::find(&exchange.app, &exchange.caller, &query.id).await?;
    load(exchange, &chain, query.history_length).await
}

/// Follows a task that has not ended.
pub async fn subscribe(exchange: &Exchange, task_id: &str, form: WireForm) -> A2aResult<TaskStream> {
    let permit = exchange.app.streams.open(&exchange.caller)?;
    let stream = subscribe_to(exchange, task_id, None, permit).await?;
    if stream.task.status.state.is_terminal() {
        let message = "the task has ended; get it instead";
        return Err(match form {
            WireForm::V10 => A2aFailure::unsupported(message),
            _ => A2aFailure::invalid(message),
        });
    }
    Ok(stream)
}

/// The position is read first: events after it are followed, and those before it are part of the snapshot. Events between the two are
/// sent again, which changes nothing.
async fn subscribe_to(
    exchange: &Exchange,
    task_id: &str,
    history: Option<u32>,
    permit: StreamPermit,
) -> A2aResult<TaskStream> {
    let Exchange { app, caller, base, .. } = exchange;
    let found = chain::find(app, caller, task_id).await?;
    let thread = found.first().thread_id;
    let position = app.data(caller).thread(thread, None).await?.last_seq;
    let chain = chain::find(app, caller, task_id).await?;
    let task = load(exchange, &chain, history).await?;
    let of = Of::Run(chain.last().run_id);
    let follow = (!task.status.state.closes_stream()).then(|| {
        let live = &app.engine.parts.live;
        Follow::new(live, app.data(caller), thread, of, position).counted(&app.metrics)
    });
    Ok(TaskStream { task, follow, thread, base: base.clone(), sees_all: false, permit })
}

/// Cancels a task. The end of its run is written once, so either the cancellation or the completion wins.
pub async fn cancel(exchange: &Exchange, task_id: &str) -> A2aResult<Task> {
    let Exchange { app, caller, trace, .. } = exchange;
    let chain = chain::find(app, caller, task_id).await?;
    if tasks::state(&chain).is_terminal() {
        return Err(not_cancelable("the task has ended"));
    }
    let last = chain.last();
    if !last.status.is_final() {
        let subscription = app.subscribe(caller, last.thread_id, Interest::Ends);
        runs::cancel(app, caller, trace, last.run_id, Cancel::Abort).await?;
        let accepted = AcceptedRun {
            run_id: last.run_id,
            message_id: MessageId::from_uuid(Uuid::nil()),
            is_new: false,
            behind: None,
            after: 0,
        };
        if let Ok(ended) =
            tokio::time::timeout(CANCEL_WAIT, await_end(app, &caller.tenant, &accepted, subscription)).await
        {
            ended?;
        }
    }
    leave_handoff(exchange, &chain).await?;
    let chain = chain::find(app, caller, task_id).await?;
    let state = tasks::state(&chain);
    if state.is_terminal() && state != TaskState::Canceled {
        return Err(not_cancelable("the task ended before it could be cancelled"));
    }
    load(exchange, &chain, None).await
}

/// A task that waits for an answer to a workflow, or is a handoff, ends when the thread is returned.
async fn leave_handoff(exchange: &Exchange, chain: &Chain) -> A2aResult<()> {
    let is_held = chain.handoff.as_ref().is_some_and(|handoff| handoff.state.is_open());
    let is_asked = chain.last().status.is_final() && chain.question().is_some();
    if !is_held && !is_asked {
        return Ok(());
    }
    let Exchange { app, caller, trace, .. } = exchange;
    match handoff::exit(app, caller, trace, chain.first().thread_id).await {
        Err(problem) if problem.code == Code::NoActiveHandoff => Ok(()),
        left => left.map(|_| ()).map_err(Into::into),
    }
}

fn not_cancelable(message: &str) -> A2aFailure {
    A2aFailure::new(ErrorCode::TaskNotCancelable, format!("Task cannot be canceled: {message}"))
}
