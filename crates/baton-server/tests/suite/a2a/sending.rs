//! Sending messages and reading tasks.

use std::sync::Arc;

use baton_core::ThreadId;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{plan, said, text, with};
use crate::artifacts::drawing;
use crate::site::memory;

fn model(answers: usize) -> Scripted {
    Scripted::default().script("assistant", vec![ScriptedTurn::text("Good morning."); answers])
}

#[tokio::test]
async fn d10_a_message_becomes_a_completed_task() {
    let site = plan(&model(1)).start().await;
    let params = text("Hello");
    let task = site.a2a_ok("message/send", &params).await;
    assert_eq!(task["kind"], "task");
    assert_eq!(task["status"]["state"], "completed");
    assert!(ThreadId::parse(task["contextId"].as_str().unwrap()).is_ok(), "a UUID version 4");
    assert_eq!(said(&task["artifacts"][0]), "Good morning.");
    let history = task["history"].as_array().unwrap();
    assert_eq!(history[0]["messageId"], params["message"]["messageId"], "the client's own id");
    assert_eq!((said(&history[0]), said(&history[1])), ("Hello".to_owned(), "Good morning.".to_owned()));
    let again = site.a2a_ok("tasks/get", &json!({ "id": task["id"] })).await;
    assert_eq!(again, task, "reading it gives the same");
    site.end().await;
}

#[tokio::test]
async fn d10_history_length_selects_the_newest_messages() {
    let site = plan(&model(1)).start().await;
    let task = site
        .a2a_ok("message/send", &with(text("Hello"), "/configuration", json!({ "historyLength": 0 })))
        .await;
    assert!(task.get("history").is_none());
    let get = async |length: i64| {
        site.a2a("tasks/get", &json!({ "id": task["id"], "historyLength": length })).await
    };
    let newest = get(1).await;
    assert_eq!(newest["result"]["history"].as_array().unwrap().len(), 1);
    assert_eq!(said(&newest["result"]["history"][0]), "Good morning.");
    assert_eq!(get(-1).await["error"]["code"], -32602);
    site.end().await;
}

#[tokio::test]
async fn x27_a_context_is_kept_and_its_tasks_are_separate() {
    let site = plan(&model(4)).start().await;
    let first = site.a2a_ok("message/send", &text("Hello")).await;
    let context = first["contextId"].clone();
    let second =
        site.a2a_ok("message/send", &with(text("And now?"), "/message/contextId", context.clone())).await;
    assert_eq!(second["contextId"], context);
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["history"].as_array().unwrap().len(), 2, "nothing of the first task");
    assert_eq!(second["artifacts"].as_array().unwrap().len(), 1);
    let chosen = json!("my own context");
    let third = site.a2a_ok("message/send", &with(text("Hello"), "/message/contextId", chosen.clone())).await;
    assert_eq!(third["contextId"], chosen, "any text is echoed");
    let again = site.a2a_ok("tasks/get", &json!({ "id": third["id"] })).await;
    assert_eq!(again["contextId"], chosen);
    let fourth = site.a2a_ok("message/send", &with(text("Hello"), "/message/contextId", chosen)).await;
    let threads: serde_json::Value = site.get("/api/v1/threads").await.json().await.unwrap();
    assert_eq!(threads["data"].as_array().unwrap().len(), 2, "the third and the fourth share a thread");
    assert_eq!(fourth["status"]["state"], "completed");
    site.end().await;
}

#[tokio::test]
async fn a_call_that_does_not_block_returns_a_submitted_task() {
    let gate = Arc::new(Semaphore::new(0));
    let model = Scripted::default().script("assistant", [ScriptedTurn::default().until(&gate).say("Done.")]);
    let site = plan(&model).start().await;
    let params = with(text("Hello"), "/configuration", json!({ "blocking": false }));
    let task = site.a2a_ok("message/send", &params).await;
    assert_eq!(task["status"]["state"], "submitted");
    let id = task["id"].as_str().unwrap();
    site.a2a_until(id, "working").await;
    let busy = with(text("More"), "/message/taskId", task["id"].clone());
    assert_eq!(site.a2a("message/send", &busy).await["error"]["code"], -32004);
    gate.add_permits(1);
    site.a2a_until(id, "completed").await;
    site.end().await;
}

#[tokio::test]
async fn metadata_and_references_of_a_message_are_kept() {
    let site = plan(&model(1)).start().await;
    let params = with(text("Hello"), "/message/metadata", json!({ "parent_task_id": "task-of-the-caller" }));
    let params = with(params, "/message/referenceTaskIds", json!(["some-task"]));
    let task = site.a2a_ok("message/send", &params).await;
    assert_eq!(task["metadata"]["parent_task_id"], "task-of-the-caller");
    assert_eq!(task["metadata"]["agent"], "assistant");
    assert_eq!(task["history"][0]["referenceTaskIds"], json!(["some-task"]));
    site.end().await;
}

