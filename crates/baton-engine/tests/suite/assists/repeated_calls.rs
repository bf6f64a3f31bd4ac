//! `assists.repeated_calls`: a loop of equal tool calls ends with an answer.

use baton_core::event::EventKind;
use baton_core::model::{ModelAssists, ModelSupport, ToolChoice};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{model, statuses};
use crate::durability::{die, go_on};
use crate::{Setup, TestTool};

const REPEATED: &str = "answers without tools: two turns in a row made the same calls";

fn helped() -> Scripted {
    model(ModelSupport::default(), ModelAssists { repeated_calls: true, ..ModelAssists::default() })
}

fn setup(model: &Scripted) -> Setup {
    Setup::new(model).tool(TestTool::echo("look"))
}

fn look(n: u32) -> ScriptedTurn {
    ScriptedTurn::call("look", &json!({"n": n, "deep": false}))
}

fn choices(model: &Scripted) -> Vec<ToolChoice> {
    model.asked().iter().map(|asked| asked.tool_choice).collect()
}

#[tokio::test]
async fn after_the_same_calls_twice_the_model_may_only_answer() {
    // The same arguments in another order.
    let again = ScriptedTurn::call("look", &json!({"deep": false, "n": 1}));
    let model = helped().script("a", [look(1), again, ScriptedTurn::text("Done.")]);
    let ran = setup(&model).run().await;
    assert_eq!((ran.answer(), statuses(&ran)), ("Done.", vec![REPEATED]), "{}", ran.log());
    assert_eq!(choices(&model), [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::None]);
}

#[tokio::test]
async fn calls_with_other_arguments_are_no_repetition() {
    let model = helped().script("a", [look(1), look(2), look(1), ScriptedTurn::text("Done.")]);
    let ran = setup(&model).run().await;
    assert_eq!((ran.answer(), statuses(&ran).len()), ("Done.", 0), "{}", ran.log());
    assert_eq!(choices(&model), [ToolChoice::Auto; 4]);
}

#[tokio::test]
async fn another_call_in_the_turn_before_is_no_repetition() {
    let calls = |second: u32| look(1).and_call("look", &json!({"n": second, "deep": false}));
    let model = helped().script("a", [calls(2), calls(1), ScriptedTurn::text("Done.")]);
    let ran = setup(&model).run().await;
    assert_eq!((ran.answer(), statuses(&ran).len()), ("Done.", 0), "{}", ran.log());
}

#[tokio::test]
async fn models_without_the_assist_may_poll() {
    let model = Scripted::default().script("a", [look(1), look(1), look(1), ScriptedTurn::text("Done.")]);
    let ran = setup(&model).run().await;
    assert_eq!((ran.answer(), statuses(&ran).len()), ("Done.", 0), "{}", ran.log());
}

#[test]
fn a_repetition_counts_after_a_crash_and_is_recorded_once() {
    let first = helped().script("a", [look(1), look(1), ScriptedTurn::default().hang()]);
    let is_repeated = |kind: &EventKind| matches!(kind, EventKind::Status { text } if text == REPEATED);
    let (engine, _, _) = die(setup(&first), move |event| is_repeated(&event.kind));
    let second = helped().script("a", [ScriptedTurn::text("Done.")]);
    let after = go_on(setup(&second), &engine);
    after.is_sound();
    assert_eq!(after.messages.last().unwrap().message.text(), "Done.");
    assert_eq!((choices(&second), after.count(is_repeated)), (vec![ToolChoice::None], 1));
}
