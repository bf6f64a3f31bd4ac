//! The same over HTTP, with a real store: the worker is driven by hand, the subscriber is a client of the server.

use std::sync::Arc;
use std::time::Duration;

use baton_agui::Detail;
use baton_core::event::Event;
use baton_core::message::{Message, Role, Visibility};
use baton_core::store::{Append, Claimed, NewEvent, NewRun, Owner};
use baton_core::{AgentName, MessageId, Part, RunId, Store, TenantId, TenantStore, ThreadId, UserId};
use baton_engine::Publisher;
use baton_models::scripted::Scripted;
use baton_server::stream::follow::Of;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::oracle::check;
use super::script::{Act, Script};
use crate::site::{LONG, Plan, Site, memory};
use crate::wire::Wire;

/// How a client joins.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Thread,
    Run,
    /// With the number of the first event.
    Reconnect,
    WebSocket,
}

/// A thread with a run that the test works on.
struct Hand {
    store: Arc<dyn TenantStore>,
    claimed: Claimed,
    appended: u64,
    publisher: Option<Publisher>,
}

impl Hand {
    /// Before the server starts, so that it finds nothing to work on.
    async fn begin(store: &dyn Store) -> Self {
        let owner = Owner("by hand".into());
        store.beat(&owner, Duration::from_mins(10)).await.unwrap();
        let store = store.tenant(&TenantId::parse("default").unwrap());
        let (thread_id, run_id) = (ThreadId::random(), RunId::from_uuid(Uuid::now_v7()));
        store.accept(new_run(thread_id, run_id)).await.unwrap();
        let claimed = store.claim(thread_id, &owner).await.unwrap().unwrap();
        Self { store, claimed, appended: 0, publisher: None }
    }

    /// Does one act, or only as much of it as reaches the store.
    async fn act(&mut self, site: &Site, act: &Act, is_published: bool) {
        let claim = &self.claimed.claim;
        match act {
            Act::Commit(events) => {
                self.appended += 1;
                let events = events.iter().map(new_event).collect();
                let append = Append { number: self.appended, events, ..Append::default() };
                self.store.append(claim, Arc::new(append)).await.unwrap();
            }
            Act::Claim(_) if is_published => {
                let live = &site.app.engine.parts.live;
                self.publisher = Some(live.publisher(self.store.tenant(), claim.thread_id, claim.run_id));
            }
            Act::Publish(event) if is_published => {
                let (thread_id, run_id) = (claim.thread_id, claim.run_id);
                let event = Event { thread_id, run_id, ..Event::clone(event) };
                self.publisher.as_ref().expect("claimed").publish(&Arc::new(event));
            }
            Act::Release if is_published => self.publisher = None,
            Act::Claim(_) | Act::Publish(_) | Act::Release => {}
        }
    }

    fn head(&self, by: By) -> String {
        let (thread, run) = (self.claimed.claim.thread_id, self.claimed.claim.run_id);
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13";
        let (path, headers) = match by {
            By::Thread => (format!("threads/{thread}/events"), String::new()),
            By::Run => (format!("runs/{run}/events"), String::new()),
            By::Reconnect => (format!("threads/{thread}/events"), "Last-Event-ID: 1\r\n".to_owned()),
            By::WebSocket => (
                format!("threads/{thread}/ws"),
                format!("Connection: Upgrade\r\nUpgrade: websocket\r\n{key}\r\n"),
            ),
        };
        format!("GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
    }
}

fn new_run(thread_id: ThreadId, run_id: RunId) -> NewRun {
    let message = Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text("Hello")],
        created_at: Timestamp::now(),
    };
    NewRun::new(thread_id, UserId::parse("local").unwrap(), AgentName::parse("assistant").unwrap(), message)
}

fn new_event(event: &Event) -> NewEvent {
    let Event { at, agent, path, visibility, kind, .. } = event.clone();
    NewEvent { at, agent, path, visibility, kind }
}

/// A connection and everything that came over it.
struct Client {
    wire: Wire,
    got: String,
}

impl Client {
    async fn until(&mut self, text: &str) {
        if !self.got.contains(text) {
            let more = self.wire.until(text).await;
            self.got.push_str(&more);
        }
    }

    /// Every JSON object that an event is, whatever is around it. The last one may not have arrived in full.
    fn events(&self) -> Vec<Value> {
        let (mut rest, mut events) = (self.got.as_str(), Vec::new());
        while let Some(at) = rest.find("{\"type\":") {
            let mut values = serde_json::Deserializer::from_str(&rest[at..]).into_iter();
            let Some(Ok(event)) = values.next() else { break };
            events.push(event);
            rest = &rest[at + values.byte_offset()..];
        }
        events
    }

    /// Everything up to the end of the run.
    async fn all(mut self) -> Vec<Value> {
        self.until("\"RUN_FINISHED\"").await;
        loop {
            let events = self.events();
            if events.iter().any(|event| event["type"] == "RUN_FINISHED") {
                return events;
            }
            let more = self.wire.until("}").await;
            self.got.push_str(&more);
        }
    }
}

/// Joins when `join` acts are done and those up to `read` have reached the store; the others are published afterwards.
async fn interleave(site: &Site, script: &Script, mut hand: Hand, by: By, [join, read]: [usize; 2]) {
    for (at, act) in script.acts[..read].iter().enumerate() {
        hand.act(site, act, at < join).await;
    }
    let mut client = Client { wire: Wire::connect(site.address).await, got: String::new() };
    client.wire.send(hand.head(by)).await;
    client.until("\r\n\r\n").await;
    if script.acts[..read].iter().any(|act| matches!(act, Act::Commit(_))) {
        // What is stored was read by now.
        client.until("RUN_STARTED").await;
    }
    for act in &script.acts[join..read] {
        if !matches!(act, Act::Commit(_)) {
            hand.act(site, act, true).await;
        }
    }
    for act in &script.acts[read..] {
        hand.act(site, act, true).await;
    }
    let after = u64::from(by == By::Reconnect);
    let context = format!("by {by:?}, joined at {join}, read at {read}");
    let sent = client.all().await;
    assert_eq!(sent.iter().filter(|event| event["type"] == "RUN_STARTED").count(), 1, "{context}");
    check(script, Of::Thread, after, Detail::Person, &sent, &context);
}

async fn check_all(by: By, earliest: usize) {
    let script = Script::one_run();
    let last = script.acts.len();
    let all: Vec<_> =
        (earliest..=last).flat_map(|join| (join..=last).map(move |read| [join, read])).collect();
    let store = memory().await;
    let mut hands = Vec::new();
    for _ in &all {
        hands.push(Hand::begin(&*store).await);
    }
    let site = Plan::new(&Scripted::default()).store(store).settings(|settings| {
        settings.limits.requests_per_minute = std::num::NonZeroU32::MAX;
    });
    let site = site.start().await;
    for (points, hand) in all.into_iter().zip(hands) {
        let walk = interleave(&site, &script, hand, by, points);
        tokio::time::timeout(LONG, walk).await.expect("the stream goes on");
    }
    site.end().await;
}

#[tokio::test]
async fn thread_stream_over_http_is_whole_wherever_it_joins() {
    check_all(By::Thread, 0).await;
}

#[tokio::test]
async fn run_stream_over_http_is_whole_wherever_it_joins() {
    check_all(By::Run, 0).await;
}

#[tokio::test]
async fn reconnected_stream_over_http_is_whole_wherever_it_joins() {
    check_all(By::Reconnect, Script::one_run().committed(1)).await;
}

#[tokio::test]
async fn websocket_is_whole_wherever_it_joins() {
    check_all(By::WebSocket, 0).await;
}
