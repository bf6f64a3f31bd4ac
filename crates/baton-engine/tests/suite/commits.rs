//! How many transactions each kind of run takes. The store in memory commits every write by itself, so nothing is hidden by writes that
//! share a transaction, and the clock stands still, so nothing is written only because it took long.

use baton_core::tool::{Effect, SHOWN_OUTPUT_BYTES};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::handoffs::{self, Talk};
use crate::transfers::transfer;
use crate::{Setup, TestTool, workflow};

/// Transactions that wrote something while the conversation went on by one message.
async fn commits(talk: &Talk, words: &str) -> u64 {
    let load = || talk.engine.parts.store.load().batches;
    let before = load();
    let ran = talk.say(words).await;
    assert!(ran.end.failure.is_none(), "{:?}", ran.end.failure);
    talk.engine.idle().await;
    load() - before
}

/// A conversation whose *soon* records are written with the next one that the run waits for.
async fn talk(setup: Setup) -> Talk {
    let (mut parts, request) = setup.parts().await;
    parts.flush = std::time::Duration::from_millis(50);
    let engine = baton_engine::Engine::new(parts);
    let talk = Talk { engine, request };
    // The first message of a process also takes its lease.
    let mut first = talk.saying("Hello?");
    first.caller.thread_id = baton_core::ThreadId::random();
    talk.engine.start(first).await.unwrap().finish().await;
    talk.engine.idle().await;
    talk
}

fn hello() -> Scripted {
    Scripted::default().script("a", [ScriptedTurn::text("Hello.")])
}

#[tokio::test(start_paused = true)]
async fn a_plain_run_takes_two_commits() {
    let talk =
        talk(Setup::new(&hello().script("a", [ScriptedTurn::text("One."), ScriptedTurn::text("Two.")])))
            .await;
    assert_eq!(commits(&talk, "A question").await, 2);
    assert_eq!(commits(&talk, "Another one").await, 2);
}

#[tokio::test(start_paused = true)]
async fn read_only_tool_takes_no_commit_and_writing_tool_takes_one() {
    for (effect, expected) in [(Effect::ReadOnly, 2), (Effect::Writes, 3)] {
        let model =
            hello().script("a", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("Done.")]);
        let tool = TestTool::echo("look").spec(|spec| spec.effect = effect);
        let talk = talk(Setup::new(&model).tool(tool)).await;
        assert_eq!(commits(&talk, "Look").await, expected, "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_output_is_committed_before_the_model_gets_its_handle() {
    for (bytes, expected) in [(SHOWN_OUTPUT_BYTES, 2), (SHOWN_OUTPUT_BYTES + 1, 3)] {
        let model =
            hello().script("a", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("Done.")]);
        let mut tool = TestTool::new("look", move |_| async move { Ok("x".repeat(bytes)) });
        tool.spec.effect = Effect::ReadOnly;
        let talk = talk(Setup::new(&model).tool(tool)).await;
        assert_eq!(commits(&talk, "Look").await, expected, "{bytes} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn called_agents_take_no_commit() {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}));
    let model =
        hello().script("a", [call, ScriptedTurn::text("Done.")]).script("b", [ScriptedTurn::text("Seen.")]);
    let setup = Setup::new(&model).agent(|a| a.agents = vec![crate::name("b")]).with("b", |_| {});
    let talk = talk(setup).await;
    assert_eq!(commits(&talk, "Look").await, 2);
}

#[tokio::test(start_paused = true)]
async fn the_first_message_of_a_handoff_takes_three_commits() {
    let model = hello().script("a", [transfer("maker")]).script("maker", [ScriptedTurn::text("name?")]);
    let talk = talk(handoffs::setup(&model)).await;
    assert!(commits(&talk, "I want a skill").await <= 3);
    assert!(talk.open().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_last_confirmation_of_a_workflow_takes_four_commits() {
    let yes = workflow::advance(json!({"values": {"confirmed": true}}));
    let model = hello()
        .script(
            "maker",
            [
                workflow::advance(workflow::all()),
                ScriptedTurn::text("Save it?"),
                yes,
                ScriptedTurn::text("Saved."),
            ],
        )
        .script("a", [ScriptedTurn::text("It is active.")]);
    let calls = workflow::Calls::default();
    let talk = talk(workflow::setup(&model, &calls)).await;
    commits(&talk, "create a skill called Alert").await;
    assert!(commits(&talk, "Yes, do it").await <= 4);
    assert!(talk.open().await.is_none(), "the thread is the main agent's again");
    assert_eq!(calls.count(), [1, 1, 1]);
}
