//! The person leaves, whatever happens.

use std::sync::Arc;
use std::time::Duration;

use baton_core::store::RunStatus;
use baton_engine::HeartbeatConfig;
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{asked, begun, exit, held, model, of, plan, show, start, to, until};
use crate::person::Person;
use crate::site::{LONG, memory};
use crate::wire::{Wire, frame};

/// C-5, C-16: the answer says who has the thread again, in a sentence for the person; the main agent says that it can go on later.
#[tokio::test]
async fn c_16_leaving_gives_the_thread_back_and_keeps_what_was_collected() {
    let model = model([]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let before = model.asked().len();
    let (status, returned) = exit(&ada, &thread).await;
    assert_eq!(status, 200);
    for (name, value) in [
        ("handoff_id", accepted["handoff_id"].clone()),
        ("thread_id", json!(thread)),
        ("tenant_id", json!("acme")),
        ("source_agent_id", json!("maker")),
        ("target_agent_id", json!("assistant")),
        ("completion_status", json!("cancelled")),
        ("artifacts_created", json!([])),
        ("message", json!("No problem! Returning you to the main assistant.")),
    ] {
        assert_eq!(returned[name], value, "{name}");
    }
    let context = until(&ada, &thread, |context| context.get("active_run_id").is_none()).await;
    assert_eq!(
        (&context["is_handoff_active"], &context["current_active_agent"]),
        (&json!(false), &json!("assistant"))
    );
    let left = &context["resumable_handoffs"][0];
    assert_eq!((&left["handoff_id"], &left["agent"]), (&accepted["handoff_id"], &json!("maker")));
    assert_eq!(left["message"], "Welcome back! Would you like to continue creating your skill?");
    let history = ada.see(&format!("/api/v1/threads/{thread}/messages")).await;
    let last = history["data"].as_array().unwrap().last().unwrap();
    let text = "Let me know if you'd like to continue creating that skill later.";
    assert_eq!((&last["agent"], &last["parts"][0]["text"]), (&json!("assistant"), &json!(text)));
    assert_eq!(asked(&model, before), Vec::<String>::new(), "no model is needed to let somebody go");
    site.end().await;
}

/// `maker` is at work on what was said, and does not answer.
async fn busy(ada: &Person<'_>) -> (String, String) {
    let (thread, _) = held(ada).await;
    let run = ada.begin(&thread, "Slack Alert").await;
    ada.until(&run, RunStatus::Running).await;
    (thread, run)
}

/// C-16: a holder that is busy keeps nobody.
#[tokio::test]
async fn c_16_leaving_does_not_wait_for_a_holder_that_is_busy() {
    let gate = Arc::new(Semaphore::new(0));
    let model = model([ScriptedTurn::default().say("I think").until(&gate).say(" about it.")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, run) = busy(&ada).await;
    let (status, returned) = tokio::time::timeout(LONG, exit(&ada, &thread)).await.expect("at once");
    assert_eq!((status, &returned["completion_status"]), (200, &json!("cancelled")));
    assert_eq!(show(&ada, &thread).await.0, 409);
    ada.until(&run, RunStatus::Cancelled).await;
    assert_eq!(ada.ask(&thread, "Hello").await["agent"], "assistant");
    site.end().await;
}

/// The same by an exit word: it is not queued behind what the holder is at.
#[tokio::test]
async fn c_16_an_exit_word_does_not_wait_for_a_holder_that_is_busy() {
    let gate = Arc::new(Semaphore::new(0));
    let site = plan(&model([ScriptedTurn::default().until(&gate).say("Never.")])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, run) = busy(&ada).await;
    let answer = tokio::time::timeout(LONG, ada.ask(&thread, "cancel")).await.expect("at once");
    assert_eq!((&answer["status"], answer.get("handoff")), (&json!("completed"), None));
    ada.until(&run, RunStatus::Cancelled).await;
    site.end().await;
}

/// C-16, I13: a holder whose process is gone keeps nobody either. Its run is not anybody's yet, and the person is free at once.
#[test]
fn c_16_leaving_works_when_the_process_of_the_holder_is_gone() {
    let living = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dying = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let lease = HeartbeatConfig { length: Duration::from_secs(3), beat: Duration::from_millis(200) };
    let store = living.block_on(memory());
    let (key, thread, run) = dying.block_on(async {
        let mut plan = plan(&model([ScriptedTurn::text("").hang()])).store(Arc::clone(&store));
        plan.lease = lease;
        let site = plan.start().await;
        let key = site.key("acme", "ada", &["user"]).await;
        let ada = Person { site: &site, key: key.clone() };
        let (thread, run) = busy(&ada).await;
        std::mem::forget(site);
        (key, thread, run)
    });
    // As kill -9 does it: nothing is said to anybody.
    dying.shutdown_background();
    living.block_on(async {
        let quiet = Scripted::default().script("assistant", [ScriptedTurn::text("Here I am.")]);
        let mut plan = plan(&quiet).store(Arc::clone(&store));
        plan.lease = lease;
        let site = plan.start().await;
        let ada = Person { site: &site, key };
        assert_eq!(show(&ada, &thread).await.1["target_agent_id"], "maker", "it is kept");
        let (status, returned) = tokio::time::timeout(LONG, exit(&ada, &thread)).await.expect("at once");
        assert_eq!((status, &returned["completion_status"]), (200, &json!("cancelled")), "{returned}");
        let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
        assert_eq!(context["current_active_agent"], "assistant");
        // Nobody goes on with what the holder was at.
        let answer = tokio::time::timeout(LONG, ada.ask(&thread, "Hello")).await.expect("an answer");
        assert_eq!(
            (&answer["agent"], &answer["message"]["parts"][0]["text"]),
            (&json!("assistant"), &json!("Here I am."))
        );
        ada.until(&run, RunStatus::Cancelled).await;
        assert_eq!(asked(&quiet, 0), ["assistant"]);
        site.end().await;
    });
}

/// C-16: the exit button of a page that listens over a WebSocket.
#[tokio::test]
async fn c_16_leaving_over_a_websocket() {
    let site = plan(&model([])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = begun(&ada).await;
    let mut socket = Wire::websocket(site.address, &thread, &ada.key).await;
    socket.send(frame(r#"{"type":"exit_handoff"}"#)).await;
    let none = socket.until(r#""title":"No active handoff""#).await;
    assert!(none.contains("baton.problem"), "{none}");
    assert_eq!(start(&ada, &thread, &to("maker")).await.0, 201);
    socket.until("Connecting you with Skill Creation Assistant").await;
    socket.send(frame(r#"{"type":"exit_handoff"}"#)).await;
    let accepted = socket.until(r#""request":"exit_handoff""#).await;
    assert!(accepted.contains("baton.accepted"), "{accepted}");
    assert_eq!(show(&ada, &thread).await.0, 409);
    assert_eq!(ada.trail("acme", "handoff.exit").await, [("ada", "denied"), ("ada", "allowed")].map(owned));
    assert_eq!(ada.refused(Method::GET, &of(&thread)).await["code"], "no_active_handoff");
    site.end().await;
}

fn owned((a, b): (&str, &str)) -> (String, String) {
    (a.to_owned(), b.to_owned())
}
