//! The handoff extension: a client hands a conversation to an agent, and gets it back.

use baton_core::ThreadId;
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use serde_json::{Value, json};

use super::{call, events, plan, said, text, with};
use crate::person::Person;
use crate::site::Site;

const URI: &str = "https://baton.dev/a2a/extensions/orchestration/v1";
const ASSISTANT: &str = "---\ndescription: Helps.\n---\nYou help.\n";
const MAKER: &str = "---\ndescription: Makes skills.\naccepts_handoff: true\nworkflow:\n  states:\n    - name: ask_name\n      \
                     collect: [{key: name, ask: What is it called?}]\n    - name: done\n---\nYou make skills.\n";
const GUARDED: &str =
    "---\ndescription: Builds.\naccepts_handoff: {permission: 'skill:publish'}\n---\nYou build.\n";

async fn site() -> Site {
    let advance = ScriptedTurn::call("advance_workflow", &json!({ "values": { "name": "greeter" } }));
    let model =
        Scripted::default().script("assistant", vec![ScriptedTurn::text("At your service."); 5]).script(
            "maker",
            [ScriptedTurn::text("What is it called?"), advance, ScriptedTurn::text("It is done.")],
        );
    let plan = plan(&model).agent("assistant", ASSISTANT).agent("maker", MAKER).agent("guarded", GUARDED);
    plan.required().start().await
}

fn request(context: &str) -> Value {
    let data = json!({
        "type": "handoff", "thread_id": context, "source_agent_id": "far-assistant", "target_agent_id": "maker",
        "context_summary": "The user wants a skill.", "conversation_history_count": 1,
        "recent_messages": [{ "role": "user", "content": "create a skill" }],
        "handoff_reason": "create a skill", "preserve_state": true, "return_expected": true,
    });
    let params = with(text(""), "/message/parts", json!([{ "kind": "data", "data": data }]));
    let params = with(params, "/message/contextId", json!(context));
    with(params, "/message/extensions", json!([URI]))
}

fn parts(status: &Value) -> Vec<Value> {
    let parts = status["message"]["parts"].as_array().into_iter().flatten();
    parts.filter(|part| part["kind"] == "data").map(|part| part["data"].clone()).collect()
}

fn part(status: &Value, kind: &str) -> Value {
    parts(status)
        .into_iter()
        .find(|part| part["type"] == kind)
        .unwrap_or_else(|| panic!("{kind} in {status:#}"))
}

async fn send(ada: &Person<'_>, path: &str, params: &Value) -> Value {
    let builder = ada.request(Method::POST, path).header("x-a2a-extensions", URI);
    let answer = call(builder, "message/send", params).await;
    assert!(answer.get("error").is_none(), "{answer:#}");
    answer["result"].clone()
}

#[tokio::test]
async fn c_3_c_4_c_5_a_handoff_is_one_task_from_request_to_return() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let context = ThreadId::random().to_string();
    let task = send(&ada, "/a2a/maker", &request(&context)).await;
    assert_eq!(
        (&task["status"]["state"], &task["contextId"]),
        (&json!("input-required"), &json!(context)),
        "{task:#}"
    );
    let accepted = part(&task["status"], "handoff_accept");
    assert_eq!((&accepted["accepted"], &accepted["target_agent_id"]), (&json!(true), &json!("maker")));
    assert!(said(&task["status"]["message"]).contains("What is it called?"), "{task:#}");
    let thread = ada.see(&format!("/api/v1/threads/{context}")).await;
    let session = &thread["state_metadata"]["handoff_session"];
    assert_eq!((&session["state"], &session["target_agent_id"]), (&json!("active"), &json!("maker")));
    let answer = with(text("greeter"), "/message/taskId", task["id"].clone());
    let done = send(&ada, "/a2a/maker", &answer).await;
    assert_eq!(done["id"], task["id"], "the same task");
    assert_eq!(done["status"]["state"], "completed", "{done:#}");
    let returned = part(&done["status"], "handoff_return");
    assert_eq!((&returned["outcome"], &returned["source_agent_id"]), (&json!("completed"), &json!("maker")));
    let history: Vec<String> = done["history"].as_array().unwrap().iter().map(said).collect();
    assert!(history.contains(&"greeter".to_owned()), "{history:?}");
    let again = call(ada.request(Method::POST, "/"), "tasks/get", &json!({ "id": task["id"] })).await;
    assert_eq!(again["result"], done);
    site.end().await;
}

