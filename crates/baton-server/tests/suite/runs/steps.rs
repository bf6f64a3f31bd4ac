//! What each step of a run did.

use baton_core::model::ModelErrorKind;
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{agent, research};
use crate::described::body;
use crate::person::new_thread;
use crate::site::Plan;

const ROUTE: &str = "/api/v1/runs/{run_id}/steps";

fn path(answer: &Value) -> String {
    format!("/api/v1/runs/{}/steps", answer["run_id"].as_str().expect("a run"))
}

fn step<'a>(steps: &'a Value, path: &str) -> &'a Value {
    let mut all = steps["steps"].as_array().expect("steps").iter();
    all.find(|step| step["path"] == path).unwrap_or_else(|| panic!("no {path} in {steps:#}"))
}

#[tokio::test]
async fn steps_show_what_went_in_and_what_came_out() {
    let site = research().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let olga = site.person("acme", "olga", &["operator"]).await;
    let answer = ada.ask(&new_thread(), "Anything new?").await;
    let steps = body(olga.get(&path(&answer)).await, "get", ROUTE).await;
    let root = step(&steps, "assistant");
    assert_eq!((&root["kind"], &root["state"]), (&json!("session"), &json!("finished")));
    assert_eq!((&root["agent"], &root["input"]), (&json!("assistant"), &json!("Anything new?")));
    let turn = step(&steps, "assistant/turn:1");
    let call = &turn["output"]["tool_calls"][0];
    assert_eq!((&turn["kind"], &turn["output"]["text"]), (&json!("turn"), &json!("")));
    assert_eq!((&call["name"], &call["arguments"]["message"]), (&json!("delegate"), &json!("What is new?")));
    let tool = step(&steps, "assistant/turn:1/tool:1");
    assert_eq!((&tool["kind"], &tool["input"]), (&json!("tool"), &call["arguments"]));
    assert!(tool["output"]["content"].as_str().unwrap().contains("A new moon."), "{tool}");
    assert_eq!(tool["output"]["failed"], false);
    let web = step(&steps, "assistant/turn:1/tool:1/delegate:web");
    assert_eq!((&web["agent"], &web["kind"]), (&json!("web"), &json!("session")));
    assert!(web["input"].as_str().unwrap().contains("What is new?"), "{web}");
    assert_eq!(step(&steps, "assistant/turn:2")["output"], json!({ "text": "Little.", "tool_calls": [] }));
    let calls = steps["calls"].as_array().unwrap();
    let tool = calls.iter().find(|call| call["kind"] == "tool").unwrap();
    assert_eq!((&tool["name"], tool.get("provider")), (&json!("delegate"), None));
    let failed = calls.iter().find(|call| call["agent"] == "docs").unwrap();
    assert_eq!((&failed["outcome"], &failed["provider"]), (&json!("failed"), &json!("scripted")));
    assert!(failed["error"].is_string() && failed["usage"]["input_tokens"].is_u64());
    site.end().await;
}

#[tokio::test]
async fn retries_are_calls_with_the_same_path_and_secrets_are_masked() {
    let secret = "sk-hunter2hunter2hunter2";
    let model = Scripted::default().script(
        "assistant",
        [
            ScriptedTurn::error(ModelErrorKind::Overloaded),
            ScriptedTurn::text(&format!("The api_key: {secret}")),
        ],
    );
    let site = Plan::new(&model).start().await;
    let answer = site.anybody().say(&new_thread(), &format!("My api_key: {secret}")).await;
    let steps = body(site.get(&path(&answer)).await, "get", ROUTE).await;
    let calls = steps["calls"].as_array().unwrap();
    let of_turn: Vec<_> = calls.iter().filter(|call| call["path"] == "assistant/turn:1").collect();
    let outcomes: Vec<_> = of_turn.iter().map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, [&json!("failed"), &json!("ok")]);
    assert!(!steps.to_string().contains("hunter2"), "{steps:#}");
    site.end().await;
}

#[tokio::test]
async fn hops_are_those_of_the_run() {
    let hand_on = ScriptedTurn::call(
        "transfer_to_writer",
        &json!({ "reason": "a text about api_key: sk-hunter2hunter2hunter2" }),
    );
    let model = Scripted::default()
        .script("assistant", [hand_on, ScriptedTurn::text("Again.")])
        .script("writer", [ScriptedTurn::text("Once upon a time.")]);
    let plan = Plan::new(&model).agent("assistant", &agent("collaborations: [writer]\n"));
    let site = plan.agent("writer", &agent("")).start().await;
    let thread = new_thread();
    let first = site.anybody().say(&thread, "Write").await;
    let steps = body(site.get(&path(&first)).await, "get", ROUTE).await;
    let [hop] = steps["hops"].as_array().unwrap().as_slice() else { panic!("{:#}", steps["hops"]) };
    assert_eq!(
        (&hop["kind"], &hop["from"], &hop["to"]),
        (&json!("transfer"), &json!("assistant"), &json!("writer"))
    );
    assert_eq!((&hop["success"], &hop["outcome"]), (&json!(true), &json!("completed")));
    assert!(!steps.to_string().contains("hunter2"), "{steps:#}");
    site.end().await;
}

#[tokio::test]
async fn steps_need_trace_read_and_a_run_of_the_tenant() {
    let site = research().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let answer = ada.ask(&new_thread(), "Anything new?").await;
    assert_eq!(ada.refused(Method::GET, &path(&answer)).await["permission"], "trace:read");
    let stranger = site.person("globex", "olga", &["operator"]).await;
    let foreign = stranger.refused(Method::GET, &path(&answer)).await;
    let unknown = stranger.refused(Method::GET, &format!("/api/v1/runs/{}/steps", Uuid::now_v7())).await;
    assert_eq!((&foreign["code"], &foreign), (&json!("not_found"), &unknown));
    site.end().await;
}
