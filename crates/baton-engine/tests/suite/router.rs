//! Routers: who is chosen, what the chosen one gets, and what happens when nobody is.

use baton_core::agent::{Agent, Destination, HistoryAccess, PlanningStrategy, Router, RoutingMode};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::model::{ModelAssists, ModelErrorKind, ModelFacts};
use baton_core::store::RunStatus;
use baton_engine::{Engine, Failure, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::durability::{die, go_on};
use crate::transfers::{Kept, asked_of, collaborates, described, seen, told, transfer};
use crate::{Setup, TestTool, name};

pub(super) fn routes(agent: &mut Agent, mode: RoutingMode, to: &[&str]) {
    let destinations = to.iter().map(|text| name(text)).collect();
    agent.router = Some(Router { mode, destinations, fallback: None, may_answer: false });
}

fn router(agent: &mut Agent) -> &mut Router {
    agent.router.as_mut().unwrap()
}

pub(super) fn outcomes(hops: &[baton_core::store::Hop]) -> Vec<&'static str> {
    hops.iter().map(|hop| hop.outcome.word()).collect()
}

pub(super) fn choose(agent: &str) -> ScriptedTurn {
    ScriptedTurn::call("route_to", &json!({ "agent": agent, "reason": format!("{agent} fits") }))
}

/// `a` chooses between `b` and `c`.
fn pure(model: &Scripted) -> Setup {
    Setup::new(model)
        .agent(|a| routes(a, RoutingMode::Pure, &["b", "c"]))
        .with("b", |b| b.description = "Bills\nand payments.".into())
        .with("c", |c| c.description = "Contracts.".into())
}

/// What an agent was asked last, whole.
fn task(model: &Scripted, agent: &str) -> String {
    match asked_of(model, agent).last().unwrap().messages.last().unwrap() {
        ChatMessage::User { parts } => format!("{parts:?}"),
        other => panic!("{other:?}"),
    }
}

fn failure(kept: &Kept) -> String {
    kept.ran.end.failure.as_ref().unwrap().to_string()
}

/// I4, E5, E24: one turn, one tool, and the chosen one gets the original input.
#[tokio::test]
async fn e5_chosen_agent_gets_the_original_input_and_answers() {
    let model =
        Scripted::default().script("a", [choose("b").say("Hm.")]).script("b", [ScriptedTurn::text("Paid.")]);
    let setup =
        pure(&model).agent(|a| a.planning_strategy = PlanningStrategy::Spar).tool(TestTool::echo("t"));
    let kept = Kept::of(setup).await;
    assert_eq!(seen(&kept.ran), [("B".to_owned(), "Paid.".to_owned())]);
    assert_eq!(kept.ran.end.answered_by, Some(name("b")));
    assert_eq!(kept.messages[1].message.agent, Some(name("b")));
    assert_eq!(asked_of(&model, "a")[0].tools, ["route_to"], "E25: a pure router has no other tool");
    assert_eq!(asked_of(&model, "b")[0].messages, [ChatMessage::user("What is up?")], "E5: nothing is added");
    assert_eq!(kept.ways(), "route a → b: \"b fits\" completed\n");
    insta::assert_snapshot!(kept.ran.log());
}

/// E5: the choice is made from what the destinations say of themselves, a line each.
#[tokio::test]
async fn e5_destinations_are_described() {
    let model = Scripted::default().script("a", [choose("b")]).script("b", [ScriptedTurn::text("Paid.")]);
    let description = described(pure(&model), &model, "route_to").await;
    assert!(description.ends_with("One of:\n- b: Bills and payments.\n- c: Contracts."), "{description}");
}

/// E26: an invalid choice is told to the model, which has two more tries.
#[tokio::test]
async fn i4_invalid_choice_is_reported_and_retried() {
    let model = Scripted::default()
        .script("a", [choose("nobody"), ScriptedTurn::text("I think b?"), choose("b")])
        .script("b", [ScriptedTurn::text("Paid.")]);
    let kept = Kept::of(pure(&model)).await;
    assert_eq!(kept.ran.answer(), "Paid.");
    let asked = asked_of(&model, "a");
    let said = told(&asked[1]).join("");
    assert!(said.contains("invalid arguments") && said.contains("\"b\"") && said.contains("\"c\""), "{said}");
    let insisted = format!("{:?}", asked[2].messages.last());
    assert!(insisted.contains("Call `route_to` now") && insisted.contains("b, c"), "{insisted}");
    assert_eq!(seen(&kept.ran), [("B".to_owned(), "Paid.".to_owned())]);
}

