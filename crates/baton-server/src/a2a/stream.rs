//! The stream of a task: a snapshot first, then its updates in order, until it ends or waits.

use std::pin::{Pin, pin};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use baton_a2a::jsonrpc::{self, RequestId};
use baton_a2a::model::{ArtifactUpdate, Metadata, StatusUpdate, StreamItem, Task};
use baton_a2a::{A2aError, ErrorCode, WireForm, sse};
use baton_core::ThreadId;
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, header};
use tokio::time::{Instant, sleep_until};

use super::chain;
use super::failure::{A2aFailure, A2aResult};
use super::projection::{TaskProjection, TextEnd};
use super::tasks::{self, ANSWER, Wanted};
use crate::app::App;
use crate::identity::Caller;
use crate::metrics::StreamKind;
use crate::problem::Code;
use crate::stream::follow::{Follow, Item, Of};

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

/// A stream with one frame, for an error after which nothing follows.
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

fn updates(
    app: App,
    caller: Caller,
    stream: TaskStream,
    format: FrameFormat,
) -> Pin<Box<dyn Stream<Item = Result<Bytes, Cut>> + Send>> {
    let TaskStream { task, follow, thread, base } = stream;
    let (task_id, beat) = (task.id.clone(), app.settings.heartbeat);
    let mut projection = TaskProjection::new(task.id.clone(), task.context_id.clone(), format.text_end());
    Box::pin(async_stream::stream! {
        let is_closed = follow.is_none();
        let last = is_closed.then(|| final_update(&task));
        yield Ok(format.frame(&StreamItem::Task(task)));
        if let Some(last) = last {
            yield Ok(format.frame(&last));
        }
        let Some(mut follow) = follow else { return };
        let mut timer = pin!(sleep_until(Instant::now() + beat));
        let mut closing = pin!(app.closing.cancelled());
        loop {
            let next = tokio::select! {
                biased;
                next = follow.next() => next,
                () = timer.as_mut() => {
                    if !app.identity.is_still(&caller).await {
                        tokio::time::sleep(PARTING).await;
                        yield Err(Cut);
                        return;
                    }
                    yield Ok(Bytes::from_static(sse::KEEP_ALIVE));
                    timer.as_mut().reset(Instant::now() + beat);
                    continue;
                }
                () = closing.as_mut() => {
                    tokio::time::sleep(PARTING).await;
                    yield Err(Cut);
                    return;
                }
            };
            let failure = match next {
                Ok(Some(item)) => {
                    let frames = arrived(&mut follow, &mut projection, &format, &item);
                    if !frames.is_empty() {
                        timer.as_mut().reset(Instant::now() + beat);
                        yield Ok(frames);
                    }
                    continue;
                }
                Ok(None) => match after_run(&app, &caller, &task_id, thread, base.as_deref(), &follow).await {
                    Ok(AfterRun::Closes(items)) => {
                        for item in items {
                            yield Ok(format.frame(&item));
                        }
                        return;
                    }
                    Ok(AfterRun::Continues(next)) => {
                        follow = *next;
                        continue;
                    }
                    Err(failure) => failure,
                },
                Err(error) => error.into(),
            };
            match fatal(failure) {
                Some(error) => {
                    yield Ok(format.error(&error));
                    return;
                }
                None => tokio::time::sleep(PAUSE).await,
            }
        }
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

/// The frames of an item and of those behind it that have arrived as well.
fn arrived(
    follow: &mut Follow,
    projection: &mut TaskProjection,
    format: &FrameFormat,
    first: &Item,
) -> Bytes {
    let mut joined: Vec<u8> = Vec::new();
    let mut add = |item: &Item| -> usize {
        if let Some(update) = projection.project(item) {
            joined.extend_from_slice(&format.frame(&update));
        }
        joined.len()
    };
    let mut length = add(first);
    while length < MAX_JOINED {
        let Some(item) = follow.try_next() else { break };
        length = add(&item);
    }
    joined.into()
}

/// Reads the task after its run has ended or parked.
async fn after_run(
    app: &App,
    caller: &Caller,
    task_id: &str,
    thread: ThreadId,
    base: Option<&str>,
    followed: &Follow,
) -> A2aResult<AfterRun> {
    let chain = chain::find(app, caller, task_id).await?;
    if !tasks::state(&chain).closes_stream() {
        let of = Of::Run(chain.last().run_id);
        let live = &app.engine.parts.live;
        let follow = Follow::new(live, app.data(caller), thread, of, followed.position());
        return Ok(AfterRun::Continues(Box::new(follow.counted(&app.metrics))));
    }
    let wanted = Wanted { history: Some(0), artifacts: true, base };
    let task = tasks::task(&*app.data(caller), &chain, wanted).await?;
    let mut items: Vec<StreamItem> = Vec::new();
    for artifact in &task.artifacts {
        let is_sent = artifact.name.as_deref() == Some(ANSWER)
            && artifact.parts.iter().all(|part| part.as_text().is_some());
        if !is_sent {
            items.push(StreamItem::ArtifactUpdate(ArtifactUpdate {
                task_id: task.id.clone(),
                context_id: task.context_id.clone(),
                artifact: artifact.clone(),
                append: false,
                last_chunk: true,
                metadata: Metadata::new(),
            }));
        }
    }
    items.push(final_update(&task));
    Ok(AfterRun::Closes(items))
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
