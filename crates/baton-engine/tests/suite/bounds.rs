//! What keeps a run finite: depth, re-entry, children at work, budget and time.

use std::time::Duration;

use baton_core::chat::ChatMessage;
use baton_core::ledger::CallOutcome;
use baton_core::store::RunStatus;
use baton_core::{HumanDuration, Usd};
use baton_engine::LimitKind;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{Ran, Setup, name};

fn call(specialist: &str) -> ScriptedTurn {
    ScriptedTurn::default()
        .and_call("call_agent", &json!({"mission": "Look it up.", "specialist": specialist}))
}

/// Results of tools that an agent was told in its last call.
fn results(model: &Scripted, agent: &str) -> Vec<String> {
    let asked = model.asked().into_iter().rfind(|asked| asked.agent == agent).unwrap();
    let results = asked.messages.into_iter().filter_map(|message| match message {
        ChatMessage::Tool(result) => Some(result.content.to_string()),
        _ => None,
    });
    results.collect()
}

fn tools(model: &Scripted, agent: &str) -> Vec<String> {
    model.asked().into_iter().find(|asked| asked.agent == agent).unwrap().tools
}

fn paths(ran: &Ran) -> Vec<&str> {
    ran.end.rows.iter().map(|row| row.path.as_str()).collect()
}

/// F24, X2: the tool is hidden at the limit, and refused if it is called all the same.
#[tokio::test]
async fn f24_depth_is_limited() {
    let model = Scripted::default()
        .script("a", [call("b"), ScriptedTurn::text("Done.")])
        .script("b", [call("c"), ScriptedTurn::text("I had to do it alone.")]);
    let setup = Setup::new(&model).agent(|a| {
        a.agents = vec![name("b")];
        a.limits.max_depth = 1;
    });
    let ran = setup.with("b", |b| b.agents = vec![name("c")]).with("c", |_| {}).run().await;
    assert_eq!(ran.answer(), "Done.");
    assert!(tools(&model, "a").contains(&"call_agent".to_owned()));
    assert!(!tools(&model, "b").iter().any(|tool| tool == "call_agent" || tool == "delegate"));
    assert!(results(&model, "b")[0].starts_with("error: "), "{:?}", results(&model, "b"));
    assert_eq!(model.left(), 0);
}

