//! Limits end a session with one closing turn, so that it always answers.

use std::time::Duration;

use baton_core::store::RunStatus;
use baton_core::{HumanDuration, Usd};
use baton_engine::Limit;
use baton_models::scripted::{Scripted, Turn};
use serde_json::json;

use crate::{Setup, TestTool};

fn restless(turns: usize) -> Scripted {
    let calls = (0..turns).map(|n| Turn::call("t", &json!({ "n": n })).tokens(1_000, 10));
    Scripted::default().script("a", calls.chain([Turn::text("This is what I have.").tokens(1_000, 10)]))
}

#[tokio::test(start_paused = true)]
async fn turns() {
    let model = restless(3);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.max_turns = 3).tool(TestTool::echo("t")).run().await;
    let answer = ran.end.answer.clone().unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.limit, answer.turns),
        ("This is what I have.", Some(Limit::Turns), 4)
    );
    assert_eq!(ran.end.status, RunStatus::Completed);
    assert!(ran.log().ends_with("run finished: success, limit turns\n"), "{}", ran.log());
    let asked = model.asked();
    assert!(serde_json::to_string(&asked[3].messages).unwrap().contains("the limit of turns was met"));
}

#[tokio::test(start_paused = true)]
async fn tokens_and_money() {
    let ran = Setup::new(&restless(2))
        .agent(|a| a.limits.max_tokens = Some(1_500))
        .tool(TestTool::echo("t"))
        .run()
        .await;
    assert_eq!(ran.end.answer.unwrap().limit, Some(Limit::Tokens));
    let ran = Setup::new(&restless(2))
        .agent(|a| a.limits.max_cost_usd = Some("0.0015".parse::<Usd>().unwrap()))
        .tool(TestTool::echo("t"))
        .run()
        .await;
    assert_eq!(ran.end.answer.unwrap().limit, Some(Limit::Cost));
}

#[tokio::test(start_paused = true)]
async fn time_in_the_middle_of_a_stream() {
    let model =
        Scripted::default().script("a", [Turn::default().say("Let me").hang(), Turn::text("Quickly then.")]);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.timeout = HumanDuration::from_secs(20)).run().await;
    let answer = ran.end.answer.clone().unwrap();
    assert_eq!((answer.text.as_str(), answer.limit), ("Quickly then.", Some(Limit::Time)));
    assert!(ran.log().contains("turn restarted"), "{}", ran.log());
}

#[tokio::test(start_paused = true)]
async fn time_in_the_middle_of_a_tool() {
    let model =
        Scripted::default().script("a", [Turn::call("t", &json!({})), Turn::text("Without the tool.")]);
    let forever = TestTool::new("t", |_| std::future::pending());
    let before = tokio::time::Instant::now();
    let ran = Setup::new(&model)
        .agent(|a| a.limits.timeout = HumanDuration::from_secs(20))
        .tool(forever)
        .run()
        .await;
    assert_eq!(ran.answer(), "Without the tool.");
    assert_eq!(before.elapsed(), Duration::from_secs(20));
    assert_eq!(ran.end.answer.unwrap().limit, Some(Limit::Time));
}

#[tokio::test(start_paused = true)]
async fn a_caller_can_only_lower_limits() {
    let mut setup = Setup::new(&restless(2)).tool(TestTool::echo("t"));
    setup.overrides.max_turns = Some(2);
    assert_eq!(setup.run().await.end.answer.unwrap().turns, 3);
    let mut setup =
        Setup::new(&restless(3)).agent(|agent| agent.limits.max_turns = 3).tool(TestTool::echo("t"));
    setup.overrides.max_turns = Some(1_000);
    assert_eq!(setup.run().await.end.answer.unwrap().turns, 4);
}

#[tokio::test(start_paused = true)]
async fn a_closing_turn_that_hangs_ends_too() {
    let model = Scripted::default().script("a", [Turn::default().hang(), Turn::default().hang()]);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.timeout = HumanDuration::from_secs(20)).run().await;
    assert_eq!(ran.end.status, RunStatus::Failed);
    assert!(ran.log().contains("run failed: time"), "{}", ran.log());
}

#[tokio::test(start_paused = true)]
async fn a_closing_turn_without_words_still_gives_an_answer() {
    let model = Scripted::default().script("a", [Turn::call("t", &json!({})), Turn::call("t", &json!({}))]);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.max_turns = 1).tool(TestTool::echo("t")).run().await;
    assert!(ran.answer().starts_with("I could not finish: the limit of turns was met"), "{}", ran.answer());
    assert!(ran.log().contains("text ends \"I could not finish"), "{}", ran.log());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_by_the_models_own_limit_says_so() {
    let model = Scripted::default().script("a", [Turn::default().say("And then it").too_long()]);
    let ran = Setup::new(&model).run().await;
    assert_eq!((ran.answer(), ran.end.answer.clone().unwrap().limit), ("And then it", Some(Limit::Length)));
}

#[tokio::test(start_paused = true)]
async fn a_cost_limit_is_never_silently_ineffective() {
    let unpriced = baton_core::model::ModelFacts { price: None, context_window: None };
    let model = Scripted::default().with_facts(unpriced).script("a", [Turn::text("x")]);
    let mut setup = Setup::new(&model);
    setup.overrides.max_cost_usd = Some("1".parse().unwrap());
    let ran = setup.run().await;
    assert!(ran.log().contains("run failed: unknown_price"), "{}", ran.log());
    assert!(model.asked().is_empty());
}

/// The answer that did not fit is in the conversation when it is sent back.
#[tokio::test(start_paused = true)]
async fn a_closing_answer_can_be_repaired() {
    let model = Scripted::default()
        .script("a", [Turn::call("t", &json!({})), Turn::text("three"), Turn::text("{\"n\": 3}")]);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let setup = Setup::new(&model).agent(|agent| {
        agent.limits.max_turns = 1;
        agent.output_schema = Some(schema);
    });
    let ran = setup.tool(TestTool::echo("t")).run().await;
    assert_eq!(ran.answer(), "{\"n\":3}");
    assert!(serde_json::to_string(&model.asked()[2].messages).unwrap().contains("\"text\":\"three\""));
}
