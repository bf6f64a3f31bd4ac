//! `grounding: required`.

use baton_core::agent::{Grounding, PlanningStrategy};
use baton_core::event::EventKind;
use baton_core::model::{ModelAssists, ModelSupport, ToolChoice};
use baton_core::tool::ToolError;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{model, shown, statuses};
use crate::durability::{die, go_on};
use crate::transfers::collaborates;
use crate::{Setup, TestTool};

const ASKED_AGAIN: &str = "asked again: the answer had no tool result";

fn setup(model: &Scripted) -> Setup {
    Setup::new(model).agent(|a| a.grounding = Grounding::Required).tool(TestTool::echo("look"))
}

fn look() -> ScriptedTurn {
    ScriptedTurn::call("look", &json!({"n": 1}))
}

fn choices(model: &Scripted) -> Vec<ToolChoice> {
    model.asked().iter().map(|asked| asked.tool_choice).collect()
}

fn off() -> ModelAssists {
    ModelAssists { grounding: false, ..ModelAssists::default() }
}

#[tokio::test]
async fn answer_without_a_tool_result_is_asked_for_again() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("From memory."), look(), ScriptedTurn::text("From the tool.")]);
    let ran = setup(&model).run().await;
    assert_eq!((ran.answer(), shown(&ran)), ("From the tool.", vec!["From the tool."]), "{}", ran.log());
    assert_eq!(statuses(&ran), [ASKED_AGAIN]);
    assert_eq!(choices(&model), [ToolChoice::Required, ToolChoice::Required, ToolChoice::Auto]);
    let again = format!("{:?}", model.asked()[1].messages.last());
    assert!(again.contains("Call one of your tools now (`look`)"), "{again}");
    assert_eq!(ran.end.rows.iter().filter(|row| row.path == "a/turn:1").count(), 1, "it is billed");
}

#[tokio::test]
async fn well_behaved_model_is_not_disturbed() {
    let turns = || [look(), ScriptedTurn::default().say("From ").say("the tool.")];
    let grounded = Scripted::default().script("a", turns());
    let plain = Scripted::default().script("a", turns());
    let ran = setup(&grounded).run().await;
    let as_before = setup(&plain).agent(|a| a.grounding = Grounding::Optional).run().await;
    assert_eq!(ran.log(), as_before.log());
    assert_eq!(choices(&grounded), [ToolChoice::Required, ToolChoice::Auto]);
    assert_eq!(choices(&plain), [ToolChoice::Auto, ToolChoice::Auto]);
}

#[tokio::test]
async fn second_answer_counts_as_it_is() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("One."), ScriptedTurn::text("Two.")]);
    let ran = setup(&model).run().await;
    assert_eq!((ran.answer(), shown(&ran)), ("Two.", vec!["Two."]), "{}", ran.log());
}

#[tokio::test]
async fn failed_call_is_no_evidence() {
    let model = Scripted::default().script(
        "a",
        [look(), ScriptedTurn::text("It failed."), look(), ScriptedTurn::text("It failed again.")],
    );
    let fails = TestTool::new("look", |_| async { Err(ToolError::Execution("broken".into())) });
    let ran = Setup::new(&model).agent(|a| a.grounding = Grounding::Required).tool(fails).run().await;
    assert_eq!((ran.answer(), statuses(&ran)), ("It failed again.", vec![ASKED_AGAIN]), "{}", ran.log());
}

#[tokio::test]
async fn help_depends_on_the_model() {
    let memory = || [ScriptedTurn::default().say("From ").say("memory.")];
    let unasked = model(ModelSupport::default(), off()).script("a", memory());
    let ran = setup(&unasked).run().await;
    assert_eq!((ran.answer(), statuses(&ran).len()), ("From memory.", 0));
    assert!(ran.log().contains("text \"From \""), "it is streamed: {}", ran.log());
    assert_eq!(choices(&unasked), [ToolChoice::Required]);
    let supports = ModelSupport { tool_choice: false, ..ModelSupport::default() };
    let unforced = model(supports, off()).script("a", memory());
    setup(&unforced).run().await;
    assert_eq!(choices(&unforced), [ToolChoice::Auto]);
}

