//! Tasks that wait: approvals, cancellation.

use std::sync::Arc;

use baton_core::ThreadId;
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{plan, said, text, with};
use crate::parked;
use crate::site::Site;

/// The task of a run that waits for the approval of a call.
async fn waiting(site: &Site) -> (Value, String) {
    let until = Timestamp::now() + SignedDuration::from_hours(1);
    let request = parked::shell("assistant/turn:1/tool:1", "assistant", json!({ "command": "make" }), until);
    let approval = parked::park(&**site.app.store(), "default", "local", ThreadId::random(), request).await;
    let found: Value = site.get(&format!("/api/v1/approvals/{approval}")).await.json().await.unwrap();
    (found["run_id"].clone(), approval)
}

async fn status(site: &Site, approval: &str) -> Value {
    let found: Value = site.get(&format!("/api/v1/approvals/{approval}")).await.json().await.unwrap();
    found["status"].clone()
}

#[tokio::test]
async fn a_call_that_needs_approval_is_input_required_until_the_answer_is_clear() {
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("Done."); 3]);
    let site = plan(&model).start().await;
    let (task, approval) = waiting(&site).await;
    let found = site.a2a_ok("tasks/get", &json!({ "id": task })).await;
    assert_eq!(found["status"]["state"], "input-required");
    assert!(said(&found["status"]["message"]).contains("Answer yes or no"));
    let data = &found["status"]["message"]["parts"][1]["data"];
    assert_eq!((&data["approval_id"], &data["tool"]), (&json!(approval), &json!("shell")));
    let unclear = with(text("What does it do?"), "/message/taskId", task.clone());
    let found = site.a2a_ok("message/send", &unclear).await;
    assert_eq!(found["status"]["state"], "input-required");
    assert!(said(&found["status"]["message"]).contains("not understood"), "{found:#}");
    assert_eq!(status(&site, &approval).await, "pending");
    let events = site.a2a_events("message/stream", &unclear).await;
    assert_eq!(events.last().unwrap()["final"], true);
    assert_eq!(events.last().unwrap()["status"]["state"], "input-required");
    let yes = with(text("yes"), "/message/taskId", task);
    let found = site.a2a_ok("message/send", &yes).await;
    assert_eq!(status(&site, &approval).await, "approved");
    assert!(found["status"]["state"] == "completed" || found["status"]["state"] == "failed", "{found:#}");
    site.end().await;
}

#[tokio::test]
async fn a_data_part_denies_a_call() {
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("Then not."); 3]);
    let site = plan(&model).start().await;
    let (task, approval) = waiting(&site).await;
    let no = with(
        text(""),
        "/message/parts",
        json!([{ "kind": "data", "data": { "approved": false, "reason": "no" } }]),
    );
    site.a2a_ok("message/send", &with(no, "/message/taskId", task)).await;
    assert_eq!(status(&site, &approval).await, "denied");
    site.end().await;
}

#[tokio::test]
async fn a_waiting_task_can_be_cancelled_once() {
    let site = plan(&Scripted::default()).start().await;
    let (task, approval) = waiting(&site).await;
    let cancelled = site.a2a_ok("tasks/cancel", &json!({ "id": task })).await;
    assert_eq!(cancelled["status"]["state"], "canceled");
    assert_eq!(status(&site, &approval).await, "cancelled");
    assert_eq!(site.a2a("tasks/cancel", &json!({ "id": task })).await["error"]["code"], -32002);
    site.end().await;
}

#[tokio::test]
async fn a_working_task_is_cancelled_and_its_stream_says_so() {
    let gate = Arc::new(Semaphore::new(0));
    let turn = ScriptedTurn::default().say("One ").until(&gate).say("two.");
    let site = plan(&Scripted::default().script("assistant", [turn])).start().await;
    let params = with(text("Hello"), "/configuration", json!({ "blocking": false }));
    let task = site.a2a_ok("message/send", &params).await;
    let id = json!({ "id": task["id"] });
    site.a2a_until(task["id"].as_str().unwrap(), "working").await;
    let (events, cancelled) = tokio::join!(site.a2a_events("tasks/resubscribe", &id), async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        site.a2a_ok("tasks/cancel", &id).await
    });
    assert_eq!(cancelled["status"]["state"], "canceled");
    assert_eq!(events.last().unwrap()["status"]["state"], "canceled", "{events:?}");
    assert_eq!(events.last().unwrap()["final"], true);
    site.end().await;
}

/// A remote agent's request for credentials reaches the client as such.
#[tokio::test]
async fn a_request_for_credentials_is_auth_required() {
    let site = plan(&Scripted::default()).start().await;
    let until = Timestamp::now() + SignedDuration::from_hours(1);
    let arguments = json!({ "question": "Sign in", "auth_required": true });
    let request = parked::shell("assistant/turn:1/tool:1", "assistant", arguments, until);
    let approval = parked::park(&**site.app.store(), "default", "local", ThreadId::random(), request).await;
    let found: Value = site.get(&format!("/api/v1/approvals/{approval}")).await.json().await.unwrap();
    let task = site.a2a_ok("tasks/get", &json!({ "id": found["run_id"] })).await;
    assert_eq!(task["status"]["state"], "auth-required");
    site.end().await;
}
