//! The plain loop.

use baton_core::chat::ChatMessage;
use baton_core::store::RunStatus;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::{Setup, TestTool};

#[tokio::test]
async fn answer_is_streamed_and_billed() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::default().think("Hm.").say("All ").say("well.").tokens(10, 3)]);
    let ran = Setup::new(&model).run().await;
    assert_eq!(ran.answer(), "All well.");
    insta::assert_snapshot!(ran.log() + "\n" + &ran.ledger());
    assert_eq!(ran.end.usage.tokens.total(), 13);
    assert_eq!(model.asked()[0].system, "You help ada of acme.");
}

#[tokio::test]
async fn tools_are_called_and_their_results_come_back_in_order() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::default()
                .say("Looking.")
                .and_call("slow", &json!({"n": 1}))
                .and_call("fast", &json!({"n": 2})),
            ScriptedTurn::text("Done."),
        ],
    );
    let slow = TestTool::new("slow", |_| async {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        Ok("slow result".to_owned())
    });
    let ran = Setup::new(&model).tool(slow).tool(TestTool::echo("fast")).run().await;
    assert_eq!(ran.answer(), "Done.");
    let second = &model.asked()[1].messages;
    let results: Vec<&str> = second
        .iter()
        .filter_map(|message| match message {
            ChatMessage::Tool(result) => Some(result.content.as_ref()),
            _ => None,
        })
        .collect();
    assert_eq!(results, ["slow result", "got {\"n\":2}"]);
    let rows: Vec<_> = ran.end.rows.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(rows, ["a/turn:1", "a/turn:1/tool:2", "a/turn:1/tool:1", "a/turn:2"]);
}

#[tokio::test]
async fn h14_totals_are_sums_over_rows() {
    let model = Scripted::default().script(
        "a",
        [ScriptedTurn::call("t", &json!({})).tokens(100, 5), ScriptedTurn::text("x").tokens(200, 7)],
    );
    let ran = Setup::new(&model).tool(TestTool::echo("t")).run().await;
    assert_eq!(ran.end.status, RunStatus::Completed);
    let usage = ran.end.usage;
    assert_eq!((usage.tokens.input_tokens, usage.tokens.output_tokens), (300, 12));
    assert_eq!(baton_core::ledger::subtree(&ran.end.rows, "a/turn:2").tokens.total(), 207);
    assert_eq!(usage.cost.known_part().to_string(), "$0.000312");
}

#[tokio::test]
async fn cancelling_ends_a_stream_and_keeps_its_text() {
    let model = Scripted::default().script("a", [ScriptedTurn::default().say("I was about to").hang()]);
    let mut run = Setup::new(&model).start().await;
    let mut kinds = Vec::new();
    while let Some(event) = run.events.recv().await {
        if matches!(event.kind, baton_core::EventKind::TextDelta { .. }) {
            run.cancel();
        }
        kinds.push(crate::line(&event));
    }
    let end = run.join().await;
    assert_eq!(end.status, RunStatus::Cancelled);
    assert_eq!(kinds.last().unwrap().trim(), "a                run finished: cancelled");
    assert!(kinds.iter().any(|line| line.contains("text ends \"I was about to\"")), "{kinds:?}");
    assert_eq!(end.rows.len(), 1);
    assert_eq!(end.rows[0].outcome.word(), "cancelled");
    assert!(end.rows[0].estimated && end.rows[0].tokens.output_tokens > 0);
}

#[tokio::test]
async fn cancelling_ends_tools_too() {
    let model = Scripted::default().script("a", [ScriptedTurn::call("t", &json!({}))]);
    let forever = TestTool::new("t", |_| std::future::pending());
    let mut run = Setup::new(&model).tool(forever).start().await;
    let mut returned = false;
    while let Some(event) = run.events.recv().await {
        returned |= matches!(event.kind, baton_core::EventKind::ToolReturned { .. });
        if matches!(event.kind, baton_core::EventKind::ToolCalled { .. }) {
            run.cancel();
        }
    }
    let end = run.join().await;
    assert_eq!(end.status, RunStatus::Cancelled);
    assert_eq!(end.rows.last().unwrap().outcome.word(), "cancelled");
    assert!(returned, "every call that was announced is answered");
}

#[tokio::test]
async fn a_prompt_that_cannot_be_rendered_fails_clearly() {
    let model = Scripted::default();
    let ran = Setup::new(&model)
        .agent(|agent| {
            let endless =
                "{% for x in range(100000) %}{% for y in range(100000) %}{{ y }}{% endfor %}{% endfor %}";
            agent.prompt = endless.into();
        })
        .run()
        .await;
    assert_eq!(ran.end.status, RunStatus::Failed);
    assert!(ran.log().contains("run failed: invalid_prompt"), "{}", ran.log());
    assert!(model.asked().is_empty());
}

/// A server that does not start.
#[derive(Debug)]
pub(super) struct Hangs;

impl baton_core::tool::ToolSource for Hangs {
    fn tools<'a>(
        &'a self,
        _: &'a baton_core::TenantId,
        _: Option<&'a std::path::Path>,
        _: &'a str,
        _: &'a baton_core::agent::McpServer,
    ) -> baton_core::tool::ToolsFuture<'a> {
        Box::pin(std::future::pending())
    }
}

/// A server that does not start costs neither the person's patience nor the time limit.
#[tokio::test(start_paused = true)]
async fn hanging_mcp_server_is_not_waited_for() {
    let setup = |model: &Scripted| {
        let mut setup = Setup::new(model).agent(|agent| {
            agent.mcp_servers.insert("x".into(), baton_core::agent::McpServer::Configured);
            agent.limits.timeout = baton_core::HumanDuration::from_secs(3);
        });
        setup.servers = Some(std::sync::Arc::new(Hangs));
        setup
    };
    let model = Scripted::default().script("a", [ScriptedTurn::text("Without tools.")]);
    let ran = setup(&model).run().await;
    assert_eq!(
        (ran.answer(), ran.end.answer.clone().unwrap().limit),
        ("Without tools.", Some(baton_engine::LimitKind::Time))
    );
    let run = setup(&Scripted::default()).start().await;
    run.cancel();
    assert_eq!(run.finish().await.status, RunStatus::Cancelled);
}
