//! Conversations: what is seen of them, by whom, and their end.

mod respond_async;
mod titles;

use std::sync::Arc;

use baton_core::store::{HandoffNotes, HandoffSession, HandoffState, NewHandoff, RunStatus, WorkflowState};
use baton_core::{AgentName, HandoffId, Permission, TenantId, TenantStore, ThreadId, UserId};
use baton_engine::{Interest, StreamItem};
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::described::body;
use crate::person::{Person, new_thread};
use crate::site::{LONG, Plan, Site};

/// A model that answers with numbers: "1", "2", …
fn counting() -> Scripted {
    Scripted::default().script("assistant", (1..=20).map(|number| ScriptedTurn::text(&number.to_string())))
}

async fn start(model: &Scripted) -> Site {
    Plan::new(model).required().start().await
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["thread_id"].as_str().expect("an id"))
        .collect()
}

/// A10
#[tokio::test]
async fn a_thread_shows_how_it_stands() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    ada.ask(&thread, "What is the  time?\nNow.").await;
    ada.ask(&thread, "And now?").await;
    let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
    for (field, value) in [
        ("thread_id", json!(thread)),
        ("tenant_id", json!("acme")),
        ("user_id", json!("ada")),
        ("title", json!("What is the  time? Now.")),
        ("current_active_agent", json!("assistant")),
        ("is_handoff_active", json!(false)),
        ("total_messages", json!(4)),
        ("resumable_handoffs", json!([])),
    ] {
        assert_eq!(context[field], value, "{field}");
    }
    for absent in ["handoff_target_agent", "progress", "active_run_id"] {
        assert!(context.get(absent).is_none(), "{absent}");
    }
    let [created, updated] = ["created_at", "updated_at"].map(|field| context[field].as_str().unwrap());
    assert!(created < updated);
    let tenant = site.app.store().tenant(&TenantId::parse("acme").unwrap());
    let events = tenant.events(ThreadId::parse(&thread).unwrap(), 0, 1000).await.unwrap();
    assert_eq!(context["last_seq"], events.last().unwrap().seq, "whoever goes on from here misses nothing");
    site.end().await;
}

/// A thread that somebody is about to answer in says who works on it.
#[tokio::test]
async fn a_thread_says_which_run_is_at_work() {
    let site = start(&Scripted::default().script("assistant", [ScriptedTurn::text("").hang()])).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let run = ada.begin(&thread, "Hello").await;
    ada.until(&run, RunStatus::Running).await;
    let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!(context["active_run_id"], json!(run));
    assert_eq!(context["current_active_agent"], "assistant", "the main agent answers first");
    ada.post(&format!("/api/v1/runs/{run}/cancel"), &json!({ "mode": "abort" })).await;
    ada.until(&run, RunStatus::Cancelled).await;
    site.end().await;
}

#[tokio::test]
async fn threads_are_listed_in_pieces_those_used_last_first() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let threads: Vec<String> = (0..5).map(|_| new_thread()).collect();
    for thread in &threads {
        ada.ask(thread, "Hello").await;
    }
    ada.ask(&threads[1], "Hello again").await;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let piece = ada.see(&format!("/api/v1/threads?limit=2{cursor}")).await;
        assert!(piece["data"].as_array().unwrap().len() <= 2);
        found.extend(ids(&piece).into_iter().map(str::to_owned));
        let Some(next) = piece["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let expected: Vec<String> = [1, 4, 3, 2, 0].map(|at: usize| threads[at].clone()).to_vec();
    assert_eq!(found, expected);
    for wrong in ["limit=0", "limit=201", "limit=x", "cursor=nonsense", "colour=red", "user_id="] {
        let problem = ada.refused(Method::GET, &format!("/api/v1/threads?{wrong}")).await;
        assert_eq!(
            (&problem["status"], &problem["code"]),
            (&json!(400), &json!("invalid_request")),
            "{wrong}"
        );
    }
    site.end().await;
}

