//! `POST /api/v1/threads/{id}/delegations`: one message to several agents, and what each of them brings.

use std::time::Duration;

use baton_core::message::Part;
use baton_core::model::ModelErrorKind;
use baton_core::store::{AcceptedRun, AuditQuery, OnBusy, PageRequest, RunQuery};
use baton_core::{MessageId, Permission, Rights, RunId, TenantId, ThreadId, UserId};
use baton_engine::{Interest, Overrides, RunCaller, RunRequest, RunTask, SubmitOptions};
use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_server::await_end::await_end;
use serde_json::{Value, json};

use crate::site::{LONG, Plan, Site, memory};

const THREAD: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A race is allowed only if the file says so.
const ASSISTANT: &str = "---\ndescription: Helps.\ndelegation: {strategies: [parallel, sequential, first_success]}\n---\nYou help.\n";

fn plan(model: &Scripted) -> Plan {
    Plan::new(model)
        .agent("assistant", ASSISTANT)
        .agent("docs", "---\ndescription: Knows documents.\n---\nYou know.\n")
        .agent("web", "---\ndescription: Knows the web.\n---\nYou search.\n")
        .agent("hermit", "---\ndescription: Alone.\ncan_be_orchestrated: false\n---\nYou hide.\n")
}

fn route() -> String {
    format!("/api/v1/threads/{THREAD}/delegations")
}

async fn ask(site: &Site, body: &Value) -> reqwest::Response {
    let request = site.http.post(site.url(&route())).header("accept", "application/json").json(body);
    request.send().await.expect("an answer")
}

async fn asked(site: &Site, body: &Value) -> Value {
    let answer = ask(site, body).await;
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn refused(site: &Site, body: &Value) -> (u16, Value) {
    let answer = ask(site, body).await;
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    (status, answer.json().await.unwrap())
}

fn both() -> Value {
    json!({"agents": ["docs", "web"], "message": "What is a baton?"})
}

/// B5, B6, B8, J3.6: one result for each agent, in the order of the request, and one text of all of them.
#[tokio::test]
async fn b6_each_agent_has_a_result() {
    let model = Scripted::default()
        .script("docs", [ScriptedTurn::text("A stick.").tokens(10, 2)])
        .script("web", [ScriptedTurn::text("A relay.").tokens(20, 3)]);
    let site = plan(&model).start().await;
    let answer = asked(&site, &both()).await;
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["synthesis"], "From docs:\nA stick.\n\nFrom web:\nA relay.");
    assert_eq!(
        (&answer["usage"]["input_tokens"], &answer["usage"]["output_tokens"]),
        (&json!(30), &json!(5))
    );
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for (result, (agent, text)) in results.iter().zip([("docs", "A stick."), ("web", "A relay.")]) {
        assert_eq!((&result["agent_id"], &result["success"]), (&json!(agent), &json!(true)));
        assert_eq!(result["response"], text);
        assert!(result["latency_ms"].is_u64() && result["session_id"].is_string(), "{result}");
        assert!(result.get("error").is_none(), "what is not there is absent: {result}");
    }
    assert!(RunId::parse(answer["run_id"].as_str().unwrap()).is_ok());
    assert!(answer.get("error").is_none());
    site.end().await;
}

