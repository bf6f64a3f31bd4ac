//! Runs: which there are, what happened in one, and how it is ended.

mod steps;

use std::sync::Arc;

use baton_core::Permission;
use baton_core::model::ModelErrorKind;
use baton_core::store::RunStatus;
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::person::new_thread;
use crate::site::{Plan, Site};

fn agent(more: &str) -> String {
    format!("---\ndescription: Helps.\n{more}---\nYou help.\n")
}

/// An assistant that asks two others, of whom one cannot answer.
async fn research() -> Site {
    let ask = json!({ "agents": ["web", "docs"], "message": "What is new?", "strategy": "sequential" });
    let model = Scripted::default()
        .script(
            "assistant",
            [
                ScriptedTurn::call("delegate", &ask).tokens(100, 10),
                ScriptedTurn::text("Little.").tokens(200, 5),
            ],
        )
        .script("web", [ScriptedTurn::text("A new moon.").tokens(30, 3)])
        .script("docs", [ScriptedTurn::error(ModelErrorKind::InvalidRequest)]);
    let plan = Plan::new(&model).agent("assistant", &agent("agents: [web, docs]\n"));
    plan.agent("web", &agent("")).agent("docs", &agent("")).required().start().await
}

/// B6, J3.3, J3.6, H14, X31: who worked below whom, for how much, and what each of them brought.
#[tokio::test]
async fn a_run_shows_who_worked_below_whom_and_what_each_brought() {
    let site = research().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let asked = ada.ask(&thread, "What is new?").await;
    let run = ada.see(&format!("/api/v1/runs/{}", asked["run_id"].as_str().unwrap())).await;
    for (field, value) in [
        ("run_id", asked["run_id"].clone()),
        ("thread_id", json!(thread)),
        ("user_id", json!("ada")),
        ("agent", json!("assistant")),
        ("status", json!("completed")),
        ("answered_by", json!("assistant")),
        ("answer", json!("Little.")),
        ("attempts", json!(1)),
        ("dissent", json!([])),
    ] {
        assert_eq!(run[field], value, "{field}");
    }
    assert!(run.get("error").is_none() && run.get("cancel").is_none());
    assert_eq!((&run["usage"]["input_tokens"], &run["usage"]["output_tokens"]), (&json!(330), &json!(18)));
    let [root] = run["sessions"].as_array().unwrap().as_slice() else { panic!("one root: {run}") };
    assert_eq!(
        (&root["agent"], &root["path"], &root["status"]),
        (&json!("assistant"), &json!("assistant"), &json!("completed"))
    );
    assert_eq!(root["calls"], json!({ "models": 2, "tools": 1, "failed": 0 }));
    assert_eq!((&root["own"]["input_tokens"], &root["subtree"]["input_tokens"]), (&json!(300), &json!(330)));
    let [web, docs] = root["sessions"].as_array().unwrap().as_slice() else { panic!("two children: {root}") };
    assert_eq!(
        (&web["agent"], &web["path"]),
        (&json!("web"), &json!("assistant/turn:1/tool:1/delegate:web"))
    );
    assert_eq!(
        (&web["why"], &web["own"], &web["own"]["output_tokens"]),
        (&json!("What is new?"), &web["subtree"], &json!(3))
    );
    assert_eq!((&docs["agent"], &docs["status"]), (&json!("docs"), &json!("failed")));
    assert!(docs["error"]["code"].is_string() && docs["finished_at"].is_string());
    assert_eq!(docs["calls"]["failed"], 1);
    let [first, second] = run["results"].as_array().unwrap().as_slice() else { panic!("two results: {run}") };
    assert_eq!(
        (&first["agent_id"], &first["success"], &first["response"]),
        (&json!("web"), &json!(true), &json!("A new moon."))
    );
    assert_eq!((&first["session_id"], first.get("error")), (&web["session_id"], None));
    assert!(first["latency_ms"].is_u64());
    assert_eq!(
        (&second["agent_id"], &second["success"], second.get("response")),
        (&json!("docs"), &json!(false), None)
    );
    assert!(second["error"].is_string() && second["error_type"].is_string());
    let sources = json!([{ "agent": "web", "session_id": web["session_id"] }]);
    assert_eq!(run["sources"], sources);
    assert_eq!(ada.see("/api/v1/runs").await["data"][0]["sources"], sources, "in the list, too");
    site.end().await;
}