#[tokio::test]
async fn rule_needs_tools_that_give_evidence() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("From memory.")]);
    let collaborating = Setup::new(&model).with("b", |_| {}).agent(|a| {
        a.grounding = Grounding::Required;
        collaborates(a, &["b"]);
    });
    let ran = collaborating.run().await;
    assert_eq!((ran.answer(), choices(&model)), ("From memory.", vec![ToolChoice::Auto]), "{}", ran.log());
}

#[tokio::test]
async fn answer_of_another_agent_is_evidence() {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}));
    let model = Scripted::default()
        .script("a", [call, ScriptedTurn::text("As b says.")])
        .script("b", [ScriptedTurn::text("Blue.")]);
    let calling = Setup::new(&model).with("b", |_| {}).agent(|a| {
        a.grounding = Grounding::Required;
        a.agents = vec![crate::name("b")];
    });
    let ran = calling.run().await;
    assert_eq!((ran.answer(), statuses(&ran).contains(&ASKED_AGAIN)), ("As b says.", false), "{}", ran.log());
}

#[tokio::test]
async fn plans_are_made_without_tools() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::text("1. Look"),
            ScriptedTurn::text("From memory."),
            look(),
            ScriptedTurn::text("From the tool."),
        ],
    );
    let ran = setup(&model).agent(|a| a.planning_strategy = PlanningStrategy::PlanAndReact).run().await;
    assert_eq!(ran.answer(), "From the tool.", "{}", ran.log());
    assert_eq!(choices(&model)[..3], [ToolChoice::None, ToolChoice::Required, ToolChoice::Required]);
}

#[tokio::test]
async fn last_allowed_turn_is_not_asked_for_again() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("From memory.")]);
    let ran = setup(&model).agent(|a| a.limits.max_turns = 1).run().await;
    assert_eq!((ran.answer(), shown(&ran)), ("From memory.", vec!["From memory."]), "{}", ran.log());
}

/// What was recorded decides after a crash, also if the help has been turned off since.
#[test]
fn recorded_turns_decide_after_a_crash() {
    let first =
        Scripted::default().script("a", [ScriptedTurn::text("From memory."), ScriptedTurn::default().hang()]);
    let is_asked_again = |kind: &EventKind| matches!(kind, EventKind::Status { text } if text == ASKED_AGAIN);
    let (engine, _, _) = die(setup(&first), move |event| is_asked_again(&event.kind));
    let second =
        model(ModelSupport::default(), off()).script("a", [look(), ScriptedTurn::text("From the tool.")]);
    let after = go_on(setup(&second), &engine);
    after.is_sound();
    assert_eq!(after.messages.last().unwrap().message.text(), "From the tool.");
    assert_eq!(second.asked().len(), 2, "the first turn is not taken again");
    assert!(format!("{:?}", second.asked()[0].messages.last()).contains("Call one of your tools now"));
    assert_eq!(after.count(is_asked_again), 1);
}

const SEARCHED: &str = "searched with `find`, because the answer had no tool result";

/// An agent with a tool that only needs a question.
fn searching(model: &Scripted) -> Setup {
    let query = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let find = TestTool::new("find", |arguments| async move { Ok(format!("found {}", arguments["query"])) });
    let find = find.spec(|spec| spec.parameters = query);
    Setup::new(model).agent(|a| a.grounding = Grounding::Required).tool(find)
}

#[tokio::test]
async fn engine_searches_for_a_model_that_does_not() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("From memory."), ScriptedTurn::text("From the search.")]);
    let ran = searching(&model).run().await;
    assert_eq!((ran.answer(), shown(&ran)), ("From the search.", vec!["From the search."]), "{}", ran.log());
    assert_eq!(statuses(&ran), [SEARCHED]);
    assert_eq!(choices(&model), [ToolChoice::Required, ToolChoice::Auto]);
    let messages = format!("{:?}", model.asked()[1].messages);
    assert!(messages.contains("found"), "the question is searched for: {messages}");
    assert!(!messages.contains("From memory."), "the answer from memory is not repeated: {messages}");
}

