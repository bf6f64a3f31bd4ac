//! C-13, X15: the user asks for something else while an agent holds the thread.

use std::sync::Arc;

use baton_core::agent::{
    AcceptsHandoff, Agent, ModelName, Slot, StateName, TriggerMode, Workflow, WorkflowStep,
};
use baton_core::event::HandoffPhase;
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState, SecondRequestState};
use baton_engine::{DecisionInput, HandoffStarted, ModelRegistry, OnConflict, Verdict};
use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_offline::Offline;
use serde_json::json;

use super::{Talk, log, phases};
use crate::transfers::{asked_of, collaborates};
use crate::{Setup, name};

const QUESTION: &str = "You're currently in a skill creation session. Would you like to finish that first?";
const OTHER: &str = "Help me debug my crashing service";
pub(super) const BEGIN: &str = "I want to create a skill that sends Slack alerts";

/// The name of a state, and its slots with their choices.
type State<'a> = (&'a str, &'a [(&'a str, &'a [&'a str])]);

fn takes_over(agent: &mut Agent, display: &str, triggers: &[&str], states: &[State<'_>]) {
    display.clone_into(&mut agent.display_name);
    let triggers = triggers.iter().map(ToString::to_string).collect();
    let trigger_mode = TriggerMode::Auto;
    agent.accepts_handoff = Some(AcceptsHandoff { triggers, trigger_mode, ..AcceptsHandoff::default() });
    let slot = |(key, choices): &(&str, &[&str])| Slot {
        key: (*key).to_owned(),
        ask: format!("What is the {key}?"),
        choices: choices.iter().map(ToString::to_string).collect(),
        required: true,
    };
    let step = |at: usize| WorkflowStep {
        name: StateName(states[at].0.to_owned()),
        collect: states[at].1.iter().map(slot).collect(),
        run: None,
        on_failure: None,
        confirm: None,
        next: states.get(at + 1).map(|next| StateName(next.0.to_owned())).into_iter().collect(),
    };
    agent.workflow = Some(Workflow { states: (0..states.len()).map(step).collect() });
}

/// A main agent, one that creates skills and one that debugs.
pub(super) fn three(model: &Scripted) -> Setup {
    let main = |a: &mut Agent| {
        "Assistant".clone_into(&mut a.display_name);
        collaborates(a, &["maker", "fixer"]);
    };
    let maker = |agent: &mut Agent| {
        let gathering: &[(&str, &[&str])] =
            &[("purpose", &[]), ("steps", &[]), ("format", &["bullets", "table"]), ("name", &[])];
        let states: &[State<'_>] = &[("gathering", gathering), ("complete", &[])];
        takes_over(agent, "Skill Creation Assistant", &["create a skill"], states);
    };
    let fixer = |agent: &mut Agent| {
        let states: &[State<'_>] = &[("describing", &[("symptom", &[])]), ("complete", &[])];
        takes_over(agent, "Debugging Assistant", &["help me debug", "debug my"], states);
    };
    Setup::new(model).agent(main).with("maker", maker).with("fixer", fixer)
}

pub(super) fn offline() -> Setup {
    let mut setup = three(&Scripted::default());
    setup.models = ModelRegistry::new(ModelName::parse("offline").unwrap()).with_provider(Arc::new(Offline));
    setup
}

/// A model as holder: it greets, and then answers what it is told to.
fn scripted(maker: &[ScriptedTurn]) -> Scripted {
    let first = ScriptedTurn::text("Hi! What are the steps?");
    Scripted::default()
        .script("maker", [first].into_iter().chain(maker.iter().cloned()))
        .script("fixer", [ScriptedTurn::text("Hi! What goes wrong?"), ScriptedTurn::text("I see.")])
}

async fn values(talk: &Talk, agent: &str) -> serde_json::Value {
    let all = talk.store().handoffs(talk.request.caller.thread_id).await.unwrap();
    let last = all.into_iter().rfind(|one| one.target_agent_id == name(agent)).unwrap();
    last.workflow.unwrap().data["values"].clone()
}

async fn handoff_of(talk: &Talk, agent: &str) -> HandoffSession {
    let all = talk.store().handoffs(talk.request.caller.thread_id).await.unwrap();
    all.into_iter().rfind(|one| one.target_agent_id == name(agent)).unwrap()
}

/// The conversation without a model, for each reply to the question.
#[tokio::test]
async fn c_13_second_request_without_a_model() {
    for (reply, story) in [("yes", "finish"), ("no", "switch"), ("later", "queue"), ("hmm", "unclear")] {
        let talk = Talk::new(offline()).await;
        talk.say(BEGIN).await;
        let asked = talk.say(OTHER).await;
        assert_eq!(asked.answer(), QUESTION, "{}", asked.log());
        assert_eq!(asked.end.answered_by, Some(name("maker")));
        assert_eq!(values(&talk, "maker").await, json!({ "purpose": "sends Slack alerts" }));
        let second = talk.open().await.unwrap().notes.second.unwrap();
        assert_eq!((second.agent, second.state), (Some(name("fixer")), SecondRequestState::Asked));
        talk.say(reply).await;
        let events: Vec<String> =
            phases(&talk.events().await).into_iter().map(|(phase, text)| format!("{phase} {text}")).collect();
        let said = talk.said().await;
        insta::assert_snapshot!(
            story,
            format!("{}\n\n=== handoffs\n\n{}", said[2..].join("\n\n---\n\n"), events.join("\n"))
        );
        assert!(!values(&talk, "maker").await.to_string().contains("debug"));
    }
}

/// With a model as holder nothing is asked of it about the second request, and it never sees the words.
#[tokio::test]
async fn c_13_second_request_with_a_model() {
    let steps = json!({ "values": { "steps": "Read the report" } });
    let model =
        scripted(&[ScriptedTurn::call("advance_workflow", &steps), ScriptedTurn::text("Which format?")]);
    let talk = Talk::new(three(&model)).await;
    talk.say(BEGIN).await;
    let asked = talk.say(OTHER).await;
    assert_eq!((asked.answer(), asked_of(&model, "maker").len()), (QUESTION, 1), "{}", asked.log());
    let kept = talk.say("yes").await;
    assert_eq!(kept.answer(), "All right, let's finish this first.\n\nWhat is the purpose?");
    assert_eq!(asked_of(&model, "maker").len(), 1);
    assert_eq!(talk.open().await.unwrap().notes.second, None);
    assert_eq!(talk.say("Read the report").await.answer(), "Which format?");
    let seen = format!("{:?}", asked_of(&model, "maker").last().unwrap().messages);
    assert!(!seen.contains("crashing service") && !seen.contains("finish that first"), "{seen}");
    assert_eq!(values(&talk, "maker").await, json!({ "steps": "Read the report" }));
    insta::assert_snapshot!("second_request_events", log(&asked.events));
}

/// Text that the user shows cannot switch: asked whether to finish first, a long message that mentions another agent is no consent, and
/// the user is never kept.
#[tokio::test]
async fn c_13_quoted_request_does_not_switch() {
    let talk = Talk::new(offline()).await;
    talk.say(BEGIN).await;
    assert_eq!(talk.say(OTHER).await.answer(), QUESTION);
    let report = format!(
        "{} Connect me with the fixer. {}",
        "The report is long. ".repeat(9),
        "It goes on. ".repeat(9)
    );
    let asked = talk.say(&report).await;
    assert!(asked.answer().starts_with(QUESTION), "{}", asked.answer());
    assert_eq!(talk.holder().await, "maker");
    let kept = talk.say(&report).await;
    assert!(kept.answer().starts_with("All right, let's finish this first."), "{}", kept.answer());
    assert_eq!(values(&talk, "maker").await, json!({ "purpose": "sends Slack alerts" }));
    talk.say("cancel").await;
    assert_eq!(talk.holder().await, "a");
}

/// The pause keeps what was collected, the other agent gets the original words, and the paused work is offered afterwards.
#[tokio::test]
async fn c_13_paused_handoff_is_resumed_after_the_second_one() {
    let talk = Talk::new(offline()).await;
    talk.say(BEGIN).await;
    talk.say("Read the report").await;
    talk.say(OTHER).await;
    let switched = talk.say("No, switch now please").await;
    assert!(
        switched.answer().starts_with("Hi! I'm here to help you debug your crashing service."),
        "{}",
        switched.answer()
    );
    assert_eq!(talk.holder().await, "fixer");
    let paused = handoff_of(&talk, "maker").await;
    assert_eq!((paused.state, paused.notes.end), (HandoffState::Cancelled, Some(HandoffEnd::Left)));
    let back = talk.say("It returns 500").await;
    assert!(
        back.answer().ends_with("Would you like to continue creating your Slack alert skill?"),
        "{}",
        back.answer()
    );
    let resumed = talk.say("yes").await;
    assert!(resumed.answer().contains("- Steps: Read the report"), "{}", resumed.answer());
    assert_eq!(talk.holder().await, "maker");
    assert_eq!(talk.open().await.unwrap().handoff_id, paused.handoff_id);
    assert_eq!(
        values(&talk, "maker").await,
        json!({ "purpose": "sends Slack alerts", "steps": "Read the report" })
    );
    assert_eq!(values(&talk, "fixer").await, json!({ "symptom": "It returns 500" }));
}

/// "Later": when the handoff has returned, the other request begins by itself, with its original words.
#[tokio::test]
async fn c_13_queued_request_is_carried_out_after_the_return() {
    let talk = Talk::new(offline()).await;
    talk.say(BEGIN).await;
    talk.say(OTHER).await;
    talk.say("after that").await;
    let second = talk.open().await.unwrap().notes.second.unwrap();
    assert_eq!(second.state, SecondRequestState::Queued);
    for words in ["Read the report", "table"] {
        talk.say(words).await;
    }
    let last = talk.say("Slack Alert").await;
    assert!(
        last.answer().starts_with("Hi! I'm here to help you debug your crashing service."),
        "{}",
        last.log()
    );
    assert_eq!(talk.holder().await, "fixer");
    let said = talk.said().await;
    assert!(said.iter().any(|line| line.starts_with("a: Great, your 'Slack Alert' skill")), "{said:#?}");
    let made: Vec<HandoffPhase> = phases(&last.events).into_iter().map(|(phase, _)| phase).collect();
    let expected =
        [HandoffPhase::Returning, HandoffPhase::Completed, HandoffPhase::Connecting, HandoffPhase::Active];
    assert_eq!(made, expected);
    assert_eq!(handoff_of(&talk, "maker").await.notes.second, None);
    talk.say("cancel").await;
    assert_eq!(talk.holder().await, "a");
}

/// A queued request also begins after the user has left.
#[tokio::test]
async fn c_13_queued_request_is_carried_out_after_an_exit() {
    for by_word in [true, false] {
        let talk = Talk::new(offline()).await;
        for words in [BEGIN, OTHER, "later"] {
            talk.say(words).await;
        }
        if by_word {
            talk.say("cancel").await;
        } else {
            talk.engine.exit_handoff(talk.leaving()).await.unwrap();
            talk.rest().await;
        }
        assert_eq!(talk.holder().await, "fixer", "by a word: {by_word}");
        assert_eq!(handoff_of(&talk, "fixer").await.source_agent_id, name("a"));
    }
}

/// An exit word leaves while the question is open; an answer of the workflow is one; two unclear replies go on.
#[tokio::test]
async fn c_13_exit_answer_and_unclear_replies() {
    let talk = Talk::new(offline()).await;
    talk.say(BEGIN).await;
    talk.say(OTHER).await;
    let again = talk.say("hmm").await;
    assert!(again.answer().starts_with(QUESTION) && again.answer().contains("“later”"), "{}", again.answer());
    let given_up = talk.say("what?").await;
    assert_eq!(given_up.answer(), "All right, let's finish this first.\n\nWhat is the steps?");
    talk.say(OTHER).await;
    talk.say("Read the report, write an alert, post it").await;
    assert_eq!(values(&talk, "maker").await["steps"], "Read the report, write an alert, post it");
    assert_eq!(talk.open().await.unwrap().notes.second, None);
    talk.say("debug my service").await;
    talk.say("that was my answer").await;
    assert_eq!(
        talk.open().await.unwrap().notes.second,
        None,
        "the words are the answer to the question for a format"
    );
    talk.say(OTHER).await;
    let left = talk.say("cancel").await;
    assert_eq!(left.answer(), "Let me know if you'd like to continue creating that skill later.");
    assert_eq!((talk.holder().await.as_str(), handoff_of(&talk, "maker").await.notes.second), ("a", None));
}

/// Words that are an answer remain one, whatever they contain.
#[tokio::test]
async fn c_13_answer_with_a_trigger_remains_an_answer() {
    let talk = Talk::new(offline()).await;
    talk.say("create a skill").await;
    talk.say("a skill that helps me debug services").await;
    assert_eq!(values(&talk, "maker").await["purpose"], "a skill that helps me debug services");
    talk.say("1. Debug my service\n2. Post the result").await;
    assert_eq!(values(&talk, "maker").await["steps"], "1. Debug my service\n2. Post the result");
}

/// The answer to the question in the list of approvals is an answer, whatever it says.
#[tokio::test]
async fn c_13_answer_in_the_inbox_is_no_request() {
    let talk = Talk::new(offline()).await;
    talk.say("create a skill").await;
    let question = talk.open().await.unwrap().notes.question.unwrap();
    let caller = &talk.request.caller;
    let answer = DecisionInput { answer: Some(json!(OTHER)), ..DecisionInput::new(Verdict::Approve) };
    talk.engine.decide(&caller.tenant, question, &caller.user, answer).await.unwrap();
    talk.rest().await;
    assert_eq!(values(&talk, "maker").await["purpose"], OTHER);
}

/// "I'd like to talk to the main assistant" is answered with the question too, and a no leaves.
#[tokio::test]
async fn c_13_request_for_the_main_agent() {
    let talk = Talk::new(offline()).await;
    talk.say(BEGIN).await;
    assert_eq!(talk.say("I'd like to talk to the main assistant").await.answer(), QUESTION);
    let left = talk.say("no").await;
    assert_eq!(left.answer(), "Let me know if you'd like to continue creating that skill later.");
    assert_eq!(phases(&left.events)[0].1, "No problem! Returning you to the main assistant.");
    assert_eq!(talk.holder().await, "a");
    assert!(talk.say("continue").await.answer().contains("What is the steps?"));
}

/// If the other agent cannot take the thread, the main agent answers the request, and the pause stays.
#[tokio::test]
async fn c_13_switch_to_an_agent_that_refuses() {
    let model = scripted(&[]).script("a", [ScriptedTurn::text("You may not debug.")]);
    let mut setup = three(&model);
    let permission = baton_core::Permission::parse("debug:start").unwrap();
    setup.others[1].accepts_handoff.as_mut().unwrap().permission = Some(permission);
    let talk = Talk::new(setup.rights(&["thread:write", "handoff:initiate"])).await;
    for words in [BEGIN, OTHER] {
        talk.say(words).await;
    }
    let answered = talk.say("no").await;
    assert_eq!(answered.answer(), "You may not debug.", "{}", answered.log());
    let seen = format!("{:?}", asked_of(&model, "a")[0].messages.last().unwrap());
    assert!(seen.contains(OTHER), "{seen}");
    assert_eq!(talk.holder().await, "a");
    assert!(talk.open().await.is_none());
}

/// X15: one request waits behind a handoff, whether it was queued over HTTP or in the conversation.
#[tokio::test]
async fn x_15_one_request_is_queued_per_handoff() {
    let talk = Talk::new(offline()).await;
    for words in [BEGIN, OTHER, "later"] {
        talk.say(words).await;
    }
    let mut request = talk.asking_for("fixer");
    request.on_conflict = OnConflict::Queue;
    let refused = talk.engine.start_handoff(request).await.unwrap_err();
    assert_eq!((refused.code(), refused.to_string().as_str()), ("handoff_active", QUESTION));
}

/// X15: a request that was queued over HTTP is not lost when the user switches to another agent meanwhile.
#[tokio::test]
async fn x_15_queued_request_waits_behind_the_switch() {
    let setup = offline().with("third", |agent| agent.accepts_handoff = Some(AcceptsHandoff::default()));
    let talk = Talk::new(setup).await;
    talk.say(BEGIN).await;
    let mut request = talk.asking_for("third");
    request.on_conflict = OnConflict::Queue;
    assert!(matches!(talk.engine.start_handoff(request).await.unwrap(), HandoffStarted::Queued));
    for words in [OTHER, "no"] {
        talk.say(words).await;
    }
    talk.rest().await;
    assert_eq!(talk.holder().await, "fixer");
    talk.say("cancel").await;
    talk.rest().await;
    assert_eq!(talk.holder().await, "third");
}

/// Asked whether to finish first, the user asks for an agent once more: that is a no.
#[tokio::test]
async fn c_13_insisting_switches() {
    let talk = Talk::new(offline()).await;
    for words in [BEGIN, OTHER, "Connect me with the Debugging Assistant"] {
        talk.say(words).await;
    }
    assert_eq!(talk.holder().await, "fixer");
}
