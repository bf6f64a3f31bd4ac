//! Requests that no client sends: no answer has a status of 5xx, and each comes in time.

use std::time::Duration;

use baton_models::scripted::{Scripted, ScriptedTurn};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::plan;
use crate::site::Site;

const REQUESTS: usize = 400;

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "user",
            "ROLE_USER",
            "text",
            "file",
            "data",
            "message",
            "2.0",
            "0.3",
            "working",
            "x:y",
            "../..",
            "%00",
            "550e8400-e29b-41d4-a716-446655440000",
            "https://example.com",
            "handoff",
            "aGk=",
        ])
        .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "message",
        "messageId",
        "role",
        "parts",
        "content",
        "kind",
        "text",
        "file",
        "bytes",
        "uri",
        "data",
        "taskId",
        "contextId",
        "configuration",
        "blocking",
        "historyLength",
        "id",
        "metadata",
        "request",
        "pageSize",
        "status",
        "pushNotificationConfig",
        "url",
        "type",
        "extensions",
        "referenceTaskIds",
        "returnImmediately",
        "tenant",
    ]);
    leaf().prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..7).prop_map(|members| {
                let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// Parameters that are nearly right, so that they reach further than random ones.
fn params() -> impl Strategy<Value = Value> {
    let near = (value(), value(), value()).prop_map(|(part, extra, configuration)| {
        json!({ "message": { "messageId": "m", "role": "user", "kind": "message", "metadata": extra,
            "parts": [{ "kind": "text", "text": "hi" }, part] }, "configuration": configuration })
    });
    prop_oneof![near, value()]
}

async fn answered(site: &Site, request: reqwest::RequestBuilder, what: &str) {
    let answer = tokio::time::timeout(Duration::from_secs(20), async {
        let response = request.send().await.expect("an answer");
        (response.status().as_u16(), response.bytes().await.expect("a whole body"))
    });
    let (status, body) = answer.await.unwrap_or_else(|_| panic!("no answer: {what}"));
    assert!(status < 500, "{status} {}: {what}", String::from_utf8_lossy(&body));
    let _ = site;
}

async fn site() -> Site {
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("Hi."); REQUESTS * 3]);
    plan(&model).start().await
}

#[tokio::test]
async fn fuzzed_json_rpc_never_fails_the_server() {
    let site = site().await;
    let mut runner = TestRunner::deterministic();
    let methods = prop::sample::select(vec![
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "GetExtendedAgentCard",
        "tasks/pushNotificationConfig/set",
        "CreateTaskPushNotificationConfig",
        "agent/getAuthenticatedExtendedCard",
        "",
    ]);
    let requests = (methods, params(), leaf());
    for _ in 0..REQUESTS {
        let (method, params, id) = requests.new_tree(&mut runner).unwrap().current();
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        answered(&site, site.http.post(site.url("/")).json(&body), &body.to_string()).await;
    }
    for _ in 0..REQUESTS {
        let body = value().new_tree(&mut runner).unwrap().current().to_string();
        let cut: String = body.chars().take(body.len() / 2).collect();
        for body in [body, cut] {
            let request =
                site.http.post(site.url("/a2a/assistant")).header("content-type", "application/json");
            answered(&site, request.body(body.clone()), &body).await;
        }
    }
    site.end().await;
}

#[tokio::test]
async fn fuzzed_rest_never_fails_the_server() {
    let site = site().await;
    let mut runner = TestRunner::deterministic();
    let paths = prop::sample::select(vec![
        "/v1/message:send",
        "/v1/message:stream",
        "/message:send",
        "/message:stream",
        "/v1/tasks/x:cancel",
        "/v1/tasks/x:subscribe",
        "/tasks/x:cancel",
        "/tasks/x",
        "/v1/tasks/x/pushNotificationConfigs",
        "/tasks/x/pushNotificationConfigs",
        "/a2a/assistant/v1/message:send",
        "/a2a/%20/message:send",
        "/v1/tasks/%00",
        "/v1/tasks/:",
        "/v1/tasks/::cancel",
        "/tasks/x/pushNotificationConfigs/%2F",
    ]);
    let requests = (paths, params(), prop::sample::select(vec!["POST", "GET", "DELETE", "PUT"]), ".{0,20}");
    for _ in 0..REQUESTS {
        let (path, body, method, query) = requests.new_tree(&mut runner).unwrap().current();
        let method: http::Method = method.parse().unwrap();
        let mut url: reqwest::Url = site.url(path).parse().unwrap();
        url.set_query(Some(&format!("historyLength={query}&pageSize={query}")));
        let what = format!("{method} {url} {body}");
        answered(&site, site.http.request(method, url).json(&body), &what).await;
    }
    site.end().await;
}
