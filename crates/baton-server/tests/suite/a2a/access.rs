//! Authentication, permissions, and tasks of others.

use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use serde_json::{Value, json};

use super::{call, plan, text, with};
use crate::person::Person;
use crate::site::Site;

async fn site() -> Site {
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("Hello."); 9]);
    plan(&model).required().start().await
}

async fn code(person: &Person<'_>, method: &str, params: &Value) -> Value {
    call(person.request(Method::POST, "/"), method, params).await["error"]["code"].clone()
}

#[tokio::test]
async fn a_request_without_a_credential_is_401_and_without_a_permission_403() {
    let site = site().await;
    for path in ["/", "/a2a/assistant", "/v1/message:send", "/message:send", "/a2a/assistant/v1/message:send"]
    {
        let response = site.post(path, &super::request("message/send", &text("Hi"))).await;
        assert_eq!(response.status(), 401, "{path}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer", "{path}");
    }
    let viewer = site.person("acme", "ada", &["viewer"]).await;
    let refused = viewer.post("/", &super::request("message/send", &text("Hi"))).await;
    assert_eq!(refused.status(), 403);
    assert_eq!(viewer.post("/v1/message:send", &text("Hi")).await.status(), 403);
    assert_eq!(site.get("/.well-known/agent-card.json").await.status(), 200, "the card is public");
    site.end().await;
}

#[tokio::test]
async fn tasks_of_others_are_not_found() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let task = call(ada.request(Method::POST, "/"), "message/send", &text("Hi")).await["result"].clone();
    let id = json!({ "id": task["id"] });
    let others = [site.person("acme", "bob", &["user"]).await, site.person("globex", "ada", &["user"]).await];
    for other in &others {
        assert_eq!(code(other, "tasks/get", &id).await, -32001);
        assert_eq!(code(other, "tasks/cancel", &id).await, -32001);
        let follow = with(text("More"), "/message/taskId", task["id"].clone());
        assert_eq!(code(other, "message/send", &follow).await, -32001);
        let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
        assert_eq!(other.get(&path).await.status(), 404);
        assert_eq!(other.get(&format!("{path}:subscribe")).await.status(), 404);
        let list: Value = other.get("/tasks").await.json().await.unwrap();
        assert_eq!(list["tasks"], json!([]));
    }
    let join = with(text("Hi"), "/message/contextId", task["contextId"].clone());
    assert_eq!(code(&others[0], "message/send", &join).await, -32602, "a context of another user");
    let elsewhere = call(others[1].request(Method::POST, "/"), "message/send", &join).await;
    assert_eq!(
        elsewhere["result"]["history"].as_array().unwrap().len(),
        2,
        "another tenant has its own contexts"
    );
    assert_eq!(code(&ada, "tasks/get", &id).await, Value::Null);
    site.end().await;
}
