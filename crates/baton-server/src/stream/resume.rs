//! Resumes a stream in the middle of a run: rebuilds the state that a fresh client needs first.

use std::sync::Arc;

use baton_agui::{AgentProfiles, AguiMessage, Detail};
use baton_core::store::{AcceptedRun, MessageQuery, PageRequest};
use baton_core::{RunId, TenantStore, ThreadId};
use baton_engine::Subscription;
use bytes::Bytes;

use super::follow::{Follow, Of};
use super::permits::StreamPermit;
use super::view::StreamView;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Code, Problem};

/// Events per query.
const PAGE: u32 = 200;

/// A position in a thread to stream from.
#[derive(Debug, Clone, Copy)]
pub struct StreamPosition {
    pub thread: ThreadId,
    pub of: Of,
    /// Number of the last event that the client has; 0 for none.
    pub after: u64,
}

/// A stream ready to be sent.
#[derive(Debug)]
pub struct JoinedStream {
    pub follow: Follow,
    pub view: StreamView,
    /// Sent before anything else.
    pub first: Bytes,
    /// The subscriber; the stream ends when its credential expires.
    pub caller: Caller,
    pub permit: StreamPermit,
}

/// Joins a stream at a position. The caller must be allowed to read the thread.
pub async fn join(
    app: &App,
    caller: &Caller,
    place: StreamPosition,
    detail: Detail,
) -> ApiResult<JoinedStream> {
    let permit = app.streams.open(caller)?;
    join_with(app, caller, place, detail, permit).await
}

async fn join_with(
    app: &App,
    caller: &Caller,
    place: StreamPosition,
    detail: Detail,
    permit: StreamPermit,
) -> ApiResult<JoinedStream> {
    let store = app.data(caller);
    let StreamPosition { thread, of, after } = place;
    if let Of::Run(run) = of {
        must_have_events(&*store, run).await?;
    }
    let mut view = StreamView::new(thread, detail, app.profiles(caller));
    let mut first = Bytes::new();
    if let Some(run) = under_way(&*store, place).await? {
        first = preamble(&*store, &mut view, run, place).await?;
    }
    // Joined last: the preamble covers everything up to `after`, and later events follow.
    let follow =
        Follow::new(&app.engine.parts.live, Arc::clone(&store), thread, of, after).counted(&app.metrics);
    Ok(JoinedStream { follow, view, first, caller: caller.clone(), permit })
}

/// The stream of a run whose events were removed (`[retention] events`) would never end. The status is read first: a run that ends
/// between the two reads has events.
async fn must_have_events(store: &dyn TenantStore, run: RunId) -> ApiResult<()> {
    if store.run(run).await?.status.is_final() && store.run_events(run, 0, 1).await?.is_empty() {
        let detail = "the events of this run are not kept any more; its messages, result and cost are";
        return Err(Problem::new(Code::CursorExpired, detail));
    }
    Ok(())
}

/// Joins a run that was just accepted. The subscription and the permit must be older than the run: a new run is followed without
/// reading, and is not started for a stream that is refused.
pub async fn join_accepted(
    app: &App,
    caller: &Caller,
    thread: ThreadId,
    accepted: &AcceptedRun,
    subscription: Subscription,
    permit: StreamPermit,
) -> ApiResult<JoinedStream> {
    let run = accepted.run_id;
    if !accepted.is_new {
        let place = StreamPosition { thread, of: Of::Run(run), after: 0 };
        return join_with(app, caller, place, Detail::Person, permit).await;
    }
    let follow = Follow::of_new_run(app.data(caller), subscription, thread, run, accepted.after);
    let follow = follow.counted(&app.metrics);
    let view = StreamView::new(thread, Detail::Person, app.profiles(caller));
    Ok(JoinedStream { follow, view, first: Bytes::new(), caller: caller.clone(), permit })
}

/// The unfinished run that the client's last event belongs to.
async fn under_way(store: &dyn TenantStore, place: StreamPosition) -> ApiResult<Option<RunId>> {
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

/// Replays the run up to the position, so that a fresh client has its state.
async fn preamble(
    store: &dyn TenantStore,
    view: &mut StreamView,
    run: RunId,
    place: StreamPosition,
) -> ApiResult<Bytes> {
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
    let history = history(store, run, place.thread, view.detail(), view.profiles()).await?;
    Ok(view.preamble(history, place.after))
}

/// Messages of the thread up to the run's own, at most [`PageRequest::MAX_LIMIT`].
async fn history(
    store: &dyn TenantStore,
    run: RunId,
    thread: ThreadId,
    detail: Detail,
    profiles: &AgentProfiles,
) -> ApiResult<Vec<AguiMessage>> {
    let number = store.run(run).await?.message_number;
    let query = MessageQuery {
        limit: PageRequest::MAX_LIMIT,
        before: Some(number + 1),
        include_internal: detail == Detail::Trace,
        include_system: false,
    };
    let messages = store.messages(thread, query).await?;
    Ok(messages.iter().filter_map(|message| AguiMessage::of(&message.message, detail, profiles)).collect())
}