/// E5, E26: a choice that can only mean one of them is made at once, and the same one twice is one choice.
#[tokio::test]
async fn e5_choice_is_case_insensitive() {
    let choice = |agent: &str| json!({"agent": agent, "reason": "it fits", "message": null});
    let both = ScriptedTurn::call("route_to", &choice("B")).and_call("route_to", &choice("b"));
    let model = Scripted::default().script("a", [both]).script("b", [ScriptedTurn::text("Paid.")]);
    let kept = Kept::of(pure(&model)).await;
    assert_eq!((kept.ran.answer(), asked_of(&model, "a").len()), ("Paid.", 1));
    assert_eq!(asked_of(&model, "b")[0].messages, [ChatMessage::user("What is up?")]);
    assert_eq!(kept.ways(), "route a → b: \"it fits\" completed\n");
}

/// E26: nobody is chosen, there is no fallback, and it may not answer itself.
#[tokio::test]
async fn e26_without_a_choice_the_run_fails_with_reasons() {
    let words = || ScriptedTurn::text("I would rather not.");
    let model = Scripted::default().script("a", [words(), words(), words()]);
    let kept = Kept::of(pure(&model)).await;
    let text = failure(&kept);
    assert_eq!(text, "`a` chose no agent: I would rather not.. It may choose `b`, `c`");
    assert!(matches!(kept.ran.end.failure, Some(Failure::NotRouted { .. })));
    assert_eq!((kept.ran.end.failure.as_ref().unwrap().code(), model.asked().len()), ("routing_failed", 3));
    assert!(seen(&kept.ran).is_empty(), "what it said instead is nobody's answer");
    let model = Scripted::default().script("a", [choose("x"), choose("y"), choose("z")]);
    let kept = Kept::of(pure(&model)).await;
    assert!(failure(&kept).contains("the limit of turns was met"), "{}", failure(&kept));
}

/// E26
#[tokio::test]
async fn e26_fallback_handles_a_missing_choice() {
    let words = || ScriptedTurn::text("No idea.");
    let model = Scripted::default()
        .script("a", [words(), words(), words()])
        .script("c", [ScriptedTurn::text("Let me see.")]);
    let kept = Kept::of(pure(&model).agent(|a| router(a).fallback = Some(name("c")))).await;
    assert_eq!(seen(&kept.ran), [("C".to_owned(), "Let me see.".to_owned())]);
    assert_eq!(kept.ways(), "route a → c: \"no agent was chosen: No idea.\" completed\n");
    assert_eq!(asked_of(&model, "c")[0].messages, [ChatMessage::user("What is up?")]);
}

/// The router's own model is away: whoever answers without a choice does.
#[tokio::test]
async fn a_router_whose_model_fails_falls_back() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::error(ModelErrorKind::InvalidRequest)])
        .script("c", [ScriptedTurn::text("Let me see.")]);
    let kept = Kept::of(pure(&model).agent(|a| router(a).fallback = Some(name("c")))).await;
    assert_eq!(kept.ran.answer(), "Let me see.");
    let model = Scripted::default().script("a", [ScriptedTurn::error(ModelErrorKind::InvalidRequest)]);
    let kept = Kept::of(pure(&model)).await;
    assert!(matches!(kept.ran.end.failure, Some(Failure::Model(_))));
}

/// E29, X24: a destination that fails ends the run under its name,
#[tokio::test]
async fn e29_a_failed_destination_fails_fast() {
    let model = Scripted::default().script("a", [choose("b")]);
    let kept = Kept::of(pure(&model)).await;
    assert!(failure(&kept).starts_with("stage `b` failed: "), "{}", failure(&kept));
    assert_eq!(kept.ran.end.status, RunStatus::Failed);
    assert_eq!(asked_of(&model, "a").len(), 1, "the router is not asked again");
    assert_eq!(kept.ways(), "route a → b: \"b fits\" failed\n");
    insta::assert_snapshot!(kept.ran.log() + "\n" + &kept.ran.ledger());
}

/// X24: unless somebody else is declared for that.
#[tokio::test]
async fn x24_fallback_handles_a_failed_destination() {
    let half = ScriptedTurn::default().say("Half an").fail(ModelErrorKind::InvalidRequest);
    let model = Scripted::default()
        .script("a", [choose("b")])
        .script("b", [half])
        .script("c", [ScriptedTurn::text("Mine.")]);
    let kept = Kept::of(pure(&model).agent(|a| router(a).fallback = Some(name("c")))).await;
    assert_eq!(seen(&kept.ran), [("C".to_owned(), "Mine.".to_owned())], "the half is taken back");
    assert_eq!(kept.hops.len(), 2);
    assert_eq!(outcomes(&kept.hops), ["failed", "completed"]);
    insta::assert_snapshot!(kept.ran.log());
    // Itself is no fallback for itself.
    let model = Scripted::default().script("a", [choose("c")]);
    let kept = Kept::of(pure(&model).agent(|a| router(a).fallback = Some(name("c")))).await;
    assert!(failure(&kept).starts_with("stage `c` failed: "), "{}", failure(&kept));
    assert_eq!(kept.hops.len(), 1);
}

