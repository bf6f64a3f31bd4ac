//! From the bytes of a body to the chunks of a reply.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use async_stream::try_stream;
use baton_core::model::{Finish, ReplyStream};
use baton_core::{Chunk, TraceParent};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Frame as BodyFrame;

use crate::client::{ResponseBody, broken};
use crate::fault::ModelFault;
use crate::frames::{Frame, FrameReader, Framing};
use crate::transport::{ProviderCall, ProviderConnection, request_id, traced};

/// How long the end of a body is awaited once the reply is complete.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(20);

/// Frames of the body that are handed on together if they have arrived: later ones never wait for the first.
const MAX_JOINED: usize = 32;

/// What an adapter knows about its provider's frames.
pub(crate) trait Decode: Send + 'static {
    /// Adds the chunks of one frame. `Some`: the reply is complete.
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, ModelFault>;

    /// The body has ended without the frame that completes the reply.
    fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, ModelFault>;
}

/// A reply that is being read.
#[derive(Debug)]
pub(crate) struct ReplyReading<D> {
    frames: FrameReader,
    decoder: D,
}

impl<D: Decode> ReplyReading<D> {
    pub fn new(framing: Framing, decoder: D) -> Self {
        Self { frames: FrameReader::new(framing), decoder }
    }

    pub fn feed(&mut self, bytes: &[u8], ready: &mut Vec<Chunk>) -> Result<Option<Finish>, ModelFault> {
        let Self { frames, decoder } = self;
        frames.feed(bytes, |frame| decoder.frame(frame, ready))
    }

    /// Adds the chunks of the next frame of the body; `None` is its end.
    fn read(
        &mut self,
        frame: Option<io::Result<BodyFrame<Bytes>>>,
        ready: &mut Vec<Chunk>,
    ) -> Result<Option<Finish>, ModelFault> {
        match frame {
            Some(Ok(frame)) => match frame.data_ref() {
                Some(bytes) => self.feed(bytes, ready),
                None => Ok(None),
            },
            Some(Err(error)) => Err(broken(&error)),
            None => self.end(ready).map(Some),
        }
    }

    pub fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, ModelFault> {
        let Self { frames, decoder } = self;
        match frames.finish(|frame| decoder.frame(frame, ready))? {
            Some(finish) => Ok(finish),
            None => decoder.end(ready),
        }
    }
}

/// Makes the call when the stream is polled first. The stream owns the connection: dropping it closes it.
pub(crate) fn ask(
    connection: &ProviderConnection,
    trace: Option<&TraceParent>,
    request: Result<ProviderCall, ModelFault>,
    framing: Framing,
    decoder: impl Decode,
) -> ReplyStream {
    let connection = connection.clone();
    let request = request.map(|request| traced(request, trace));
    Box::pin(try_stream! {
        let opened = match request {
            // Boxed: it ends before the reply begins, and the stream lasts as long as the reply.
            Ok(request) => Box::pin(connection.open(request, framing)).await,
            Err(fault) => Err(fault),
        };
        let response = opened.map_err(|fault| connection.report(fault))?;
        let request_id = request_id(response.headers());
        let mut body = response.into_body();
        let mut reading = ReplyReading::new(framing, decoder);
        let mut ready = Vec::new();
        let mut is_begun = false;
        loop {
            let mut outcome = reading.read(body.frame().await, &mut ready);
            for _ in 0..MAX_JOINED {
                if !is_begun || !matches!(outcome, Ok(None)) {
                    break;
                }
                if matches!(body, ResponseBody::Pooled(_)) {
                    // The connection's task delivers the next frame only when this one was taken, so it gets its turn first.
                    give_way().await;
                }
                let Some(next) = body.frame().now_or_never() else { break };
                outcome = reading.read(next, &mut ready);
            }
            is_begun |= !ready.is_empty();
            // What was understood before something went wrong was said, and comes first.
            ready.dedup_by(|next, chunk| join(chunk, next));
            for chunk in ready.drain(..) {
                yield chunk;
            }
            let finish = outcome.map_err(|fault| {
                connection.report(ModelFault { request_id: request_id.clone(), ..fault })
            })?;
            if let Some(finish) = finish {
                leave(&mut body).await;
                yield Chunk::Done(finish);
                break;
            }
        }
    })
}

/// Lets the tasks run that were woken before. Unlike [`tokio::task::yield_now`], it does not wait until the worker has no other task
/// and has polled for I/O.
async fn give_way() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Appends `next` to `chunk` if it continues it. What arrived together is handed on together: a reader that keeps up sees
/// every delta by itself; one that falls behind gets fewer and larger ones, and catches up.
fn join(chunk: &mut Chunk, next: &Chunk) -> bool {
    match (chunk, next) {
        (Chunk::Text(text), Chunk::Text(more)) | (Chunk::Reasoning(text), Chunk::Reasoning(more)) => {
            text.push_str(more);
        }
        (Chunk::Arguments { index, delta }, Chunk::Arguments { index: same, delta: more })
            if index == same =>
        {
            delta.push_str(more);
        }
        _ => return false,
    }
    true
}

/// Only a connection whose body was read to its end goes back to the pool. The end is mostly there already; a server
/// that keeps the body open is not waited for.
async fn leave(body: &mut ResponseBody) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
}
