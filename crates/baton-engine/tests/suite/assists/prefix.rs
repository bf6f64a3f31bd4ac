//! The beginning of requests is stable, so that providers can cache it, and tools are offered when they can be used.

use std::sync::Arc;

use baton_core::chat::ChatMessage;
use baton_core::message::{IncludedParts, parts_to_text};
use baton_core::tool::ToolSpec;
use baton_engine::{Engine, preview};
use baton_models::scripted::{RecordedRequest, Scripted, ScriptedTurn};
use serde_json::json;

use crate::handoffs::Talk;
use crate::transfers::asked_of;
use crate::workflow::{Calls, advance, setup as with_workflow};
use crate::{Setup, TestTool, name};

/// The texts of the newest message of the user.
fn task(asked: &RecordedRequest) -> String {
    let tasks = asked.messages.iter().rev().find_map(|message| match message {
        ChatMessage::User { parts } => Some(parts_to_text(parts, IncludedParts::Text)),
        _ => None,
    });
    tasks.unwrap_or_default()
}

#[tokio::test]
async fn time_is_in_the_newest_message_and_not_in_the_prompt() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("One."), ScriptedTurn::text("Two.")]);
    let talk =
        Talk::new(Setup::new(&model).agent(|a| a.prompt = "You help. Today is {{ now }}.".to_owned())).await;
    talk.say("First?").await;
    talk.say("Second?").await;
    let asked = model.asked();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    assert_eq!(asked[0].system, format!("You help. Today is {date}."));
    assert_eq!(asked[0].system, asked[1].system);
    let newest = task(&asked[1]);
    assert!(newest.starts_with(&format!("It is {date} ")) && newest.ends_with("Second?"), "{newest}");
    assert_eq!(asked[1].messages[0], ChatMessage::user("First?"), "the history is without notes");
}

#[tokio::test]
async fn agents_that_do_not_ask_for_the_time_get_no_note() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("One.")]);
    Setup::new(&model).run().await;
    assert_eq!(model.asked()[0].messages, [ChatMessage::user("What is up?")]);
}

#[tokio::test]
async fn prompt_of_a_holder_does_not_depend_on_the_step() {
    let model = Scripted::default().script(
        "maker",
        [
            advance(json!({"values": {"purpose": "alerts", "name": "Alert"}})),
            ScriptedTurn::text("What is the triggers?"),
            ScriptedTurn::text("Well?"),
        ],
    );
    let talk = Talk::new(with_workflow(&model, &Calls::default())).await;
    talk.say("create a skill").await;
    talk.say("hm").await;
    let asked = asked_of(&model, "maker");
    assert_eq!(asked[0].system, asked[2].system);
    assert!(asked[0].system.contains("record with `advance_workflow`"), "{}", asked[0].system);
    let [first, later] = [&asked[0], &asked[2]].map(task);
    assert!(first.contains("step 1 of 5 of your workflow: Gathering"), "{first}");
    assert!(
        later.contains("step 2 of 5 of your workflow: Triggers") && later.contains("`name`: \"Alert\""),
        "{later}"
    );
    assert!(later.ends_with("The message follows.\n\nhm"), "{later}");
}

#[tokio::test]
async fn read_output_is_offered_last_and_only_after_output_was_shortened() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::call("short", &json!({})),
            ScriptedTurn::call("zoom", &json!({})),
            ScriptedTurn::text("Done."),
        ],
    );
    let long = TestTool::new("zoom", |_| async { Ok("x".repeat(100_000)) });
    let tools = [TestTool::echo("read_output"), TestTool::echo("short"), long];
    let setup = tools.into_iter().fold(Setup::new(&model), Setup::tool);
    setup.run().await;
    let offered: Vec<_> = model.asked().into_iter().map(|asked| asked.tools.join(" ")).collect();
    assert_eq!(offered, ["short zoom", "short zoom", "short zoom read_output"]);
}

async fn offered(setup: Setup, agent: &str) -> Vec<ToolSpec> {
    let (parts, request) = setup.parts().await;
    let engine: Arc<Engine> = Engine::new(parts);
    preview(&engine, &request.caller, &name(agent), None, "Hi").await.unwrap().asked.tools
}

fn keys(tools: &[ToolSpec], tool: &str) -> Vec<String> {
    let spec = tools.iter().find(|spec| spec.name == tool).unwrap();
    spec.parameters["properties"].as_object().unwrap().keys().cloned().collect()
}

fn calling(others: &[&str]) -> Setup {
    let setup =
        Setup::new(&Scripted::default()).agent(|a| a.agents = others.iter().map(|one| name(one)).collect());
    others.iter().fold(setup, |setup, one| setup.with(one, |_| {}))
}

#[tokio::test]
async fn delegate_is_offered_with_several_agents() {
    let names = |tools: Vec<ToolSpec>| tools.into_iter().map(|spec| spec.name).collect::<Vec<_>>();
    assert_eq!(names(offered(calling(&["b"]), "a").await), ["call_agent"]);
    assert_eq!(names(offered(calling(&["b", "c"]), "a").await), ["call_agent", "delegate"]);
}

#[tokio::test]
async fn custom_agents_are_offered_if_the_operator_says_so() {
    let tools = offered(calling(&["b"]), "a").await;
    assert_eq!(keys(&tools, "call_agent"), ["mission", "specialist", "reason"]);
    let tools = offered(calling(&["b"]).policy(|policy| policy.offer_custom_agents = true), "a").await;
    let all = ["mission", "specialist", "planning_strategy", "agent_definition", "reason"];
    assert_eq!(keys(&tools, "call_agent"), all);
}

#[tokio::test]
async fn pure_router_chooses_and_adds_nothing() {
    use baton_core::agent::{Router, RoutingMode};
    for (mode, expected) in [
        (RoutingMode::Pure, vec!["agent", "reason"]),
        (RoutingMode::Full, vec!["agent", "reason", "message"]),
    ] {
        let setup = Setup::new(&Scripted::default()).with("b", |_| {}).agent(|a| {
            a.router =
                Some(Router { destinations: vec![name("b")], fallback: None, may_answer: false, mode });
        });
        assert_eq!(keys(&offered(setup, "a").await, "route_to"), expected);
    }
}
