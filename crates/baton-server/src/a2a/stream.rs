//! The stream of a task: a snapshot first, then its updates in order, until it ends or waits.

use std::pin::{Pin, pin};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use baton_a2a::jsonrpc::{self, RequestId};
use baton_a2a::model::{
    Artifact, ArtifactUpdate, Metadata, StatusUpdate, StreamItem, Task, TaskState, TaskStatus,
};
use baton_a2a::{A2aError, ErrorCode, WireForm, sse};
use baton_core::{MessageId, StoreError, ThreadId};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, header};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::chain;
use super::failure::{A2aFailure, A2aResult};
use super::projection::{TaskProjection, TextEnd};
use super::tasks::{self, ANSWER, Wanted};
use crate::app::App;
use crate::identity::Caller;
use crate::metrics::StreamKind;
use crate::problem::Code;
use crate::stream::follow::{Follow, Item, Of};
use crate::stream::permits::StreamPermit;

/// Pause before the store is read again after a transient error.
const PAUSE: Duration = Duration::from_secs(1);
/// Gives the previous frames time to be sent before the connection is aborted.
const PARTING: Duration = Duration::from_millis(100);
/// Bytes after which no further frames are joined.
const MAX_JOINED: usize = 16 * 1024;

/// Aborts the connection, so that an incomplete stream does not look complete.
#[derive(Debug, thiserror::Error)]
#[error("the stream ends before its task does")]
pub struct Cut;

/// How the items of a stream are written.
#[derive(Debug, Clone)]
pub enum FrameFormat {
    /// Each is the result of a JSON-RPC response.
    Rpc(RequestId, WireForm),
    Rest(WireForm),
}

impl FrameFormat {
    fn frame(&self, item: &StreamItem) -> Bytes {
        match self {
            Self::Rpc(id, form) => {
                sse::frame(&jsonrpc::success(id, form.encode_stream_item(item)).to_string())
            }
            Self::Rest(form) => sse::frame(&form.encode_stream_item(item).to_string()),
        }
    }

    fn text_end(&self) -> TextEnd {
        match self {
            Self::Rest(WireForm::V03Rest) => TextEnd::Whole,
            _ => TextEnd::Empty,
        }
    }

    pub fn error(&self, error: &A2aError) -> Bytes {
        match self {
            Self::Rpc(id, form) => sse::frame(&jsonrpc::failure(id, error, *form).to_string()),
            Self::Rest(form) => sse::error_frame(&error.to_rest(*form).to_string()),
        }
    }
}

/// A subscriber of a task, and what it gets first.
#[derive(Debug)]
pub struct TaskStream {
    pub task: Task,
    /// `None` if the task has ended or waits.
    pub follow: Option<Follow>,
    pub thread: ThreadId,
    pub base: Option<String>,
    /// Whether the stream has all events of a task that begins with it.
    pub sees_all: bool,
    pub permit: StreamPermit,
}

/// Streams a task.
pub fn respond(app: &App, caller: &Caller, stream: TaskStream, format: FrameFormat) -> Response {
    let guard = app.metrics.stream(StreamKind::Sse);
    let updates = updates(app.clone(), caller.clone(), stream, format);
    let body = futures_util::StreamExt::map(updates, move |chunk| {
        let _open = &guard;
        chunk
    });
    event_stream(Body::from_stream(body))
}