/// A8, H9
#[tokio::test]
async fn people_see_their_own_threads_and_those_who_read_traces_all_of_their_tenant() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let bob = site.person("acme", "bob", &["user"]).await;
    let operator = site.person("acme", "olga", &["operator"]).await;
    let stranger = site.person("globex", "ada", &["admin"]).await;
    let (of_ada, of_bob) = (new_thread(), new_thread());
    ada.ask(&of_ada, "Hello").await;
    bob.ask(&of_bob, "Hello").await;
    assert_eq!(ids(&ada.see("/api/v1/threads").await), [&of_ada]);
    assert_eq!(ids(&ada.see("/api/v1/threads?user_id=ada").await), [&of_ada]);
    assert_eq!(ids(&operator.see("/api/v1/threads").await), [&of_bob, &of_ada]);
    assert_eq!(ids(&operator.see("/api/v1/threads?user_id=ada").await), [&of_ada]);
    assert_eq!(ids(&stranger.see("/api/v1/threads").await), Vec::<&str>::new());
    assert_eq!(ids(&stranger.see("/api/v1/threads?user_id=bob").await), Vec::<&str>::new());
    let problem = ada.refused(Method::GET, "/api/v1/threads?user_id=bob").await;
    assert_eq!((&problem["status"], &problem["permission"]), (&json!(403), &json!("trace:read")));
    operator.see(&format!("/api/v1/threads/{of_ada}")).await;
    site.end().await;
}

/// A8, A11, A20, I13: nobody can tell somebody else's thread from one that is not there, and everybody is told what to do.
#[tokio::test]
async fn a_foreign_thread_is_like_one_that_does_not_exist() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    ada.ask(&thread, "Hello").await;
    let others = [
        site.person("acme", "bob", &["user"]).await,
        site.person("globex", "ada", &["admin"]).await,
        site.person("globex", "olga", &["operator", "user"]).await,
    ];
    for other in &others {
        for (method, below) in [(Method::GET, ""), (Method::GET, "/messages"), (Method::DELETE, "")] {
            let path = |thread: &str| format!("/api/v1/threads/{thread}{below}");
            let foreign = other.refused(method.clone(), &path(&thread)).await;
            let unknown = other.refused(method.clone(), &path(&new_thread())).await;
            assert_eq!(foreign, unknown);
            assert_eq!((&foreign["status"], &foreign["code"]), (&json!(404), &json!("thread_not_found")));
            assert!(foreign["detail"].as_str().unwrap().contains("start a new conversation"));
            let invalid = other.refused(method, &path("not-a-uuid")).await;
            assert_eq!((&invalid["status"], &invalid["code"]), (&json!(400), &json!("invalid_thread_id")));
        }
    }
    assert_eq!(
        ada.see(&format!("/api/v1/threads/{thread}/messages")).await["data"][1]["parts"][0]["text"],
        "1"
    );
    site.end().await;
}

fn numbers(list: &Value) -> Vec<u64> {
    list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["number"].as_u64().expect("a number"))
        .collect()
}

/// A12, A14
#[tokio::test]
async fn history_is_read_from_its_end_to_its_beginning() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let mut runs = Vec::new();
    for question in ["a", "b", "c", "d", "e"] {
        runs.push(ada.ask(&thread, question).await["run_id"].clone());
    }
    let path = format!("/api/v1/threads/{thread}/messages");
    let newest = ada.see(&format!("{path}?limit=4")).await;
    assert_eq!(numbers(&newest), [7, 8, 9, 10], "the newest, and as they were said");
    let [question, answer] = [&newest["data"][2], &newest["data"][3]];
    assert_eq!((&question["role"], &question["visibility"]), (&json!("user"), &json!("user")));
    assert_eq!(question["parts"], json!([{ "type": "text", "text": "e" }]));
    assert!(question.get("agent").is_none() && question.get("display_name").is_none());
    assert_eq!((&answer["role"], &answer["agent"]), (&json!("assistant"), &json!("assistant")));
    assert_eq!((&answer["display_name"], &answer["run_id"]), (&json!("Assistant"), &runs[4]));
    assert!(Uuid::try_parse(answer["message_id"].as_str().unwrap()).is_ok());
    let cursor = newest["next_cursor"].as_str().unwrap();
    let before = ada.see(&format!("{path}?limit=4&cursor={cursor}")).await;
    assert_eq!(numbers(&before), [3, 4, 5, 6]);
    assert_eq!(before, ada.see(&format!("{path}?limit=4&before=7")).await);
    let first = ada.see(&format!("{path}?limit=4&before=3")).await;
    assert_eq!((numbers(&first), &first["next_cursor"]), (vec![1, 2], &Value::Null));
    let exactly = ada.see(&format!("{path}?limit=10")).await;
    assert_eq!((numbers(&exactly).len(), &exactly["next_cursor"]), (10, &Value::Null));
    for (before, count) in [(0, 0), (1, 0), (u64::MAX, 10)] {
        assert_eq!(numbers(&ada.see(&format!("{path}?before={before}")).await).len(), count);
    }
    for wrong in
        ["limit=0", "limit=201", "before=-1", "cursor=x", "before=3&cursor=3", "include=all", "include="]
    {
        let problem = ada.refused(Method::GET, &format!("{path}?{wrong}")).await;
        assert_eq!(
            (&problem["status"], &problem["code"]),
            (&json!(400), &json!("invalid_request")),
            "{wrong}"
        );
    }
    site.end().await;
}

