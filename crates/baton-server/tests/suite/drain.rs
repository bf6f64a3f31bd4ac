//! The end: nothing new begins, what was begun ends or is left to others, and everybody is told.

use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{OnBusy, RunStatus};
use baton_core::{AgentName, Part, Rights, RunId, Store, TenantId, ThreadId, UserId};
use baton_engine::{Overrides, RunCaller, RunRequest, SubmitOptions};
use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_server::Drained;
use tokio::net::TcpStream;

use crate::doors::{Gate, doors, with_gate};
use crate::guards::problem;
use crate::site::{LONG, Plan, Site, memory};
use crate::wire::Wire;

fn plan(model: &Scripted) -> Plan {
    Plan::new(model).doors(doors())
}

fn quiet() -> Plan {
    plan(&Scripted::default())
}

#[tokio::test]
async fn who_is_about_to_end_says_so_and_begins_nothing_new() {
    let site = quiet().start().await;
    assert_eq!(site.get("/readyz").await.status(), 200);
    site.app.draining.cancel();
    let ready = site.get("/readyz").await;
    assert_eq!(ready.status(), 503);
    assert_eq!(ready.headers()["connection"], "close");
    assert_eq!(problem(ready).await["code"], "draining");
    let refused = site.http.post(site.url("/test/run")).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "2");
    assert_eq!(problem(refused).await["code"], "draining");
    // What only looks, or lives, goes on.
    for path in ["/livez", "/version", "/test/list"] {
        assert_eq!(site.get(path).await.status(), 200, "{path}");
    }
    site.end().await;
}

#[tokio::test]
async fn a_request_that_is_under_way_gets_its_answer_and_its_connection_is_not_used_again() {
    let gate = Gate::closed();
    let mut site = Plan::new(&Scripted::default()).doors(with_gate(gate.clone())).start().await;
    let mut idle = Wire::connect(site.address).await;
    idle.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    idle.until("ok").await;
    let mut asking = Wire::connect(site.address).await;
    asking.send("POST /test/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").await;
    gate.reached().await;
    site.ask_to_end();
    assert_eq!(idle.rest().await, "", "it is closed without a word");
    gate.open();
    let answer = asking.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    let address = site.address;
    site.end().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn new_connections_are_answered_until_the_grace_is_over() {
    let mut site = quiet().settings(|settings| settings.grace = LONG).start().await;
    site.ask_to_end();
    tokio::time::timeout(LONG, site.app.draining.cancelled()).await.unwrap();
    for _ in 0..3 {
        let new_span_id = reqwest::Client::new();
        assert_eq!(new_span_id.get(site.url("/readyz")).send().await.unwrap().status(), 503);
    }
}

#[tokio::test]
async fn streams_end_when_runs_have_and_whoever_does_not_listen_is_cut_off() {
    let site = quiet().start().await;
    let mut stream = Wire::connect(site.address).await;
    stream.send("GET /test/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    stream.until("hello").await;
    let mut deaf = Wire::connect(site.address).await;
    deaf.send("GET /test/stay HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    deaf.until("hello").await;
    let ended = tokio::spawn(site.end());
    let rest = stream.rest().await;
    assert!(rest.contains("goodbye") && rest.ends_with("0\r\n\r\n"), "{rest}");
    let cut = deaf.rest().await;
    assert!(!cut.contains("goodbye") && !cut.contains("0\r\n\r\n"), "{cut}");
    assert_eq!(ended.await.unwrap(), Drained { finished: 0, left: 0 });
}

/// A WebSocket has taken over its connection, and is still waited for.
#[tokio::test]
async fn websockets_are_told_too() {
    let site = quiet().start().await;
    // That the server is about to end changes nothing in how one begins.
    site.app.draining.cancel();
    let mut socket = Wire::connect(site.address).await;
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13";
    let head = "GET /test/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket";
    socket.send(format!("{head}\r\n{key}\r\n\r\n")).await;
    let begun = socket.until("hello").await;
    assert!(begun.starts_with("HTTP/1.1 101") && begun.contains("connection: upgrade"), "{begun}");
    let ended = tokio::spawn(site.end());
    assert!(socket.rest().await.contains("goodbye"));
    ended.await.unwrap();
}

async fn begin(site: &Site) -> RunId {
    let caller = RunCaller {
        tenant: TenantId::parse("default").unwrap(),
        user: UserId::parse("local").unwrap(),
        thread_id: ThreadId::parse(&uuid::Uuid::new_v4().to_string()).unwrap(),
    };
    let request = RunRequest {
        caller,
        agent: AgentName::parse("assistant").unwrap(),
        input: vec![Part::text("Hello.")],
        overrides: Overrides::default(),
        on_busy: OnBusy::Enqueue,
        entry: None,
        task: baton_engine::RunTask::Answer,
        rights: Rights::all(),
        trace: None,
        metadata: None,
    };
    site.app.engine.submit(request, SubmitOptions::default()).await.unwrap().run_id
}

async fn until(store: &Arc<dyn Store>, run: RunId, status: RunStatus) {
    let store = store.tenant(&TenantId::parse("default").unwrap());
    let reached = async {
        while store.run(run).await.unwrap().status != status {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, reached).await.expect("the status");
}

#[tokio::test]
async fn a_run_that_ends_soon_is_waited_for() {
    let model = Scripted::default()
        .script("assistant", [ScriptedTurn::default().wait(Duration::from_millis(300)).say("Done.")]);
    let store = memory().await;
    let site = plan(&model).store(Arc::clone(&store)).start().await;
    let run = begin(&site).await;
    until(&store, run, RunStatus::Running).await;
    assert_eq!(site.end().await, Drained { finished: 1, left: 0 });
    until(&store, run, RunStatus::Completed).await;
}

/// What a server could not finish, the next one does, without being asked.
#[tokio::test]
async fn a_run_that_takes_too_long_is_left_to_whoever_comes_next() {
    let store = memory().await;
    let slow = Scripted::default().script("assistant", [ScriptedTurn::default().say("Let me see").hang()]);
    let hurried = plan(&slow).settings(|settings| settings.drain = Duration::from_millis(100));
    let site = hurried.store(Arc::clone(&store)).start().await;
    let run = begin(&site).await;
    until(&store, run, RunStatus::Running).await;
    assert_eq!(site.end().await, Drained { finished: 0, left: 1 });
    let next = Scripted::default().script("assistant", [ScriptedTurn::text("Done.")]);
    let site = plan(&next).store(Arc::clone(&store)).start().await;
    until(&store, run, RunStatus::Completed).await;
    site.end().await;
}
