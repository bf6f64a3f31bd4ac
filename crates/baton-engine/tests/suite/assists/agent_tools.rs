//! One tool for each agent that may be called.

use baton_core::agent::ToolPattern;
use baton_core::model::{ModelAssists, ModelSupport};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::model;
use crate::transfers::{asked_of, told};
use crate::{Setup, name};

fn on() -> Scripted {
    model(ModelSupport::default(), ModelAssists::default())
}

fn setup(model: &Scripted) -> Setup {
    let helper = |a: &mut baton_core::agent::Agent| "Knows books.".clone_into(&mut a.description);
    Setup::new(model).with("old-books", helper).agent(|a| a.agents = vec![name("old-books")])
}

#[tokio::test]
async fn agent_is_asked_with_its_own_tool() {
    for arguments in [json!({"mission": "Which?"}), json!({"question": "Which?", "reason": "I do not know"})]
    {
        let ask = ScriptedTurn::call("ask_old_books", &arguments);
        let model = on()
            .script("a", [ask, ScriptedTurn::text("Moby Dick.")])
            .script("old-books", [ScriptedTurn::text("Moby Dick")]);
        let ran = setup(&model).run().await;
        assert_eq!(ran.answer(), "Moby Dick.", "{}", ran.log());
        let asked = asked_of(&model, "a");
        assert!(asked[0].tools.contains(&"ask_old_books".to_owned()), "{:?}", asked[0].tools);
        assert!(!asked[0].tools.contains(&"call_agent".to_owned()), "{:?}", asked[0].tools);
        assert!(told(&asked[1]).pop().unwrap().contains("Moby Dick"));
        assert_eq!(ran.end.rows.iter().filter(|row| row.agent.as_str() == "old-books").count(), 1);
    }
}

#[tokio::test]
async fn call_agent_is_still_accepted() {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Which?", "specialist": "old-books"}));
    let model = on()
        .script("a", [call, ScriptedTurn::text("Moby Dick.")])
        .script("old-books", [ScriptedTurn::text("Moby Dick")]);
    let ran = setup(&model).run().await;
    assert_eq!((ran.answer(), model.left()), ("Moby Dick.", 0), "{}", ran.log());
}

#[tokio::test]
async fn call_without_a_mission_is_refused() {
    let model = on().script(
        "a",
        [ScriptedTurn::call("ask_old_books", &json!({"mission": " "})), ScriptedTurn::text("I do not know.")],
    );
    let ran = setup(&model).run().await;
    assert_eq!(ran.answer(), "I do not know.", "{}", ran.log());
    assert!(told(&asked_of(&model, "a")[1]).pop().unwrap().contains("Missing required parameter: mission"));
}

/// A rule about `call_agent` is about every way to call an agent, so that way alone is offered.
#[tokio::test]
async fn rules_about_call_agent_hold() {
    let rule = || vec![ToolPattern::parse("call_agent").unwrap()];
    for at in 0..2 {
        let ask = ScriptedTurn::call("ask_old_books", &json!({"mission": "Which?"}));
        let model = on().script("a", [ask, ScriptedTurn::text("I do not know.")]);
        let setup = setup(&model).agent(|a| match at {
            0 => a.approvals.ask = rule(),
            _ => a.tools.deny = rule(),
        });
        let ran = setup.run().await;
        let tools = &asked_of(&model, "a")[0].tools;
        assert!(!tools.contains(&"ask_old_books".to_owned()), "{tools:?}");
        assert!(asked_of(&model, "old-books").is_empty(), "{}", ran.log());
    }
}

/// `delegate` is not needed beside tools for each agent. A prompt that names a tool gets it.
#[tokio::test]
async fn tools_that_the_prompt_names_are_offered() {
    let prompts = [
        ("Help.", vec!["ask_b", "ask_old_books"]),
        ("Use `delegate`.", vec!["ask_b", "ask_old_books", "delegate"]),
        ("Use `call_agent`.", vec!["call_agent", "delegate"]),
    ];
    for (prompt, tools) in prompts {
        let model = on().script("a", [ScriptedTurn::text("Hello.")]);
        let setup = setup(&model).with("b", |_| {}).agent(|a| {
            a.agents = vec![name("old-books"), name("b")];
            prompt.clone_into(&mut a.prompt);
        });
        setup.run().await;
        assert_eq!(asked_of(&model, "a")[0].tools, tools);
    }
}

#[tokio::test]
async fn help_can_be_turned_off() {
    let off = ModelAssists { agent_tools: false, ..ModelAssists::default() };
    let model = model(ModelSupport::default(), off).script("a", [ScriptedTurn::text("Hello.")]);
    setup(&model).run().await;
    let tools = &asked_of(&model, "a")[0].tools;
    assert!(
        tools.contains(&"call_agent".to_owned()) && !tools.contains(&"ask_old_books".to_owned()),
        "{tools:?}"
    );
}