/// B4, B9: strategies and syntheses.
#[tokio::test]
async fn b9_the_caller_says_how_they_are_asked_and_what_is_made_of_it() {
    let model = Scripted::default()
        .script(
            "docs",
            [
                ScriptedTurn::error(ModelErrorKind::InvalidRequest),
                ScriptedTurn::text("D."),
                ScriptedTurn::text("D."),
            ],
        )
        .script("web", [ScriptedTurn::text("W."), ScriptedTurn::text("W."), ScriptedTurn::text("W.")])
        .script("assistant", [ScriptedTurn::text("Both say so.")]);
    let site = plan(&model).start().await;
    let with = |more: Value| {
        let mut body = both();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let answer = asked(&site, &with(json!({"strategy": "first_success"}))).await;
    assert_eq!(answer["synthesis"], "W.", "one is given as it is: {answer}");
    assert_eq!(answer["results"][0]["error_type"], "invalid_request");
    let answer = asked(&site, &with(json!({"strategy": "sequential", "synthesis": "llm"}))).await;
    assert_eq!(answer["synthesis"], "Both say so.");
    let answer = asked(&site, &with(json!({"synthesis": "none", "timeout_ms": 600_000}))).await;
    assert_eq!(answer["synthesis"], Value::Null);
    assert_eq!(answer["results"].as_array().unwrap().len(), 2);
    site.end().await;
}

/// B7, B8, B14: one that fails or is late is a result; when all do, that is the answer.
#[tokio::test]
async fn b7_failures_are_results() {
    let model = Scripted::default()
        .script("docs", [ScriptedTurn::default().hang(), ScriptedTurn::error(ModelErrorKind::InvalidRequest)])
        .script("web", [ScriptedTurn::text("A relay."), ScriptedTurn::error(ModelErrorKind::InvalidRequest)]);
    let site = plan(&model).start().await;
    let mut body = both();
    body["timeout_ms"] = json!(2_000);
    body["strategy"] = json!("sequential");
    let answer = asked(&site, &body).await;
    assert_eq!(answer["results"][0]["error_type"], "timeout");
    assert_eq!(answer["results"][0]["success"], false);
    // The second has as little time as the first, but needs none.
    assert_eq!(answer["synthesis"], "A relay.", "{answer}");
    let answer = asked(&site, &both()).await;
    assert_eq!(answer["synthesis"], "All sub-agents failed to provide responses.");
    assert_eq!(answer["status"], "completed");
    site.end().await;
}

/// Bad requests say where the mistake is, and nothing is begun.
#[tokio::test]
async fn mistakes_are_pointed_at() {
    let site = plan(&Scripted::default()).start().await;
    for (body, pointer) in [
        (json!({"agents": [], "message": "m"}), "/agents"),
        (json!({"agents": vec!["docs"; 101], "message": "m"}), "/agents"),
        (json!({"agents": ["docs"], "message": " \n"}), "/message"),
        (json!({"agents": ["docs"], "message": "m", "timeout_ms": 0}), "/timeout_ms"),
        (json!({"agents": ["docs"], "message": "m", "timeout_ms": 600_001}), "/timeout_ms"),
    ] {
        let (status, problem) = refused(&site, &body).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{body}");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    for body in [
        json!({"agents": ["docs"]}),
        json!({"agents": ["docs"], "message": "m", "strategy": "random"}),
        json!({"agents": ["docs"], "message": "m", "tenant": "other"}),
        json!([]),
    ] {
        assert_eq!(refused(&site, &body).await.0, 400, "{body}");
    }
    let (status, problem) = refused(&site, &json!({"agents": ["docs", "wep"], "message": "m"})).await;
    assert_eq!((status, &problem["code"]), (404, &json!("agent_not_found")));
    assert_eq!(
        (&problem["nearest"], &problem["errors"][0]["pointer"]),
        (&json!(["web"]), &json!("/agents/1"))
    );
    let (status, problem) = refused(&site, &json!({"agents": ["x".repeat(10_000)], "message": "m"})).await;
    assert_eq!((status, &problem["code"]), (404, &json!("agent_not_found")));
    assert!(problem["detail"].as_str().unwrap().len() < 200);
    let (status, problem) = refused(&site, &json!({"agents": ["hermit"], "message": "m"})).await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
    assert!(problem["detail"].as_str().unwrap().contains("may not be involved"), "{problem}");
    let store = site.app.store().tenant(&TenantId::parse("default").unwrap());
    assert!(store.thread(ThreadId::parse(THREAD).unwrap(), None).await.is_err(), "nothing was begun");
    let answer = site.post("/api/v1/threads/not-a-thread/delegations", &both()).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "invalid_thread_id");
    let odd =
        site.http.post(site.url(&route())).header("accept", "text/html").json(&both()).send().await.unwrap();
    assert_eq!(odd.status(), 406);
    site.end().await;
}

fn someone(user: &str, thread: &str) -> RunRequest {
    RunRequest {
        caller: RunCaller {
            tenant: TenantId::parse("default").unwrap(),
            user: UserId::parse(user).unwrap(),
            thread_id: ThreadId::parse(thread).unwrap(),
        },
        agent: baton_core::AgentName::parse("assistant").unwrap(),
        input: vec![Part::text("Hello.")],
        overrides: Overrides::default(),
        on_busy: OnBusy::Enqueue,
        entry: None,
        task: RunTask::Answer,
        rights: Rights::all(),
        trace: None,
        metadata: None,
    }
}

