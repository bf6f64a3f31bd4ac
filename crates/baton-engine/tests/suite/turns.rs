//! One model call: retries, fallbacks, silence, cuts (G18, F23).

use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::ModelName;
use baton_core::model::{CallTimeouts, ModelFacts, ModelSupport};
use baton_core::store::RunStatus;
use baton_core::{HumanDuration, ModelErrorKind};
use baton_engine::ModelRegistry;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::{Setup, TestTool};

#[tokio::test(start_paused = true)]
async fn g18_transient_error_is_retried_and_each_attempt_billed() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::error(ModelErrorKind::Overloaded),
            ScriptedTurn::error(ModelErrorKind::Transport),
            ScriptedTurn::text("Back.").tokens(5, 2),
        ],
    );
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "Back.");
    insta::assert_snapshot!(ran.ledger());
}

#[tokio::test(start_paused = true)]
async fn cut_stream_restarts_and_is_never_spliced() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::default().say("Half an an").cut(),
            ScriptedTurn::default().say("A whole ").say("answer.").tokens(5, 4),
        ],
    );
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "A whole answer.");
    insta::assert_snapshot!(ran.log());
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected() {
    let wait = Duration::from_secs(7);
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::default().fail_and_retry_after(ModelErrorKind::RateLimit, wait),
            ScriptedTurn::text("Now."),
        ],
    );
    let before = tokio::time::Instant::now();
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "Now.");
    assert!(before.elapsed() >= wait);
}

/// A local server that is still starting: only the deadline ends the wait, not the number of attempts.
#[tokio::test(start_paused = true)]
async fn refused_connections_are_retried_until_the_deadline() {
    let refused = || ScriptedTurn::error(ModelErrorKind::Unreachable);
    let turns = (0..8).map(|_| refused()).chain([ScriptedTurn::text("Started.")]);
    let model = Scripted::default().script("a", turns);
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "Started.");
    assert_eq!(ran.log().matches("waiting for the server of scripted").count(), 1, "{}", ran.log());

    let model = Scripted::default().script("a", (0..5_000).map(|_| refused()));
    let before = tokio::time::Instant::now();
    let ran = Setup::new(&model).agent(|a| a.limits.timeout = HumanDuration::from_secs(60)).run().await;
    let failure = ran.end.failure.unwrap();
    assert_eq!(failure.code(), "unreachable", "the reason, not the limit");
    let help = "start the server, or set `base_url` under `[models.providers.scripted]` in baton.toml to its address";
    assert!(failure.to_string().ends_with(help), "{failure}");
    let waited = before.elapsed();
    assert!(waited > Duration::from_secs(55) && waited <= Duration::from_mins(1), "{waited:?}");
}

/// Where another model can answer, it is not waited for.
#[tokio::test(start_paused = true)]
async fn refused_connection_falls_back_to_the_next_model() {
    let refused = (0..3).map(|_| ScriptedTurn::error(ModelErrorKind::Unreachable));
    let first = Scripted::named("first").script("a", refused);
    let second = Scripted::named("second").script("a", [ScriptedTurn::text("Here.")]);
    let mut setup = Setup::new(&first).agent(|agent| {
        agent.model = ["first/m", "second/m"].map(|name| ModelName::parse(name).unwrap()).to_vec();
    });
    setup.models = ModelRegistry::new(ModelName::parse("first/m").unwrap())
        .with_provider(Arc::new(first.clone()))
        .with_provider(Arc::new(second));
    assert_eq!(setup.run().await.answer(), "Here.");
    assert_eq!(first.left(), 0);
}

/// A sub-agent whose own provider is down does not keep the others waiting.
#[tokio::test(start_paused = true)]
async fn sub_agent_with_another_provider_fails_early() {
    let refused = (0..3).map(|_| ScriptedTurn::error(ModelErrorKind::Unreachable));
    let other = Scripted::named("other").script("b", refused);
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}));
    let model = Scripted::default().script("a", [call, ScriptedTurn::text("Alone.")]);
    let mut setup = Setup::new(&model)
        .agent(|a| a.agents = vec![crate::name("b")])
        .with("b", |b| b.model = vec![ModelName::parse("other/m").unwrap()]);
    setup.models = setup.models.with_provider(Arc::new(other.clone()));
    let before = tokio::time::Instant::now();
    assert_eq!(setup.run().await.answer(), "Alone.");
    assert_eq!(other.left(), 0);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn context_error_names_the_key_to_change() {
    let turns = (0..2).map(|_| ScriptedTurn::error(ModelErrorKind::ContextTooLong));
    let model = Scripted::default().script("a", turns);
    let failure = Setup::new(&model).run().await.end.failure.unwrap();
    assert_eq!(failure.code(), "context_too_long");
    let text = failure.to_string();
    assert!(
        text.contains("Baton assumes a context of 128000 tokens: set `context_window` under `[models.providers.scripted.models.\"m\"]`"),
        "{text}"
    );
}

