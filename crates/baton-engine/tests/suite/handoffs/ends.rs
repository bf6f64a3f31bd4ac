//! How a handoff ends: by the person, by its time, by failures; and how it is gone on with.

use baton_core::event::HandoffPhase;
use baton_core::model::ModelErrorKind;
use baton_core::store::{HandoffEnd, HandoffState};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{Talk, asked_of, expire, phases, setup, told, transfer};

const BACK: &str = "No problem! Returning you to the main assistant.";
const LATER: &str = "Let me know if you'd like to continue creating that skill later.";

fn begun() -> Scripted {
    Scripted::default().script("a", [transfer("maker")]).script("maker", [ScriptedTurn::text("Hi!")])
}

/// C-16, J4: a word ends it at once, without a model; what was collected is kept, and the main agent offers to go on.
#[tokio::test]
async fn c_16_j4_exit_word_returns_the_thread_and_keeps_values() {
    let model = begun().script("a", [ScriptedTurn::text("Of course.")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let id = talk.open().await.unwrap().handoff_id;
    let asked = model.asked().len();
    let left = talk.say("cancel").await;
    assert_eq!(left.answer(), LATER, "{}", left.log());
    assert_eq!(phases(&left.events), [(HandoffPhase::Cancelled, BACK.to_owned())]);
    assert_eq!(model.asked().len(), asked, "no model was asked");
    assert_eq!(talk.holder().await, "a");
    let kept = talk.store().handoff(id).await.unwrap();
    assert_eq!((kept.state, kept.notes.end), (HandoffState::Cancelled, Some(HandoffEnd::Left)));
    assert!(kept.workflow.is_some());
    let resumable = talk.store().resumable_handoffs(talk.request.caller.thread_id).await.unwrap();
    assert_eq!(resumable.len(), 1);
    assert_eq!(talk.say("And now?").await.answer(), "Of course.");
    assert_eq!(talk.said().await.last_chunk::<4>().unwrap()[..2], ["person: cancel", &format!("a: {LATER}")]);
}

/// C-16, J4.6: who says so goes on exactly where they were.
#[tokio::test]
async fn c_16_left_handoff_is_resumed() {
    let model = begun()
        .script("maker", [ScriptedTurn::text("Where were we: the name?"), ScriptedTurn::text("Good.")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let before = talk.open().await.unwrap();
    talk.say("exit").await;
    let on = talk.say("continue").await;
    assert_eq!(on.answer(), "Where were we: the name?", "{}", on.log());
    let (phase, sentence) = phases(&on.events).pop().unwrap();
    assert_eq!(phase, HandoffPhase::Active);
    assert!(sentence.starts_with("Welcome back!"), "{sentence}");
    let now = talk.open().await.unwrap();
    assert_eq!((now.handoff_id, now.workflow), (before.handoff_id, before.workflow));
    assert_eq!(talk.say("Slack Alert").await.answer(), "Good.");
    assert_eq!(asked_of(&model, "a").len(), 1);
}

/// X14: later the same word means something else, unless it says what.
#[tokio::test]
async fn x_14_continue_refers_to_the_last_topic() {
    let model = begun()
        .script("a", [ScriptedTurn::text("The sea is deep"), ScriptedTurn::text("and blue.")])
        .script("maker", [ScriptedTurn::text("The name?")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    talk.say("stop").await;
    talk.say("Tell me about the sea").await;
    assert_eq!(talk.say("continue").await.answer(), "and blue.");
    assert_eq!(talk.holder().await, "a");
    assert_eq!(talk.say("Continue with the skill").await.answer(), "The name?");
    assert_eq!(talk.holder().await, "maker");
}

/// C-15: who stays away too long is back with the main agent, and is asked whether they want to go on.
#[tokio::test]
async fn c_15_returning_person_is_asked_to_continue() {
    let model = begun().script("maker", [ScriptedTurn::text("The name, then?")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    expire(&talk).await;
    let back = talk.say("Hello!").await;
    assert_eq!(
        back.answer(),
        "Welcome back! Would you like to continue creating your skill?",
        "{}",
        back.log()
    );
    assert_eq!(talk.holder().await, "a");
    let on = talk.say("Yes, please").await;
    assert_eq!(on.answer(), "The name, then?", "{}", on.log());
    assert_eq!(talk.holder().await, "maker");
    assert_eq!(asked_of(&model, "a").len(), 1, "nobody had to find that out");
}

/// C-15: another matter is answered, with a note about what was left and the question beside it.
#[tokio::test]
async fn c_15_other_request_is_answered_despite_the_question() {
    let model = begun().script("a", [ScriptedTurn::text("It is sunny."), ScriptedTurn::text("Sure.")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    expire(&talk).await;
    let ran = talk.say("What is the weather like in Rome today?").await;
    assert_eq!(ran.answer(), "It is sunny.", "{}", ran.log());
    let (phase, sentence) = phases(&ran.events).pop().unwrap();
    assert_eq!(phase, HandoffPhase::Cancelled);
    assert!(sentence.starts_with("Welcome back! Would you like to continue"), "{sentence}");
    let news = format!("{:?}", asked_of(&model, "a")[1].messages.last().unwrap());
    assert!(news.contains("expired") && news.contains("continue"), "{news}");
    assert_eq!(talk.say("Thanks, and in Oslo?").await.answer(), "Sure.");
    let news = format!("{:?}", asked_of(&model, "a")[2].messages.last().unwrap());
    assert!(!news.contains("expired"), "once: {news}");
}

/// C-14, I2: a target that cannot answer at all leaves the thread where it was, with words that say so and what else there is.
#[tokio::test]
async fn c_14_unavailable_target_is_explained() {
    let down = || ScriptedTurn::error(ModelErrorKind::Auth);
    let model = Scripted::default()
        .script(
            "a",
            [transfer("maker"), ScriptedTurn::text("It is down, sorry."), ScriptedTurn::text("Yes?")],
        )
        .script("maker", [down(), down(), down()]);
    let talk = Talk::new(setup(&model)).await;
    let ran = talk.say("create a skill").await;
    assert_eq!(ran.answer(), "It is down, sorry.", "{}", ran.log());
    let why = told(&asked_of(&model, "a")[1]).join("");
    let sentence = "The skill creation assistant is currently unavailable. Would you like me to help you with something else, or try again later?";
    assert!(why.contains(sentence), "{why}");
    assert_eq!(phases(&ran.events).last().unwrap(), &(HandoffPhase::Error, sentence.to_owned()));
    assert_eq!(talk.holder().await, "a");
    assert_eq!(talk.say("Still there?").await.answer(), "Yes?");
}

/// A holder that fails once keeps the thread; one that fails again loses it, and nothing is lost with it.
#[tokio::test]
async fn x_14_failing_holder_returns_the_thread() {
    let down = || ScriptedTurn::error(ModelErrorKind::Auth);
    let model = begun().script("maker", [down(), down()]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let once = talk.say("Slack Alert").await;
    assert!(once.end.failure.is_some());
    assert_eq!(talk.holder().await, "maker");
    let twice = talk.say("Slack Alert").await;
    assert!(twice.answer().contains("currently unavailable"), "{}", twice.log());
    assert_eq!(talk.holder().await, "a");
    let kept = talk.store().resumable_handoffs(talk.request.caller.thread_id).await.unwrap();
    assert_eq!((kept.len(), kept[0].state), (1, HandoffState::Error));
}

/// What is not the holder's is given back undone; whoever has it again is told why.
#[tokio::test]
async fn c_5_a_holder_can_decline() {
    let decline = ScriptedTurn::call("decline_handoff", &json!({ "reason": "This is about billing." }));
    let model = begun().script("maker", [decline]).script("a", [ScriptedTurn::text("Then I answer that.")]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let ran = talk.say("Why was I charged?").await;
    assert_eq!(ran.answer(), "Then I answer that.", "{}", ran.log());
    let news = format!("{:?}", asked_of(&model, "a")[1].messages.last().unwrap());
    assert!(
        news.contains("declined") && news.contains("about billing") && news.contains("Why was I charged?"),
        "{news}"
    );
    assert_eq!(talk.holder().await, "a");
}

/// The main agent's words are not needed for a thread to come back.
#[tokio::test]
async fn c_17_failing_main_agent_does_not_block_the_return() {
    let model = begun()
        .script("maker", [super::complete()])
        .script("a", [ScriptedTurn::error(ModelErrorKind::Auth), ScriptedTurn::error(ModelErrorKind::Auth)]);
    let talk = Talk::new(setup(&model)).await;
    talk.say("create a skill").await;
    let ran = talk.say("Slack Alert").await;
    assert_eq!(ran.answer(), "Great! The skill 'Slack Alert' is active.", "{}", ran.log());
    assert_eq!(talk.holder().await, "a");
}
