//! Who may, who did, and how often.

use baton_core::store::{AuditQuery, PageRequest, RunStatus};
use baton_models::scripted::ScriptedTurn;
use http::Method;
use serde_json::{Value, json};

use super::{acme, begun, exit, held, model, of, plan, start, to, until};
use crate::observe::openmetrics::Exposition;
use crate::person::{Person, new_thread};

async fn denied(request: reqwest::RequestBuilder, permission: &str) {
    let problem = crate::guards::problem(request.send().await.unwrap()).await;
    assert_eq!((&problem["status"], &problem["permission"]), (&json!(403), &json!(permission)), "{problem}");
}

/// H9, X16: starting needs a permission, the agent's own too; one's own handoff is always left; that of others needs one.
#[tokio::test]
async fn x16_who_may_start_and_who_may_end() {
    let model =
        model(vec![ScriptedTurn::text("Hello."); 4]).script("guarded", [ScriptedTurn::text("I build.")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let builder = site.person("acme", "ada", &["builder"]).await;
    let viewer = site.person("acme", "ada", &["viewer"]).await;
    let operator = site.person("acme", "olga", &["operator"]).await;
    let thread = begun(&ada).await;
    let path = of(&thread);
    let post = |person: &Person<'_>, path: &str, body: &Value| person.request(Method::POST, path).json(body);
    denied(post(&viewer, &path, &to("maker")), "handoff:initiate").await;
    denied(post(&operator, &path, &to("maker")), "handoff:initiate").await;
    denied(post(&ada, &path, &to("guarded")), "skill:create").await;
    let refused = ada.trail("acme", "permission.refuse").await;
    assert_eq!(refused.iter().map(|(who, _)| who.as_str()).collect::<Vec<_>>(), ["ada", "olga", "ada"]);
    assert_eq!(start(&builder, &thread, &to("guarded")).await.0, 201);
    // Whoever may only look still leaves what is theirs.
    assert_eq!(exit(&viewer, &thread).await.0, 200);
    let (thread, _) = held(&ada).await;
    let (status, returned) = exit(&operator, &thread).await;
    assert_eq!((status, &returned["message"]), (200, &json!("Returning you to the main assistant.")));
    // An administrator sees the thread, and still starts nothing in it for somebody else.
    let admin = site.person("acme", "root", &["admin"]).await;
    assert_eq!(start(&admin, &thread, &to("maker")).await.0, 404);
    site.end().await;
}

/// A20: nobody can tell somebody else's thread from one that is not there, on any route.
#[tokio::test]
async fn a20_a_foreign_thread_is_not_there() {
    let site = plan(&model([])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let others =
        [site.person("acme", "bob", &["builder"]).await, site.person("globex", "ada", &["admin"]).await];
    for other in &others {
        let routes = [
            (Method::GET, "", None),
            (Method::DELETE, "", None),
            (Method::POST, "", Some(to("maker"))),
            (Method::POST, "/return", Some(json!({ "completion_status": "completed" }))),
            (Method::POST, "/resume", Some(json!({ "handoff_id": accepted["handoff_id"] }))),
        ];
        for (method, below, body) in routes {
            let ask = async |thread: &str| {
                let request = other.request(method.clone(), &format!("{}{below}", of(thread)));
                let request = body.iter().fold(request, reqwest::RequestBuilder::json);
                let mut problem = crate::guards::problem(request.send().await.unwrap()).await;
                problem["trace_id"] = Value::Null;
                problem
            };
            let (foreign, unknown) = (ask(&thread).await, ask(&new_thread()).await);
            assert_eq!(foreign, unknown, "{method} {below}");
            assert_eq!((&foreign["status"], &foreign["code"]), (&json!(404), &json!("thread_not_found")));
            assert!(foreign["detail"].as_str().unwrap().contains("start a new conversation"));
        }
    }
    assert_eq!(super::show(&ada, &thread).await.1["handoff_id"], accepted["handoff_id"], "it is untouched");
    site.end().await;
}

/// H16: who asked for what, what became of it, and who had the thread from when to when.
#[tokio::test]
async fn h16_everything_that_happens_to_a_handoff_is_on_record() {
    let model = model(vec![ScriptedTurn::text("Hello."); 4]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let operator = site.person("acme", "olga", &["operator"]).await;
    let (thread, accepted) = held(&ada).await;
    start(&ada, &thread, &to("notes")).await;
    start(&ada, &thread, &to("plain")).await;
    exit(&ada, &thread).await;
    exit(&ada, &thread).await;
    let at_rest = |context: &Value| context.get("active_run_id").is_none();
    until(&ada, &thread, at_rest).await;
    let resumed: Value = ada
        .post(&format!("{}/resume", of(&thread)), &json!({ "handoff_id": accepted["handoff_id"] }))
        .await
        .json()
        .await
        .unwrap();
    ada.until(resumed["run_id"].as_str().unwrap(), RunStatus::Completed).await;
    let done = json!({ "completion_status": "error", "result_summary": "pineapple" });
    operator.post(&format!("{}/return", of(&thread)), &done).await;
    until(&ada, &thread, at_rest).await;
    site.app.engine.idle().await;
    let query = AuditQuery { thread_id: Some(thread.parse().unwrap()), ..AuditQuery::default() };
    let trail = acme(&site).audit(query, PageRequest::first(200)).await.unwrap().data;
    let of_people: Vec<(&str, &str, &str)> = trail
        .iter()
        .map(|one| &one.entry)
        .filter(|one| {
            matches!(&*one.action, "handoff.request" | "handoff.exit" | "handoff.resume" | "handoff.return")
        })
        .map(|one| (&*one.actor, &*one.action, &*one.decision))
        .collect();
    let expected = [
        ("ada", "handoff.request", "allowed"),
        ("ada", "handoff.request", "denied"),
        ("ada", "handoff.request", "denied"),
        ("ada", "handoff.exit", "allowed"),
        ("ada", "handoff.exit", "denied"),
        ("ada", "handoff.resume", "allowed"),
        ("olga", "handoff.return", "allowed"),
    ];
    assert_eq!(of_people, expected);
    let hands: Vec<(&str, &str)> = trail
        .iter()
        .map(|one| &one.entry)
        .filter(|one| matches!(&*one.action, "handoff.start" | "handoff.end"))
        .map(|one| (&*one.action, &*one.decision))
        .collect();
    let expected = [
        ("handoff.start", "allowed"),
        ("handoff.end", "cancelled"),
        ("handoff.start", "allowed"),
        ("handoff.end", "failed"),
    ];
    assert_eq!(hands, expected);
    for one in trail.iter().filter(|one| one.entry.action.starts_with("handoff.")) {
        assert!(one.entry.trace_id.is_some(), "{one:?}");
        assert!(!one.entry.detail.to_string().contains("pineapple"), "what was said is not on record");
    }
    site.end().await;
}

/// H13: each beginning and each end once, by who has the thread.
#[tokio::test]
async fn h13_handoffs_are_counted_once() {
    let model = model(vec![ScriptedTurn::text("Hello."); 8]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let at_rest = |context: &Value| context.get("active_run_id").is_none();
    let (first, _) = held(&ada).await;
    exit(&ada, &first).await;
    let (second, _) = held(&ada).await;
    let done = json!({ "completion_status": "completed" });
    ada.post(&format!("{}/return", of(&second)), &done).await;
    let (third, _) = held(&ada).await;
    let failed = json!({ "completion_status": "error" });
    ada.post(&format!("{}/return", of(&third)), &failed).await;
    held(&ada).await;
    for thread in [&first, &second, &third] {
        until(&ada, thread, at_rest).await;
    }
    site.app.engine.idle().await;
    let admin = site.person("acme", "root", &["admin"]).await;
    let numbers = Exposition::parse(&admin.get("/metrics").await.text().await.unwrap());
    for (phase, count) in [("started", 4.0), ("exited", 1.0), ("completed", 1.0), ("failed", 1.0)] {
        let name = format!("baton_handoffs_total{{agent=\"maker\",phase=\"{phase}\"}}");
        assert!((numbers.value(&name) - count).abs() < 1e-9, "{name}: {}", numbers.value(&name));
    }
    site.end().await;
}
