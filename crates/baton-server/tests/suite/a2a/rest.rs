//! REST in both versions.

use std::sync::Arc;

use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{frames, plan};

fn model() -> Scripted {
    Scripted::default().script("assistant", vec![ScriptedTurn::text("Good morning."); 9])
}

fn old() -> Value {
    json!({ "message": { "messageId": "m-1", "role": "ROLE_USER", "content": [{ "text": "Hello" }] },
        "configuration": { "blocking": true } })
}

fn new() -> Value {
    json!({ "message": { "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": "Hello" }] } })
}

#[tokio::test]
async fn d10_rest_of_0_3_is_proto_json() {
    let site = plan(&model()).start().await;
    for base in ["/v1", "/a2a/assistant/v1"] {
        let sent: Value = site.post(&format!("{base}/message:send"), &old()).await.json().await.unwrap();
        let task = &sent["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{sent:#}");
        assert!(task.get("kind").is_none());
        assert_eq!(task["history"][0]["content"][0]["text"], "Hello");
        assert_eq!(task["history"][0]["role"], "ROLE_USER");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Good morning.");
        let id = task["id"].as_str().unwrap();
        for query in ["historyLength=0", "history_length=0"] {
            let got: Value = site.get(&format!("{base}/tasks/{id}?{query}")).await.json().await.unwrap();
            assert_eq!((&got["id"], got.get("history")), (&task["id"], None));
        }
        let cancel = site.http.post(site.url(&format!("{base}/tasks/{id}:cancel"))).send().await.unwrap();
        assert_eq!(cancel.status(), 409);
        let error: Value = cancel.json().await.unwrap();
        assert_eq!((&error["code"], &error["type"]), (&json!(-32002), &json!("TaskNotCancelableError")));
    }
    site.end().await;
}

#[tokio::test]
async fn rest_of_0_3_does_not_block_unless_asked() {
    let site = plan(&model()).start().await;
    let mut body = old();
    body.as_object_mut().unwrap().remove("configuration");
    let sent: Value = site.post("/v1/message:send", &body).await.json().await.unwrap();
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    site.end().await;
}

#[tokio::test]
async fn d10_rest_of_1_0_has_its_own_paths_and_errors() {
    let site = plan(&model()).start().await;
    for base in ["", "/a2a/assistant"] {
        let response = site.post(&format!("{base}/message:send"), &new()).await;
        assert_eq!(response.headers()["content-type"], "application/a2a+json");
        let sent: Value = response.json().await.unwrap();
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent:#}");
        assert_eq!(sent["task"]["history"][0]["parts"][0]["text"], "Hello");
        let missing = site.get(&format!("{base}/tasks/nothing")).await;
        assert_eq!(missing.status(), 404);
        let error: Value = missing.json().await.unwrap();
        assert_eq!(error["error"]["status"], "NOT_FOUND");
        assert_eq!(error["error"]["details"][0]["reason"], "TASK_NOT_FOUND");
    }
    site.end().await;
}

#[tokio::test]
async fn streams_of_rest_have_bare_items() {
    let site = plan(&model()).start().await;
    for (path, body) in [("/v1/message:stream", old()), ("/message:stream", new())] {
        let events = frames(site.post(path, &body).await).await;
        assert_eq!(events[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
        let last = &events.last().unwrap()["statusUpdate"];
        assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
        assert_eq!(last.get("final").is_some(), path.starts_with("/v1"));
    }
    let refused = site.post("/v1/message:stream", &json!({})).await;
    assert_eq!(refused.status(), 400, "a real status before the stream begins");
    site.end().await;
}

#[tokio::test]
async fn a_task_is_subscribed_with_get_and_with_post() {
    let gate = Arc::new(Semaphore::new(0));
    let turn = ScriptedTurn::default().say("One ").until(&gate).say("two.");
    let site = plan(&Scripted::default().script("assistant", [turn])).start().await;
    let mut body = old();
    body["configuration"]["blocking"] = json!(false);
    let sent: Value = site.post("/v1/message:send", &body).await.json().await.unwrap();
    let path = format!("/v1/tasks/{}:subscribe", sent["task"]["id"].as_str().unwrap());
    let (get, post) = (site.get(&path).await, site.http.post(site.url(&path)).send().await.unwrap());
    gate.add_permits(1);
    for response in [get, post] {
        let events = frames(response).await;
        assert_eq!(events.last().unwrap()["statusUpdate"]["final"], true);
    }
    site.end().await;
}

#[tokio::test]
async fn the_web_page_keeps_its_path() {
    let site = plan(&model())
        .settings(|settings| settings.ui = Some(baton_server::ui::UiSite::embedded()))
        .start()
        .await;
    let page = site.http.get(site.url("/")).header("accept", "text/html").send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    assert_eq!(site.get("/v1/chat/completions").await.status(), 404);
    site.end().await;
}