/// What a model does not accept is not sent to it.
#[tokio::test]
async fn requests_respect_the_facts_of_the_model() {
    let supports = ModelSupport { tools: false, ..ModelSupport::default() };
    let facts = ModelFacts { supports, max_output_tokens: Some(700), ..ModelFacts::default() };
    let model = Scripted::default().with_facts(facts).script("a", [ScriptedTurn::text("Words.")]);
    Setup::new(&model).tool(TestTool::echo("t")).run().await;
    let asked = &model.asked()[0];
    assert_eq!((asked.tools.len(), asked.max_output_tokens), (0, Some(700)));

    let model = Scripted::default().with_facts(facts).script("a", [ScriptedTurn::text("Words.")]);
    Setup::new(&model).agent(|a| a.sampling.max_output_tokens = Some(50)).run().await;
    assert_eq!(model.asked()[0].max_output_tokens, Some(50), "the agent's file wins");
}

#[tokio::test]
async fn a_model_without_parallel_calls_makes_one_at_a_time() {
    let supports = ModelSupport { parallel_calls: false, ..ModelSupport::default() };
    let two = ScriptedTurn::call("t", &json!({"n": 1})).and_call("t", &json!({"n": 2}));
    let model = Scripted::default()
        .with_facts(ModelFacts { supports, ..ModelFacts::default() })
        .script("a", [two, ScriptedTurn::text("Done.")]);
    let ran = Setup::new(&model).tool(TestTool::echo("t")).run().await;
    assert_eq!(ran.answer(), "Done.");
    let log = ran.log();
    assert_eq!(
        (log.matches("calls t").count(), log.matches("only the first tool call").count()),
        (1, 1),
        "{log}"
    );
}

#[tokio::test(start_paused = true)]
async fn timeouts_of_the_model_replace_the_default() {
    let timeouts = CallTimeouts {
        first_token: Some(Duration::from_secs(7)),
        silence: Some(Duration::from_secs(3)),
        ..CallTimeouts::default()
    };
    let model = Scripted::default().with_facts(ModelFacts { timeouts, ..ModelFacts::default() }).script(
        "a",
        [
            ScriptedTurn::default().hang(),
            ScriptedTurn::default().say("Well").hang(),
            ScriptedTurn::text("Now."),
        ],
    );
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "Now.");
    let lasted: Vec<u64> = ran.end.rows.iter().map(|row| row.latency_ms / 1000).collect();
    assert_eq!(lasted, [7, 3, 0]);
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried() {
    for kind in [ModelErrorKind::Auth, ModelErrorKind::InvalidRequest, ModelErrorKind::ContentFilter] {
        let model = Scripted::default().script("a", [ScriptedTurn::error(kind), ScriptedTurn::text("never")]);
        let ran = Setup::new(&model).run().await;
        assert_eq!(ran.end.status, RunStatus::Failed);
        assert_eq!(model.asked().len(), 1);
        assert!(ran.log().contains(kind.word()), "{}", ran.log());
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_timeout_and_retried() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::default().say("Well").hang(), ScriptedTurn::text("Again.")]);
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "Again.");
    assert_eq!(ran.end.rows[0].error.as_deref(), Some("timeout"));
    assert!(ran.log().contains("turn restarted"));
}

