//! What a client needs first that comes back in the middle of a run: how far it had come, as a fresh client understands it.

use std::sync::Arc;

use baton_agui::{AguiMessage, Detail, Faces};
use baton_core::store::{Accepted, MessageQuery, PageRequest};
use baton_core::{RunId, TenantStore, ThreadId};
use baton_engine::Subscription;
use bytes::Bytes;

use super::follow::{Follow, Of};
use super::view::View;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{Answer, Code, Problem};

/// Events that are read at once.
const PAGE: u32 = 200;

/// A place in a thread from which somebody wants to hear.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub thread: ThreadId,
    pub of: Of,
    /// The number of the last event that they have; 0 for none.
    pub after: u64,
}

/// Everything that is needed to go on from a place.
#[derive(Debug)]
pub struct Joined {
    pub follow: Follow,
    pub view: View,
    /// Sent before anything else.
    pub first: Bytes,
    /// Who listens, for as long as they may.
    pub caller: Caller,
}

/// Joins a place. The thread must be one that the caller may see.
pub async fn join(app: &App, caller: &Caller, place: Place, detail: Detail) -> Answer<Joined> {
    let store = app.data(caller);
    let Place { thread, of, after } = place;
    let mut view = View::new(thread, detail, app.faces());
    let mut first = Bytes::new();
    if let Some(run) = under_way(&*store, place).await? {
        first = preamble(&*store, &mut view, run, place).await?;
    }
    // Joined last: what was sent first stands for everything up to `after`, whatever has happened since.
    let follow =
        Follow::new(&app.engine.parts.live, Arc::clone(&store), thread, of, after).counted(&app.metrics);
    Ok(Joined { follow, view, first, caller: caller.clone() })
}

/// Joins a run that was just accepted. The subscription began before that: a new run is followed without reading anything.
pub async fn join_accepted(
    app: &App,
    caller: &Caller,
    thread: ThreadId,
    accepted: &Accepted,
    subscription: Subscription,
) -> Answer<Joined> {
    let run = accepted.run_id;
    if !accepted.is_new {
        return join(app, caller, Place { thread, of: Of::Run(run), after: 0 }, Detail::Person).await;
    }
    let follow = Follow::of_new_run(app.data(caller), subscription, thread, run).counted(&app.metrics);
    let view = View::new(thread, Detail::Person, app.faces());
    Ok(Joined { follow, view, first: Bytes::new(), caller: caller.clone() })
}

/// The run that the last event belongs to, unless it ended with it.
async fn under_way(store: &dyn TenantStore, place: Place) -> Answer<Option<RunId>> {
    if place.after == 0 {
        return Ok(None);
    }
    let last_seq = store.thread(place.thread, None).await?.last_seq;
    if place.after > last_seq {
        let detail = format!("the thread has no event {}; its last is {last_seq}", place.after);
        return Err(Problem::new(Code::CursorExpired, detail).with("oldest", 0).with("latest", last_seq));
    }
    if let Of::Run(run) = place.of {
        let has_begun =
            store.run_events(run, 0, 1).await?.first().is_some_and(|event| event.seq <= place.after);
        let is_left = !store.run_events(run, place.after, 1).await?.is_empty();
        let is_over = store.run(run).await?.status.is_final();
        return Ok((has_begun && (is_left || !is_over)).then_some(run));
    }
    let last = store.events(place.thread, place.after - 1, 1).await?.into_iter().next();
    Ok(last.filter(|event| !event.kind.is_end()).map(|event| event.run_id))
}

/// Brings a fresh client to where the run was.
async fn preamble(store: &dyn TenantStore, view: &mut View, run: RunId, place: Place) -> Answer<Bytes> {
    let mut read = 0;
    'all: loop {
        let page = store.run_events(run, read, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        for event in page {
            if event.seq > place.after {
                break 'all;
            }
            read = event.seq;
            view.remember(&event);
        }
        if is_last {
            break;
        }
    }
    let history = history(store, run, place.thread, view.detail(), view.faces()).await?;
    Ok(view.preamble(history, place.after))
}

/// What was said in the thread before the run, and the message that it is about. Of a long thread only the last part: as much as a
/// page holds.
async fn history(
    store: &dyn TenantStore,
    run: RunId,
    thread: ThreadId,
    detail: Detail,
    faces: &Faces,
) -> Answer<Vec<AguiMessage>> {
    let number = store.run(run).await?.message_number;
    let query = MessageQuery {
        limit: PageRequest::MAX_LIMIT,
        before: Some(number + 1),
        include_internal: detail == Detail::Trace,
        include_system: false,
    };
    let messages = store.messages(thread, query).await?;
    Ok(messages.iter().filter_map(|message| AguiMessage::of(&message.message, detail, faces)).collect())
}
