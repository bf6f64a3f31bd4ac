//! What a workflow asks, in the list of approvals.

use baton_models::scripted::ScriptedTurn;
use serde_json::{Value, json};

use super::{exit, held, model, plan};
use crate::person::Person;
use baton_core::store::RunStatus;

async fn pending(person: &Person<'_>) -> Vec<Value> {
    let list = person.see("/api/v1/approvals?status=pending").await;
    list["data"].as_array().unwrap().clone()
}

async fn decide(person: &Person<'_>, id: &str, body: &Value) -> (u16, Value) {
    let response = person.post(&format!("/api/v1/approvals/{id}"), body).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

fn advance() -> ScriptedTurn {
    ScriptedTurn::call("advance_workflow", &json!({"values": {"name": "Alerts"}}))
}

/// The question is listed for its user, and the answer is their message: it starts a run at once. A second answer is refused.
#[tokio::test]
async fn question_is_listed_and_answered_with_a_message() {
    let site = plan(&model([advance(), ScriptedTurn::text("Done.")])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let [asked] = <[Value; 1]>::try_from(pending(&ada).await).unwrap();
    let id = asked["approval_id"].as_str().unwrap();
    for (key, value) in [
        ("kind", "question"),
        ("agent", "maker"),
        ("tool", "advance_workflow"),
        ("thread_id", &thread),
        ("handoff_id", accepted["handoff_id"].as_str().unwrap()),
    ] {
        assert_eq!(asked[key], value, "{asked}");
    }
    assert_eq!(asked["preview"]["heading"], "What is it called?");
    let handoff = ada.see(&format!("/api/v1/threads/{thread}/handoff")).await;
    assert_eq!(asked["expires_at"], handoff["expires_at"], "{handoff}");

    let viewer = site.person("acme", "ada", &["viewer"]).await;
    let operator = site.person("acme", "root", &["operator"]).await;
    let stranger = site.person("acme", "bob", &["user"]).await;
    let answer = json!({"decision": "approve", "answer": "Alerts", "digest": asked["digest"]});
    for (who, status) in [(&viewer, 403), (&operator, 403), (&stranger, 404)] {
        assert_eq!(decide(who, id, &answer).await.0, status);
    }
    let admin = site.person("acme", "root", &["admin"]).await;
    let (status, refused) = decide(&admin, id, &answer).await;
    assert_eq!((status, &refused["code"]), (403, &json!("permission_denied")), "not their conversation");

    let (status, decided) = decide(&ada, id, &answer).await;
    assert_eq!((status, &decided["status"]), (200, &json!("answered")), "{decided}");
    let run = ada.until(decided["answer_run_id"].as_str().unwrap(), RunStatus::Completed).await;
    assert_eq!(run["agent"], "maker");
    let (status, again) = decide(&ada, id, &answer).await;
    assert_eq!((status, &again["code"]), (409, &json!("approval_decided")), "{again}");
    let messages = ada.see(&format!("/api/v1/threads/{thread}/messages")).await;
    let said = messages["data"].as_array().unwrap().iter();
    let said = said.filter(|message| message["role"] == "user" && message["parts"][0]["text"] == "Alerts");
    assert_eq!(said.count(), 1, "{messages}");
    let trail = ada.trail("acme", "approval.decide").await;
    let by = |who: &str, what: &str| trail.iter().filter(|(actor, how)| actor == who && how == what).count();
    assert_eq!((by("ada", "answered"), by("root", "refused"), by("bob", "refused")), (1, 2, 1), "{trail:?}");
    site.end().await;
}

/// AG-UI clients answer it with `resume`, once for each `Idempotency-Key`.
#[tokio::test]
async fn question_is_answered_by_a_resume_entry_once() {
    let site = plan(&model([advance(), ScriptedTurn::text("Done.")])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, _) = held(&ada).await;
    let id = pending(&ada).await[0]["approval_id"].clone();
    let body = json!({ "resume": [{"interruptId": id, "status": "resolved", "payload": "Alerts"}] });
    let mut runs = Vec::new();
    for _ in 0..2 {
        let request = ada.request(http::Method::POST, &format!("/api/v1/threads/{thread}/messages"));
        let request = request.header("idempotency-key", "once").header("accept", "application/json");
        let response = request.json(&body).send().await.unwrap();
        let (status, answered) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!(status, 200, "{answered}");
        runs.push(answered["run_id"].clone());
    }
    assert_eq!(runs[0], runs[1]);
    site.end().await;
}

#[tokio::test]
async fn question_is_withdrawn_when_the_person_leaves() {
    let site = plan(&model([])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, _) = held(&ada).await;
    let id = pending(&ada).await[0]["approval_id"].as_str().unwrap().to_owned();
    assert_eq!(exit(&ada, &thread).await.0, 200);
    assert!(pending(&ada).await.is_empty());
    let (status, late) = decide(&ada, &id, &json!({"decision": "approve", "answer": "Alerts"})).await;
    assert_eq!((status, &late["approval_status"]), (409, &json!("cancelled")), "{late}");
    site.end().await;
}
