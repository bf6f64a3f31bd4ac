//! Without a model the engine walks by itself.

use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::ModelName;
use baton_core::event::HandoffPhase;
use baton_core::tool::Effect;
use baton_engine::ModelRegistry;
use baton_models::scripted::Scripted;
use baton_offline::Offline;
use serde_json::json;

use super::{Calls, progress, setup, stands};
use crate::handoffs::{Talk, phases};
use crate::{Setup, TestTool};

/// Nobody has a model.
pub(super) fn guided(calls: &Calls) -> Setup {
    let mut setup = setup(&Scripted::default(), calls);
    setup.models = ModelRegistry::new(ModelName::parse("offline").unwrap()).with_provider(Arc::new(Offline));
    setup
}

pub(super) const WORDS: &[&str] = &[
    "I want to create a skill that sends Slack alerts",
    "table",
    "Slack Alert",
    "alert us; tell them",
    "yes",
];

/// J2: from the first word to the main agent's last, without a model.
#[tokio::test]
async fn j2_5_guided_workflow_from_request_to_return() {
    let calls = Calls::default();
    let talk = Talk::new(guided(&calls)).await;
    let mut steps = Vec::new();
    for words in WORDS {
        let ran = talk.say(words).await;
        steps.extend(progress(&ran.events).into_iter().map(|(step, label)| format!("{step} {label}")));
    }
    // K7: every reply has the progress, and the first one begins with it.
    assert_eq!(steps.iter().filter(|step| *step == "1 Gathering").count(), 3, "{steps:?}");
    steps.dedup();
    insta::assert_snapshot!(talk.said().await.join("\n\n---\n\n"));
    assert_eq!(steps, ["1 Gathering", "2 Triggers", "3 Writing", "4 Testing", "5 Complete"]);
    assert_eq!(calls.count(), [1, 1, 1]);
    assert!(talk.open().await.is_none());
    let ended = phases(&talk.events().await).pop().map(|(phase, _)| phase);
    assert_eq!(ended, Some(HandoffPhase::Completed));
    let said = talk.said().await;
    assert!(said.last().unwrap().contains("Great, your 'Slack Alert' skill is now active."), "{said:?}");
}

/// C-16: who leaves and comes back is asked what was asked last, and nothing twice.
#[tokio::test]
async fn c_16_resumed_workflow_asks_the_open_question() {
    let calls = Calls::default();
    let talk = Talk::new(guided(&calls)).await;
    talk.say(WORDS[0]).await;
    talk.say(WORDS[1]).await;
    talk.say("cancel").await;
    let back = talk.say("continue").await;
    assert!(back.answer().contains("- Purpose: sends Slack alerts"), "{}", back.answer());
    assert!(back.answer().ends_with("Step 1 of 5: Gathering. What is the name?"), "{}", back.answer());
    talk.say("Slack Alert").await;
    assert_eq!(stands(&talk).await.data["values"]["name"], "Slack Alert");
}

/// A handoff by button: nobody said anything yet.
#[tokio::test]
async fn workflow_started_by_a_button_greets() {
    let calls = Calls::default();
    let talk = Talk::new(guided(&calls)).await;
    talk.say("Hello").await;
    talk.engine.start_handoff(talk.asking_for("maker")).await.unwrap();
    talk.rest().await;
    let said = talk.said().await;
    let first = said.last().unwrap();
    assert!(
        first.starts_with("maker: Hi! I'm the Skill Creation Assistant. You said: “Ada wants a skill"),
        "{first}"
    );
    assert!(first.ends_with("Step 1 of 5: Gathering. What is the purpose?"), "{first}");
}

/// X14: two messages sent one after the other without waiting: the second does not agree to what nobody had seen.
#[tokio::test]
async fn queued_yes_does_not_confirm_a_later_question() {
    let calls = Calls::default();
    let mut slow = guided(&calls);
    slow.tools.retain(|tool| tool.spec().name != "check");
    let check = TestTool::new("check", |_| async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        Ok("It is valid.".to_owned())
    });
    let talk = Talk::new(slow.tool(check.spec(|spec| spec.parameters = json!({"type": "object"})))).await;
    for words in &WORDS[..3] {
        talk.say(words).await;
    }
    let slow = talk.engine.start(talk.saying(WORDS[3])).await.unwrap();
    let hasty = talk.engine.start(talk.saying("yes")).await.unwrap();
    slow.finish().await;
    let answer = hasty.finish().await.answer.unwrap().text;
    assert!(answer.starts_with("Before I go on"), "{answer}");
    assert_eq!(calls.count(), [1, 0, 0]);
    talk.say("yes").await;
    assert_eq!(calls.count(), [1, 0, 1]);
}

/// A name that is taken is asked for again, and only that.
#[tokio::test]
async fn value_rejected_by_a_tool_is_asked_again() {
    let calls = Calls::default();
    let talk = Talk::new(guided(&calls)).await;
    for words in [WORDS[0], WORDS[1], "taken"] {
        talk.say(words).await;
    }
    let refused = talk.say(WORDS[3]).await;
    assert!(refused.answer().contains("There is already `taken`"), "{}", refused.answer());
    assert!(refused.answer().ends_with("Say “ok” to take “taken-2”."), "{}", refused.answer());
    let on = talk.say("Fresh Name").await;
    assert!(on.answer().ends_with("Step 4 of 5: Testing. Save it? (yes or no)"), "{}", on.answer());
    assert_eq!(calls.count(), [2, 1, 0]);
}

/// Tools that write are called once for a message, whatever they are.
#[tokio::test]
async fn writing_tools_run_in_guided_workflows() {
    let calls = Calls::default();
    let mut setup = guided(&Calls::default());
    setup.tools.clear();
    for tool in calls.tools() {
        setup = setup.tool(tool.spec(|spec| spec.effect = Effect::Writes));
    }
    let talk = Talk::new(setup).await;
    for words in WORDS {
        talk.say(words).await;
    }
    assert_eq!(calls.count(), [1, 1, 1]);
}