/// X31: everything is kept, and who may see it decides what is seen.
#[tokio::test]
async fn what_agents_say_to_each_other_is_for_those_who_read_traces() {
    let call = ScriptedTurn::call("call_agent", &json!({ "mission": "Look it up.", "specialist": "helper" }));
    let model = Scripted::default()
        .script("assistant", [call, ScriptedTurn::text("It is 42.")])
        .script("helper", [ScriptedTurn::text("Forty-two, says the book.")]);
    let assistant = "---\ndescription: Helps.\nagents: [helper]\n---\nYou help.\n";
    let helper = "---\ndescription: Looks things up.\n---\nYou look things up.\n";
    let plan = Plan::new(&model).agent("assistant", assistant).agent("helper", helper);
    let site = plan.required().start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let operator = site.person("acme", "olga", &["operator"]).await;
    let thread = new_thread();
    ada.ask(&thread, "What is it?").await;
    let path = format!("/api/v1/threads/{thread}/messages");
    assert_eq!(numbers(&ada.see(&path).await), [1, 3]);
    assert_eq!(numbers(&operator.see(&path).await), [1, 3]);
    let all = operator.see(&format!("{path}?include=internal")).await;
    assert_eq!(numbers(&all), [1, 2, 3]);
    assert_eq!(
        (&all["data"][1]["visibility"], &all["data"][1]["agent"]),
        (&json!("internal"), &json!("helper"))
    );
    assert_eq!(all["data"][1]["parts"][0]["text"], "Forty-two, says the book.");
    for include in ["internal", "system,internal"] {
        let problem = ada.refused(Method::GET, &format!("{path}?include={include}")).await;
        assert_eq!((&problem["status"], &problem["permission"]), (&json!(403), &json!("trace:read")));
    }
    assert_eq!(numbers(&ada.see(&format!("{path}?include=system")).await), [1, 3]);
    let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!(context["total_messages"], 3, "also those that are not shown");
    site.end().await;
}

const WORKFLOW: &str = "---\ndescription: Creates skills.\ndisplay_name: Skill Maker\naccepts_handoff: true\nworkflow:\n  states:\n    - name: ask_name\n      \
                        collect: [{key: name, ask: What is it called?}]\n    - name: write_it\n    - name: check\n---\nYou make skills.\n";

/// The maker has a thread of Ada's by a handoff.
async fn hand_over(site: &Site, thread: &str) -> HandoffSession {
    let name = |text| AgentName::parse(text).unwrap();
    let new = NewHandoff {
        handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
        thread_id: ThreadId::parse(thread).unwrap(),
        user_id: UserId::parse("ada").unwrap(),
        source_agent_id: name("assistant"),
        target_agent_id: name("maker"),
        context_summary: String::new(),
        handoff_reason: "A skill is wanted.".to_owned(),
        metadata: Value::Null,
        notes: HandoffNotes::default(),
        max_open: None,
        activation: None,
    };
    let handoff = acme(site).open_handoff(new).await.unwrap();
    change(site, HandoffSession { state: HandoffState::Active, ..handoff }).await
}

async fn change(site: &Site, changed: HandoffSession) -> HandoffSession {
    acme(site).update_handoff(changed).await.unwrap()
}

fn acme(site: &Site) -> Arc<dyn TenantStore> {
    site.app.store().tenant(&TenantId::parse("acme").unwrap())
}

fn at(state: &str) -> WorkflowState {
    WorkflowState { state: state.to_owned(), data: json!({}) }
}