/// A run that has not ended is seen as far as it is.
#[tokio::test]
async fn a_run_at_work_shows_what_is_there_already() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("").hang()]);
    let site = Plan::new(&model).required().start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let first = ada.begin(&thread, "Hello").await;
    ada.until(&first, RunStatus::Running).await;
    let second = ada.begin(&thread, "And then?").await;
    let run = ada.see(&format!("/api/v1/runs/{second}")).await;
    assert_eq!(
        (&run["status"], &run["sessions"], &run["results"]),
        (&json!("queued"), &json!([]), &json!([]))
    );
    assert!(
        ["started_at", "finished_at", "answered_by", "answer"].iter().all(|field| run.get(field).is_none())
    );
    // Nobody works on it yet, so it ends here and now.
    let cancel = |run: &str| format!("/api/v1/runs/{run}/cancel");
    let ended: Value = ada.post(&cancel(&second), &json!({})).await.json().await.unwrap();
    assert_eq!(ended, json!({ "run_id": second, "status": "cancelled" }));
    let asked: Value = ada.post(&cancel(&first), &json!({ "mode": "abort" })).await.json().await.unwrap();
    assert_eq!(asked["run_id"], json!(first));
    ada.until(&first, RunStatus::Cancelled).await;
    site.end().await;
}

fn found(list: &Value) -> Vec<Value> {
    list["data"].as_array().expect("a list").iter().map(|run| run["run_id"].clone()).collect()
}

/// A8, H14
#[tokio::test]
async fn runs_are_listed_by_what_is_asked_for() {
    let site = research().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let operator = site.person("acme", "olga", &["operator"]).await;
    let stranger = site.person("globex", "ada", &["admin"]).await;
    let (one, two) = (new_thread(), new_thread());
    let first = ada.ask(&one, "What is new?").await["run_id"].clone();
    // The script is over.
    let second = ada.ask(&two, "What is new?").await["run_id"].clone();
    let all = ada.see("/api/v1/runs").await;
    assert_eq!((found(&all), &all["next_cursor"]), (vec![second.clone(), first.clone()], &Value::Null));
    let item = &all["data"][1];
    for field in
        ["run_id", "thread_id", "agent", "status", "created_at", "started_at", "finished_at", "usage"]
    {
        assert!(!item[field].is_null(), "{field}: {item}");
    }
    assert!(item.get("sessions").is_none());
    let error = &all["data"][0]["error"];
    assert!(error["code"].is_string() && error["message"].is_string(), "{all}");
    let since = all["data"][0]["created_at"].as_str().unwrap();
    for (query, expected) in [
        (format!("thread_id={one}"), vec![&first]),
        ("status=failed".to_owned(), vec![&second]),
        ("status=queued".to_owned(), vec![]),
        ("agent=assistant".to_owned(), vec![&second, &first]),
        ("agent=web".to_owned(), vec![]),
        (format!("since={since}"), vec![&second]),
        ("since=2999-01-01T00:00:00Z".to_owned(), vec![]),
        ("limit=1".to_owned(), vec![&second]),
    ] {
        assert_eq!(
            found(&ada.see(&format!("/api/v1/runs?{query}")).await).iter().collect::<Vec<_>>(),
            expected,
            "{query}"
        );
    }
    let cursor = ada.see("/api/v1/runs?limit=1").await["next_cursor"].as_str().unwrap().to_owned();
    assert_eq!(found(&ada.see(&format!("/api/v1/runs?limit=1&cursor={cursor}")).await), [first]);
    assert_eq!(found(&operator.see("/api/v1/runs?user_id=ada").await).len(), 2);
    assert_eq!(found(&stranger.see("/api/v1/runs").await), Vec::<Value>::new());
    for (wrong, status, code) in [
        ("thread_id=x", 400, "invalid_thread_id"),
        ("status=done", 400, "invalid_request"),
        ("agent=No%20Name", 400, "invalid_request"),
        ("since=yesterday", 400, "invalid_request"),
        ("limit=0", 400, "invalid_request"),
        ("user_id=bob", 403, "permission_denied"),
        (&format!("thread_id={}", new_thread()), 404, "thread_not_found"),
    ] {
        let problem = ada.refused(Method::GET, &format!("/api/v1/runs?{wrong}")).await;
        assert_eq!((&problem["status"], &problem["code"]), (&json!(status), &json!(code)), "{wrong}");
    }
    let of_ada = stranger.refused(Method::GET, &format!("/api/v1/runs?thread_id={one}")).await;
    let of_nobody = stranger.refused(Method::GET, &format!("/api/v1/runs?thread_id={}", new_thread())).await;
    assert_eq!(of_ada, of_nobody);
    site.end().await;
}

