//! Limits that keep one client from taking what others need.

use std::num::NonZeroU32;

use baton_core::store::RunStatus;
use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_server::a2a::settings::A2aSettings;
use futures_util::future::join_all;
use http::{Method, StatusCode};
use serde_json::json;

use crate::guards::problem;
use crate::person::{Person, new_thread};
use crate::site::Plan;

/// A12: a person can always leave and stop, also when the tenant has used up its requests.
#[tokio::test]
async fn a12_exit_and_cancel_are_exempt_from_the_rate_limit() {
    let site = Plan::new(&Scripted::default().script("assistant", [ScriptedTurn::default().hang()]))
        .required()
        .settings(|settings| {
            settings.limits.requests_per_minute = NonZeroU32::new(4).unwrap();
            settings.a2a = Some(A2aSettings::default());
        })
        .start()
        .await;
    let ann = site.person("acme", "ann", &["admin"]).await;
    let thread = new_thread();
    let run = ann.begin(&thread, "Hello").await;
    let status =
        async |method, path: &str| ann.request(method, path).send().await.expect("an answer").status();
    while status(Method::GET, "/version").await != StatusCode::TOO_MANY_REQUESTS {}
    let exit = status(Method::DELETE, &format!("/api/v1/threads/{thread}/handoff")).await;
    assert_eq!(exit, StatusCode::CONFLICT, "there is no handoff, and that is found out");
    assert_eq!(rpc(&ann, "tasks/get", &run).await, StatusCode::TOO_MANY_REQUESTS);
    for path in [
        format!("/v1/tasks/{}:cancel", uuid::Uuid::new_v4()),
        format!("/tasks/{}:cancel", uuid::Uuid::new_v4()),
    ] {
        assert_eq!(status(Method::POST, &path).await, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(rpc(&ann, "tasks/cancel", &run).await, StatusCode::OK);
    let again = status(Method::POST, &format!("/api/v1/runs/{run}/cancel")).await;
    assert_ne!(again, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(Method::GET, "/version").await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(site.get("/readyz").await.status(), StatusCode::OK);
    let record = site.app.store().tenant(&baton_core::TenantId::parse("acme").unwrap());
    let record = record.run(baton_core::RunId::parse(&run).unwrap()).await.unwrap();
    assert_eq!(record.status, RunStatus::Cancelled);
    site.end().await;
}

async fn rpc(ann: &Person<'_>, method: &str, task: &str) -> StatusCode {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "id": task } });
    ann.post("/", &body).await.status()
}

#[tokio::test]
async fn probes_share_one_query_of_the_store() {
    let site = Plan::new(&Scripted::default()).start().await;
    let before = site.app.store().load().statements;
    let probes = join_all((0..50).map(|_| site.get("/readyz"))).await;
    assert!(probes.iter().all(|answer| answer.status() == 200));
    let asked = site.app.store().load().statements - before;
    // The store also renews its lease and looks for work in the meantime.
    assert!(asked < 40, "{asked} statements for 50 probes");
    site.app.store().close().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(problem(site.get("/readyz").await).await["code"], "store_unavailable");
}

#[tokio::test]
async fn compressed_bodies_are_refused() {
    let site = Plan::new(&Scripted::default()).start().await;
    let path = format!("/api/v1/threads/{}/messages", new_thread());
    for (encoding, expected) in [("gzip", 415), ("identity, gzip", 415), ("identity", 200)] {
        let request = site.http.post(site.url(&path)).header("content-encoding", encoding);
        let request = request.header("content-type", "application/json").header("accept", "application/json");
        let answer = request.body(r#"{"content": "Hello"}"#).send().await.unwrap();
        assert_eq!(answer.status(), expected, "{encoding}");
        if expected == 415 {
            let problem = problem(answer).await;
            assert_eq!(problem["code"], "unsupported_media_type");
            assert!(problem["detail"].as_str().unwrap().contains("Content-Encoding"), "{problem}");
        }
    }
    site.end().await;
}

/// One user cannot take the streams of the others, whatever the transport.
#[tokio::test]
async fn streams_of_a_user_are_limited_and_no_run_begins_for_a_refused_one() {
    let answers = (0..4).map(|_| ScriptedTurn::text("Hello."));
    let site = Plan::new(&Scripted::default().script("assistant", answers))
        .required()
        .settings(|settings| {
            settings.limits.max_streams_per_user = 3;
            settings.limits.max_streams_per_tenant = 4;
            settings.a2a = Some(A2aSettings::default());
        })
        .start()
        .await;
    let (ann, bob) =
        (site.person("acme", "ann", &["admin"]).await, site.person("acme", "bob", &["admin"]).await);
    let eve = site.person("other", "eve", &["admin"]).await;
    let thread = new_thread();
    ann.ask(&thread, "Hello").await;
    let events = format!("/api/v1/threads/{thread}/events");
    let mut open = vec![ann.get(&events).await, ann.get(&events).await];
    let socket = crate::wire::Wire::websocket(site.address, &thread, &ann.key).await;
    let refused = ann.get(&events).await;
    assert_eq!(refused.headers()["retry-after"], "5");
    let refused = problem(refused).await;
    assert_eq!((&refused["code"], &refused["status"]), (&json!("too_many_streams"), &json!(429)));
    let new = new_thread();
    let message = ann.post(&format!("/api/v1/threads/{new}/messages"), &json!({ "content": "Hello" })).await;
    assert_eq!(problem(message).await["code"], "too_many_streams");
    assert_eq!(ann.get(&format!("/api/v1/threads/{new}")).await.status(), 404, "nothing was accepted");
    let parts = json!([{ "kind": "text", "text": "Hello" }]);
    let params =
        json!({ "message": { "role": "user", "messageId": "m", "kind": "message", "parts": parts } });
    let stream = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params });
    assert_eq!(problem(ann.post("/", &stream).await).await["code"], "too_many_streams");
    let told = ann.ask(&new, "without a stream").await;
    assert_eq!(told["status"], "completed");
    let other = new_thread();
    bob.ask(&other, "Hello").await;
    let own = format!("/api/v1/threads/{other}/events");
    open.push(bob.get(&own).await);
    assert!(problem(bob.get(&own).await).await["detail"].as_str().unwrap().contains("tenant"));
    assert_eq!(
        eve.post(&format!("/api/v1/threads/{}/messages", new_thread()), &json!({ "content": "Hi" }))
            .await
            .status(),
        200
    );
    drop((socket, open));
    let again = async {
        while ann.get(&events).await.status() != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::site::LONG, again).await.expect("closed streams are not counted");
    site.end().await;
}

/// A user's open runs are limited, and another user of the tenant is not affected.
#[tokio::test]
async fn runs_of_a_user_are_limited() {
    let stalled = Scripted::default().script("assistant", (0..4).map(|_| ScriptedTurn::default().hang()));
    let site = Plan::new(&stalled)
        .required()
        .settings(|settings| settings.limits.max_concurrent_runs_per_user = 2)
        .start()
        .await;
    let (ann, bob) =
        (site.person("acme", "ann", &["admin"]).await, site.person("acme", "bob", &["admin"]).await);
    let threads = [new_thread(), new_thread()];
    let runs = [ann.begin(&threads[0], "one").await, ann.begin(&threads[1], "two").await];
    let send = async |who: &Person<'_>| {
        let path = format!("/api/v1/threads/{}/messages", new_thread());
        let request = who.request(Method::POST, &path).header("prefer", "respond-async");
        request.json(&json!({ "content": "three" })).send().await.expect("an answer")
    };
    let refused = send(&ann).await;
    assert!(refused.headers().contains_key("retry-after"));
    let refused = problem(refused).await;
    assert_eq!(refused["code"], "too_many_runs");
    assert!(refused["detail"].as_str().unwrap().contains("limit of a user"), "{refused}");
    assert_eq!(send(&bob).await.status(), 202);
    let cancelled = ann.post(&format!("/api/v1/runs/{}/cancel", runs[0]), &json!({ "mode": "abort" })).await;
    assert_eq!(cancelled.status(), 200);
    ann.until(&runs[0], RunStatus::Cancelled).await;
    assert_eq!(send(&ann).await.status(), 202);
    site.end().await;
}