/// X23: who is at work above is not called again.
#[tokio::test]
async fn x23_mutual_calls_are_refused() {
    let model = Scripted::default()
        .script("a", [call("b"), ScriptedTurn::text("Done.")])
        .script("b", [call("a"), ScriptedTurn::text("I cannot ask a.")]);
    let setup = Setup::new(&model).agent(|a| a.agents = vec![name("b")]);
    let ran = setup.with("b", |b| b.agents = vec![name("a")]).run().await;
    assert_eq!(ran.answer(), "Done.");
    assert!(results(&model, "b")[0].starts_with("error: "), "{:?}", results(&model, "b"));
    assert_eq!(model.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn running_children_are_limited() {
    let first = ["b", "c", "d"].iter().fold(ScriptedTurn::default(), |turn, agent| {
        turn.and_call("call_agent", &json!({"mission": "Look it up.", "specialist": agent}))
    });
    let slow = || ScriptedTurn::default().wait(Duration::from_secs(1)).say("Looked.");
    let model = Scripted::default()
        .script("a", [first, ScriptedTurn::text("Done.")])
        .script("b", [slow()])
        .script("c", [slow()]);
    let setup = Setup::new(&model).policy(|policy| policy.max_live_children = 2);
    let setup = setup.agent(|a| a.agents = vec![name("b"), name("c"), name("d")]);
    let ran = setup.with("b", |_| {}).with("c", |_| {}).with("d", |_| {}).run().await;
    assert_eq!(ran.answer(), "Done.");
    let results = results(&model, "a");
    assert!(results[0].contains("Looked.") && results[1].contains("Looked."), "{results:?}");
    assert!(results[2].contains("2 agents are already active"), "{results:?}");
}

/// Those who are asked together wait for each other, however many fans are open in one turn; a call of one is told.
#[tokio::test(start_paused = true)]
async fn fan_out_waits_where_a_call_is_refused() {
    let names = ["b", "c", "d", "e"];
    let fan = || json!({"agents": names, "message": "Look it up."});
    let first = ScriptedTurn::default().and_call("delegate", &fan()).and_call("delegate", &fan());
    let first = first.and_call("call_agent", &json!({"mission": "Look it up.", "specialist": "b"}));
    let slow = || ScriptedTurn::default().wait(Duration::from_secs(1)).say("Looked.");
    let model = Scripted::default().script("a", [first, ScriptedTurn::text("Done.")]);
    let model = names.iter().fold(model, |model, name| model.script(name, [slow(), slow()]));
    let setup = Setup::new(&model).policy(|policy| policy.max_live_children = 3);
    let setup = setup.agent(|a| a.agents = names.map(name).to_vec());
    let setup = names.iter().fold(setup, |setup, name| setup.with(name, |_| {}));
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Done.");
    let results = results(&model, "a");
    let all = "\"asked\":4,\"succeeded\":4";
    assert!(results[0].contains(all) && results[1].contains(all), "{results:?}");
    assert!(results[2].contains("3 agents are already active"), "{results:?}");
    assert_eq!(model.left(), 0);
}

/// A child spends what is left of its parents' money.
#[tokio::test]
async fn child_budget_is_the_parents_remainder() {
    // A dollar per million tokens: the child's first turn costs as much as the parent may spend.
    let model = Scripted::default()
        .script("a", [call("b").tokens(10, 0), ScriptedTurn::text("In short.").tokens(10, 0)])
        .script(
            "b",
            [
                ScriptedTurn::call("look", &json!({})).tokens(1_000, 0),
                ScriptedTurn::text("So far.").tokens(10, 0),
            ],
        );
    let setup = Setup::new(&model).tool(super::TestTool::echo("look")).agent(|a| {
        a.agents = vec![name("b")];
        a.limits.max_cost_usd = Some(Usd::from_nanos(1_000_000));
    });
    let ran = setup.with("b", |_| {}).run().await;
    assert_eq!(ran.end.answer.as_ref().unwrap().limit, Some(LimitKind::Cost));
    assert_eq!(ran.answer(), "In short.");
    assert_eq!(model.left(), 0, "both closed with one turn\n{}", ran.log());
    assert!(results(&model, "a")[0].contains("So far."));
    let of_child = |path: &&str| path.ends_with("call:b/turn:1") || path.ends_with("call:b/turn:2");
    assert_eq!(paths(&ran).into_iter().filter(of_child).count(), 2, "{:?}", paths(&ran));
}

/// E18: when the parent's time is over, the child is cancelled, waited for and paid for.
#[tokio::test(start_paused = true)]
async fn child_deadline_is_the_parents_remainder() {
    let model = Scripted::default()
        .script("a", [call("b"), ScriptedTurn::text("In short.")])
        .script("b", [ScriptedTurn::default().say("Let me ").hang()]);
    let setup = Setup::new(&model).agent(|a| {
        a.agents = vec![name("b")];
        a.limits.timeout = HumanDuration::from_secs(30);
    });
    let ran = setup.with("b", |b| b.limits.timeout = HumanDuration::from_mins(60)).run().await;
    assert_eq!((ran.answer(), ran.end.answer.as_ref().unwrap().limit), ("In short.", Some(LimitKind::Time)));
    let cut = ran.end.rows.iter().find(|row| row.agent == name("b")).unwrap();
    assert_eq!((cut.outcome, cut.estimated), (CallOutcome::Cancelled, true));
    assert_eq!(ran.end.status, RunStatus::Completed);
}

/// What some of a fan have brought before the time was over is what the closing turn answers from.
#[tokio::test(start_paused = true)]
async fn finished_results_survive_a_timeout_of_others() {
    let model = Scripted::default()
        .script(
            "a",
            [
                ScriptedTurn::call("delegate", &json!({"agents": ["b", "c"], "message": "Look."})),
                ScriptedTurn::text("In short."),
            ],
        )
        .script("b", [ScriptedTurn::text("Found it.")])
        .script("c", [ScriptedTurn::default().say("Let me ").hang()]);
    let setup = Setup::new(&model).agent(|a| {
        a.agents = vec![name("b"), name("c")];
        a.limits.timeout = HumanDuration::from_secs(30);
        a.delegation.timeout = HumanDuration::from_mins(10);
    });
    let ran = setup.with("b", |_| {}).with("c", |_| {}).run().await;
    assert_eq!((ran.answer(), ran.end.answer.as_ref().unwrap().limit), ("In short.", Some(LimitKind::Time)));
    let told = &results(&model, "a")[0];
    assert!(told.contains("Found it.") && told.contains("no answer within 30s"), "{told}");
    assert!(ran.log().contains("session failed: timeout: no answer within 30s"), "{}", ran.log());
}

/// X18: off means hidden.
#[tokio::test]
async fn x18_disabled_feature_is_not_offered() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Alone.")]);
    let setup = Setup::new(&model).agent(|a| {
        a.agents = vec![name("b")];
        a.collaborations =
            vec![baton_core::agent::Collaboration { agent: name("b"), when: None, allow_revisit: 0 }];
    });
    let setup = setup.policy(|policy| {
        policy.agent_tool = baton_engine::Switch::For { percent: 0, tenants: vec!["somebody-else".into()] };
        policy.transfers = baton_engine::Switch::Off;
    });
    let ran = setup.with("b", |_| {}).run().await;
    assert_eq!(ran.answer(), "Alone.");
    let tools = tools(&model, "a");
    assert!(tools.iter().all(|tool| !["call_agent", "delegate", "transfer_to_b"].contains(&tool.as_str())));
}