/// A9, A20: somebody else's thread is not found.
#[tokio::test]
async fn a9_a_thread_of_somebody_else_is_not_found() {
    let site = plan(&Scripted::default().script("assistant", [ScriptedTurn::text("Hi.")])).start().await;
    site.app.engine.submit(someone("eve", THREAD), SubmitOptions::default()).await.unwrap();
    let (status, problem) = refused(&site, &both()).await;
    assert_eq!((status, &problem["code"]), (404, &json!("thread_not_found")));
    site.end().await;
}

/// A tenant that has as many runs at work as it may have is told to wait.
#[tokio::test]
async fn a_tenant_has_only_so_many_runs_at_once() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::default().hang()]);
    let site = plan(&model).settings(|settings| settings.limits.max_concurrent_runs = 1).start().await;
    let other = "650e8400-e29b-41d4-a716-446655440000";
    site.app.engine.submit(someone("local", other), SubmitOptions::default()).await.unwrap();
    let answer = ask(&site, &both()).await;
    assert_eq!((answer.status().as_u16(), answer.headers().contains_key("retry-after")), (429, true));
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "too_many_runs");
}

/// Whoever hangs up does not cancel the run.
#[tokio::test]
async fn a_run_outlives_whoever_waits_for_it() {
    let slow = ScriptedTurn::default().wait(Duration::from_millis(300)).say("A stick.");
    let site = plan(&Scripted::default().script("docs", [slow])).start().await;
    let tenant = TenantId::parse("default").unwrap();
    let store = site.app.store().tenant(&tenant);
    let thread = ThreadId::parse(THREAD).unwrap();
    let runs = async || {
        let page = store.runs(RunQuery::default(), PageRequest::default()).await;
        page.unwrap().data
    };
    let begun = async {
        while runs().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let body = json!({"agents": ["docs"], "message": "m"});
    tokio::select! {
        _ = ask(&site, &body) => panic!("it takes longer"),
        () = begun => {}
    }
    let run = runs().await[0].run_id;
    let accepted = AcceptedRun {
        run_id: run,
        message_id: MessageId::from_uuid(run.as_uuid()),
        is_new: false,
        behind: None,
        after: 0,
    };
    let subscription = site.app.engine.parts.live.subscribe(&tenant, thread, Interest::Ends);
    let end = await_end(&site.app, &tenant, &accepted, subscription);
    let record = tokio::time::timeout(LONG, end).await.unwrap().unwrap();
    assert_eq!(record.status.word(), "completed");
    site.end().await;
}

/// A server that ends says where to find what it does not finish.
#[tokio::test]
async fn a_server_that_ends_does_not_keep_anybody_waiting() {
    let model = Scripted::default().script("docs", [ScriptedTurn::default().say("I").hang()]);
    let site = plan(&model).settings(|settings| settings.drain = Duration::ZERO).start().await;
    let body = json!({"agents": ["docs"], "message": "m"});
    let waits = ask(&site, &body);
    let ends = async {
        while model.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        site.app.draining.cancel();
    };
    let (answer, ()) = tokio::time::timeout(LONG, async { tokio::join!(waits, ends) }).await.unwrap();
    assert_eq!(answer.status(), 503);
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "draining");
    assert!(RunId::parse(problem["run_id"].as_str().unwrap()).is_ok());
}

/// The end of a run is noticed also when another process works on it.
#[tokio::test]
async fn the_end_of_a_run_elsewhere_is_noticed() {
    let store = memory().await;
    let model = Scripted::default()
        .script("assistant", [ScriptedTurn::default().wait(Duration::from_millis(100)).say("Hi.")]);
    let here = plan(&Scripted::default()).store(std::sync::Arc::clone(&store)).start().await;
    let elsewhere = plan(&model).store(store).start().await;
    let request = someone("local", THREAD);
    let caller = request.caller.clone();
    let subscription = here.app.engine.parts.live.subscribe(&caller.tenant, caller.thread_id, Interest::Ends);
    let accepted = elsewhere.app.engine.submit(request, SubmitOptions::default()).await.unwrap();
    let end = await_end(&here.app, &caller.tenant, &accepted, subscription);
    let record = tokio::time::timeout(LONG, end).await.unwrap().unwrap();
    assert_eq!(record.end.unwrap().answer.as_deref(), Some("Hi."));
}

