//! Sends a message or follows a task, until it ends: reconnects when a stream breaks, and polls if there are no streams.

use std::sync::Arc;
use std::time::Duration;

use baton_core::AgentName;
use baton_core::remote::{
    RemoteError, RemoteErrorKind, RemoteEvent, RemoteMessage, RemoteStream, RemoteTask,
};

use super::connection::{CallError, ItemStream};
use super::message::params;
use super::peer::{Peer, Route};
use super::reply::Reply;
use crate::error::ErrorCode;
use crate::model::{SendResult, StreamItem, TaskState};

/// Attempts to send a message that certainly did not arrive.
const MAX_SENDS: u32 = 3;
/// Failed attempts in a row to reconnect or to poll.
const MAX_RECONNECTS: u32 = 6;
/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause between two requests for a task's state.
const MAX_POLL: Duration = Duration::from_secs(5);

/// Where items come from.
enum Source {
    Stream(ItemStream),
    /// The result of a call.
    Item(StreamItem),
    /// The task has to be subscribed to, or asked for.
    Lost,
}

/// Sends a message and streams what follows.
pub(super) fn send(peer: Arc<Peer>, name: AgentName, message: RemoteMessage) -> RemoteStream {
    Box::pin(async_stream::try_stream! {
        let route = peer.route().await?;
        let (route, source) = first_source(&peer, route, &name, &message).await?;
        let mut run = Driven::new(peer, route);
        run.sent_to = message.task.task_id.clone();
        // The ids are announced when the peer confirms them.
        run.reply.task.seen = message.task.seen.clone();
        run.reply.is_continuing = run.sent_to.is_some();
        for await event in run.events(source) {
            yield event?;
        }
    })
}

/// Follows a task that the peer has accepted before.
pub(super) fn follow(peer: Arc<Peer>, task: RemoteTask) -> RemoteStream {
    Box::pin(async_stream::try_stream! {
        let route = peer.route().await?;
        let mut run = Driven::new(peer, route);
        run.reply.task = task;
        for await event in run.events(Source::Lost) {
            yield event?;
        }
    })
}

/// Sends the message to the first address that works. A message that may have arrived is not sent to another one.
async fn first_source(
    peer: &Peer,
    mut route: Route,
    name: &AgentName,
    message: &RemoteMessage,
) -> Result<(Route, Source), RemoteError> {
    let mut sends = 1;
    loop {
        let error = match open(peer, &route, name, message).await {
            Ok(source) => {
                peer.count_success(&route);
                return Ok((route, source));
            }
            Err(error) => error,
        };
        if error.is_wrong_address() && route.has_next() {
            route = route.next();
            continue;
        }
        let is_unsent =
            matches!(&error, CallError::Http(error) if error.kind == RemoteErrorKind::Unreachable);
        if is_unsent && route.has_next() {
            route = route.next();
            continue;
        }
        if is_unsent && sends < MAX_SENDS {
            tokio::time::sleep(pause(peer.timeouts().back_off, sends)).await;
            sends += 1;
            continue;
        }
        if let Some(task) = message.task.task_id.as_deref().filter(|_| error.code().is_some()) {
            return ended_task(peer, route, task, error).await;
        }
        let error = error.into_remote();
        peer.count_failure(&error);
        return Err(error);
    }
}

async fn open(
    peer: &Peer,
    route: &Route,
    name: &AgentName,
    message: &RemoteMessage,
) -> Result<Source, CallError> {
    let connection = peer.connection(route);
    let has_extension = route.has_extension();
    if route.is_streaming() {
        let params = params(message, name, has_extension, true);
        match connection.stream(&params, message.trace.as_ref()).await {
            // The card promises streams, and the peer has none.
            Err(error) if error.code() == Some(ErrorCode::UnsupportedOperation) => {}
            stream => return stream.map(Source::Stream),
        }
    }
    // Not blocking, so that the id of the task is known before its result.
    let params = params(message, name, has_extension, false);
    Ok(Source::Item(match connection.send(&params, message.trace.as_ref()).await? {
        SendResult::Task(task) => StreamItem::Task(task),
        SendResult::Message(message) => StreamItem::Message(message),
    }))
}

/// A message to a task was refused. The task may have been completed meanwhile; one that ended otherwise cannot be continued.
async fn ended_task(
    peer: &Peer,
    route: Route,
    id: &str,
    refused: CallError,
) -> Result<(Route, Source), RemoteError> {
    if refused.code() == Some(ErrorCode::TaskNotFound) {
        return Err(refused.into_remote());
    }
    match peer.connection(&route).get(id).await {
        Ok(task) if task.status.state == TaskState::Completed => {
            Ok((route, Source::Item(StreamItem::Task(task))))
        }
        Ok(task) if task.status.state.is_terminal() => {
            let message = "its task has ended, so it cannot be continued";
            Err(RemoteError::new(RemoteErrorKind::TaskNotFound, message))
        }
        _ => Err(refused.into_remote()),
    }
}

/// A reply that is being read.
struct Driven {
    peer: Arc<Peer>,
    route: Route,
    reply: Reply,
    /// Failed attempts in a row to get the task back.
    failures: u32,
    may_subscribe: bool,
    /// The task that the message continues, until the peer has accepted the message.
    sent_to: Option<String>,
    /// The error with which the peer refused the message in the stream.
    refused: Option<CallError>,
}

