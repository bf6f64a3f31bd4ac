//! Threads that another agent has for a while: getting there, being there, and getting back, by every door.

mod back;
mod left;
mod past;
mod questions;
mod refused;
mod rights;

use std::sync::Arc;

use baton_core::store::RunStatus;
use baton_core::{TenantId, TenantStore};
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use reqwest::Response;
use serde_json::{Value, json};

use crate::described::body;
use crate::person::{Person, new_thread};
use crate::site::{LONG, Plan, Site};

const HANDOFF: &str = "/api/v1/threads/{thread_id}/handoff";
const RETURN: &str = "/api/v1/threads/{thread_id}/handoff/return";
const RESUME: &str = "/api/v1/threads/{thread_id}/handoff/resume";

const ASSISTANT: &str = "---\ndescription: Helps.\n---\nYou help.\n";
const MAKER: &str = "---\ndescription: Makes skills.\ndisplay_name: Skill Creation Assistant\naccepts_handoff:\n  triggers: [create a \
                     skill]\nworkflow:\n  states:\n    - name: ask_name\n      collect: [{key: name, ask: What is it called?}]\n    \
                     - name: write_it\n    - name: check\n---\nYou make skills.\n";
const SHARED: &str =
    "---\ndescription: Takes notes.\naccepts_handoff: {exclusive: false}\n---\nYou take notes.\n";
const GUARDED: &str =
    "---\ndescription: Builds.\naccepts_handoff: {permission: 'skill:create'}\n---\nYou build.\n";
const PLAIN: &str = "---\ndescription: Answers.\n---\nYou answer.\n";
const FAR: &str = "---\nkind: remote\ndescription: Is elsewhere.\ndisplay_name: Far Specialist\naccepts_handoff: true\n\
                   agent_card_url: http://127.0.0.1:1/card.json\n---\n";

fn plan(model: &Scripted) -> Plan {
    Plan::new(model)
        .agent("assistant", ASSISTANT)
        .agent("maker", MAKER)
        .agent("notes", SHARED)
        .agent("guarded", GUARDED)
        .agent("plain", PLAIN)
        .agent("far", FAR)
        .required()
}

/// `assistant` has said hello, and `maker` greets and then says these.
fn model(maker: impl IntoIterator<Item = ScriptedTurn>) -> Scripted {
    Scripted::default()
        .script("assistant", vec![ScriptedTurn::text("At your service."); 10])
        .script("maker", [ScriptedTurn::text("What is it called?")])
        .script("maker", maker)
}

/// A thread of theirs in which something was said.
async fn begun(person: &Person<'_>) -> String {
    let thread = new_thread();
    person.ask(&thread, "I want a skill.").await;
    thread
}

fn of(thread: &str) -> String {
    format!("/api/v1/threads/{thread}/handoff")
}

fn to(target: &str) -> Value {
    json!({ "target_agent_id": target, "handoff_reason": "the person wants a skill" })
}

/// The answer as its route describes it.
async fn said(response: Response, method: &str, route: &str) -> (u16, Value) {
    let status = response.status().as_u16();
    (status, body(response, method, route).await)
}

async fn start(person: &Person<'_>, thread: &str, request: &Value) -> (u16, Value) {
    said(person.post(&of(thread), request).await, "post", HANDOFF).await
}

/// `maker` has the thread and has greeted.
async fn held(person: &Person<'_>) -> (String, Value) {
    let thread = begun(person).await;
    let (status, accepted) = start(person, &thread, &to("maker")).await;
    assert_eq!(status, 201, "{accepted}");
    person.until(accepted["run_id"].as_str().unwrap(), RunStatus::Completed).await;
    (thread, accepted)
}

async fn exit(person: &Person<'_>, thread: &str) -> (u16, Value) {
    said(person.delete(&of(thread)).await, "delete", HANDOFF).await
}

async fn show(person: &Person<'_>, thread: &str) -> (u16, Value) {
    said(person.get(&of(thread)).await, "get", HANDOFF).await
}

