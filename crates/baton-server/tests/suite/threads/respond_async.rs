//! Messages of callers that do not wait for the run.

use baton_core::store::RunStatus;
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use reqwest::Response;
use serde_json::{Value, json};

use super::{counting, start};
use crate::described::body;
use crate::person::{Person, new_thread};

const ROUTE: &str = "/api/v1/threads/{thread_id}/messages";

async fn send(person: &Person<'_>, thread: &str, headers: &[(&str, &str)], message: Value) -> Response {
    let request = person.request(Method::POST, &format!("/api/v1/threads/{thread}/messages")).json(&message);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.expect("an answer")
}

const PREFER: (&str, &str) = ("prefer", "wait=5, respond-async");

#[tokio::test]
async fn respond_async_answers_when_the_message_is_kept() {
    let site = start(&Scripted::default().script("assistant", [ScriptedTurn::text("").hang()])).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let response = send(&ada, &thread, &[PREFER], json!({ "content": "Hello" })).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["preference-applied"]),
        (202, &"respond-async".parse().unwrap())
    );
    let accepted = body(response, "post", ROUTE).await;
    assert_eq!(accepted["thread_id"], json!(thread));
    let status = accepted["status"].as_str().unwrap();
    assert!(["queued", "running"].contains(&status), "{status}");
    let history = ada.see(&format!("/api/v1/threads/{thread}/messages")).await;
    assert_eq!(history["data"][0]["message_id"], accepted["message_id"]);
    let run = accepted["run_id"].as_str().unwrap();
    ada.until(run, RunStatus::Running).await;
    let busy = send(&ada, &thread, &[PREFER], json!({ "content": "Hello", "on_busy": "reject" })).await;
    assert_eq!(busy.status(), 409);
    assert!(busy.headers().get("preference-applied").is_none());
    ada.delete(&format!("/api/v1/threads/{thread}")).await;
    site.end().await;
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_ids() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let once = [PREFER, ("idempotency-key", "order-42"), ("accept", "application/json")];
    let first: Value = send(&ada, &thread, &once, json!({ "content": "Hello" })).await.json().await.unwrap();
    ada.until(first["run_id"].as_str().unwrap(), RunStatus::Completed).await;
    let again: Value = send(&ada, &thread, &once, json!({ "content": "Hello" })).await.json().await.unwrap();
    assert_eq!(again["status"], "completed");
    assert_eq!((&again["run_id"], &again["message_id"]), (&first["run_id"], &first["message_id"]));
    assert_eq!(send(&ada, &thread, &once, json!({ "content": "Other" })).await.status(), 422);
    let waited = send(
        &ada,
        &thread,
        &[("accept", "application/json"), ("prefer", "wait=1")],
        json!({ "content": "Hi" }),
    );
    assert_eq!(waited.await.status(), 200, "other preferences are ignored");
    assert_eq!(
        send(&ada, &thread, &[PREFER, ("accept", "text/html")], json!({ "content": "Hi" })).await.status(),
        406
    );
    site.end().await;
}
