//! Live events of a thread.
//!
//! - [`follow`]: events from any number on, stored or published. [`glance`]: events stored by other processes.
//! - [`view`]: events as AG-UI, for one subscriber with its permissions, each with its resume position. [`frames`]: their
//!   encoding.
//! - [`resume`]: the state that a client needs when it reconnects in the middle of a run.
//! - [`sse`] and [`websocket`]: the two transports. [`permits`]: how many may be open.
//!
//! A subscriber never delays a run, and disconnecting does not end it.

pub mod follow;
pub mod frames;
pub mod glance;
pub mod permits;
pub mod resume;
pub mod sse;
pub mod view;
pub mod websocket;

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, sleep_until};

use crate::app::App;
use follow::{Follow, Item};
use resume::JoinedStream;
use view::StreamView;

/// Pause before the store is read again after a transient error.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes after which no further frames are joined.
const MAX_JOINED: usize = 16 * 1024;

/// An item to send to a subscriber.
#[derive(Debug)]
pub enum Outgoing {
    /// The frames of the events that arrived together; never empty.
    Frames(Bytes),
    /// Keeps a silent connection open.
    Heartbeat,
    /// The server shuts down: the client should reconnect.
    Reconnect,
    /// The credential of the stream is no longer valid.
    Expired,
}

/// Everything for one subscriber, in order, until the run ends, the thread or run is gone, the credential expires, or the
/// server shuts down. The timer and the shutdown future are created once per stream, not per event.
pub fn listen(app: App, joined: JoinedStream) -> Pin<Box<dyn Stream<Item = Outgoing> + Send>> {
    let JoinedStream { mut follow, mut view, first, caller, permit } = joined;
    let beat = app.settings.heartbeat;
    Box::pin(async_stream::stream! {
        let _permit = permit;
        if !first.is_empty() {
            yield Outgoing::Frames(first);
        }
        let mut sent_at = Instant::now();
        let mut timer = pin!(sleep_until(sent_at + beat));
        let mut closing = pin!(app.closing.cancelled());
        loop {
            // Checked here as well, because a busy stream never waits for the timer.
            if Instant::now() >= timer.deadline() {
                if !app.identity.is_still(&caller).await {
                    yield Outgoing::Expired;
                    return;
                }
                if sent_at + beat <= Instant::now() {
                    yield Outgoing::Heartbeat;
                    sent_at = Instant::now();
                }
                timer.as_mut().reset(sent_at + beat);
            }
            let next = tokio::select! {
                biased;
                next = follow.next() => next,
                () = timer.as_mut() => continue,
                () = closing.as_mut() => {
                    yield Outgoing::Reconnect;
                    return;
                }
            };
            match next {
                Ok(Some(item)) => {
                    let frames = show_arrived(&mut follow, &mut view, &item);
                    if !frames.is_empty() {
                        sent_at = Instant::now();
                        yield Outgoing::Frames(frames);
                    }
                }
                Ok(None) => return,
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "a stream waits for the store");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    let frames = view.break_off(&error, follow.position());
                    if !frames.is_empty() {
                        yield Outgoing::Frames(frames);
                    }
                    return;
                }
            }
        }
    })
}

/// The frames of an item and of those behind it that have arrived as well. Each piece costs the connection a chunk and often a write.
fn show_arrived(follow: &mut Follow, view: &mut StreamView, first: &Item) -> Bytes {
    let first = view.show(first, follow.position());
    let mut joined = Vec::new();
    while joined.len().max(first.len()) < MAX_JOINED {
        let Some(item) = follow.try_next() else { break };
        let frames = view.show(&item, follow.position());
        if joined.is_empty() {
            joined.reserve_exact(first.len() + frames.len());
            joined.extend_from_slice(&first);
        }
        joined.extend_from_slice(&frames);
    }
    if joined.is_empty() { first } else { joined.into() }
}