/// A8, A9, H9: a run of somebody else is like one that does not exist.
#[tokio::test]
async fn runs_are_ended_by_whom_they_are_for_and_by_those_who_may() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("").hang()]);
    let reader = ["thread:read", "trace:read"].map(|text| Permission::parse(text).unwrap());
    let plan = Plan::new(&model).required().settings(|settings| {
        settings.auth.roles.insert("reader".to_owned(), reader.to_vec());
        settings.auth.roles.insert("stopper".to_owned(), vec![Permission::parse("run:cancel").unwrap()]);
    });
    let site = plan.start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let run = ada.begin(&new_thread(), "Hello").await;
    ada.until(&run, RunStatus::Running).await;
    let path = format!("/api/v1/runs/{run}");
    let cancel = format!("{path}/cancel");
    for other in [
        site.person("acme", "bob", &["user"]).await,
        site.person("acme", "sam", &["stopper", "viewer"]).await,
        site.person("globex", "ada", &["admin"]).await,
    ] {
        for (method, of_ada, tail) in [(Method::GET, &path, ""), (Method::POST, &cancel, "/cancel")] {
            let foreign = other.refused(method.clone(), of_ada).await;
            for unknown in [Uuid::now_v7().to_string(), "x".to_owned(), "%ff".to_owned()] {
                let unknown = other.refused(method.clone(), &format!("/api/v1/runs/{unknown}{tail}")).await;
                assert_eq!(foreign, unknown);
            }
            assert_eq!((&foreign["status"], &foreign["code"]), (&json!(404), &json!("not_found")));
        }
    }
    let reader = site.person("acme", "rita", &["reader"]).await;
    assert_eq!(reader.see(&path).await["status"], "running");
    let denied = reader.refused(Method::POST, &cancel).await;
    assert_eq!((&denied["status"], &denied["permission"]), (&json!(403), &json!("run:cancel")));
    for (wrong, status) in
        [(json!({ "mode": "kill" }), 400), (json!({ "when": "now" }), 400), (json!(7), 400)]
    {
        assert_eq!(ada.post(&cancel, &wrong).await.status(), status, "{wrong}");
    }
    let text = ada.request(Method::POST, &cancel).header("content-type", "text/plain").body("now").send();
    assert_eq!(text.await.unwrap().status(), 415);
    assert_eq!(ada.see(&path).await["status"], "running");
    let operator = site.person("acme", "olga", &["operator"]).await;
    let asked: Value = operator.post(&cancel, &json!({ "mode": "abort" })).await.json().await.unwrap();
    assert_eq!(asked, json!({ "run_id": run, "status": "running" }), "it ends when its worker notices");
    ada.until(&run, RunStatus::Cancelled).await;
    let trail = ada.trail("acme", "run.cancel").await;
    assert_eq!(trail[0], ("olga".to_owned(), "allowed".to_owned()));
    site.end().await;
}

/// To stop is to let it say what it has. Nothing has to be said for that, and an ended run stays as it is.
#[tokio::test]
async fn a_run_that_is_stopped_says_what_it_has() {
    let gate = Arc::new(Semaphore::new(0));
    let call = ScriptedTurn::default().until(&gate).and_call("no_such_tool", &json!({}));
    let model = Scripted::default().script("assistant", [call, ScriptedTurn::text("So far: nothing.")]);
    let site = Plan::new(&model).required().start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let run = ada.begin(&new_thread(), "Hello").await;
    ada.until(&run, RunStatus::Running).await;
    let cancel = format!("/api/v1/runs/{run}/cancel");
    let asked = ada.request(Method::POST, &cancel).send().await.unwrap();
    assert_eq!(asked.status(), 200);
    assert_eq!(ada.see(&format!("/api/v1/runs/{run}")).await["cancel"], "stop");
    gate.add_permits(1);
    let ended = ada.until(&run, RunStatus::Completed).await;
    assert_eq!(ended["answer"], "So far: nothing.");
    assert!(ended["limit"].is_string(), "{ended}");
    let trail = ada.trail("acme", "run.cancel").await;
    for wish in [json!({ "mode": "abort" }), json!(null), json!({})] {
        let again: Value = ada.post(&cancel, &wish).await.json().await.unwrap();
        assert_eq!(again, json!({ "run_id": run, "status": "completed" }));
    }
    assert_eq!(ada.trail("acme", "run.cancel").await, trail, "nothing happened, so nothing is on record");
    site.end().await;
}