/// C-35: the list says how far each open handoff has come.
#[tokio::test]
async fn threads_in_lists_show_the_progress_of_their_handoffs() {
    let plan = Plan::new(&counting()).agent("assistant", crate::site::ASSISTANT).agent("maker", WORKFLOW);
    let site = plan.required().start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let [first, without_steps, ended, never, checked] = std::array::from_fn(|_| new_thread());
    for thread in [&first, &without_steps, &ended, &never, &checked] {
        ada.ask(thread, "Hello").await;
    }
    for (thread, workflow) in [
        (&first, Some(at("ask_name"))),
        (&without_steps, None),
        (&ended, Some(at("write_it"))),
        (&checked, Some(at("check"))),
    ] {
        let handoff = hand_over(&site, thread).await;
        let handoff = change(&site, HandoffSession { workflow, ..handoff }).await;
        if thread == &ended {
            change(&site, HandoffSession { state: HandoffState::Cancelled, ..handoff }).await;
        }
    }
    // A value that was passed without an answer is no question any more.
    let progress = |state: &str, label: &str, step: u64, questions: u64| {
        let counted =
            if questions > 0 { format!("0/{questions} answers") } else { format!("{step}/3 steps") };
        Some(json!({
            "state": state, "label": label, "step": step, "total": 3, "answered": 0, "questions": questions,
            "mode": "[Skill Maker Mode]", "text": format!("{label} - {counted}"),
        }))
    };
    let expected = [
        (&first, true, progress("ask_name", "Ask name", 1, 1)),
        (&without_steps, true, None),
        (&ended, false, None),
        (&never, false, None),
        (&checked, true, progress("check", "Check", 3, 0)),
    ];
    for path in ["/api/v1/threads", "/api/v1/threads?q=hello"] {
        let list = ada.see(path).await;
        for (id, is_active, progress) in &expected {
            let found = list["data"].as_array().unwrap().iter().find(|one| one["thread_id"] == id.as_str());
            let thread = found.expect("a thread of the list");
            assert_eq!(thread["is_handoff_active"], *is_active, "{thread}");
            assert_eq!(thread.get("progress"), progress.as_ref(), "{thread}");
        }
    }
    let path = format!("/api/v1/threads/{checked}");
    let request = ada.request(Method::PATCH, &path).json(&json!({ "title": "Skills" }));
    let renamed = body(request.send().await.unwrap(), "patch", "/api/v1/threads/{thread_id}").await;
    assert_eq!(renamed.get("progress"), progress("check", "Check", 3, 0).as_ref());
    site.end().await;
}

/// A10, C-7: who has the thread, how far they are, and what can be taken up again.
#[tokio::test]
async fn a_handoff_shows_in_the_thread_while_it_lasts_and_can_be_resumed_after() {
    let plan = Plan::new(&counting()).agent("assistant", crate::site::ASSISTANT).agent("maker", WORKFLOW);
    let site = plan.required().start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    ada.ask(&thread, "Hello").await;
    let handoff = hand_over(&site, &thread).await;
    let handoff = change(&site, HandoffSession { workflow: Some(at("write_it")), ..handoff }).await;
    let path = format!("/api/v1/threads/{thread}");
    let context = ada.see(&path).await;
    assert_eq!(
        (&context["is_handoff_active"], &context["handoff_target_agent"]),
        (&json!(true), &json!("maker"))
    );
    assert_eq!(context["current_active_agent"], "maker");
    let progress = json!({
        "state": "write_it", "label": "Write it", "step": 2, "total": 3, "answered": 0, "questions": 0,
        "mode": "[Skill Maker Mode]", "text": "Write it - 2/3 steps",
    });
    assert_eq!(context["progress"], progress);
    assert_eq!(ada.see("/api/v1/threads").await["data"][0]["is_handoff_active"], true);
    let handoff = change(&site, HandoffSession { state: HandoffState::Cancelled, ..handoff }).await;
    let context = ada.see(&path).await;
    assert_eq!((&context["is_handoff_active"], context.get("progress")), (&json!(false), None));
    assert_eq!(context["current_active_agent"], "assistant");
    let resumable = &context["resumable_handoffs"][0];
    assert_eq!(resumable["handoff_id"], handoff.handoff_id.to_string());
    assert_eq!((&resumable["agent"], &resumable["display_name"]), (&json!("maker"), &json!("Skill Maker")));
    assert_eq!((&resumable["state"], &resumable["progress"]), (&json!("cancelled"), &progress));
    assert!(resumable["message"].as_str().unwrap().starts_with("Welcome back! Would you like to continue"));
    site.end().await;
}