/// X4: it may answer itself only if its file says so; then words are an answer, seen once.
#[tokio::test]
async fn x4_a_router_that_may_answer_does() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Easy.")]);
    let kept = Kept::of(pure(&model).agent(|a| router(a).may_answer = true)).await;
    assert_eq!(seen(&kept.ran), [("A".to_owned(), "Easy.".to_owned())]);
    assert_eq!((kept.ran.end.answered_by.clone(), model.asked().len()), (Some(name("a")), 1));
    assert!(kept.hops.is_empty());
}

/// E25: a full router looks first, with its own tools.
#[tokio::test]
async fn e25_a_full_router_has_its_own_tools() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("look", &json!({})), choose("b")])
        .script("b", [ScriptedTurn::text("Paid.")]);
    let setup = pure(&model)
        .agent(|a| {
            routes(a, RoutingMode::Full, &["b", "c"]);
            collaborates(a, &["d"]);
        })
        .with("d", |_| {})
        .tool(TestTool::new("look", |_| async { Ok("a bill".to_owned()) }));
    let kept = Kept::of(setup).await;
    assert_eq!(kept.ran.answer(), "Paid.");
    assert_eq!(asked_of(&model, "a")[0].tools, ["look", "route_to", "transfer_to_d"]);
    assert_eq!(asked_of(&model, "b")[0].messages, [ChatMessage::user("What is up?")], "no tool traffic");
}

/// The baton goes one way in a turn.
#[tokio::test]
async fn a_full_router_cannot_route_and_transfer_at_once() {
    let both = choose("b").and_call("transfer_to_d", &json!({"reason": "d knows"}));
    let model =
        Scripted::default().script("a", [both, transfer("d")]).script("d", [ScriptedTurn::text("From d.")]);
    let setup = pure(&model)
        .agent(|a| {
            routes(a, RoutingMode::Full, &["b", "c"]);
            collaborates(a, &["d"]);
        })
        .with("d", |_| {});
    let kept = Kept::of(setup).await;
    assert!(told(&asked_of(&model, "a")[1])[0].contains("only one of route_to b, transfer_to_d"));
    assert_eq!(kept.ways(), "transfer a → d: \"d knows\" completed\n");
}

