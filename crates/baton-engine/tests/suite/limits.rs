//! Limits end a session with one closing turn, so that it always answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_core::agent::ModelName;
use baton_core::event::EventKind;
use baton_core::model::{Chunk, Finish, Model, ModelFacts, ModelRequest, ReplyStream};
use baton_core::store::RunStatus;
use baton_core::usage::Price;
use baton_core::{HumanDuration, Usd};
use baton_engine::{LimitKind, ModelRegistry};
use baton_models::scripted::{Scripted, ScriptedTurn};
use futures_util::stream;
use serde_json::json;

use crate::{Setup, TestTool};

fn restless(turns: usize) -> Scripted {
    let calls = (0..turns).map(|n| ScriptedTurn::call("t", &json!({ "n": n })).tokens(1_000, 10));
    Scripted::default()
        .script("a", calls.chain([ScriptedTurn::text("This is what I have.").tokens(1_000, 10)]))
}

#[tokio::test(start_paused = true)]
async fn turns() {
    let model = restless(3);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.max_turns = 3).tool(TestTool::echo("t")).run().await;
    let answer = ran.end.answer.clone().unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.limit, answer.turns),
        ("This is what I have.", Some(LimitKind::Turns), 4)
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
    assert_eq!(ran.end.answer.unwrap().limit, Some(LimitKind::Tokens));
    let ran = Setup::new(&restless(2))
        .agent(|a| a.limits.max_cost_usd = Some("0.0015".parse::<Usd>().unwrap()))
        .tool(TestTool::echo("t"))
        .run()
        .await;
    assert_eq!(ran.end.answer.unwrap().limit, Some(LimitKind::Cost));
}

#[tokio::test(start_paused = true)]
async fn time_limit_in_the_middle_of_a_stream() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::default().say("Let me").hang(), ScriptedTurn::text("Quickly then.")]);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.timeout = HumanDuration::from_secs(20)).run().await;
    let answer = ran.end.answer.clone().unwrap();
    assert_eq!((answer.text.as_str(), answer.limit), ("Quickly then.", Some(LimitKind::Time)));
    assert!(ran.log().contains("turn restarted"), "{}", ran.log());
}

#[tokio::test(start_paused = true)]
async fn time_limit_in_the_middle_of_a_tool() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("t", &json!({})), ScriptedTurn::text("Without the tool.")]);
    let forever = TestTool::new("t", |_| std::future::pending());
    let before = tokio::time::Instant::now();
    let ran = Setup::new(&model)
        .agent(|a| a.limits.timeout = HumanDuration::from_secs(20))
        .tool(forever)
        .run()
        .await;
    assert_eq!(ran.answer(), "Without the tool.");
    assert_eq!(before.elapsed(), Duration::from_secs(20));
    assert_eq!(ran.end.answer.unwrap().limit, Some(LimitKind::Time));
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
async fn hanging_closing_turn_times_out() {
    let model =
        Scripted::default().script("a", [ScriptedTurn::default().hang(), ScriptedTurn::default().hang()]);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.timeout = HumanDuration::from_secs(20)).run().await;
    assert_eq!(ran.end.status, RunStatus::Failed);
    assert!(ran.log().contains("run failed: time"), "{}", ran.log());
}

#[tokio::test(start_paused = true)]
async fn empty_closing_turn_still_gives_an_answer() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("t", &json!({})), ScriptedTurn::call("t", &json!({}))]);
    let ran =
        Setup::new(&model).agent(|agent| agent.limits.max_turns = 1).tool(TestTool::echo("t")).run().await;
    assert!(ran.answer().starts_with("I could not finish: the limit of turns was met"), "{}", ran.answer());
    assert!(ran.log().contains("text ends \"I could not finish"), "{}", ran.log());
}

#[tokio::test(start_paused = true)]
async fn answer_cut_by_the_model_limit_is_marked() {
    let model = Scripted::default().script("a", [ScriptedTurn::default().say("And then it").too_long()]);
    let ran = Setup::new(&model).run().await;
    assert_eq!(
        (ran.answer(), ran.end.answer.clone().unwrap().limit),
        ("And then it", Some(LimitKind::Length))
    );
}

