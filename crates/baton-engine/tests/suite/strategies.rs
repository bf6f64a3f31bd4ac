//! Planning strategies (F32) and structured answers.

use baton_core::agent::PlanningStrategy;
use baton_core::store::RunStatus;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::{Setup, TestTool};

#[tokio::test]
async fn f32_plan_and_execute_runs_steps_in_order() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::text("1. Look\n2. Compare"),
            ScriptedTurn::call("t", &json!({"n": 1})),
            ScriptedTurn::text("Looked."),
            ScriptedTurn::text("Compared."),
            ScriptedTurn::text("The answer."),
        ],
    );
    let setup = Setup::new(&model).agent(|a| a.planning_strategy = PlanningStrategy::PlanAndExecute);
    let ran = setup.tool(TestTool::echo("t")).run().await;
    assert_eq!(ran.answer(), "The answer.");
    insta::assert_snapshot!(ran.log());
}

#[tokio::test]
async fn f32_plan_and_react_plans_first() {
    let model = Scripted::default().script(
        "a",
        [ScriptedTurn::text("1. Look"), ScriptedTurn::call("t", &json!({})), ScriptedTurn::text("Found.")],
    );
    let setup = Setup::new(&model).agent(|a| a.planning_strategy = PlanningStrategy::PlanAndReact);
    let ran = setup.tool(TestTool::echo("t")).run().await;
    assert_eq!((ran.answer(), model.asked().len(), model.left()), ("Found.", 3, 0));
}

#[tokio::test]
async fn f32_spar_reviews_its_draft() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::text("The question is clear."),
            ScriptedTurn::text("1. Answer"),
            ScriptedTurn::text("Draft with a mistake."),
            ScriptedTurn::text("The date is wrong."),
            ScriptedTurn::text("Corrected answer."),
            ScriptedTurn::text("OK"),
        ],
    );
    let ran = Setup::new(&model).agent(|a| a.planning_strategy = PlanningStrategy::Spar).run().await;
    assert_eq!(ran.answer(), "Corrected answer.");
    let shown: Vec<&str> = ran
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            baton_core::EventKind::TextFinished { text: delta, .. }
                if event.visibility == baton_core::Visibility::User =>
            {
                Some(delta.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["Corrected answer."]);
}

fn schema() -> serde_json::Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false})
}

#[tokio::test]
async fn a_structured_answer_is_checked_and_repaired_once() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("n is three"), ScriptedTurn::text("```json\n{\"n\": 3}\n```")]);
    let ran = Setup::new(&model).agent(|a| a.output_schema = Some(schema())).run().await;
    assert_eq!(ran.answer(), "{\"n\":3}");
    assert_eq!(ran.end.answer.unwrap().value, Some(json!({"n": 3})));
    let told = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert!(told.contains("does not satisfy the required JSON Schema"), "{told}");

    let model = Scripted::default().script("a", [ScriptedTurn::text("no"), ScriptedTurn::text("still no")]);
    let ran = Setup::new(&model).agent(|a| a.output_schema = Some(schema())).run().await;
    assert_eq!(ran.end.status, RunStatus::Failed);
    assert!(ran.log().contains("run failed: invalid_output"), "{}", ran.log());
}

/// A plan is words even when the answer must be JSON.
#[tokio::test]
async fn only_the_answer_uses_the_schema() {
    let model = Scripted::default().script(
        "a",
        [ScriptedTurn::text("1. Count"), ScriptedTurn::text("Three."), ScriptedTurn::text("{\"n\": 3}")],
    );
    let setup = Setup::new(&model).agent(|a| {
        a.planning_strategy = PlanningStrategy::PlanAndExecute;
        a.output_schema = Some(schema());
    });
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "{\"n\":3}");
    let forms: Vec<bool> = model.asked().iter().map(|asked| asked.output_schema).collect();
    assert_eq!(forms, [false, false, true]);
}
