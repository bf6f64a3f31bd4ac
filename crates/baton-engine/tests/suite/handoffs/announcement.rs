//! K7: what the user reads when a thread changes hands, in order: the main agent's sentence, the mode of the specialist, its first
//! question; and the progress with every reply.

use baton_core::agent::{Agent, Guard, GuardCheck};
use baton_core::event::{Event, EventKind, HandoffPhase};
use baton_core::message::Visibility;
use baton_core::workflow::WorkflowProgress;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::conflict::{BEGIN, offline};
use super::{Talk, setup};
use crate::transfers::{asked_of, collaborates};
use crate::{Setup, name};

const FIXED: &str = "I'll connect you with our Skill Creation Assistant.";
const OWN: &str = "Let me connect you with our expert for skills.";

/// What the user reads, a line each: texts with their speaker, sentences of the handoff, and progress.
fn read(events: &[Event]) -> Vec<String> {
    let shown = events.iter().filter(|event| event.visibility == Visibility::User);
    let lines = shown.filter_map(|event| match &event.kind {
        EventKind::TextFinished { speaker, text, .. } => Some(format!("{speaker}: {text}")),
        EventKind::Handoff(handoff) if handoff.message.is_empty() => None,
        EventKind::Handoff(handoff) => Some(format!("{} {}", handoff.phase, handoff.message)),
        EventKind::Progress(at) => Some(format!("{} {}/{}", at.label, at.answered, at.questions)),
        _ => None,
    });
    lines.collect()
}

fn transfer(arguments: &Value) -> ScriptedTurn {
    ScriptedTurn::call("transfer_to_maker", arguments)
}

fn model(first: ScriptedTurn) -> Scripted {
    let maker = [ScriptedTurn::text("Hi! What should it do?"), ScriptedTurn::text("And then?")];
    Scripted::default().script("a", [first]).script("maker", maker)
}

fn expected(sentence: &str) -> Vec<String> {
    let lines = [
        &format!("Assistant: {sentence}"),
        "connecting Connecting you with Skill Creation Assistant...",
        "active [Skill Creation Mode]",
        "Gathering 0/1",
        "Skill Creation Assistant: Hi! What should it do?",
    ];
    lines.map(str::to_owned).to_vec()
}

/// K7: the sentence is the model's own, as an argument or as the text of its turn, or else a fixed one. It is said once, and is part
/// of the conversation.
#[tokio::test]
async fn k_7_main_agent_announces_the_specialist_before_it_speaks() {
    let text = ScriptedTurn::text(OWN).and_call("transfer_to_maker", &json!({ "reason": "skills" }));
    let twice = json!({ "reason": "skills", "announcement": "Twice." });
    let both = ScriptedTurn::text(OWN).and_call("transfer_to_maker", &twice);
    for (turn, sentence) in [
        (transfer(&json!({ "reason": "skills", "announcement": OWN })), OWN),
        (transfer(&json!({ "reason": "skills", "announcement": format!("{OWN}\n\nI think so.") })), OWN),
        (text, OWN),
        (both, OWN),
        (transfer(&json!({ "reason": "skills" })), FIXED),
        (transfer(&json!({ "reason": "skills", "announcement": " \n " })), FIXED),
    ] {
        let model = model(turn);
        let talk = Talk::new(setup(&model)).await;
        let ran = talk.say("create a skill").await;
        assert_eq!(read(&ran.events), expected(sentence), "{}", ran.log());
        assert_eq!(ran.answer(), "Hi! What should it do?");
        let said = talk.said().await;
        assert_eq!(
            said[1..],
            [format!("a: {sentence}"), "maker: Hi! What should it do?".to_owned()],
            "{said:?}"
        );
        talk.say("It sends alerts").await;
        let told = format!("{:?}", asked_of(&model, "maker")[1].messages);
        assert!(!told.contains(sentence), "K7: it is not the specialist's sentence: {told}");
        assert!(told.contains("Hi! What should it do?"), "{told}");
    }
}

