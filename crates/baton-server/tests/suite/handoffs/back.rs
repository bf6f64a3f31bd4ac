//! Given back, gone on with, and heard by whoever listens.

use baton_core::store::RunStatus;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::{RESUME, RETURN, begun, exit, held, model, of, plan, said, show, start, to, until};
use crate::client::{Frame, Frames, text_of};
use crate::person::Person;

async fn resume(person: &Person<'_>, thread: &str, handoff: &Value) -> (u16, Value) {
    let body = json!({ "handoff_id": handoff });
    said(person.post(&format!("{}/resume", of(thread)), &body).await, "post", RESUME).await
}

/// C-15, C-16: what was left goes on where it was, once nobody else has the thread.
#[tokio::test]
async fn c_16_what_was_left_goes_on_where_it_was() {
    let model =
        model([ScriptedTurn::text("We were at the name.")]).script("notes", [ScriptedTurn::text("Noted.")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let handoff = &accepted["handoff_id"];
    exit(&ada, &thread).await;
    let (status, resumed) = resume(&ada, &thread, handoff).await;
    assert_eq!((status, &resumed["state"], &resumed["handoff_id"]), (200, &json!("active"), handoff));
    assert_eq!((&resumed["workflow_state"], resumed.get("completed_at")), (&json!("ask_name"), None));
    let run = ada.until(resumed["run_id"].as_str().unwrap(), RunStatus::Completed).await;
    assert_eq!((&run["answered_by"], &run["answer"]), (&json!("maker"), &json!("We were at the name.")));
    let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!(
        (&context["handoff_target_agent"], &context["resumable_handoffs"]),
        (&json!("maker"), &json!([]))
    );
    assert_eq!(resume(&ada, &thread, handoff).await.1["code"], "handoff_active");
    exit(&ada, &thread).await;
    until(&ada, &thread, |context| context.get("active_run_id").is_none()).await;
    // Another thread has no such handoff, and while somebody else has this one there is no place for it.
    let other = begun(&ada).await;
    assert_eq!(resume(&ada, &other, handoff).await.1["code"], "not_found");
    assert_eq!(start(&ada, &thread, &to("notes")).await.0, 201);
    let (status, problem) = resume(&ada, &thread, handoff).await;
    assert_eq!((status, &problem["code"]), (409, &json!("handoff_active")));
    site.end().await;
}

/// K10: unfinished work is listed in any thread for its user only, until it continues.
#[tokio::test]
async fn k_10_unfinished_work_of_all_threads_is_listed_for_its_user_only() {
    let model = model([ScriptedTurn::text("We were at the name.")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let listed = async |person: &Person<'_>| person.see("/api/v1/handoffs/resumable").await["data"].clone();
    assert_eq!(listed(&ada).await, json!([]), "it is still open");
    exit(&ada, &thread).await;
    let left = listed(&ada).await;
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    assert_eq!((&left[0]["handoff_id"], &left[0]["thread_id"]), (&accepted["handoff_id"], &json!(thread)));
    assert!(left[0]["message"].as_str().unwrap().starts_with("Welcome back!"), "{left}");
    for (tenant, user, role) in [("acme", "bob", "user"), ("acme", "eve", "admin"), ("other", "ada", "user")]
    {
        let other = site.person(tenant, user, &[role]).await;
        assert_eq!(listed(&other).await, json!([]), "{user} of {tenant}");
    }
    resume(&ada, &thread, &accepted["handoff_id"]).await;
    assert_eq!(listed(&ada).await, json!([]));
    site.end().await;
}

/// C-5, C-17: what the holder brought is told, and the main agent takes it up.
#[tokio::test]
async fn c_17_what_is_given_back_as_done_is_taken_up_and_cannot_go_on() {
    let model = Scripted::default()
        .script(
            "assistant",
            [
                ScriptedTurn::text("At your service."),
                ScriptedTurn::text("Great, your 'Slack Alert' skill is now active."),
            ],
        )
        .script("maker", [ScriptedTurn::text("What is it called?")]);
    let site = plan(&model).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, accepted) = held(&ada).await;
    let done = json!({
        "completion_status": "completed", "result_summary": "The skill is there.", "artifacts_created": ["slack-alert"],
    });
    let path = format!("{}/return", of(&thread));
    let (status, returned) = said(ada.post(&path, &done).await, "post", RETURN).await;
    assert_eq!((status, &returned["completion_status"]), (200, &json!("completed")));
    assert_eq!(
        (&returned["source_agent_id"], &returned["target_agent_id"]),
        (&json!("maker"), &json!("assistant"))
    );
    assert_eq!(returned["result_summary"], "The skill is there.");
    assert_eq!(returned["artifacts_created"], json!(["slack-alert"]));
    assert_eq!(returned["message"], "Your skill is ready! Returning you to the main assistant.");
    let context = until(&ada, &thread, |context| context.get("active_run_id").is_none()).await;
    assert_eq!((&context["is_handoff_active"], &context["resumable_handoffs"]), (&json!(false), &json!([])));
    let history = ada.see(&format!("/api/v1/threads/{thread}/messages")).await;
    let last = history["data"].as_array().unwrap().last().unwrap();
    assert_eq!(last["parts"][0]["text"], "Great, your 'Slack Alert' skill is now active.");
    assert_eq!(resume(&ada, &thread, &accepted["handoff_id"]).await.0, 409);
    assert_eq!(show(&ada, &thread).await.0, 409);
    site.end().await;
}

/// C-4: an acceptance has an estimate once three handoffs to the agent are completed in the tenant.
#[tokio::test]
async fn c_4_acceptance_has_an_estimate_from_completed_handoffs() {
    let site = plan(&model(vec![ScriptedTurn::text("What is it called?"); 3])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    for _ in 0..3 {
        let (thread, accepted) = held(&ada).await;
        assert_eq!(accepted.get("estimated_duration_seconds"), None, "{accepted}");
        let done = json!({ "completion_status": "completed" });
        let path = format!("{}/return", of(&thread));
        assert_eq!(said(ada.post(&path, &done).await, "post", RETURN).await.0, 200);
    }
    let (_, accepted) = held(&ada).await;
    let estimated = accepted["estimated_duration_seconds"].as_u64();
    assert!(estimated.is_some_and(|seconds| seconds < 60), "{accepted}");
    site.end().await;
}

fn handoffs(frames: &[Frame]) -> Vec<(&str, &str)> {
    let told = frames.iter().filter(|frame| frame.event["name"] == "baton.handoff");
    told.map(|frame| {
        let value = &frame.event["value"];
        (value["phase"].as_str().unwrap(), value["message"].as_str().unwrap())
    })
    .collect()
}

/// Who has the baton, in the order in which listeners hear it.
fn holders(frames: &[Frame]) -> Vec<(String, bool)> {
    let states = frames.iter().filter_map(|frame| match frame.kind() {
        "STATE_SNAPSHOT" => Some(&frame.event["snapshot"]["activeAgent"]),
        "STATE_DELTA" => Some(&frame.event["delta"][0]["value"]),
        _ => None,
    });
    states.map(|agent| (agent["id"].as_str().unwrap().to_owned(), agent["exitable"] == true)).collect()
}

/// C-19: whoever listens to the thread hears everything, by whichever door it came in; each run ends once.
#[tokio::test]
async fn c_19_whoever_listens_hears_the_thread_change_hands() {
    let site = plan(&model([ScriptedTurn::text("A fine name.")])).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = begun(&ada).await;
    let events = ada.get(&format!("/api/v1/threads/{thread}/events?after=0")).await;
    let mut frames = Frames::of(events);
    let is_end = |frame: &Frame| frame.is_end();
    frames.until(is_end).await;
    start(&ada, &thread, &to("maker")).await;
    let begun = frames.until(is_end).await;
    let connecting = "Connecting you with Skill Creation Assistant...";
    assert_eq!(handoffs(&begun), [("connecting", connecting), ("active", "[Skill Creation Mode]")]);
    assert_eq!(holders(&begun).last(), Some(&("maker".to_owned(), true)), "{begun:#?}");
    assert!(begun.iter().any(|frame| frame.event["activityType"] == "baton.progress"));
    assert_eq!(text_of(&begun), "What is it called?");
    ada.ask(&thread, "Slack Alert").await;
    let held = frames.until(is_end).await;
    assert_eq!((handoffs(&held), text_of(&held).as_str()), (vec![], "A fine name."));
    assert_eq!(holders(&held), [("maker".to_owned(), true)], "whoever comes now knows who has it");
    exit(&ada, &thread).await;
    let left = frames.until(is_end).await;
    let back = "No problem! Returning you to the main assistant.";
    assert_eq!(handoffs(&left), [("cancelled", back)]);
    assert_eq!(holders(&left).last(), Some(&("assistant".to_owned(), false)), "{left:#?}");
    assert!(text_of(&left).starts_with("Let me know if you'd like to continue"));
    assert!(left.iter().all(|frame| frame.event.get("subagentRunId").is_none()));
    site.end().await;
}

/// K7: each reply of a holder has its mode, also without a workflow, which would have progress. The main agent has none.
#[tokio::test]
async fn k_7_each_reply_has_the_mode_without_a_workflow() {
    let notes = ["What shall I note?", "Noted.", "Noted, too."].map(ScriptedTurn::text);
    let site = plan(&model([]).script("notes", notes)).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = begun(&ada).await;
    let events = ada.get(&format!("/api/v1/threads/{thread}/events?after=0")).await;
    let mut frames = Frames::of(events);
    let mode = |frames: &[Frame]| {
        let begun = frames.iter().find(|frame| frame.kind() == "STATE_SNAPSHOT").expect("a run begins");
        begun.event["snapshot"]["activeAgent"]["mode"].clone()
    };
    assert_eq!(mode(&frames.until(Frame::is_end).await), Value::Null);
    start(&ada, &thread, &to("notes")).await;
    frames.until(Frame::is_end).await;
    for words in ["Milk.", "Bread."] {
        ada.ask(&thread, words).await;
        let reply = frames.until(Frame::is_end).await;
        assert_eq!(mode(&reply), "[Notes Mode]", "{words}: {reply:#?}");
        assert!(reply.iter().all(|frame| frame.event["activityType"] != "baton.progress"));
    }
    exit(&ada, &thread).await;
    frames.until(Frame::is_end).await;
    ada.ask(&thread, "Thanks.").await;
    assert_eq!(mode(&frames.until(Frame::is_end).await), Value::Null);
    site.end().await;
}