/// E24: what the router adds is a note, and the request stays what it was. Its history is what its file says.
#[tokio::test]
async fn e24_a_message_is_a_note_beside_the_request() {
    let note = json!({"agent": "b", "reason": "b fits", "message": "Mind the date."});
    let model = Scripted::default()
        .script("a", [choose("c"), ScriptedTurn::call("route_to", &note)])
        .script("c", [ScriptedTurn::text("One.")])
        .script("b", [ScriptedTurn::text("Two.")]);
    let (parts, request) = pure(&model).agent(|a| a.history = HistoryAccess::Summary).parts().await;
    let engine = Engine::new(parts);
    for question in ["first?", "second?"] {
        let input = vec![baton_core::Part::text(question)];
        engine.start(RunRequest { input, ..request.clone() }).await.unwrap().finish().await;
    }
    let asked = task(&model, "b");
    assert_eq!(asked_of(&model, "b")[0].messages.len(), 1, "no history, but its summary");
    for part in [
        "## ORIGINAL USER REQUEST\\n\\nsecond?",
        "### Note from a\\n\\nMind the date.",
        "Person: first?\\n\\nAssistant: One.",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert_eq!(task(&model, "c"), "[Text { text: \"first?\" }]");
}

/// Whoever may not be involved is not offered; if nobody is left, nobody can be chosen.
#[tokio::test]
async fn refused_agent_is_not_offered() {
    let model = Scripted::default()
        .script("a", [choose("b"), choose("c")])
        .script("c", [ScriptedTurn::text("Mine.")]);
    let setup = Setup::new(&model)
        .agent(|a| routes(a, RoutingMode::Pure, &["b", "c"]))
        .with("b", |b| b.can_be_orchestrated = false)
        .with("c", |_| {});
    let kept = Kept::of(setup).await;
    assert_eq!(kept.ran.answer(), "Mine.");
    let model = Scripted::default();
    let setup = Setup::new(&model)
        .agent(|a| routes(a, RoutingMode::Pure, &["b"]))
        .with("b", |b| b.can_be_orchestrated = false);
    let kept = Kept::of(setup).await;
    assert!(failure(&kept).contains("no agent is left to choose from"), "{}", failure(&kept));
    assert!(model.asked().is_empty());
}

/// X6: advisors aside, the session, then the chosen one's whole chain, then its own `handoff`.
#[tokio::test]
async fn x6_destination_chain_runs_before_the_routers_chain() {
    let to = |text: &str| vec![Destination { to: name(text), when: None }];
    let model = Scripted::default()
        .script("a", [choose("b")])
        .script("b", [ScriptedTurn::text("Draft.")])
        .script("d", [ScriptedTurn::text("Checked draft.")])
        .script("e", [ScriptedTurn::text("Final.")]);
    let setup = Setup::new(&model)
        .agent(|a| {
            routes(a, RoutingMode::Pure, &["b"]);
            a.handoff = to("e");
        })
        .with("b", |b| b.handoff = to("d"))
        .with("d", |_| {})
        .with("e", |_| {});
    let kept = Kept::of(setup).await;
    assert_eq!(seen(&kept.ran), [("E".to_owned(), "Final.".to_owned())]);
    let order: Vec<String> = model.asked().into_iter().map(|asked| asked.agent).collect();
    assert_eq!(order, ["a", "b", "d", "e"]);
    assert!(task(&model, "e").contains("Checked draft."), "{}", task(&model, "e"));
    let mut ways: Vec<String> =
        kept.ways().lines().map(|line| line.split(':').next().unwrap().to_owned()).collect();
    ways.sort();
    assert_eq!(ways, ["chain a → e", "chain b → d", "route a → b"]);
}

/// A destination may be a router, and one may transfer.
#[tokio::test]
async fn routers_and_transfers_compose() {
    let model = Scripted::default()
        .script("a", [choose("b")])
        .script("b", [choose("d")])
        .script("d", [transfer("e")])
        .script("e", [ScriptedTurn::text("From e.")]);
    let setup = Setup::new(&model)
        .agent(|a| routes(a, RoutingMode::Pure, &["b"]))
        .with("b", |b| routes(b, RoutingMode::Pure, &["a", "d"]))
        .with("d", |d| collaborates(d, &["a", "e"]))
        .with("e", |_| {});
    let kept = Kept::of(setup).await;
    assert_eq!(seen(&kept.ran), [("E".to_owned(), "From e.".to_owned())]);
    assert_eq!(asked_of(&model, "d")[0].tools, ["transfer_to_e"], "`a` is at work above");
    assert_eq!(kept.hops.len(), 3);
}

/// G22 for routes: after a crash neither the choice nor what is finished is made again.
#[test]
fn a_choice_is_made_once() {
    let first = Scripted::default()
        .script("a", [choose("b")])
        .script("b", [ScriptedTurn::default().say("Half an").hang()]);
    let (engine, _, _) = die(pure(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = Scripted::default().script("b", [ScriptedTurn::text("A whole answer.")]);
    let after = go_on(pure(&second), &engine);
    after.is_sound();
    assert_eq!(after.run.end.as_ref().unwrap().answer.as_deref(), Some("A whole answer."));
    assert_eq!(second.asked().len(), 1);
    assert_eq!(after.count(|kind| matches!(kind, EventKind::Passed { .. })), 1);
}

/// A destination that failed before a crash stays failed, and the fallback goes on.
#[test]
fn fallback_resumes_after_a_crash() {
    let with = |model: &Scripted| pure(model).agent(|a| router(a).fallback = Some(name("c")));
    let first = Scripted::default()
        .script("a", [choose("b")])
        .script("c", [ScriptedTurn::default().say("Half an").hang()]);
    let (engine, _, _) = die(with(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = Scripted::default().script("c", [ScriptedTurn::text("A whole answer.")]);
    let after = go_on(with(&second), &engine);
    after.is_sound();
    assert_eq!(after.run.end.as_ref().unwrap().answer.as_deref(), Some("A whole answer."));
    assert_eq!(second.asked().len(), 1, "neither the router nor who failed is asked again");
}

/// A small model gets the words that the request shares with descriptions, and chooses without a reason.
#[tokio::test]
async fn small_models_are_told_which_descriptions_share_words() {
    let assists = ModelAssists { routing_words: true, ..ModelAssists::default() };
    let model = Scripted::default().with_facts(ModelFacts { assists, ..ModelFacts::default() });
    let model = model
        .script("a", [ScriptedTurn::call("route_to", &json!({ "agent": "b" }))])
        .script("b", [ScriptedTurn::text("Paid.")]);
    let ran = pure(&model).asked("Which payments are open?").run().await;
    assert_eq!(ran.answer(), "Paid.", "{}", ran.log());
    assert!(task(&model, "a").contains("in the description of b: payments.)"), "{}", task(&model, "a"));
    assert!(!task(&model, "b").contains("Words of this request"), "the chosen agent gets the request alone");
}
