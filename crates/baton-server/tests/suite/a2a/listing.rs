//! Lists of tasks (1.0).

use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::{plan, text, with};

#[tokio::test]
async fn tasks_are_listed_newest_first_in_pages() {
    let model = Scripted::default().script("assistant", vec![ScriptedTurn::text("Hi."); 5]);
    let site = plan(&model).start().await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(site.a2a_ok("message/send", &text("Hello")).await);
    }
    let again = with(text("More"), "/message/contextId", sent[0]["contextId"].clone());
    sent.push(site.a2a_ok("message/send", &again).await);
    let ids = |list: &Value| -> Vec<Value> {
        list["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect()
    };
    let mut newest: Vec<Value> = sent.iter().map(|task| task["id"].clone()).collect();
    newest.reverse();
    let all = site.a2a_ok("ListTasks", &json!({})).await;
    assert_eq!(ids(&all), newest);
    assert_eq!((&all["totalSize"], &all["nextPageToken"]), (&json!(4), &json!("")));
    assert!(all["tasks"][0].get("artifacts").is_none());
    let first = site.a2a_ok("ListTasks", &json!({ "pageSize": 3 })).await;
    let second =
        site.a2a_ok("ListTasks", &json!({ "pageSize": 3, "pageToken": first["nextPageToken"] })).await;
    assert_eq!([ids(&first), ids(&second)].concat(), newest);
    assert_eq!(second["nextPageToken"], "");
    let of_context = site
        .a2a_ok("ListTasks", &json!({ "contextId": sent[0]["contextId"], "includeArtifacts": true }))
        .await;
    assert_eq!(ids(&of_context).len(), 2);
    assert!(of_context["tasks"][0]["artifacts"].is_array());
    let working = site.a2a_ok("ListTasks", &json!({ "status": "TASK_STATE_WORKING" })).await;
    assert_eq!(working["totalSize"], 0);
    let rest: Value = site.get("/tasks?pageSize=2&status=TASK_STATE_COMPLETED").await.json().await.unwrap();
    assert_eq!((ids(&rest).len(), &rest["totalSize"]), (2, &json!(4)));
    for wrong in ["pageSize=0", "pageSize=x", "pageToken=x", "status=asleep"] {
        assert_eq!(site.get(&format!("/tasks?{wrong}")).await.status(), 400, "{wrong}");
    }
    site.end().await;
}