#[tokio::test]
async fn files_and_data_of_a_message_reach_the_thread() {
    let site = plan(&model(1)).start().await;
    let parts = json!([
        { "kind": "text", "text": "Read this." },
        { "kind": "file", "file": { "name": "notes.txt", "mimeType": "text/plain", "bytes": "aGVsbG8=" } },
        { "kind": "file", "file": { "mimeType": "image/png", "bytes": "aGVsbG8=" } },
        { "kind": "file", "file": { "name": "far.pdf", "uri": "https://example.com/far.pdf" } },
        { "kind": "data", "data": { "k": 1 } },
    ]);
    let task = site.a2a_ok("message/send", &with(text(""), "/message/parts", parts)).await;
    let sent = task["history"][0]["parts"].as_array().unwrap();
    let uri = sent[1]["file"]["uri"].as_str().unwrap();
    assert!(uri.starts_with(&site.url("/api/v1/artifacts/")), "{uri}");
    assert_eq!(site.http.get(uri).send().await.unwrap().text().await.unwrap(), "hello");
    assert_eq!(sent[2]["file"]["bytes"], "aGVsbG8=");
    assert_eq!(sent[3]["text"], "File: far.pdf https://example.com/far.pdf");
    assert_eq!(sent[4]["data"], json!({ "k": 1 }));
    site.end().await;
}

#[tokio::test]
async fn each_agent_has_its_own_path() {
    let model = Scripted::default()
        .script("assistant", [ScriptedTurn::text("From the assistant.")])
        .script("other", vec![ScriptedTurn::text("From the other."); 2]);
    let file = "---\ndescription: Helps.\n---\nYou help.\n";
    let site = plan(&model).agent("assistant", file).agent("other", file).start().await;
    assert_eq!(said(&site.a2a_ok("message/send", &text("Hi")).await["artifacts"][0]), "From the assistant.");
    for path in ["/a2a/other", "/a2a/other/"] {
        let answer = super::call(site.http.post(site.url(path)), "message/send", &text("Hi")).await;
        assert_eq!(said(&answer["result"]["artifacts"][0]), "From the other.");
    }
    assert_eq!(site.post("/a2a/unknown", &json!({})).await.status(), 404);
    site.end().await;
}

#[tokio::test]
async fn tasks_survive_a_restart() {
    let store = memory().await;
    let site = plan(&model(1)).store(Arc::clone(&store)).start().await;
    let task = site.a2a_ok("message/send", &text("Hello")).await;
    let address = site.url("");
    site.end().await;
    let site = plan(&model(1)).store(store).start().await;
    let again = site.a2a_ok("tasks/get", &json!({ "id": task["id"] })).await;
    assert_eq!(again.to_string(), task.to_string().replace(&address, &site.url("")));
    site.end().await;
}

#[tokio::test]
async fn a_repeated_idempotency_key_gives_the_same_task() {
    let site = plan(&model(2)).start().await;
    let params = text("Hello");
    let send = async || {
        let builder = site.http.post(site.url("/")).header("idempotency-key", "once");
        super::call(builder, "message/send", &params).await["result"]["id"].clone()
    };
    assert_eq!(send().await, send().await);
    site.end().await;
}

#[tokio::test]
async fn a_failed_run_is_a_failed_task_with_its_reason() {
    use baton_core::model::ModelErrorKind;
    let model = Scripted::default().script("assistant", [ScriptedTurn::error(ModelErrorKind::ContentFilter)]);
    let site = plan(&model).start().await;
    let task = site.a2a_ok("message/send", &text("Hello")).await;
    assert_eq!(task["status"]["state"], "failed", "{task:#}");
    assert!(!said(&task["status"]["message"]).is_empty());
    site.end().await;
}

#[tokio::test]
async fn an_old_task_of_a_long_context_keeps_its_messages() {
    let site = plan(&model(120)).start().await;
    let first = site.a2a_ok("message/send", &text("Hello")).await;
    for _ in 0..119 {
        let more = with(text("More"), "/message/contextId", first["contextId"].clone());
        site.a2a_ok("message/send", &more).await;
    }
    assert_eq!(site.a2a_ok("tasks/get", &json!({ "id": first["id"] })).await, first);
    site.end().await;
}

/// D8: files of an answer are file parts of its message and artifacts of the task, in both versions, with addresses to download.
#[tokio::test]
async fn d8_files_of_an_answer_are_file_parts_and_artifacts() {
    let site = plan(&drawing()).start().await;
    let task = site.a2a_ok("message/send", &text("Draw it")).await;
    let artifacts = task["artifacts"].as_array().unwrap();
    let names: Vec<_> = artifacts.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["answer", "chart.png", "page.png"]);
    let file = &artifacts[1]["parts"][0];
    assert_eq!((&file["kind"], &file["file"]["mimeType"]), (&json!("file"), &json!("image/png")));
    let uri = file["file"]["uri"].as_str().unwrap();
    assert!(site.http.get(uri).send().await.unwrap().bytes().await.unwrap().starts_with(b"\x89PNG"));
    let answer = task["history"][1]["parts"].as_array().unwrap();
    assert_eq!(
        (answer.len(), &answer[1]["file"]["uri"], &answer[1]["file"]["name"]),
        (3, &json!(uri), &json!("chart.png"))
    );
    let events = site.a2a_events("message/stream", &text("Draw it")).await;
    let updates = events.iter().filter(|event| event["kind"] == "artifact-update");
    let files = updates.filter(|event| event["artifact"]["name"] == "chart.png").count();
    assert_eq!(files, 1, "{events:#?}");
    let body =
        json!({ "message": { "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": "Draw it" }] } });
    let request = site.http.post(site.url("/message:send")).header("a2a-version", "1.0").json(&body);
    let sent: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
    let part = &sent["task"]["artifacts"][1]["parts"][0];
    assert_eq!(
        (&part["filename"], &part["mediaType"]),
        (&json!("chart.png"), &json!("image/png")),
        "{sent:#}"
    );
    assert!(part["url"].as_str().unwrap().starts_with(&site.url("/api/v1/artifacts/")), "{part}");
    site.end().await;
}