/// A response of server-sent events.
pub fn event_stream(body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// What follows the end of a run.
enum AfterRun {
    /// The last updates of the stream.
    Closes(Vec<StreamItem>),
    /// The task continues with this run.
    Continues(Box<Follow>),
}

/// What is sent for one item.
enum Outgoing {
    Frames(Bytes),
    Nothing,
    /// The end of the stream.
    Last(Bytes),
}

/// The updates for one subscriber.
struct Updates {
    app: App,
    caller: Caller,
    task_id: String,
    thread: ThreadId,
    base: Option<String>,
    format: FrameFormat,
    projection: TaskProjection,
    follow: Follow,
    append: Option<AppendFrame>,
}

/// A frame that appends to a text, without what is appended. Most frames of a stream differ in nothing else.
struct AppendFrame {
    message_id: MessageId,
    head: Vec<u8>,
    tail: Vec<u8>,
}

fn updates(
    app: App,
    caller: Caller,
    stream: TaskStream,
    format: FrameFormat,
) -> Pin<Box<dyn Stream<Item = Result<Bytes, Cut>> + Send>> {
    let TaskStream { task, follow, thread, base, sees_all, permit } = stream;
    let mut first = format.frame(&StreamItem::Task(task.clone())).to_vec();
    if follow.is_none() {
        first.extend_from_slice(&format.frame(&final_update(&task)));
    }
    let projection = TaskProjection::new(task.id.clone(), task.context_id, format.text_end(), sees_all);
    let beat = app.settings.heartbeat;
    let (task_id, closing) = (task.id, app.closing.clone());
    Box::pin(async_stream::stream! {
        let _permit = permit;
        yield Ok(Bytes::from(first));
        let Some(follow) = follow else { return };
        let mut updates =
            Updates { app, caller, task_id, thread, base, format, projection, follow, append: None };
        let mut timer = pin!(sleep_until(Instant::now() + beat));
        let mut closing = pin!(closing.cancelled());
        let mut checked = Instant::now();
        loop {
            // Checked here as well, because a busy stream never waits for the timer.
            if checked.elapsed() >= beat {
                if !updates.app.identity.is_still(&updates.caller).await {
                    break;
                }
                checked = Instant::now();
            }
            let next = tokio::select! {
                biased;
                next = updates.follow.next() => next,
                () = timer.as_mut() => {
                    timer.as_mut().reset(Instant::now() + beat);
                    yield Ok(Bytes::from_static(sse::KEEP_ALIVE));
                    continue;
                }
                () = closing.as_mut() => break,
            };
            match updates.outgoing(next).await {
                Outgoing::Frames(frames) => {
                    timer.as_mut().reset(Instant::now() + beat);
                    yield Ok(frames);
                }
                Outgoing::Nothing => {}
                Outgoing::Last(frames) => {
                    yield Ok(frames);
                    return;
                }
            }
        }
        tokio::time::sleep(PARTING).await;
        yield Err(Cut);
    })
}

impl Updates {
    async fn outgoing(&mut self, next: Result<Option<Item>, StoreError>) -> Outgoing {
        let failure = match next {
            Ok(Some(item)) => {
                let frames = self.arrived(&item);
                return if frames.is_empty() { Outgoing::Nothing } else { Outgoing::Frames(frames) };
            }
            Ok(None) => match self.after_run().await {
                Ok(AfterRun::Closes(items)) => {
                    let frames: Vec<Bytes> = items.iter().map(|item| self.format.frame(item)).collect();
                    return Outgoing::Last(frames.concat().into());
                }
                Ok(AfterRun::Continues(next)) => {
                    self.follow = *next;
                    return Outgoing::Nothing;
                }
                Err(failure) => failure,
            },
            Err(error) => error.into(),
        };
        match fatal(failure) {
            Some(error) => Outgoing::Last(self.format.error(&error)),
            None => {
                tokio::time::sleep(PAUSE).await;
                Outgoing::Nothing
            }
        }
    }

    /// The last update of a task whose events tell how it ended.
    fn plain_end(&self) -> Option<StreamItem> {
        let ended = self.projection.plain_end()?;
        // An answer with a schema has a value, which is in no event.
        let agents = self.app.engine.all_agents_of(&self.caller.tenant);
        agents.get(&ended.agent).filter(|agent| agent.output_schema.is_none())?;
        let status = TaskStatus { timestamp: Some(ended.at), ..TaskStatus::new(TaskState::Completed) };
        Some(self.projection.last(status, tasks::end_metadata(&ended.agent, ended.usage)))
    }

    /// The frames of an item and of those behind it that have arrived as well.
    fn arrived(&mut self, first: &Item) -> Bytes {
        let mut joined: Vec<u8> = Vec::new();
        self.add(first, &mut joined);
        while joined.len() < MAX_JOINED {
            let Some(item) = self.follow.try_next() else { break };
            self.add(&item, &mut joined);
        }
        joined.into()
    }

    fn add(&mut self, item: &Item, frames: &mut Vec<u8>) {
        if let Some((message_id, text)) = self.projection.appended(item) {
            if self.append.as_ref().is_none_or(|known| known.message_id != message_id) {
                self.append = AppendFrame::new(&self.projection, &self.format, message_id);
            }
            match &self.append {
                Some(append) => append.write(text, frames),
                None => {
                    frames.extend_from_slice(&self.format.frame(&self.projection.append(message_id, text)));
                }
            }
        } else if let Some(update) = self.projection.project(item) {
            frames.extend_from_slice(&self.format.frame(&update));
        }
    }

    /// Reads the task after its run has ended or parked, unless its events tell how.
    async fn after_run(&self) -> A2aResult<AfterRun> {
        if let Some(end) = self.plain_end() {
            return Ok(AfterRun::Closes(vec![end]));
        }
        let Self { app, caller, .. } = self;
        let chain = chain::find(app, caller, &self.task_id).await?;
        if !tasks::state(&chain).closes_stream() {
            let of = Of::Run(chain.last().run_id);
            let live = &app.engine.parts.live;
            let follow = Follow::new(live, app.data(caller), self.thread, of, self.follow.position());
            return Ok(AfterRun::Continues(Box::new(follow.counted(&app.metrics))));
        }
        let wanted = Wanted { history: Some(0), artifacts: true, base: self.base.as_deref() };
        let task = tasks::task(&*app.data(caller), &chain, wanted).await?;
        let mut items: Vec<StreamItem> =
            task.artifacts.iter().filter(|artifact| !is_sent(artifact)).map(|it| whole(&task, it)).collect();
        items.push(final_update(&task));
        Ok(AfterRun::Closes(items))
    }
}

impl AppendFrame {
    /// Written once with a mark in place of the text, so that it is the same in every form.
    fn new(projection: &TaskProjection, format: &FrameFormat, message_id: MessageId) -> Option<Self> {
        let mark = Uuid::new_v4().to_string();
        let frame = format.frame(&projection.append(message_id, &mark));
        let quoted = format!("\"{mark}\"");
        let at = std::str::from_utf8(&frame).ok()?.find(&quoted)?;
        let (head, tail) = (frame[..at].to_vec(), frame[at + quoted.len()..].to_vec());
        Some(Self { message_id, head, tail })
    }

    fn write(&self, text: &str, frames: &mut Vec<u8>) {
        frames.reserve(self.head.len() + text.len() + self.tail.len() + 8);
        frames.extend_from_slice(&self.head);
        serde_json::to_writer(&mut *frames, text).expect("a text is JSON, and a vector takes everything");
        frames.extend_from_slice(&self.tail);
    }
}

/// Whether an artifact was sent as its text arrived.
fn is_sent(artifact: &Artifact) -> bool {
    artifact.name.as_deref() == Some(ANSWER) && artifact.parts.iter().all(|part| part.as_text().is_some())
}

fn whole(task: &Task, artifact: &Artifact) -> StreamItem {
    StreamItem::ArtifactUpdate(ArtifactUpdate {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        artifact: artifact.clone(),
        append: false,
        last_chunk: true,
        metadata: Metadata::new(),
    })
}

/// The error that ends the stream; `None` for an outage, after which it goes on.
fn fatal(failure: A2aFailure) -> Option<A2aError> {
    match failure {
        A2aFailure::Protocol(error) => Some(error),
        A2aFailure::Http(problem) if problem.code == Code::StoreUnavailable => None,
        A2aFailure::Http(problem) => Some(A2aError::new(ErrorCode::Internal, problem.detail)),
    }
}

/// The last update of a stream.
fn final_update(task: &Task) -> StreamItem {
    StreamItem::StatusUpdate(StatusUpdate {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: task.status.clone(),
        is_final: true,
        metadata: task.metadata.clone(),
    })
}
