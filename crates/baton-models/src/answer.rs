//! From the bytes of a body to the chunks of a reply.

use std::time::Duration;

use async_stream::try_stream;
use baton_core::model::{Finish, ReplyStream};
use baton_core::{Chunk, TraceParent};
use futures_core::Stream;
use futures_util::StreamExt;
use reqwest::Request;

use crate::fault::Fault;
use crate::frames::{Frame, Frames, Framing};
use crate::transport::{Connection, broken, request_id, traced};

/// How long the end of a body is waited for once the reply is complete.
const FAREWELL: Duration = Duration::from_millis(20);

/// What an adapter knows about its provider's frames.
pub(crate) trait Decode: Send + 'static {
    /// Adds the chunks of one frame. `Some`: the reply is complete.
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, Fault>;

    /// The body has ended without the frame that completes the reply.
    fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, Fault>;
}

/// A reply that is being read.
#[derive(Debug)]
pub(crate) struct Reading<D> {
    frames: Frames,
    decoder: D,
}

impl<D: Decode> Reading<D> {
    pub fn new(framing: Framing, decoder: D) -> Self {
        Self { frames: Frames::new(framing), decoder }
    }

    pub fn feed(&mut self, bytes: &[u8], ready: &mut Vec<Chunk>) -> Result<Option<Finish>, Fault> {
        self.frames.push(bytes);
        while self.frames.advance()? {
            if let Some(finish) = self.decoder.frame(self.frames.frame(), ready)? {
                return Ok(Some(finish));
            }
        }
        Ok(None)
    }

    pub fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, Fault> {
        if self.frames.finish()?
            && let Some(finish) = self.decoder.frame(self.frames.frame(), ready)?
        {
            return Ok(finish);
        }
        self.decoder.end(ready)
    }
}

/// Makes the call when the stream is polled first. The stream owns the connection: dropping it closes it.
pub(crate) fn ask(
    connection: &Connection,
    trace: Option<&TraceParent>,
    request: Result<Request, Fault>,
    framing: Framing,
    decoder: impl Decode,
) -> ReplyStream {
    let connection = connection.clone();
    let request = request.map(|request| traced(request, trace));
    Box::pin(try_stream! {
        let opened = match request {
            Ok(request) => connection.open(request, framing).await,
            Err(fault) => Err(fault),
        };
        let response = opened.map_err(|fault| connection.report(fault))?;
        let request_id = request_id(response.headers());
        let mut body = response.bytes_stream();
        let mut reading = Reading::new(framing, decoder);
        let mut ready = Vec::new();
        loop {
            let outcome = match body.next().await {
                Some(Ok(bytes)) => reading.feed(&bytes, &mut ready),
                Some(Err(error)) => Err(broken(&error)),
                None => reading.end(&mut ready).map(Some),
            };
            // What was understood before something went wrong was said, and comes first.
            for chunk in joined(&mut ready) {
                yield chunk;
            }
            let finish = outcome.map_err(|fault| {
                connection.report(Fault { request_id: request_id.clone(), ..fault })
            })?;
            if let Some(finish) = finish {
                leave(&mut body).await;
                yield Chunk::Done(finish);
                break;
            }
        }
    })
}

/// What arrived together is handed on together. A reader that keeps up sees every delta by itself; one that falls
/// behind gets fewer and larger ones, and catches up.
fn joined(ready: &mut Vec<Chunk>) -> impl Iterator<Item = Chunk> {
    let mut joined: Vec<Chunk> = Vec::with_capacity(ready.len().min(8));
    for chunk in ready.drain(..) {
        match (joined.last_mut(), &chunk) {
            (Some(Chunk::Text(text)), Chunk::Text(more))
            | (Some(Chunk::Reasoning(text)), Chunk::Reasoning(more)) => {
                text.push_str(more);
            }
            (Some(Chunk::Arguments { index, delta }), Chunk::Arguments { index: same, delta: more })
                if index == same =>
            {
                delta.push_str(more);
            }
            _ => joined.push(chunk),
        }
    }
    joined.into_iter()
}

/// Only a connection whose body was read to its end goes back to the pool. The end is mostly there already; a server
/// that keeps the body open is not waited for.
async fn leave(body: &mut (impl Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin)) {
    let rest = async { while let Some(Ok(_)) = body.next().await {} };
    let _ = tokio::time::timeout(FAREWELL, rest).await;
}
