//! The server as a client of A2A sees it, on JSON-RPC and REST, in 0.3 and 1.0.

mod access;
mod cards;
mod continuing;
mod errors;
mod fuzz;
mod handoff;
mod listing;
mod races;
mod rest;
mod sending;
mod streams;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use baton_a2a::sse::SseReader;
use baton_models::scripted::Scripted;
use baton_server::a2a::settings::A2aSettings;
use jsonschema::Validator;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::site::{LONG, Plan, Site};

const SCHEMA: &str = include_str!("../../../baton-a2a/tests/fixtures/a2a-v0.3.0.schema.json");

/// A server that serves A2A.
fn plan(model: &Scripted) -> Plan {
    Plan::new(model).settings(|settings| {
        settings.a2a = Some(A2aSettings::default());
        settings.limits.requests_per_minute = std::num::NonZeroU32::MAX;
    })
}

/// A message of 0.3.
fn text(text: &str) -> Value {
    json!({ "message": {
        "kind": "message", "messageId": uuid::Uuid::new_v4().to_string(), "role": "user",
        "parts": [{ "kind": "text", "text": text }],
    } })
}

fn with(mut params: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    params.pointer_mut(parent).unwrap()[member] = value;
    params
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "request-1", "method": method, "params": params })
}

/// Validators by definition; building one takes longer than a request.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

fn validator(definition: &str) -> Arc<Validator> {
    let mut known = VALIDATORS.lock().unwrap();
    let build = || {
        let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
        schema["$ref"] = json!(format!("#/definitions/{definition}"));
        Arc::new(jsonschema::validator_for(&schema).unwrap())
    };
    Arc::clone(known.entry(definition.to_owned()).or_insert_with(build))
}

/// Asserts that a response of 0.3 is one of the normative schema.
fn check(definition: &str, value: &Value) {
    let validator = validator(definition);
    let problems: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{definition}: {problems:?}\n{value:#}");
}

/// The definition of a method's response.
fn definition(method: &str) -> Option<&'static str> {
    Some(match method {
        "message/send" => "SendMessageResponse",
        "message/stream" | "tasks/resubscribe" => "SendStreamingMessageResponse",
        "tasks/get" => "GetTaskResponse",
        "tasks/cancel" => "CancelTaskResponse",
        "agent/getAuthenticatedExtendedCard" => "GetAuthenticatedExtendedCardResponse",
        _ => return None,
    })
}

/// The whole response of a call, whose form is checked.
async fn call(builder: RequestBuilder, method: &str, params: &Value) -> Value {
    let response = builder.json(&request(method, params)).send().await.expect("an answer");
    assert_eq!(response.status(), 200, "{method}");
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("request-1")), "{answer}");
    if let Some(definition) = definition(method) {
        check(definition, &answer);
    }
    answer
}

/// All results of a streaming call, whose form is checked.
async fn events(builder: RequestBuilder, method: &str, params: &Value) -> Vec<Value> {
    let response = builder.json(&request(method, params)).send().await.expect("an answer");
    let found = frames(response).await;
    for one in &found {
        if let Some(definition) = definition(method) {
            check(definition, one);
        }
    }
    found.into_iter().map(|one| one.get("result").cloned().unwrap_or(one)).collect()
}

/// The data of all events of a stream.
async fn frames(mut response: Response) -> Vec<Value> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut reader = SseReader::new(1 << 20);
    let mut found = Vec::new();
    let read = async {
        while let Some(chunk) = response.chunk().await.expect("a whole stream") {
            let events = reader.read(&chunk).unwrap();
            found.extend(events.iter().map(|event| serde_json::from_str::<Value>(&event.data).unwrap()));
        }
    };
    tokio::time::timeout(LONG, read).await.expect("the stream ends");
    found
}

impl Site {
    /// A call of the main agent in open mode.
    async fn a2a(&self, method: &str, params: &Value) -> Value {
        call(self.http.post(self.url("/")), method, params).await
    }

    /// The result of such a call.
    async fn a2a_ok(&self, method: &str, params: &Value) -> Value {
        let answer = self.a2a(method, params).await;
        assert!(answer.get("error").is_none(), "{answer:#}");
        answer["result"].clone()
    }

    async fn a2a_events(&self, method: &str, params: &Value) -> Vec<Value> {
        events(self.http.post(self.url("/")), method, params).await
    }

    /// Waits until a task has a state.
    async fn a2a_until(&self, task: &str, state: &str) -> Value {
        let look = async {
            loop {
                let found = self.a2a_ok("tasks/get", &json!({ "id": task })).await;
                if found["status"]["state"] == state {
                    return found;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, look).await.expect("the state is reached")
    }
}

/// The text of all parts of an artifact or a message.
fn said(object: &Value) -> String {
    let parts = object["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
