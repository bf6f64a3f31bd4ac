//! Tool calls that a model writes as text.

use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::model::{ModelAssists, ModelSupport};
use baton_core::tool::Effect;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{model, shown, statuses};
use crate::durability::{die, go_on};
use crate::{Setup, TestTool};

const CALL: &str = r#"{"name": "look", "arguments": {"n": 1}}"#;

fn off() -> ModelAssists {
    ModelAssists { text_tool_calls: false, ..ModelAssists::default() }
}

/// The reply in pieces of three characters, then an answer.
fn turns(reply: &str) -> [ScriptedTurn; 2] {
    let chars: Vec<char> = reply.chars().collect();
    let pieces = chars.chunks(3).map(|piece| piece.iter().collect::<String>());
    [pieces.fold(ScriptedTurn::default(), |turn, piece| turn.say(&piece)), ScriptedTurn::text("Done.")]
}

#[tokio::test]
async fn call_written_as_text_is_executed() {
    for reply in [
        CALL.to_owned(),
        format!("```json\n{CALL}\n```"),
        format!("<tool_call>\n{CALL}\n</tool_call>"),
        "look(n=1)".to_owned(),
    ] {
        let model = Scripted::default().script("a", turns(&reply));
        let ran = Setup::new(&model).tool(TestTool::echo("look")).run().await;
        assert_eq!((ran.answer(), shown(&ran)), ("Done.", vec!["Done."]), "{}", ran.log());
        assert!(!ran.log().contains("name"), "it is not published: {}", ran.log());
        assert_eq!(statuses(&ran), ["a tool call written as text was executed: look"]);
        let messages = &model.asked()[1].messages;
        let [ChatMessage::User { .. }, ChatMessage::Assistant(said), ChatMessage::Tool(result)] =
            &messages[..]
        else {
            panic!("{messages:?}")
        };
        assert_eq!((said.text.as_str(), said.calls[0].name.as_str()), ("", "look"), "an ordinary call");
        assert_eq!((&*result.content, &result.call_id), ("got {\"n\":1}", &said.calls[0].id));
    }
}

#[tokio::test]
async fn prose_before_the_call_is_streamed() {
    let model = Scripted::default().script("a", turns(&format!("I will look.\n```json\n{CALL}\n```")));
    let ran = Setup::new(&model).tool(TestTool::echo("look")).run().await;
    assert_eq!(shown(&ran), ["I will look.\n", "Done."], "{}", ran.log());
    assert!(!ran.log().contains('`'), "{}", ran.log());
    assert!(ran.log().contains("calls look"), "{}", ran.log());
}

#[tokio::test]
async fn text_stays_text() {
    for reply in [
        "{\"name\": \"look\", \"arguments\": {\"n\": \"many\"}}".to_owned(),
        "{\"name\": \"other\", \"arguments\": {}}".to_owned(),
        format!("The document says:\n\n> {CALL}\n\nThat is an example."),
        format!("The document says:\n```\n{CALL}\n```\nThat is an example."),
        format!("The document contains {CALL}"),
    ] {
        let [said, _] = turns(&reply);
        let model = Scripted::default().script("a", [said]);
        let ran = Setup::new(&model).tool(TestTool::echo("look")).run().await;
        assert_eq!((ran.answer(), shown(&ran)), (reply.as_str(), vec![reply.as_str()]), "{}", ran.log());
        let deltas = ran.events.iter().filter_map(|event| match &event.kind {
            EventKind::TextDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        assert_eq!(deltas.collect::<String>(), reply, "everything is streamed in the end");
    }
}

#[tokio::test]
async fn prose_streams_as_without_the_help() {
    let said = || [ScriptedTurn::default().say("The ").say("answer\n").say("is ").say("42.")];
    let with = Scripted::default().script("a", said());
    let without = model(ModelSupport::default(), off()).script("a", said());
    let helped = Setup::new(&with).tool(TestTool::echo("look")).run().await;
    let plain = Setup::new(&without).tool(TestTool::echo("look")).run().await;
    assert_eq!(helped.log(), plain.log());
}

#[tokio::test]
async fn help_can_be_turned_off() {
    let model = model(ModelSupport::default(), off()).script("a", [ScriptedTurn::text(CALL)]);
    let ran = Setup::new(&model).tool(TestTool::echo("look")).run().await;
    assert_eq!(ran.answer(), CALL);
}

/// A reply with prose may quote what others wrote.
#[tokio::test]
async fn tool_that_writes_needs_a_reply_that_is_only_the_call() {
    let tool = || TestTool::echo("look").spec(|spec| spec.effect = Effect::Writes);
    let quoted = format!("It says:\n```json\n{CALL}\n```");
    let model = Scripted::default().script("a", [ScriptedTurn::text(&quoted)]);
    let ran = Setup::new(&model).tool(tool()).run().await;
    assert_eq!(ran.answer(), quoted);
    let model = Scripted::default().script("a", turns(CALL));
    let ran = Setup::new(&model).tool(tool()).run().await;
    assert_eq!(ran.answer(), "Done.", "{}", ran.log());
}

#[tokio::test]
async fn answer_that_satisfies_its_schema_is_the_answer() {
    let model = Scripted::default().script("a", [ScriptedTurn::text(CALL)]);
    let schema = json!({"type": "object", "required": ["name", "arguments"]});
    let setup = Setup::new(&model).tool(TestTool::echo("look")).agent(|a| a.output_schema = Some(schema));
    let ran = setup.run().await;
    assert_eq!(ran.end.answer.unwrap().value, Some(serde_json::from_str(CALL).unwrap()));
}

/// The turn is recorded with its call, so it is not read a second time.
#[test]
fn executed_call_is_recorded() {
    let first = Scripted::default().script("a", [ScriptedTurn::text(CALL), ScriptedTurn::default().hang()]);
    let (engine, _, _) = die(Setup::new(&first).tool(TestTool::echo("look")), |event| {
        matches!(event.kind, EventKind::ToolReturned { .. })
    });
    let second = model(ModelSupport::default(), off()).script("a", [ScriptedTurn::text("Done.")]);
    let after = go_on(Setup::new(&second).tool(TestTool::echo("look")), &engine);
    after.is_sound();
    assert_eq!(after.messages.last().unwrap().message.text(), "Done.");
    assert_eq!(after.count(|kind| matches!(kind, EventKind::ToolCalled { .. })), 1);
}