#[test]
fn a_search_is_not_repeated_after_a_crash() {
    let first =
        Scripted::default().script("a", [ScriptedTurn::text("From memory."), ScriptedTurn::default().hang()]);
    let is_searched = |kind: &EventKind| matches!(kind, EventKind::Status { text } if text == SEARCHED);
    let (engine, _, _) = die(searching(&first), move |event| is_searched(&event.kind));
    let second = model(ModelSupport::default(), off()).script("a", [ScriptedTurn::text("From the search.")]);
    let after = go_on(searching(&second), &engine);
    after.is_sound();
    assert_eq!(after.messages.last().unwrap().message.text(), "From the search.");
    assert_eq!((second.asked().len(), after.count(is_searched)), (1, 1));
}

const SEARCHED_FIRST: &str = "searched with `find` before the first turn";

fn first() -> ModelAssists {
    ModelAssists { search_first: true, ..ModelAssists::default() }
}

#[tokio::test]
async fn search_comes_before_the_first_turn_of_a_small_model() {
    let answers = [ScriptedTurn::default().say("From ").say("the search.")];
    let model = model(ModelSupport::default(), first()).script("a", answers);
    let ran = searching(&model).run().await;
    assert_eq!((ran.answer(), statuses(&ran)), ("From the search.", vec![SEARCHED_FIRST]), "{}", ran.log());
    assert_eq!(choices(&model), [ToolChoice::Auto], "one turn is enough");
    let asked = format!("{:?}", model.asked()[0].messages);
    assert!(asked.contains("found") && asked.contains("The question is: "), "{asked}");
    assert!(ran.log().contains("text \"From \""), "it is streamed: {}", ran.log());
}

#[tokio::test]
async fn failed_first_search_leaves_the_rule_in_force() {
    let query = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let fails = TestTool::new("find", |_| async { Err(ToolError::Execution("broken".into())) });
    let fails = fails.spec(|spec| spec.parameters = query);
    let model = model(ModelSupport::default(), first())
        .script("a", [ScriptedTurn::text("From memory."), ScriptedTurn::text("It failed.")]);
    let ran = Setup::new(&model).agent(|a| a.grounding = Grounding::Required).tool(fails).run().await;
    assert_eq!(
        (ran.answer(), statuses(&ran)),
        ("It failed.", vec![SEARCHED_FIRST, SEARCHED]),
        "{}",
        ran.log()
    );
    assert_eq!(choices(&model), [ToolChoice::Required, ToolChoice::Required]);
    assert!(
        !format!("{:?}", model.asked()[0].messages).contains("The question is: "),
        "there is nothing to answer from"
    );
}

/// The search is not made again, also if the assist has been turned off since.
#[test]
fn first_search_is_not_repeated_after_a_crash() {
    let before = model(ModelSupport::default(), first()).script("a", [ScriptedTurn::default().hang()]);
    let is_searched = |kind: &EventKind| matches!(kind, EventKind::Status { text } if text == SEARCHED_FIRST);
    let (engine, _, _) = die(searching(&before), move |event| is_searched(&event.kind));
    let second = model(ModelSupport::default(), off()).script("a", [ScriptedTurn::text("From the search.")]);
    let after = go_on(searching(&second), &engine);
    after.is_sound();
    assert_eq!(after.messages.last().unwrap().message.text(), "From the search.");
    assert_eq!((second.asked().len(), after.count(is_searched)), (1, 1));
    assert!(format!("{:?}", second.asked()[0].messages).contains("found"));
}

/// Some servers do not let a model end before it has called a tool, and the model writes on for ever.
#[tokio::test]
async fn a_text_without_end_is_cut_where_a_call_is_required() {
    let begun = ScriptedTurn::default().say("I would search.");
    let endless = (0..100).fold(begun, |turn, _| turn.say(&"\n".repeat(10))).hang();
    let model = Scripted::default().script("a", [endless, ScriptedTurn::text("From the search.")]);
    let ran = searching(&model).run().await;
    assert_eq!((ran.answer(), statuses(&ran)), ("From the search.", vec![SEARCHED]), "{}", ran.log());
    let row = ran.end.rows.iter().find(|row| row.path == "a/turn:1").unwrap();
    assert!(row.estimated && row.tokens.output_tokens > 0, "what it wrote is billed: {row:?}");
}