#[tokio::test(start_paused = true)]
async fn a_cost_limit_is_never_silently_ineffective() {
    let unpriced = ModelFacts { price: None, context_window: None, ..ModelFacts::default() };
    let model = Scripted::default().with_facts(unpriced).script("a", [ScriptedTurn::text("x")]);
    let mut setup = Setup::new(&model);
    setup.overrides.max_cost_usd = Some("1".parse().unwrap());
    let ran = setup.run().await;
    assert!(ran.log().contains("run failed: unknown_price"), "{}", ran.log());
    assert!(model.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn answer_is_kept_when_repair_times_out() {
    let model =
        Scripted::default().script("a", [ScriptedTurn::text("three"), ScriptedTurn::default().hang()]);
    let setup = Setup::new(&model).agent(|agent| {
        agent.limits.timeout = HumanDuration::from_secs(20);
        agent.output_schema = Some(json!({"type": "object"}));
    });
    let ran = setup.run().await;
    let answer = ran.end.answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.value, answer.limit), ("three", None, Some(LimitKind::Time)));
}

#[tokio::test(start_paused = true)]
async fn cost_limit_of_an_agent_needs_a_price() {
    let unpriced = ModelFacts { price: None, context_window: None, ..ModelFacts::default() };
    let model = Scripted::default().with_facts(unpriced).script("a", [ScriptedTurn::text("x")]);
    let limit = Some("1".parse().unwrap());
    let ran = Setup::new(&model).agent(|agent| agent.limits.max_cost_usd = limit).run().await;
    assert!(ran.log().contains("run failed: unknown_price"), "{}", ran.log());
    assert!(model.asked().is_empty());
}

/// A model that says a number every 50 µs and never waits.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Model for Counting {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, _: &ModelRequest<'_>) -> ReplyStream {
        let is_closing = self.0.fetch_add(1, Ordering::Relaxed) > 0;
        let numbers = (0..).map(|number| {
            let said = std::time::Instant::now();
            while said.elapsed() < Duration::from_micros(50) {}
            Ok(Chunk::Text(format!("{number} ")))
        });
        let end = [Ok(Chunk::Text("over".into())), Ok(Chunk::Done(Finish::Stop))];
        if is_closing { Box::pin(stream::iter(end)) } else { Box::pin(stream::iter(numbers)) }
    }

    fn facts(&self, _: &str) -> ModelFacts {
        ModelFacts { price: Some(Price::FREE), context_window: None, ..ModelFacts::default() }
    }
}

/// Timers are not exact: for up to a millisecond the deadline is over and its timer has not fired.
#[tokio::test(flavor = "multi_thread")]
async fn reply_at_the_deadline_has_no_gap() {
    let mut setup = Setup::new(&Scripted::default());
    setup.models = ModelRegistry::new(ModelName::parse("scripted/m").unwrap())
        .with_provider(Arc::new(Counting::default()));
    let ran = setup.agent(|agent| agent.limits.timeout = HumanDuration::from_millis(100)).run().await;
    let deltas = ran.events.iter().filter_map(|event| match &event.kind {
        EventKind::TextDelta { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    let text: String = deltas.collect();
    let numbers = text.split(' ').map_while(|word| word.parse::<usize>().ok());
    let numbers: Vec<usize> = numbers.collect();
    assert!(!numbers.is_empty());
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    assert!(text.ends_with("over"), "{text}");
}

/// The answer that did not fit is in the conversation when it is sent back.
#[tokio::test(start_paused = true)]
async fn a_closing_answer_can_be_repaired() {
    let model = Scripted::default().script(
        "a",
        [ScriptedTurn::call("t", &json!({})), ScriptedTurn::text("three"), ScriptedTurn::text("{\"n\": 3}")],
    );
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let setup = Setup::new(&model).agent(|agent| {
        agent.limits.max_turns = 1;
        agent.output_schema = Some(schema);
    });
    let ran = setup.tool(TestTool::echo("t")).run().await;
    assert_eq!(ran.answer(), "{\"n\":3}");
    assert!(serde_json::to_string(&model.asked()[2].messages).unwrap().contains("\"text\":\"three\""));
}