#[tokio::test]
async fn a_deleted_thread_is_gone_with_all_it_owned() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, other) = (new_thread(), new_thread());
    let run = ada.ask(&thread, "Hello").await["run_id"].as_str().unwrap().to_owned();
    ada.ask(&other, "Hello").await;
    let path = format!("/api/v1/threads/{thread}");
    let deleted = ada.delete(&path).await;
    assert_eq!((deleted.status().as_u16(), deleted.bytes().await.unwrap().len()), (204, 0));
    for (method, path) in [
        (Method::DELETE, path.clone()),
        (Method::GET, path.clone()),
        (Method::GET, format!("{path}/messages")),
        (Method::GET, format!("/api/v1/runs/{run}")),
        (Method::POST, format!("/api/v1/runs/{run}/cancel")),
        (Method::GET, format!("/api/v1/runs?thread_id={thread}")),
    ] {
        assert_eq!(ada.refused(method, &path).await["status"], 404, "{path}");
    }
    assert_eq!(ids(&ada.see("/api/v1/threads").await), [&other]);
    let trail = ada.trail("acme", "thread.delete").await;
    assert_eq!(trail, [("ada", "allowed"), ("ada", "deleted")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    // It can begin again, as a new one.
    ada.ask(&thread, "Hello").await;
    assert_eq!(ada.see(&path).await["total_messages"], 2);
    site.end().await;
}

/// Deleting a thread ends its active run and notifies subscribers.
#[tokio::test]
async fn deleting_a_thread_ends_the_run_that_is_at_work_in_it() {
    let site = start(&Scripted::default().script("assistant", [ScriptedTurn::text("").hang()])).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let run = ada.begin(&thread, "Hello").await;
    ada.until(&run, RunStatus::Running).await;
    ada.begin(&thread, "And then?").await;
    let (tenant, id) = (TenantId::parse("acme").unwrap(), ThreadId::parse(&thread).unwrap());
    let mut subscription = site.app.engine.parts.live.subscribe(&tenant, id, Interest::Thread);
    assert_eq!(ada.delete(&format!("/api/v1/threads/{thread}")).await.status(), 204);
    let look = async { while !matches!(subscription.recv().await, Some(StreamItem::Changed) | None) {} };
    tokio::time::timeout(LONG, look).await.expect("listeners are told");
    tokio::time::timeout(LONG, site.app.engine.idle()).await.expect("nobody works on it any more");
    assert_eq!(ada.refused(Method::GET, &format!("/api/v1/runs/{run}")).await["status"], 404);
    site.end().await;
}

/// A9, H9
#[tokio::test]
async fn others_threads_are_deleted_by_administrators_only() {
    let auditor = ["thread:read", "thread:write", "trace:read"].map(|text| Permission::parse(text).unwrap());
    let plan = Plan::new(&counting()).required();
    let plan = plan.settings(|settings| {
        settings.auth.roles.insert("auditor".to_owned(), auditor.to_vec());
    });
    let site = plan.start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    ada.ask(&thread, "Hello").await;
    let path = format!("/api/v1/threads/{thread}");
    let denied = async |person: Person<'_>, permission: &str| {
        let problem = person.refused(Method::DELETE, &path).await;
        assert_eq!((&problem["status"], &problem["permission"]), (&json!(403), &json!(permission)));
    };
    denied(site.person("acme", "olga", &["operator"]).await, "thread:write").await;
    denied(site.person("acme", "vera", &["viewer"]).await, "thread:write").await;
    denied(site.person("acme", "ann", &["auditor"]).await, "admin:*").await;
    let refused = ["olga", "vera", "ann"].map(|user| (user.to_owned(), "denied".to_owned()));
    assert_eq!(ada.trail("acme", "permission.refuse").await, refused);
    assert_eq!(site.person("acme", "root", &["admin"]).await.delete(&path).await.status(), 204);
    assert_eq!(ada.get(&path).await.status(), 404);
    assert_eq!(ada.trail("acme", "thread.delete").await[0], ("root".to_owned(), "allowed".to_owned()));
    site.end().await;
}

#[tokio::test]
async fn messages_show_the_rating_of_the_caller_alone() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let root = site.person("acme", "root", &["admin"]).await;
    let thread = new_thread();
    let mut answers = Vec::new();
    for question in ["a", "b", "c"] {
        answers.push(ada.ask(&thread, question).await["message"]["message_id"].as_str().unwrap().to_owned());
    }
    let rate = |id: &str| format!("/api/v1/messages/{id}/feedback");
    ada.post(&rate(&answers[0]), &json!({ "rating": 1 })).await;
    ada.post(&rate(&answers[2]), &json!({ "rating": -1 })).await;
    root.post(&rate(&answers[1]), &json!({ "rating": 1 })).await;
    let path = format!("/api/v1/threads/{thread}/messages");
    let ratings = |list: &Value| -> Vec<Value> {
        list["data"].as_array().unwrap().iter().map(|one| one["rating"].clone()).collect()
    };
    let seen = body(ada.get(&path).await, "get", "/api/v1/threads/{thread_id}/messages").await;
    let none = Value::Null;
    assert_eq!(ratings(&seen), [&none, &json!(1), &none, &none, &none, &json!(-1)].map(Value::clone));
    assert!(seen["data"][0].get("rating").is_none(), "absent, not null");
    let newest = ada.see(&format!("{path}?limit=2")).await;
    assert_eq!(ratings(&newest), [none.clone(), json!(-1)]);
    let of_root = ratings(&root.see(&path).await);
    assert_eq!(of_root, [&none, &none, &none, &json!(1), &none, &none].map(Value::clone));
    site.end().await;
}