impl Driven {
    fn new(peer: Arc<Peer>, route: Route) -> Self {
        let reply = Reply::default();
        Self { peer, route, reply, failures: 0, may_subscribe: true, sent_to: None, refused: None }
    }

    fn events(
        &mut self,
        first: Source,
    ) -> impl futures_core::Stream<Item = Result<RemoteEvent, RemoteError>> + Send + '_ {
        async_stream::try_stream! {
            let mut source = first;
            let mut polls = 0;
            loop {
                let item = match &mut source {
                    Source::Stream(stream) => match stream.next().await {
                        Some(Ok(item)) => Some(item),
                        Some(Err(error)) => { self.broken(error)?; None }
                        None => None,
                    },
                    Source::Item(_) => match std::mem::replace(&mut source, Source::Lost) {
                        Source::Item(item) => Some(item),
                        _ => None,
                    },
                    Source::Lost => {
                        source = self.recover(&mut polls).await?;
                        continue;
                    }
                };
                let Some(item) = item else {
                    source = Source::Lost;
                    continue;
                };
                (self.failures, self.sent_to) = (0, None);
                for event in self.reply.add(item)? {
                    let is_end = matches!(event, RemoteEvent::Ended(_));
                    yield event;
                    if is_end {
                        return;
                    }
                }
            }
        }
    }

    /// A stream broke, or the peer reported an error in it. Without a task there is nothing to go on with.
    fn broken(&mut self, error: CallError) -> Result<(), RemoteError> {
        if error.code().is_some() && self.sent_to.is_some() {
            self.refused = Some(error);
            return Ok(());
        }
        let is_lost = error.code() == Some(ErrorCode::TaskNotFound);
        if error.code().is_some() && self.reply.task.task_id.is_some() && !is_lost {
            // A task that has ended cannot be subscribed to: its state says more.
            self.may_subscribe = false;
            self.failures += 1;
            if self.failures < MAX_RECONNECTS {
                return Ok(());
            }
        }
        if error.code().is_some() || self.reply.task.task_id.is_none() {
            let error = error.into_remote();
            self.peer.count_failure(&error);
            return Err(error);
        }
        let CallError::Http(error) = error else { return Ok(()) };
        if error.kind == RemoteErrorKind::Malformed {
            return Err(error);
        }
        tracing::debug!(%error, "the stream of a remote task broke");
        Ok(())
    }

    /// Subscribes to the task again, or asks for its state. Fails after [`MAX_RECONNECTS`] attempts in a row.
    async fn recover(&mut self, polls: &mut u32) -> Result<Source, RemoteError> {
        if let (Some(refused), Some(id)) = (self.refused.take(), self.sent_to.take()) {
            return Ok(ended_task(&self.peer, self.route.clone(), &id, refused).await?.1);
        }
        let Some(id) = self.reply.task.task_id.clone() else {
            let message = "it ended the connection before it accepted the message";
            return Err(RemoteError::new(RemoteErrorKind::Malformed, message));
        };
        loop {
            let error = match self.attempt(&id, polls).await {
                Ok(source) => {
                    self.peer.count_success(&self.route);
                    return Ok(source);
                }
                Err(CallError::Http(error)) if error.kind.is_down() => error,
                Err(error) => return Err(error.into_remote()),
            };
            self.failures += 1;
            if self.failures >= MAX_RECONNECTS {
                self.peer.count_failure(&error);
                return Err(error);
            }
            tokio::time::sleep(pause(self.peer.timeouts().back_off, self.failures)).await;
        }
    }

    async fn attempt(&mut self, id: &str, polls: &mut u32) -> Result<Source, CallError> {
        let (poll, back_off) = (self.peer.timeouts().poll, self.peer.timeouts().back_off);
        let connection = self.peer.connection(&self.route);
        if self.route.is_streaming() && self.may_subscribe {
            // A stream that ends at once, again and again, must not be a busy loop.
            if *polls > 0 {
                tokio::time::sleep(back_off).await;
            }
            *polls += 1;
            match connection.subscribe(id).await {
                Ok(stream) => {
                    self.may_subscribe = *polls < MAX_RECONNECTS;
                    return Ok(Source::Stream(stream));
                }
                Err(error @ CallError::Http(_)) => return Err(error),
                Err(error) if error.code() == Some(ErrorCode::TaskNotFound) => return Err(error),
                // The task has ended, or the peer cannot subscribe: its state says more.
                Err(_) => self.may_subscribe = false,
            }
        } else if *polls > 0 {
            tokio::time::sleep(poll.saturating_mul(*polls).min(MAX_POLL)).await;
        }
        *polls = polls.saturating_add(1);
        Ok(Source::Item(StreamItem::Task(connection.get(id).await?)))
    }
}

/// Exponential back-off, randomized between half and all of the delay.
fn pause(base: Duration, attempt: u32) -> Duration {
    let full = base.saturating_mul(1 << attempt.saturating_sub(1).min(5)).min(MAX_PAUSE);
    full / 2 + full.mul_f64(fastrand::f64() / 2.0)
}