#[tokio::test]
async fn c_11_a_thread_without_a_handoff_has_no_session() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let task = send(&ada, "/", &text("Hello")).await;
    let thread = ada.see(&format!("/api/v1/threads/{}", task["contextId"].as_str().unwrap())).await;
    assert_eq!(thread["state_metadata"], json!({}));
    site.end().await;
}

#[tokio::test]
async fn c_9_an_agent_declines_with_a_reason() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let context = ThreadId::random().to_string();
    let task = send(&ada, "/a2a/assistant", &request(&context)).await;
    assert_eq!(task["status"]["state"], "rejected", "{task:#}");
    let declined = part(&task["status"], "handoff_decline");
    assert!(!declined["reason"].as_str().unwrap().is_empty());
    let stream = ada.request(Method::POST, "/a2a/assistant");
    let events = events(stream, "message/stream", &request(&context)).await;
    assert_eq!(events.last().unwrap()["status"]["state"], "rejected");
    let guarded = ada.post("/a2a/guarded", &super::request("message/send", &request(&context))).await;
    assert_eq!(guarded.status(), 403, "the agent demands a permission");
    let viewer = site.person("acme", "eve", &["viewer"]).await;
    let refused = viewer.post("/a2a/maker", &super::request("message/send", &request(&context))).await;
    assert_eq!(refused.status(), 403);
    site.end().await;
}

#[tokio::test]
async fn a_handoff_task_that_is_cancelled_returns_the_thread() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let context = ThreadId::random().to_string();
    let task = send(&ada, "/a2a/maker", &request(&context)).await;
    let id = json!({ "id": task["id"] });
    let cancelled = call(ada.request(Method::POST, "/"), "tasks/cancel", &id).await["result"].clone();
    assert_eq!(cancelled["status"]["state"], "canceled", "{cancelled:#}");
    assert_eq!(part(&cancelled["status"], "handoff_return")["outcome"], "cancelled");
    let thread = ada.see(&format!("/api/v1/threads/{context}")).await;
    assert_eq!(thread["is_handoff_active"], false);
    site.end().await;
}

#[tokio::test]
async fn a_stream_of_a_handoff_ends_with_its_question() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let context = ThreadId::random().to_string();
    let events = events(ada.request(Method::POST, "/a2a/maker"), "message/stream", &request(&context)).await;
    let last = events.last().unwrap();
    assert_eq!(
        (&last["status"]["state"], &last["final"]),
        (&json!("input-required"), &json!(true)),
        "{events:?}"
    );
    part(&last["status"], "handoff_accept");
    site.end().await;
}

/// A message that starts a handoff without the extension is one task as well, also if the holder's question is answered on another interface.
#[tokio::test]
async fn a_workflow_question_is_answered_in_the_same_task() {
    for by_the_page in [false, true] {
        let site = site_with_trigger().await;
        let ada = site.person("acme", "ada", &["user"]).await;
        let task = send(&ada, "/", &text("new skill")).await;
        assert_eq!(task["status"]["state"], "input-required", "{task:#}");
        let id = json!({ "id": task["id"] });
        let done = if by_the_page {
            ada.ask(task["contextId"].as_str().unwrap(), "greeter").await;
            call(ada.request(Method::POST, "/"), "tasks/get", &id).await["result"].clone()
        } else {
            send(&ada, "/", &with(text("greeter"), "/message/taskId", task["id"].clone())).await
        };
        assert_eq!((&done["id"], &done["status"]["state"]), (&task["id"], &json!("completed")), "{done:#}");
        let history: Vec<String> = done["history"].as_array().unwrap().iter().map(said).collect();
        assert!(history.contains(&"greeter".to_owned()), "{history:?}");
        site.end().await;
    }
}

async fn site_with_trigger() -> Site {
    let advance = ScriptedTurn::call("advance_workflow", &json!({ "values": { "name": "greeter" } }));
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("It is there."); 5]).script(
        "maker",
        [ScriptedTurn::text("What is it called?"), advance, ScriptedTurn::text("It is done.")],
    );
    let maker = MAKER
        .replace("accepts_handoff: true", "accepts_handoff:\n  triggers: [new skill]\n  trigger_mode: auto");
    let assistant = ASSISTANT.replace("Helps.\n", "Helps.\ncollaborations: [maker]\n");
    plan(&model).agent("assistant", &assistant).agent("maker", &maker).required().start().await
}