/// Waits until this is so in the thread.
async fn until(person: &Person<'_>, thread: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let look = async {
        loop {
            let context = person.see(&format!("/api/v1/threads/{thread}")).await;
            if is_so(&context) {
                return context;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, look).await.expect("it comes to that")
}

fn acme(site: &Site) -> Arc<dyn TenantStore> {
    site.app.store().tenant(&TenantId::parse("acme").unwrap())
}

/// Who was asked since then, in order.
fn asked(model: &Scripted, since: usize) -> Vec<String> {
    model.asked().into_iter().skip(since).map(|asked| asked.agent).collect()
}

/// C-2, C-4, C-7: the request, its answer, and the handoff as it stands.
#[tokio::test]
async fn c_4_c_7_a_thread_is_given_away_and_everybody_can_see_to_whom() {
    let model = model([]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = begun(&ada).await;
    let request = json!({
        "type": "handoff", "thread_id": thread, "tenant_id": "acme", "user_id": "ada",
        "source_agent_id": "assistant", "target_agent_id": "maker",
        "context_summary": "Ada wants alerts in Slack.", "conversation_history_count": 3,
        "handoff_reason": "skill_creation_workflow", "preserve_state": true, "return_expected": true,
        "handoff_metadata": { "ticket": 7 },
    });
    let (status, accepted) = start(&ada, &thread, &request).await;
    assert_eq!((status, &accepted["accepted"], &accepted["queued"]), (201, &json!(true), &json!(false)));
    assert_eq!(accepted["thread_id"], *thread);
    let agents = (&accepted["source_agent_id"], &accepted["target_agent_id"]);
    assert_eq!(agents, (&json!("assistant"), &json!("maker")));
    let (status, session) = show(&ada, &thread).await;
    assert_eq!((status, &session["handoff_id"]), (200, &accepted["handoff_id"]));
    for (name, value) in [
        ("thread_id", json!(thread)),
        ("tenant_id", json!("acme")),
        ("user_id", json!("ada")),
        ("source_agent_id", json!("assistant")),
        ("target_agent_id", json!("maker")),
        ("display_name", json!("Skill Creation Assistant")),
        ("state", json!("active")),
        ("context_summary", json!("Ada wants alerts in Slack.")),
        ("handoff_reason", json!("skill_creation_workflow")),
        ("artifacts_created", json!([])),
        ("workflow_state", json!("ask_name")),
        ("handoff_metadata", json!({ "ticket": 7 })),
        (
            "progress",
            json!({
                "state": "ask_name", "label": "Ask name", "step": 1, "total": 3, "answered": 0, "questions": 1,
                "mode": "[Skill Creation Mode]", "text": "Ask name - 0/1 answers",
            }),
        ),
    ] {
        assert_eq!(session[name], value, "{name}");
    }
    assert!(session["workflow_metadata"].is_object() && session["expires_at"].is_string(), "{session}");
    assert!(session.get("completed_at").is_none() && session.get("result_summary").is_none());
    let run = ada.until(accepted["run_id"].as_str().unwrap(), RunStatus::Completed).await;
    assert_eq!((&run["answered_by"], &run["answer"]), (&json!("maker"), &json!("What is it called?")));
    let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!(
        (&context["is_handoff_active"], &context["current_active_agent"]),
        (&json!(true), &json!("maker"))
    );
    assert_eq!(context["progress"], session["progress"]);
    site.end().await;
}

/// G7, G24, X1: the chain is part of the thread: an open handoff has no outcome yet, one that the user left was cancelled. A delegation
/// over HTTP is in it for callers that may read traces.
#[tokio::test]
async fn g_7_chain_of_hops_is_part_of_the_thread() {
    let model = model([]).script("plain", [ScriptedTurn::text("Plainly.")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let path = format!("/api/v1/threads/{thread}");
    let chain =
        async |person: &Person<'_>| person.see(&path).await["handoff_chain"].as_array().unwrap().clone();
    let [open] = <[Value; 1]>::try_from(chain(&ada).await).unwrap();
    assert_eq!((&open["hop_id"], open.get("outcome")), (&accepted["handoff_id"], None));
    assert_eq!((&open["kind"], &open["reason"]), (&json!("handoff"), &json!("the person wants a skill")));
    exit(&ada, &thread).await;
    let left = until(&ada, &thread, |context| context["handoff_chain"][0].get("outcome").is_some()).await;
    let left = &left["handoff_chain"][0];
    assert_eq!((&left["outcome"], &left["success"]), (&json!("cancelled"), &json!(false)));
    let body = json!({ "agents": ["plain"], "message": "What is a baton?" });
    ada.post(&format!("{path}/delegations"), &body).await.error_for_status().unwrap().text().await.unwrap();
    assert_eq!(chain(&ada).await.len(), 1, "users see handoffs only");
    let operator = site.person("acme", "olga", &["operator"]).await;
    let kinds: Vec<Value> = chain(&operator).await.iter().map(|hop| hop["kind"].clone()).collect();
    assert_eq!(kinds, [json!("handoff"), json!("delegation")]);
    let foreign = site.person("globex", "eve", &["operator"]).await;
    assert_eq!(foreign.refused(Method::GET, &path).await["code"], "thread_not_found");
    site.end().await;
}

/// C-37: what is said goes straight to the holder, and the answer says who has the thread and how far it is.
#[tokio::test]
async fn c_37_messages_go_to_the_holder_and_to_nobody_else() {
    let model = model([ScriptedTurn::text("A fine name."), ScriptedTurn::text("Go on.")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let before = model.asked().len();
    let answer = ada.ask(&thread, "Slack Alert").await;
    assert_eq!((&answer["agent"], &answer["status"]), (&json!("maker"), &json!("completed")));
    assert_eq!(answer["message"]["parts"][0]["text"], "A fine name.");
    let handoff = &answer["handoff"];
    assert_eq!((&handoff["handoff_id"], &handoff["agent"]), (&accepted["handoff_id"], &json!("maker")));
    let shown = (&handoff["display_name"], &handoff["state"]);
    assert_eq!(shown, (&json!("Skill Creation Assistant"), &json!("active")));
    assert_eq!(handoff["progress"]["total"], 3);
    assert_eq!(asked(&model, before), ["maker"], "the main agent spends nothing");
    exit(&ada, &thread).await;
    let answer = ada.ask(&thread, "Hello again").await;
    assert_eq!((&answer["agent"], answer.get("handoff")), (&json!("assistant"), None));
    site.end().await;
}

/// C-13: who wants to hear somebody else while a holder has the thread for itself is told so; one that shares it does not mind.
#[tokio::test]
async fn c_13_only_a_holder_that_shares_lets_others_be_named() {
    let model = model([]).script("notes", vec![ScriptedTurn::text("Noted."); 3]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, _) = held(&ada).await;
    let path = format!("/api/v1/threads/{thread}/messages");
    let named = |agent: &str| json!({ "content": "Hi", "agent": agent });
    let post = async |path: &str, body: &Value| {
        ada.request(Method::POST, path).header("accept", "application/json").json(body).send().await.unwrap()
    };
    let problem = crate::guards::problem(post(&path, &named("assistant")).await).await;
    assert_eq!((&problem["status"], &problem["code"]), (&json!(409), &json!("handoff_active")));
    assert_eq!(
        problem["detail"],
        "You're currently in a skill creation session. Would you like to finish that first?"
    );
    let other = begun(&ada).await;
    assert_eq!(start(&ada, &other, &to("notes")).await.0, 201);
    let path = format!("/api/v1/threads/{other}/messages");
    let answer: Value = post(&path, &named("assistant")).await.json().await.unwrap();
    assert_eq!((&answer["agent"], &answer["handoff"]["agent"]), (&json!("assistant"), &json!("notes")));
    assert_eq!(ada.ask(&other, "Note this").await["agent"], "notes");
    site.end().await;
}