/// K7: text of a model is bounded, masked by the main agent's rule and checked by its guardrails. What a judge would have to decide on
/// is not shown.
#[tokio::test]
async fn k_7_announcement_is_bounded_masked_and_guarded() {
    let announced = |text: &str| transfer(&json!({ "reason": "skills", "announcement": text }));
    let long = Talk::new(setup(&model(announced(&"x".repeat(5_000))))).await;
    let lines = read(&long.say("create a skill").await.events);
    assert!(lines[0].chars().count() < 330, "{}", lines[0].len());
    let masked = Talk::new(setup(&model(announced("Ask ada@example.com.")))).await;
    let lines = read(&masked.say("create a skill").await.events);
    assert!(lines[0].starts_with("Assistant: Ask ") && !lines[0].contains("ada@"), "{lines:?}");

    let guarded = |check: GuardCheck| {
        let model = Scripted::default()
            .script("a", [announced("The launch code is 1234."), ScriptedTurn::text("I cannot.")])
            .script("maker", [ScriptedTurn::text("Hi! What should it do?")])
            .script("judge", [ScriptedTurn::text("{\"allowed\": true}")]);
        let guard = move |a: &mut Agent| {
            "Assistant".clone_into(&mut a.display_name);
            collaborates(a, &["maker"]);
            a.guardrails.output = vec![Guard { check, message: None }];
        };
        Setup::new(&model).agent(guard).with("maker", super::maker).with("judge", |_| {})
    };
    let denied = Talk::new(guarded(GuardCheck::Deny(vec!["launch code".to_owned()]))).await;
    let lines = read(&denied.say("create a skill").await.events);
    assert_eq!(lines, ["Assistant: I cannot."]);
    let judged = Talk::new(guarded(GuardCheck::Judge(name("judge")))).await;
    let lines = read(&judged.say("create a skill").await.events);
    assert_eq!(lines, expected(FIXED));
}

/// K7: without a language model, and for a handoff that a trigger starts.
#[tokio::test]
async fn k_7_order_is_the_same_without_a_model() {
    let talk = Talk::new(offline()).await;
    let ran = talk.say(BEGIN).await;
    let lines = read(&ran.events);
    assert_eq!(
        lines[..4],
        [
            "Assistant: I'll connect you with our Skill Creation Assistant.",
            "connecting Connecting you with Skill Creation Assistant...",
            "active [Skill Creation Mode]",
            "Gathering 0/4",
        ]
    );
    assert!(lines[4].starts_with("Skill Creation Assistant: Hi! I'm here to help you"), "{lines:?}");
    assert_eq!(lines[5..], ["Gathering 1/4"], "the purpose is known now");
}

/// K7: a handoff that a program starts has no sentence of the main agent, which is not asked; the mode is announced as well.
#[tokio::test]
async fn k_7_handoff_by_a_program_announces_the_mode() {
    let talk = Talk::new(offline()).await;
    talk.say("I have an idea").await;
    talk.engine.start_handoff(talk.asking_for("maker")).await.unwrap();
    talk.rest().await;
    let lines = read(&talk.events().await);
    let at = lines.iter().position(|line| line.starts_with("connecting ")).unwrap();
    assert_eq!(lines[at + 1..at + 3], ["active [Skill Creation Mode]", "Gathering 0/4"], "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("I'll connect you")), "{lines:?}");
}

/// K7: a handoff that failed leaves no sentence, and a thread that was refused is not announced.
#[tokio::test]
async fn k_7_refused_handoff_is_not_announced() {
    let model = Scripted::default().script(
        "a",
        [transfer(&json!({ "reason": "skills", "announcement": OWN })), ScriptedTurn::text("Sorry.")],
    );
    let talk = Talk::new(setup(&model).rights(&["thread:write", "handoff:initiate"])).await;
    let lines = read(&talk.say("create a skill").await.events);
    assert_eq!(lines, ["Assistant: Sorry."]);
}

/// K7: the counts of a workflow go forward with each answer, in any order, and are complete at its end.
#[tokio::test]
async fn k_7_progress_counts_go_forward() {
    let talk = Talk::new(offline()).await;
    let mut counts: Vec<(u32, u32)> = Vec::new();
    for words in [BEGIN, "Read the report, then post it", "back", "table", "steps: Post it", "Slack Alert"] {
        let ran = talk.say(words).await;
        let progress: Vec<&WorkflowProgress> = ran
            .events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Progress(progress) => Some(progress),
                _ => None,
            })
            .collect();
        assert!(!progress.is_empty(), "{words}: {}", ran.log());
        counts.extend(progress.into_iter().map(|at| (at.answered, at.questions)));
    }
    assert!(counts.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{counts:?}");
    assert_eq!((counts[0], *counts.last().unwrap()), ((0, 4), (4, 4)));
    let ended = talk.events().await.iter().any(|event| {
        matches!(&event.kind, EventKind::Handoff(handoff) if handoff.phase == HandoffPhase::Completed)
    });
    assert!(ended);
}
