//! What is not possible, and how that is said.

use baton_core::store::RunStatus;
use baton_models::scripted::ScriptedTurn;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{RESUME, RETURN, begun, exit, held, model, of, plan, said, show, start, to, until};
use crate::person::{Person, new_thread};

async fn pointers(person: &Person<'_>, path: &str, body: &Value) -> (u64, Vec<String>) {
    let problem = crate::guards::problem(person.post(path, body).await).await;
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    let pointers = errors.iter().map(|one| one["pointer"].as_str().unwrap().to_owned()).collect();
    (problem["status"].as_u64().unwrap(), pointers)
}

/// C-2: every field within its limits, and nothing that the credential has said otherwise.
#[tokio::test]
async fn c_2_a_request_that_is_not_right_is_refused_with_its_place() {
    let site = plan(&model([])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = begun(&ada).await;
    let with = |name: &str, value: Value| {
        let mut request = to("maker");
        request[name] = value;
        request
    };
    let cases = [
        (with("target_agent_id", json!("")), "/target_agent_id"),
        (with("target_agent_id", json!("x".repeat(256))), "/target_agent_id"),
        (with("handoff_reason", json!(" ")), "/handoff_reason"),
        (with("handoff_reason", json!("x".repeat(501))), "/handoff_reason"),
        (with("context_summary", json!("")), "/context_summary"),
        (with("context_summary", json!("ä".repeat(2001))), "/context_summary"),
        (with("recent_message_count", json!(0)), "/recent_message_count"),
        (with("recent_message_count", json!(21)), "/recent_message_count"),
        (with("conversation_history_count", json!(21)), "/recent_message_count"),
        (with("preserve_state", json!("yes")), "/preserve_state"),
        (with("handoff_metadata", json!([1])), "/handoff_metadata"),
        (with("handoff_metadata", json!({ "x": "x".repeat(17_000) })), "/handoff_metadata"),
        (with("on_conflict", json!("wait")), "/on_conflict"),
        (with("type", json!("delegation")), "/type"),
        (with("thread_id", json!(new_thread())), "/thread_id"),
        (with("tenant_id", json!("globex")), "/tenant_id"),
        (with("user_id", json!("bob")), "/user_id"),
        (with("colour", json!("red")), "/colour"),
    ];
    for (request, pointer) in cases {
        assert_eq!(
            pointers(&ada, &of(&thread), &request).await,
            (400, vec![pointer.to_owned()]),
            "{request}"
        );
    }
    let both = json!({ "target_agent_id": "maker", "handoff_reason": "x", "recent_message_count": 1, "conversation_history_count": 2 });
    assert_eq!(pointers(&ada, &of(&thread), &both).await.0, 400);
    assert_eq!(pointers(&ada, &of(&thread), &json!({ "target_agent_id": "maker" })).await.0, 400);
    let returns = format!("{}/return", of(&thread));
    for (body, pointer) in [
        (json!({ "completion_status": "done" }), "/completion_status"),
        (json!({ "completion_status": "completed", "result_summary": "" }), "/result_summary"),
        (json!({ "completion_status": "completed", "artifacts_created": ["a", ""] }), "/artifacts_created/1"),
    ] {
        assert_eq!(pointers(&ada, &returns, &body).await, (400, vec![pointer.to_owned()]), "{body}");
    }
    let resume = format!("{}/resume", of(&thread));
    assert_eq!(
        pointers(&ada, &resume, &json!({ "handoff_id": "7" })).await,
        (400, vec!["/handoff_id".to_owned()])
    );
    assert_eq!(show(&ada, &thread).await.0, 409, "nothing of that began anything");
    // Everything at its limit is right.
    let most = json!({
        "target_agent_id": "maker", "handoff_reason": "x".repeat(500), "context_summary": "ä".repeat(2000), "recent_message_count": 20,
    });
    assert_eq!(start(&ada, &thread, &most).await.0, 201);
    site.end().await;
}

/// C-14, A20: who cannot take a thread, and which thread cannot be given.
#[tokio::test]
async fn c_14_whoever_cannot_take_it_is_named_with_a_reason() {
    let site = plan(&model([])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = begun(&ada).await;
    let (status, problem) = start(&ada, &thread, &to("makre")).await;
    assert_eq!(
        (status, &problem["code"], &problem["nearest"][0]),
        (404, &json!("agent_not_found"), &json!("maker"))
    );
    assert_eq!(problem["errors"][0]["pointer"], "/target_agent_id");
    let mut request = to("maker");
    request["source_agent_id"] = json!("nobody");
    let (status, problem) = start(&ada, &thread, &request).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (404, &json!("/source_agent_id")));
    let (status, problem) = start(&ada, &thread, &to("plain")).await;
    assert_eq!((status, &problem["code"]), (409, &json!("handoff_rejected")));
    assert!(problem["detail"].as_str().unwrap().contains("`plain` does not take over"), "{problem}");
    let reason = "it answers questions, but does not take over conversations";
    assert_eq!((&problem["accepted"], &problem["rejection_reason"]), (&json!(false), &json!(reason)));
    let (status, problem) = start(&ada, &thread, &to("far")).await;
    assert_eq!((status, &problem["code"]), (503, &json!("agent_unavailable")));
    let sentence = "The far specialist is currently unavailable. Would you like me to help you with something else, or try again later?";
    assert_eq!(problem["detail"], sentence);
    let (status, problem) = start(&ada, &new_thread(), &to("maker")).await;
    assert_eq!((status, &problem["code"]), (404, &json!("thread_not_found")));
    assert!(problem["detail"].as_str().unwrap().contains("start a new conversation"));
    let (status, problem) = start(&ada, "not-a-uuid", &to("maker")).await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_thread_id")));
    site.end().await;
}

/// Where nobody has the thread there is nothing to show, leave, give back or go on with.
#[tokio::test]
async fn without_a_handoff_there_is_nothing_to_do() {
    let site = plan(&model([])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = begun(&ada).await;
    let none = |(status, problem): (u16, Value)| {
        assert_eq!((status, &problem["code"]), (409, &json!("no_active_handoff")), "{problem}");
    };
    none(show(&ada, &thread).await);
    none(exit(&ada, &thread).await);
    let done = json!({ "completion_status": "completed" });
    none(said(ada.post(&format!("{}/return", of(&thread)), &done).await, "post", RETURN).await);
    let any = json!({ "handoff_id": Uuid::now_v7() });
    let (status, problem) =
        said(ada.post(&format!("{}/resume", of(&thread)), &any).await, "post", RESUME).await;
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{problem}");
    // One that has ended is no more there than one that never was.
    let (thread, _) = held(&ada).await;
    assert_eq!(exit(&ada, &thread).await.0, 200);
    none(exit(&ada, &thread).await);
    site.end().await;
}

/// C-8, C-12, C-13: whoever comes second is told with the sentence, or waits if they want to.
#[tokio::test]
async fn c_13_a_second_handoff_is_refused_or_waits() {
    let model = model([]).script("notes", [ScriptedTurn::text("I take notes.")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, _) = held(&ada).await;
    let (status, problem) = start(&ada, &thread, &to("notes")).await;
    assert_eq!((status, &problem["code"]), (409, &json!("handoff_active")));
    let sentence = "You're currently in a skill creation session. Would you like to finish that first?";
    assert_eq!(problem["detail"], sentence);
    let mut request = to("notes");
    request["on_conflict"] = json!("queue");
    let (status, accepted) = start(&ada, &thread, &request).await;
    assert_eq!((status, &accepted["accepted"], &accepted["queued"]), (202, &json!(true), &json!(true)));
    assert_eq!((accepted.get("handoff_id"), accepted.get("run_id")), (None, None));
    assert_eq!(
        (&accepted["source_agent_id"], &accepted["target_agent_id"]),
        (&json!("assistant"), &json!("notes"))
    );
    assert_eq!(show(&ada, &thread).await.1["target_agent_id"], "maker", "it has to wait");
    assert_eq!(exit(&ada, &thread).await.0, 200);
    until(&ada, &thread, |context| context["handoff_target_agent"] == "notes").await;
    site.end().await;
}

/// C-12: of many who want the same thread at once, one gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c_12_of_many_at_once_one_begins() {
    let model =
        model(vec![ScriptedTurn::text("Hello."); 20]).script("notes", vec![ScriptedTurn::text("Noted."); 20]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    for _ in 0..5 {
        let thread = begun(&ada).await;
        let targets = ["maker", "notes"].into_iter().cycle().take(12);
        let answers = join_all(targets.map(|target| {
            let (ada, thread) = (&ada, &thread);
            async move { start(ada, thread, &to(target)).await }
        }));
        let (mut begun, refused): (Vec<_>, Vec<_>) =
            answers.await.into_iter().partition(|(status, _)| *status == 201);
        assert_eq!((begun.len(), refused.len()), (1, 11));
        for (status, problem) in refused {
            assert_eq!((status, &problem["code"]), (409, &json!("handoff_active")), "{problem}");
            assert!(problem["detail"].as_str().unwrap().starts_with("You're currently in a"), "{problem}");
        }
        let (_, accepted) = begun.pop().unwrap();
        assert_eq!(show(&ada, &thread).await.1["handoff_id"], accepted["handoff_id"]);
        ada.until(accepted["run_id"].as_str().unwrap(), RunStatus::Completed).await;
    }
    assert_eq!(ada.refused(Method::GET, &of(&new_thread())).await["code"], "thread_not_found");
    site.end().await;
}