async fn as_user(site: &Site, key: &str, idempotency: Option<&str>, body: &Value) -> reqwest::Response {
    let request = site.http.post(site.url(&route())).bearer_auth(key).header("accept", "application/json");
    let request = idempotency.iter().fold(request, |request, key| request.header("idempotency-key", *key));
    request.json(body).send().await.expect("an answer")
}

/// B18, H1: whoever may not have agents asked is told which permission is missing, and that is on record. Nothing is begun.
#[tokio::test]
async fn h1_who_may_not_delegate_is_refused() {
    let site = plan(&Scripted::default()).required().start().await;
    let viewer = site.key("acme", "vera", &["viewer"]).await;
    let answer = as_user(&site, &viewer, None, &both()).await;
    assert_eq!(answer.status(), 403);
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(
        (&problem["code"], &problem["permission"]),
        (&json!("permission_denied"), &json!("orchestration:delegate"))
    );
    let store = site.app.store().tenant(&TenantId::parse("acme").unwrap());
    let trail = store.audit(AuditQuery::default(), PageRequest::default()).await.unwrap().data;
    assert!(trail.iter().any(|one| one.entry.actor == "vera" && one.entry.decision == "denied"), "{trail:?}");
    assert!(store.thread(ThreadId::parse(THREAD).unwrap(), None).await.is_err());
    site.end().await;
}

/// B18: a main agent asks nobody for somebody who may send messages but not have agents asked.
#[tokio::test]
async fn b18_agents_ask_nobody_for_those_who_may_not() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("I only know this.")]);
    let leads = "---\ndescription: Helps.\nagents: [docs, web]\n---\nYou help.\n";
    let roles = |settings: &mut baton_server::ServerSettings| {
        let may = ["thread:read", "thread:write"].map(|text| Permission::parse(text).unwrap());
        settings.auth.roles.insert("writer".to_owned(), may.to_vec());
    };
    let site = Plan::new(&model)
        .agent("assistant", leads)
        .agent("docs", "---\ndescription: Knows documents.\n---\nYou know.\n")
        .agent("web", "---\ndescription: Knows the web.\n---\nYou search.\n")
        .settings(roles)
        .required()
        .start()
        .await;
    let writer = site.key("acme", "will", &["writer"]).await;
    let url = site.url(&format!("/api/v1/threads/{THREAD}/messages"));
    let ask = site.http.post(url).bearer_auth(&writer).header("accept", "application/json");
    let answer = ask.json(&json!({"content": "What is a baton?"})).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(!model.asked()[0].tools.iter().any(|tool| tool == "delegate" || tool == "call_agent"));
    let store = site.app.store().tenant(&TenantId::parse("acme").unwrap());
    let query = AuditQuery { action: Some("agent.delegate".to_owned()), ..AuditQuery::default() };
    let trail = store.audit(query, PageRequest::default()).await.unwrap().data;
    let seen: Vec<(&str, &str, Option<&str>)> = trail
        .iter()
        .map(|one| (one.entry.actor.as_str(), one.entry.decision.as_str(), one.entry.on_behalf_of.as_deref()))
        .collect();
    assert_eq!(seen, [("assistant", "denied", Some("will"))]);
    site.end().await;
}

/// The same request under the same key is the same run: nobody is asked twice.
#[tokio::test]
async fn a_request_that_is_repeated_is_the_same_run() {
    let model = Scripted::default()
        .script("docs", [ScriptedTurn::text("A stick.")])
        .script("web", [ScriptedTurn::text("A relay.")]);
    let site = plan(&model).required().start().await;
    let key = site.key("acme", "ada", &["user"]).await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        let answer = as_user(&site, &key, Some("once"), &both()).await;
        assert_eq!(answer.status(), 200);
        answers.push(answer.json::<Value>().await.unwrap());
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(model.asked().len(), 2);
    let mut other = both();
    other["message"] = json!("Something else.");
    assert_eq!(as_user(&site, &key, Some("once"), &other).await.status(), 422);
    site.end().await;
}
