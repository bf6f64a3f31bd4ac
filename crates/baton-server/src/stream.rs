//! What happens in a thread, as it happens.
//!
//! - [`follow`]: events from any number on, kept or just said.
//! - [`view`]: the same as AG-UI, for one listener with their rights, each with the number to come back with.
//! - [`resume`]: what a client needs first that comes back in the middle of a run.
//! - [`sse`] and [`websocket`]: two ways to send it.
//!
//! Nobody who listens keeps a run from going on, and nobody who leaves ends one.

pub mod follow;
pub mod resume;
pub mod sse;
pub mod view;
pub mod websocket;

use std::pin::Pin;
use std::time::Duration;

use futures_util::Stream;
use tokio::time::Instant;

use crate::app::App;
use resume::Joined;
use view::Frame;

/// How long a store is waited for that does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// What is sent to a listener.
#[derive(Debug)]
pub enum Sent {
    /// What one thing that happened became; never empty.
    Frames(Vec<Frame>),
    /// Nothing happened for a while.
    Beat,
    /// The server is about to end: come back.
    Reconnect,
    /// The credential that the stream was opened with is not valid any more.
    Expired,
}

/// Everything for one listener, in order, until the run ends, what is followed is gone, the listener may not listen any more, or the
/// server is about to end.
pub fn listen(app: App, joined: Joined) -> Pin<Box<dyn Stream<Item = Sent> + Send>> {
    let Joined { mut follow, mut view, first, caller } = joined;
    let beat = app.settings.heartbeat;
    Box::pin(async_stream::stream! {
        if !first.is_empty() {
            yield Sent::Frames(first);
        }
        let mut next_beat = Instant::now() + beat;
        // A stream on which a lot happens never beats.
        let mut next_check = next_beat;
        loop {
            if Instant::now() >= next_check {
                if !app.identity.is_still(&caller).await {
                    yield Sent::Expired;
                    return;
                }
                next_check = Instant::now() + beat;
            }
            let happened = tokio::select! {
                biased;
                happened = follow.next() => happened,
                () = tokio::time::sleep_until(next_beat.min(next_check)) => {
                    if Instant::now() >= next_beat {
                        next_beat = Instant::now() + beat;
                        yield Sent::Beat;
                    }
                    continue;
                }
                () = app.closing.cancelled() => {
                    yield Sent::Reconnect;
                    return;
                }
            };
            match happened {
                Ok(Some(item)) => {
                    let frames = view.show(&item, follow.position());
                    if !frames.is_empty() {
                        next_beat = Instant::now() + beat;
                        yield Sent::Frames(frames);
                    }
                }
                Ok(None) => return,
                Err(error) if error.is_passing() => {
                    tracing::warn!(%error, "a stream waits for the store");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    let frames = view.break_off(&error, follow.position());
                    if !frames.is_empty() {
                        yield Sent::Frames(frames);
                    }
                    return;
                }
            }
        }
    })
}
