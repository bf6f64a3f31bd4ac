//! The events of a thread, as they happen.
//!
//! - [`follow`]: events from any number on, stored or published. [`glance`]: what other processes have stored.
//! - [`view`]: the same as AG-UI, for one listener with their rights, each with the number to come back with. [`frames`]: its bytes.
//! - [`resume`]: what a client needs first that comes back in the middle of a run.
//! - [`sse`] and [`websocket`]: two ways to send it.
//!
//! A listener never delays a run, and one that leaves does not end it.

pub mod follow;
pub mod frames;
pub mod glance;
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
use resume::Joined;

/// Until a store that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// What is sent to a listener.
#[derive(Debug)]
pub enum Outgoing {
    /// The frames of one item; never empty.
    Frames(Bytes),
    /// Nothing happened for a while.
    Heartbeat,
    /// The server is about to end: come back.
    Reconnect,
    /// The credential that the stream was opened with is not valid any more.
    Expired,
}

/// Everything for one listener, in order, until the run ends, what is followed is gone, the credential expires, or the server is about
/// to end. The timer and the wait for the end are made once for the stream, not for each event.
pub fn listen(app: App, joined: Joined) -> Pin<Box<dyn Stream<Item = Outgoing> + Send>> {
    let Joined { mut follow, mut view, first, caller } = joined;
    let beat = app.settings.heartbeat;
    Box::pin(async_stream::stream! {
        if !first.is_empty() {
            yield Outgoing::Frames(first);
        }
        let mut sent_at = Instant::now();
        let mut timer = pin!(sleep_until(sent_at + beat));
        let mut closing = pin!(app.closing.cancelled());
        loop {
            // Looked at here as well: a stream on which a lot happens never waits for the timer.
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
                    let frames = view.show(&item, follow.position());
                    if !frames.is_empty() {
                        sent_at = Instant::now();
                        yield Outgoing::Frames(frames);
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
                        yield Outgoing::Frames(frames);
                    }
                    return;
                }
            }
        }
    })
}