#[tokio::test(start_paused = true)]
async fn fallback_models_are_tried_in_order() {
    let first = Scripted::named("first").script("a", [ScriptedTurn::error(ModelErrorKind::Auth)]);
    let second = Scripted::named("second").script("a", [ScriptedTurn::text("From the second.")]);
    let mut setup = Setup::new(&first).agent(|agent| {
        agent.model = ["unknown/x", "first/m", "quick"].map(|name| ModelName::parse(name).unwrap()).to_vec();
    });
    setup.models = ModelRegistry::new(ModelName::parse("first/m").unwrap())
        .with_provider(Arc::new(first.clone()))
        .with_provider(Arc::new(second.clone()))
        .with_alias("quick", ModelName::parse("second/n").unwrap());
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "From the second.");
    assert_eq!((first.asked().len(), second.asked()[0].model.as_str()), (1, "n"));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_too_long_is_shortened_once() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::call("t", &json!({"n": 1})),
            ScriptedTurn::call("t", &json!({"n": 2})),
            ScriptedTurn::call("t", &json!({"n": 3})),
            ScriptedTurn::error(ModelErrorKind::ContextTooLong),
            ScriptedTurn::text("Fits."),
        ],
    );
    let long = TestTool::new("t", |n| async move { Ok(format!("{n}") + &"x".repeat(10_000)) });
    let ran = Setup::new(&model).tool(long).run().await;
    assert_eq!(ran.answer(), "Fits.");
    assert!(ran.log().contains("the conversation was shortened"), "{}", ran.log());
    let sizes: Vec<usize> =
        model.asked().iter().map(|asked| serde_json::to_string(&asked.messages).unwrap().len()).collect();
    assert!(sizes[4] < sizes[3], "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn the_window_is_guarded_before_it_overflows() {
    let facts = ModelFacts { price: None, context_window: Some(8_000), ..ModelFacts::default() };
    let turns =
        (1..=6).map(|n| ScriptedTurn::call("t", &json!({ "n": n }))).chain([ScriptedTurn::text("Done.")]);
    let model = Scripted::default().with_facts(facts).script("a", turns);
    let long = TestTool::new("t", |_| async { Ok("y".repeat(6_000)) });
    let ran = Setup::new(&model).tool(long).run().await;
    assert_eq!(ran.answer(), "Done.");
    for asked in model.asked() {
        let bytes = serde_json::to_string(&asked.messages).unwrap().len();
        assert!(bytes < 32_000, "{bytes}");
    }
    // An unknown price is shown as unknown, never as nothing.
    assert!(matches!(ran.end.usage.cost, baton_core::usage::Cost::Unknown(_)));
}

#[tokio::test(start_paused = true)]
async fn empty_answer_is_retried() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::default(), ScriptedTurn::text(" "), ScriptedTurn::text("Here.")]);
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "Here.");
}

/// Nothing comes again after the last attempt, and listeners are not told so.
#[tokio::test(start_paused = true)]
async fn last_attempt_announces_no_restart() {
    let cut = || ScriptedTurn::default().say("Half").cut();
    let model = Scripted::default().script("a", [cut(), cut(), cut()]);
    let ran = Setup::new(&model).run().await;
    let log = ran.log();
    assert_eq!(log.matches("turn restarted").count(), 2, "{log}");
    assert!(log.contains("text ends \"Half\"") && log.contains("run failed: malformed_stream"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn unreported_usage_is_estimated() {
    let model = Scripted::default().script(
        "a",
        [ScriptedTurn::call("t", &json!({"n": 123_456_789})), ScriptedTurn::text("ok").tokens(1, 1)],
    );
    let ran = Setup::new(&model).tool(TestTool::echo("t")).run().await;
    let row = &ran.end.rows[0];
    assert!(row.estimated && row.tokens.output_tokens >= 5 && row.tokens.input_tokens > 40, "{row:?}");
    assert!(ran.end.usage.estimated);
}

/// Some providers report one token of output at the start of a reply, and all of it at its end.
#[tokio::test(start_paused = true)]
async fn cancelled_call_is_billed_for_its_text() {
    let text = "a word and ".repeat(50);
    let model = Scripted::default().script("a", [ScriptedTurn::default().tokens(40, 1).say(&text).hang()]);
    let mut run = Setup::new(&model).start().await;
    while let Some(event) = run.events.recv().await {
        if matches!(event.kind, baton_core::EventKind::TextDelta { .. }) {
            run.cancel();
        }
    }
    let end = run.join().await;
    let row = &end.rows[0];
    assert_eq!((row.outcome.word(), row.tokens.input_tokens, row.estimated), ("cancelled", 40, true));
    assert!(row.tokens.output_tokens > 100, "{row:?}");
}

#[tokio::test(start_paused = true)]
async fn endless_reply_is_cut_off() {
    let megabyte = "x".repeat(1024 * 1024);
    let endless = || (0..9).fold(ScriptedTurn::default(), |turn, _| turn.say(&megabyte));
    let model = Scripted::default().script("a", [endless(), endless(), endless()]);
    let ran = Setup::new(&model).run().await;
    assert!(ran.log().contains("the reply is longer than 8 MiB"));
}
