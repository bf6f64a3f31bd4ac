//! Decisions by `resume`, and decisions and cancellation over a WebSocket.

use baton_core::ThreadId;
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::parked;
use crate::person::Person;
use crate::site::{Plan, Site};
use crate::wire::{Wire, frame};

async fn site() -> Site {
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("Hello."); 2]);
    Plan::new(&model).required().start().await
}

/// Two runs of Ada's thread that wait for an approval each. Returns the thread and the approvals.
async fn two_waiting(site: &Site, ada: &Person<'_>) -> (String, [String; 2]) {
    let thread = ThreadId::random();
    ada.ask(&thread.to_string(), "Hello").await;
    let until = Timestamp::now() + SignedDuration::from_hours(1);
    let park = async || {
        let request =
            parked::shell("assistant/turn:1/tool:1", "assistant", json!({"command": "make"}), until);
        parked::park(&**site.app.store(), "acme", "ada", thread, request).await
    };
    (thread.to_string(), [park().await, park().await])
}

async fn approval(ada: &Person<'_>, id: &str) -> Value {
    ada.see(&format!("/api/v1/approvals/{id}")).await
}

/// A mistake in the second entry leaves the first one undecided.
#[tokio::test]
async fn resume_decides_every_entry_or_none() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, [first, second]) = two_waiting(&site, &ada).await;
    let resume = async |id: &str, payload: Value| -> Value {
        let entry =
            |id: &str, payload: Value| json!({"interruptId": id, "status": "resolved", "payload": payload});
        let body = json!({ "resume": [entry(&first, json!({"approved": true})), entry(id, payload)] });
        ada.post(&format!("/api/v1/threads/{thread}/messages"), &body).await.json().await.unwrap()
    };
    let wrong = resume(&second, json!({"approved": true, "arguments": {"command": 1}})).await;
    assert_eq!(wrong["errors"][0]["pointer"], "/resume/1/payload/arguments/command", "{wrong}");
    let changed = resume(&second, json!({"approved": true, "digest": "f".repeat(64)})).await;
    assert_eq!(changed["code"], "approval_changed", "{changed}");
    let twice = resume(&first, json!({"approved": false})).await;
    assert_eq!(twice["errors"][0]["pointer"], "/resume/1/interruptId", "{twice}");
    for id in [&first, &second] {
        assert_eq!(approval(&ada, id).await["status"], "pending");
    }
    let trail = ada.trail("acme", "approval.decide").await;
    assert_eq!(trail, vec![("ada".to_owned(), "refused".to_owned()); 2]);
    site.end().await;
}

/// A decision without the permission is on record, as over HTTP.
#[tokio::test]
async fn refused_websocket_decision_is_audited() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, [first, _]) = two_waiting(&site, &ada).await;
    let viewer = site.person("acme", "ada", &["viewer"]).await;
    let mut socket = Wire::websocket(site.address, &thread, &viewer.key).await;
    let approve = json!({"type": "approve", "approval_id": first, "decision": "approve"});
    socket.send(frame(&approve.to_string())).await;
    socket.until(r#""code":"permission_denied""#).await;
    assert_eq!(ada.trail("acme", "permission.refuse").await, [("ada".to_owned(), "denied".to_owned())]);
    site.end().await;
}

/// A waiting run is not the active run of its thread.
#[tokio::test]
async fn websocket_cancels_waiting_runs() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, [first, second]) = two_waiting(&site, &ada).await;
    let (first, second) = (approval(&ada, &first).await, approval(&ada, &second).await);
    let mut socket = Wire::websocket(site.address, &thread, &ada.key).await;
    let cancel = json!({"type": "cancel", "mode": "abort"});
    socket.send(frame(&cancel.to_string())).await;
    socket.until("several runs of this thread wait").await;
    let named = json!({"type": "cancel", "mode": "abort", "run_id": first["run_id"]});
    for (request, run) in [(named, &first["run_id"]), (cancel.clone(), &second["run_id"])] {
        socket.send(frame(&request.to_string())).await;
        socket.until(&format!(r#""request":"cancel","run_id":{run},"status":"cancelled""#)).await;
    }
    socket.send(frame(&cancel.to_string())).await;
    socket.until("no run of this thread is active or waiting").await;
    let (elsewhere, _) = two_waiting(&site, &ada).await;
    let mut socket = Wire::websocket(site.address, &elsewhere, &ada.key).await;
    let foreign = json!({"type": "cancel", "run_id": first["run_id"]});
    socket.send(frame(&foreign.to_string())).await;
    socket.until(r#""code":"not_found""#).await;
    site.end().await;
}

/// A repeated request gets the same run, and decides what its first attempt did not reach. The same key for another body is refused.
#[tokio::test]
async fn resume_honours_the_idempotency_key() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, [first, second]) = two_waiting(&site, &ada).await;
    let entry = |id: &str| json!({"interruptId": id, "status": "resolved", "payload": {"approved": true}});
    let send = async |entries: Vec<Value>| {
        let path = format!("/api/v1/threads/{thread}/messages");
        let request = ada.request(http::Method::POST, &path).header("idempotency-key", "once");
        let request = request.header("prefer", "respond-async").json(&json!({ "resume": entries }));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, accepted) = send(vec![entry(&first), entry(&second)]).await;
    assert_eq!(status, 202, "{accepted}");
    let (status, again) = send(vec![entry(&first), entry(&second)]).await;
    assert_eq!((status, &again["run_id"]), (202, &accepted["run_id"]), "{again}");
    let (status, other) = send(vec![entry(&second)]).await;
    assert_eq!((status, &other["code"]), (422, &json!("idempotency_conflict")), "{other}");
    let decided = ada.trail("acme", "approval.decide").await;
    assert_eq!(decided, vec![("ada".to_owned(), "approved".to_owned()); 2]);
    site.end().await;
}

/// A remembered decision is listed, revoked once, and audited. It is never one with other arguments.
#[tokio::test]
async fn remembered_decision_is_revoked() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, [first, _]) = two_waiting(&site, &ada).await;
    let decide = async |body: Value| ada.post(&format!("/api/v1/approvals/{first}"), &body).await;
    let edited = json!({"decision": "approve", "remember": true, "arguments": {"command": "ls"}});
    let refused: Value = decide(edited).await.json().await.unwrap();
    assert_eq!(refused["errors"][0]["pointer"], "/remember", "{refused}");
    assert_eq!(decide(json!({"decision": "approve", "remember": true})).await.status(), 200);
    let remembered = format!("/api/v1/threads/{thread}/remembered");
    let list = ada.see(&remembered).await;
    let expected = json!([{"tool": "shell", "approved": true, "approval_id": first}]);
    assert_eq!(list["data"], expected);
    let viewer = site.person("acme", "ada", &["viewer"]).await;
    let bob = site.person("acme", "bob", &["user"]).await;
    let shell = format!("{remembered}/shell");
    for (who, status) in [(&viewer, 403), (&bob, 404), (&ada, 204), (&ada, 404)] {
        assert_eq!(who.delete(&shell).await.status(), status);
    }
    assert_eq!(ada.see(&remembered).await["data"], json!([]));
    assert_eq!(approval(&ada, &first).await["remember"], false);
    assert_eq!(ada.trail("acme", "approval.forget").await, [("ada".to_owned(), "revoked".to_owned())]);
    site.end().await;
}
