//! Errors: their codes, the order of checks, and the echoed id.

use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::{check, plan, text, with};
use crate::site::Site;

async fn raw(site: &Site, body: &str) -> Value {
    let request = site.http.post(site.url("/")).header("content-type", "application/json");
    let response = request.body(body.to_owned()).send().await.unwrap();
    assert_eq!(response.status(), 200, "{body}");
    let answer: Value = response.json().await.unwrap();
    check("JSONRPCErrorResponse", &answer);
    answer
}

#[tokio::test]
async fn d10_checks_have_the_specified_order_and_echo_the_id() {
    let site = plan(&Scripted::default()).start().await;
    for (body, code, id) in [
        ("{", -32700, json!(null)),
        ("", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"{"id":7,"method":"tasks/get"}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":"x","params":{}}"#, -32600, json!("x")),
        (r#"{"jsonrpc":"2.0","id":[],"method":"tasks/get"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"tasks/explode","params":5}"#, -32602, json!(8)),
        (r#"{"jsonrpc":"2.0","id":9,"method":"tasks/explode"}"#, -32601, json!(9)),
        (r#"{"jsonrpc":"2.0","id":9,"method":"tasks/list"}"#, -32601, json!(9)),
        (r#"{"jsonrpc":"2.0","id":10,"method":"message/send","params":{}}"#, -32602, json!(10)),
        (r#"{"jsonrpc":"2.0","id":11,"method":"tasks/get","params":[]}"#, -32602, json!(11)),
        (r#"{"jsonrpc":"2.0","id":12,"method":"tasks/get","params":{"id":""}}"#, -32602, json!(12)),
        (r#"{"jsonrpc":"2.0","id":13,"method":"tasks/get","params":{"id":"nothing"}}"#, -32001, json!(13)),
        (r#"{"jsonrpc":"2.0","method":"tasks/cancel","params":{"id":"nothing"}}"#, -32001, json!(null)),
    ] {
        let answer = raw(&site, body).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}: {answer}");
    }
    site.end().await;
}

#[tokio::test]
async fn d10_tasks_that_have_ended_take_no_message_and_no_subscriber() {
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("Done."); 2]);
    let site = plan(&model).start().await;
    let task = site.a2a_ok("message/send", &text("Hello")).await;
    let id = json!({ "id": task["id"] });
    let more = with(text("More"), "/message/taskId", task["id"].clone());
    assert_eq!(site.a2a("message/send", &more).await["error"]["code"], -32602);
    let elsewhere = with(more.clone(), "/message/contextId", json!(uuid::Uuid::new_v4().to_string()));
    assert_eq!(site.a2a("message/send", &elsewhere).await["error"]["code"], -32602);
    assert_eq!(site.a2a("tasks/cancel", &id).await["error"]["code"], -32002);
    let events = site.a2a_events("tasks/resubscribe", &id).await;
    assert_eq!(events[0]["error"]["code"], -32602, "{events:?}");
    let events = site.a2a_events("SubscribeToTask", &id).await;
    assert_eq!(events[0]["error"]["code"], -32004, "{events:?}");
    assert_eq!(events[0]["error"]["data"][0]["reason"], "UNSUPPORTED_OPERATION");
    let unknown = with(text("More"), "/message/taskId", json!("nothing"));
    assert_eq!(site.a2a("message/send", &unknown).await["error"]["code"], -32001);
    let events = site.a2a_events("message/stream", &unknown).await;
    assert_eq!(events[0]["error"]["code"], -32001, "{events:?}");
    site.end().await;
}

#[tokio::test]
async fn d10_what_the_server_cannot_do_has_its_own_error() {
    let site = plan(&Scripted::default()).start().await;
    let id = json!({ "id": "x", "taskId": "x", "pushNotificationConfig": { "url": "https://example.com" } });
    for method in ["set", "get", "list", "delete"] {
        let answer = site.a2a(&format!("tasks/pushNotificationConfig/{method}"), &id).await;
        assert_eq!(answer["error"]["code"], -32003, "{answer}");
    }
    let push =
        with(text("Hi"), "/configuration", json!({ "pushNotificationConfig": { "url": "https://x" } }));
    assert_eq!(site.a2a("message/send", &push).await["error"]["code"], -32003);
    let modes = with(text("Hi"), "/configuration", json!({ "acceptedOutputModes": ["video/mp4"] }));
    assert_eq!(site.a2a("message/send", &modes).await["error"]["code"], -32005);
    let builder = site.http.post(site.url("/")).header("a2a-version", "7.0");
    let answer = super::call(builder, "GetTask", &json!({ "id": "x" })).await;
    assert_eq!(answer["error"]["code"], -32009, "{answer}");
    site.end().await;
}

/// A form or a plain text can be sent by any page without asking.
#[tokio::test]
async fn only_json_is_read() {
    let site = plan(&Scripted::default()).start().await;
    for (path, status, code) in [("/", 200, "/error/code"), ("/v1/message:send", 415, "/code")] {
        let request = site.http.post(site.url(path)).header("content-type", "text/plain");
        let response = request.body("{}").send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer.pointer(code), Some(&json!(-32005)), "{answer}");
    }
    let request = site.http.post(site.url("/message:send")).header("content-type", "text/plain");
    assert_eq!(request.body("{}").send().await.unwrap().status(), 400);
    site.end().await;
}

#[tokio::test]
async fn files_of_unknown_types_are_refused() {
    let site = plan(&Scripted::default()).start().await;
    let file = json!([{ "kind": "file", "file": { "bytes": "aGk=", "mimeType": "application/x-unknown" } }]);
    let answer = site.a2a("message/send", &with(text(""), "/message/parts", file)).await;
    assert_eq!(answer["error"]["code"], -32005, "{answer}");
    site.end().await;
}
