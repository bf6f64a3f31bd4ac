//! The handoffs of a thread, and discarding the saved state of one.

use http::Method;
use serde_json::json;
use uuid::Uuid;

use super::{acme, exit, held, model, plan, said, start, to, until};
use crate::described::body;
use crate::person::Person;

const LIST: &str = "/api/v1/threads/{thread_id}/handoffs";
const ONE: &str = "/api/v1/threads/{thread_id}/handoffs/{handoff_id}";

fn list(thread: &str) -> String {
    format!("/api/v1/threads/{thread}/handoffs")
}

async fn discard(person: &Person<'_>, thread: &str, handoff: &str) -> u16 {
    let response = person.delete(&format!("{}/{handoff}", list(thread))).await;
    if response.status() == 204 { 204 } else { said(response, "delete", ONE).await.0 }
}

#[tokio::test]
async fn handoffs_of_a_thread_are_listed_with_what_the_person_saw() {
    let model = model([]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, first) = held(&ada).await;
    exit(&ada, &thread).await;
    until(&ada, &thread, |context| context.get("active_run_id").is_none()).await;
    let (status, second) = start(&ada, &thread, &to("notes")).await;
    assert_eq!(status, 201, "{second}");
    let listed = body(ada.get(&list(&thread)).await, "get", LIST).await;
    let [left, open] = listed["data"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    for (name, value) in [
        ("handoff_id", first["handoff_id"].clone()),
        ("from", json!("assistant")),
        ("to", json!("maker")),
        ("display_name", json!("Skill Creation Assistant")),
        ("state", json!("cancelled")),
        ("reason", json!("the person wants a skill")),
        ("message", json!("Connecting you with Skill Creation Assistant...")),
        ("end_message", json!("No problem! Returning you to the main assistant.")),
        (
            "progress",
            json!({
                "state": "ask_name", "label": "Ask name", "step": 1, "total": 3, "answered": 0, "questions": 1,
                "mode": "[Skill Creation Mode]", "text": "Ask name - 0/1 answers",
            }),
        ),
    ] {
        assert_eq!(left[name], value, "{name}");
    }
    assert!(left["completed_at"].is_string());
    assert_eq!((&open["handoff_id"], &open["state"]), (&second["handoff_id"], &json!("active")));
    assert!(open.get("end_message").is_none() && open.get("completed_at").is_none());
    let bob = site.person("acme", "bob", &["user"]).await;
    assert_eq!(bob.refused(Method::GET, &list(&thread)).await["code"], "thread_not_found");
    site.end().await;
}

#[tokio::test]
async fn a_discarded_handoff_cannot_be_resumed() {
    let model = model([]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let handoff = accepted["handoff_id"].as_str().unwrap();
    assert_eq!(discard(&ada, &thread, handoff).await, 409, "it is open");
    exit(&ada, &thread).await;
    let context = until(&ada, &thread, |context| context.get("active_run_id").is_none()).await;
    assert_eq!(context["resumable_handoffs"].as_array().unwrap().len(), 1);
    assert_eq!(discard(&ada, &thread, &Uuid::now_v7().to_string()).await, 404);
    assert_eq!(discard(&ada, &thread, "not-an-id").await, 404);
    assert_eq!([discard(&ada, &thread, handoff).await, discard(&ada, &thread, handoff).await], [204, 204]);
    let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!(context["resumable_handoffs"], json!([]));
    assert_eq!(context["current_active_agent"], "assistant");
    let resume = format!("/api/v1/threads/{thread}/handoff/resume");
    assert_eq!(ada.post(&resume, &json!({ "handoff_id": handoff })).await.status(), 409);
    assert_eq!(acme(&site).handoffs(thread.parse().unwrap()).await.unwrap().len(), 1, "the history stays");
    let trail = ada.trail("acme", "handoff.discard").await;
    assert!(trail.contains(&("ada".to_owned(), "allowed".to_owned())), "{trail:?}");
    assert!(trail.contains(&("ada".to_owned(), "denied".to_owned())), "{trail:?}");
    site.end().await;
}

#[tokio::test]
async fn only_the_owner_and_those_who_may_cancel_handoffs_discard_one() {
    let model = model([]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let handoff = accepted["handoff_id"].as_str().unwrap();
    exit(&ada, &thread).await;
    for (user, role, status) in [("bob", "user", 404), ("olga", "operator", 204), ("root", "admin", 204)] {
        let person = site.person("acme", user, &[role]).await;
        assert_eq!(discard(&person, &thread, handoff).await, status, "{user}");
    }
    site.end().await;
}
