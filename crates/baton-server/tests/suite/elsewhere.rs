//! Events that another process writes reach the streams of this one.

use std::sync::Arc;

use baton_core::{RunId, TenantId, ThreadId};
use baton_engine::{Interest, StreamItem, Subscription, ThreadChannels};
use baton_models::scripted::{Scripted, ScriptedTurn};
use futures_util::FutureExt as _;

use crate::client::{Frame, text_of};
use crate::site::{LONG, Plan, memory};

#[tokio::test]
async fn thread_stream_shows_runs_of_another_process() {
    let model =
        Scripted::default().script("assistant", [ScriptedTurn::text("One. "), ScriptedTurn::text("Two. ")]);
    let store = memory().await;
    let here = Plan::new(&Scripted::default()).store(Arc::clone(&store)).start().await;
    let elsewhere = Plan::new(&model).store(store).start().await;
    let thread = ThreadId::random().to_string();
    elsewhere.say(&thread, "First").await.all().await;
    let mut frames = here.listen(&format!("/api/v1/threads/{thread}/events"), 0).await;
    let mut seen = frames.until(Frame::is_end).await;
    elsewhere.say(&thread, "Second").await.all().await;
    seen.extend(tokio::time::timeout(LONG, frames.until(Frame::is_end)).await.unwrap());
    assert_eq!(text_of(&seen), "One. Two. ");
    assert_eq!(seen.iter().filter(|frame| frame.kind() == "RUN_STARTED").count(), 2);
    here.end().await;
    elsewhere.end().await;
}

fn is_changed(subscription: &mut Subscription) -> bool {
    matches!(subscription.recv().now_or_never(), Some(Some(StreamItem::Changed)))
}

#[test]
fn subscribers_learn_of_a_new_number_once() {
    let (live, tenant, thread) =
        (ThreadChannels::new(), TenantId::parse("acme").unwrap(), ThreadId::random());
    let mut subscription = live.subscribe(&tenant, thread, Interest::Thread);
    live.stored(&tenant, thread, Some(3));
    assert!(is_changed(&mut subscription), "what it has is not known");
    live.stored(&tenant, thread, Some(3));
    assert!(!is_changed(&mut subscription), "nothing is new");
    live.stored(&tenant, thread, Some(4));
    assert!(is_changed(&mut subscription));
    live.stored(&tenant, thread, None);
    assert!(is_changed(&mut subscription), "the thread was deleted");
}

#[test]
fn only_threads_that_nobody_publishes_in_are_asked_about() {
    let (live, tenant) = (ThreadChannels::new(), TenantId::parse("acme").unwrap());
    let [idle, awaited, busy] = [(); 3].map(|()| ThreadId::random());
    let run = RunId::from_uuid(uuid::Uuid::now_v7());
    let subscriptions = [
        live.subscribe(&tenant, idle, Interest::Thread),
        live.subscribe(&tenant, awaited, Interest::Run),
        live.subscribe(&tenant, busy, Interest::Run),
    ];
    let publisher = live.publisher(&tenant, busy, run);
    let asked = |is_all| {
        let mut threads: Vec<ThreadId> =
            live.unpublished(is_all).into_iter().map(|(_, thread)| thread).collect();
        threads.sort();
        threads
    };
    let sorted = |mut threads: Vec<ThreadId>| {
        threads.sort();
        threads
    };
    assert_eq!(asked(false), [awaited]);
    assert_eq!(asked(true), sorted(vec![idle, awaited]));
    drop(publisher);
    assert_eq!(asked(false), sorted(vec![awaited, busy]));
    drop(subscriptions);
    assert_eq!(asked(true), []);
}
