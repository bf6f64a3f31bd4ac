//! Streams of tasks.

use std::sync::Arc;

use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{frames, plan, request, said, text, with};
use crate::site::Site;

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["kind"].as_str().unwrap_or("error")).collect()
}

/// The text of an artifact after all updates.
fn assembled(events: &[Value]) -> String {
    let mut text = String::new();
    for update in events.iter().filter(|event| event["kind"] == "artifact-update") {
        if update["append"] != true {
            text.clear();
        }
        text.push_str(&said(&update["artifact"]));
    }
    text
}

#[tokio::test]
async fn d10_a_stream_begins_with_the_task_and_ends_with_its_final_status() {
    let model =
        Scripted::default().script("assistant", [ScriptedTurn::default().say("Good ").say("morning.")]);
    let site = plan(&model).start().await;
    let events = site.a2a_events("message/stream", &text("Hello")).await;
    assert_eq!(events[0]["kind"], "task");
    assert_eq!(events[0]["status"]["state"], "submitted");
    assert_eq!(events[1]["status"]["state"], "working");
    assert_eq!(assembled(&events), "Good morning.");
    let last = events.last().unwrap();
    assert_eq!((&last["kind"], &last["final"]), (&json!("status-update"), &json!(true)));
    assert_eq!(last["status"]["state"], "completed");
    let finals = events.iter().filter(|event| event["final"] == true).count();
    assert_eq!(finals, 1, "{:?}", kinds(&events));
    let id = &events[0]["id"];
    assert!(events[1..].iter().all(|event| event["taskId"] == *id));
    let task = site.a2a_ok("tasks/get", &json!({ "id": id })).await;
    assert_eq!(said(&task["artifacts"][0]), "Good morning.");
    let chunk = events.iter().find(|event| event["kind"] == "artifact-update").unwrap();
    assert_eq!(chunk["artifact"]["artifactId"], task["artifacts"][0]["artifactId"], "the same artifact");
    site.end().await;
}

#[tokio::test]
async fn a_stream_of_1_0_names_its_items_by_member() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("Hi.")]);
    let site = plan(&model).start().await;
    let params =
        json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Hello" }] } });
    let events = site.a2a_events("SendStreamingMessage", &params).await;
    assert_eq!(events[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    let last = &events.last().unwrap()["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(last.get("final").is_none());
    site.end().await;
}

/// A task whose answer has begun and waits for the gate.
async fn begun(gate: &Arc<Semaphore>) -> (Site, Value) {
    let turn = ScriptedTurn::default().say("One ").until(gate).say("two ").until(gate).say("three.");
    let model = Scripted::default().script("assistant", [turn]);
    let site = plan(&model).start().await;
    let params = with(text("Hello"), "/configuration", json!({ "blocking": false }));
    let task = site.a2a_ok("message/send", &params).await;
    site.a2a_until(task["id"].as_str().unwrap(), "working").await;
    (site, json!({ "id": task["id"] }))
}

#[tokio::test]
async fn many_subscribers_see_the_same_order_and_do_not_affect_each_other() {
    let gate = Arc::new(Semaphore::new(0));
    let (site, id) = begun(&gate).await;
    let subscribe = || site.http.post(site.url("/")).json(&request("tasks/resubscribe", &id)).send();
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(subscribe().await.unwrap());
    }
    // Some leave before anything is sent, and some in the middle.
    drop(open.drain(..5));
    gate.add_permits(1);
    let mut leaving = open.pop().unwrap();
    leaving.chunk().await.unwrap();
    drop(leaving);
    gate.add_permits(1);
    let seen = futures_util::future::join_all(open.into_iter().map(frames)).await;
    for frames in &seen {
        let events: Vec<Value> = frames.iter().map(|frame| frame["result"].clone()).collect();
        assert_eq!(events[0]["kind"], "task");
        assert_eq!(events.last().unwrap()["status"]["state"], "completed");
        assert_eq!(assembled(&events), "One two three.");
    }
    let updates = |frames: &[Value]| {
        let updates =
            frames.iter().map(|frame| frame["result"].clone()).filter(|event| event["kind"] != "task");
        updates.collect::<Vec<_>>()
    };
    assert!(
        seen.iter().all(|frames| updates(frames) == updates(&seen[0])),
        "the same updates in the same order"
    );
    site.end().await;
}

#[tokio::test]
async fn a_stream_that_is_left_does_not_end_its_task() {
    let gate = Arc::new(Semaphore::new(0));
    let turn = ScriptedTurn::default().say("One ").until(&gate).say("two.");
    let site = plan(&Scripted::default().script("assistant", [turn])).start().await;
    let send = site.http.post(site.url("/")).json(&request("message/stream", &text("Hello")));
    let mut response = send.send().await.unwrap();
    let first = response.chunk().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let first: Value =
        serde_json::from_str(first.lines().next().unwrap().trim_start_matches("data: ")).unwrap();
    drop(response);
    gate.add_permits(1);
    let task = site.a2a_until(first["result"]["id"].as_str().unwrap(), "completed").await;
    assert_eq!(said(&task["artifacts"][0]), "One two.");
    site.end().await;
}

#[tokio::test]
async fn a_server_that_ends_cuts_its_streams() {
    let gate = Arc::new(Semaphore::new(0));
    let (mut site, id) = begun(&gate).await;
    site.app.closing.cancel();
    let subscribe = site.http.post(site.url("/")).json(&request("tasks/resubscribe", &id)).send();
    let mut response = subscribe.await.unwrap();
    let outcome = loop {
        match response.chunk().await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(outcome.is_err(), "an incomplete stream does not look complete");
    site.ask_to_end();
}
