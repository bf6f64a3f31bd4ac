//! Server-sent events.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderValue, header};

use super::resume::JoinedStream;
use super::{Outgoing, listen};
use crate::app::App;
use crate::metrics::StreamKind;

/// Reconnect delay of the client in milliseconds.
const HELLO: &str = "retry: 3000\n\n";
const HEARTBEAT: &str = ": still here\n\n";
const PARTING: Duration = Duration::from_millis(100);
const RECONNECT: &str = "retry: 500\n: the server is shutting down, reconnect\n\n";
const EXPIRED: &str = ": the credential is not valid any more\n\n";

/// Aborts the connection, so that an incomplete stream does not look complete.
#[derive(Debug, thiserror::Error)]
#[error("the stream ends before what it is about does")]
struct Cut;

pub fn respond(app: &App, joined: JoinedStream) -> Response {
    let guard = app.metrics.stream(StreamKind::Sse);
    let sent = listen(app.clone(), joined);
    let hello = futures_util::stream::once(async { Ok(Bytes::from_static(HELLO.as_bytes())) });
    let body = hello.chain(chunks(sent)).map(move |chunk| {
        let _open = &guard;
        chunk
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn chunks(sent: impl Stream<Item = Outgoing>) -> impl Stream<Item = Result<Bytes, Cut>> {
    sent.flat_map(|sent| {
        let (chunk, is_cut) = match sent {
            Outgoing::Frames(frames) => (frames, false),
            Outgoing::Heartbeat => (Bytes::from_static(HEARTBEAT.as_bytes()), false),
            Outgoing::Reconnect => (Bytes::from_static(RECONNECT.as_bytes()), true),
            Outgoing::Expired => (Bytes::from_static(EXPIRED.as_bytes()), true),
        };
        let cut = futures_util::stream::iter(is_cut.then_some(())).then(|()| async {
            // Gives the previous chunk time to be sent before the connection is aborted.
            tokio::time::sleep(PARTING).await;
            Err(Cut)
        });
        futures_util::stream::iter([Ok(chunk)]).chain(cut)
    })
}
