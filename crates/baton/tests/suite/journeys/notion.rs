//! The worked example of a skill that summarizes Notion pages, in the words of the person, without a model and with one that says what
//! the example says. The server dies in each state of it.

use serde_json::{Value, json};

use super::person::Person;
use super::second_request::killed;
use super::turn::Turn;
use super::walk::asked;
use super::{ANNOUNCED, CONNECTING, MODE, project, skill};
use crate::crash::wire::{self, Answer};
use crate::served::Served;

const WISH: &str = "I want to create a skill that summarizes Notion pages";
const PAGES: &str = "I want to summarize my project pages. Bullet points would be great.";
const CONNECT: &str =
    "I'll connect you with our Skill Creation Assistant who specializes in building custom skills.";
const HI: &str = "Hi! I'm here to help you create a skill for summarizing Notion pages.\n\nLet's start with the basics:\n\
                  1. What specific Notion pages or databases will this skill access?\n\
                  2. How should the summaries be formatted (bullet points, paragraphs, etc.)?";
const GOT_IT: &str = "Got it! Let me gather a bit more information:\n\n\
                      - Should the skill summarize all content or focus on specific sections?\n\
                      - How long should each summary be?";
const DETAILS: &str = "Only the decisions, five lines each. Call it Notion Summary.";
const EXAMPLES: &str = "summarize my Notion pages";
const SAVED: &str = "Great, your 'Notion Summary' skill is now active.";

/// K7: the progress of a reply, which has the mode, too.
fn at(progress: &str) -> String {
    format!("{MODE} {progress}")
}

/// K7, C-20: who says what, in this order, with the mode in between, so that no change of speaker comes without a word.
fn begins_in_order(turn: &Turn, announced: &str) {
    assert!(turn.is_well(), "{:?}", turn.events);
    let texts = turn.texts();
    assert_eq!(texts[0], ("Assistant".to_owned(), announced.to_owned()), "K7");
    assert_eq!(texts[1].0, "Skill Creation Assistant", "K7");
    assert_eq!(turn.sentences(), [CONNECTING, MODE], "C-19, K7");
    let place = |what: &str| turn.events.iter().position(|event| event.to_string().contains(what));
    let order =
        [place(announced), place(CONNECTING), place(MODE), place("\"name\":\"Skill Creation Assistant\"")];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "K7: {order:?}: {:?}", turn.events);
}

#[test]
fn k_7_c_25_notion_example_word_for_word() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = ada.say(WISH);
    begins_in_order(&begun, ANNOUNCED);
    assert!(
        begun.said().contains("I'm here to help you create a skill that summarizes Notion pages."),
        "C-20: it knows what was said to the main agent: {}",
        begun.said()
    );
    assert_eq!(begun.progress(), at("Gathering requirements - 1/6 answers"), "K7");
    let second = ada.say(PAGES);
    assert!(second.is_well(), "{:?}", second.events);
    assert_eq!(
        second.progress(),
        at("Gathering requirements - 3/6 answers"),
        "K7: progress accompanies the reply"
    );
    assert_eq!(second.speakers(), ["Skill Creation Assistant"], "C-1");
    assert_eq!(asked(&second.said()), Some("name"), "{}", second.said());
    let values = &ada.get(&ada.path("/handoff"))["workflow_metadata"]["values"];
    let expected = json!({
        "purpose": "summarizes Notion pages", "steps": "I want to summarize my project pages.", "format": "bullets",
    });
    assert_eq!(*values, expected, "C-25");
    let name = ada.say("yes");
    assert!(name.said().contains("“yes” is not a name"), "C-25: {}", name.said());
    assert_eq!(asked(&name.said()), Some("name"), "C-25: it is asked again: {}", name.said());
    assert_eq!(name.progress(), at("Gathering requirements - 3/6 answers"), "K7: no answer, no progress");
}

/// A model that says what the example says, behind the wire of chat completions.
fn model() -> String {
    let base_url = wire::serve(|request| {
        let messages = request["messages"].as_array()?;
        let text = |message: &Value| match message["content"].as_str() {
            Some(text) => text.to_owned(),
            None => {
                let parts = message["content"].as_array().into_iter().flatten();
                parts.filter_map(|part| part["text"].as_str()).collect()
            }
        };
        let is_main = text(messages.first()?).contains("You are the main assistant");
        let last = messages.last()?;
        // What the engine notes before the person's words has the values, too.
        let told = text(last).rsplit("The message follows.\n").next().unwrap_or_default().to_owned();
        let is_tool = last["role"] == "tool";
        Some(if is_main { main_agent(&told) } else { creator(&told, is_tool) })
    });
    format!(
        "[models]\ndefault = \"local/m\"\n[models.providers.local]\nbase_url = \"{base_url}\"\n\
         [models.providers.local.models.m]\nassists = {{ workflow_values = false, workflow_evidence = false, agent_tools = false, search_first = false }}\n"
    )
}

fn says(text: &str) -> Answer {
    Answer { frames: text.split_inclusive(' ').map(wire::text).collect(), finish: "stop" }
}

fn calls(tool: &str, arguments: Value) -> Answer {
    Answer { frames: vec![wire::calls(&[(tool, "call_1".to_owned(), arguments)])], finish: "tool_calls" }
}

fn main_agent(told: &str) -> Answer {
    if told.contains("The conversation is yours again") {
        return says(SAVED);
    }
    let arguments = json!({
        "reason": "skill_creation_workflow", "announcement": CONNECT, "context": { "purpose": "summarizes Notion pages" },
    });
    calls("transfer_to_skill_creator", arguments)
}

fn creator(told: &str, is_tool: bool) -> Answer {
    let result: Value = if is_tool { serde_json::from_str(told).unwrap_or_default() } else { Value::Null };
    match told {
        _ if result["is_done"] == true => calls(
            "complete_handoff",
            json!({ "result_summary": "The skill is saved.", "artifacts": ["skill:notion-summary"] }),
        ),
        _ if result["state"] == "gathering_requirements" => says(GOT_IT),
        _ if result["state"] == "defining_triggers" => says("What would people say when they want it?"),
        _ if is_tool => says("Save and activate this skill?"),
        _ if told.contains(PAGES) => {
            advance(&json!({ "steps": "Summarize my project pages.", "format": "bullets" }))
        }
        _ if told.contains(DETAILS) => {
            let steps = "Read the project pages.\nSummarize only the decisions, five lines each.";
            advance(&json!({ "steps": steps, "name": "Notion Summary" }))
        }
        _ if told.contains(EXAMPLES) => advance(&json!({ "triggers": EXAMPLES })),
        _ if told.trim() == "yes" => advance(&json!({ "confirmed": true })),
        _ => says(HI),
    }
}

fn advance(values: &Value) -> Answer {
    calls("advance_workflow", json!({ "values": values }))
}

#[test]
fn k_7_notion_example_word_for_word_with_a_model() {
    let dir = project(&model());
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = ada.say(WISH);
    begins_in_order(&begun, CONNECT);
    assert_eq!(begun.texts()[1].1, HI, "K7: then its first question");
    assert_eq!(begun.progress(), at("Gathering requirements - 1/6 answers"), "K7");
    let second = ada.say(PAGES);
    assert_eq!(second.texts(), [("Skill Creation Assistant".to_owned(), GOT_IT.to_owned())], "C-1");
    assert_eq!(second.progress(), at("Gathering requirements - 3/6 answers"), "K7");
    let third = ada.say(DETAILS);
    assert_eq!(third.progress(), at("Defining triggers - 4/6 answers"), "K7");
    let fourth = ada.say(EXAMPLES);
    assert_eq!(
        (fourth.states(), fourth.progress()),
        (vec!["generating_skill", "testing"], at("Testing - 5/6 answers"))
    );
    let done = ada.say("yes");
    assert!(done.said().ends_with(SAVED), "J2.7: {}", done.said());
    assert_eq!(done.progress(), at("Complete - 5/6 answers"), "K7: the near misses were left out");
    let written = skill(dir.path(), "default", "notion-summary").expect("it is saved");
    assert!(written.contains("Summarize only the decisions"), "{written}");
}

/// What is said, and what is in the stream when the server dies.
type Killed = (&'static str, &'static str);

/// Says everything, with a server that dies each time. Returns the conversation.
fn talk_killed(config: &str, said: &[Killed]) -> Vec<(String, String)> {
    let dir = project(config);
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let (served, ada) =
        said.iter().fold((served, ada), |(served, ada), (said, mark)| killed(&dir, served, &ada, said, mark));
    assert!(skill(dir.path(), "default", "notion-summary").is_some(), "it is saved: {:?}", ada.history());
    let history = ada.history();
    drop(served);
    history
}

/// The same without a server that dies.
fn talk(config: &str, said: &[Killed]) -> Vec<(String, String)> {
    let dir = project(config);
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    for (said, _) in said {
        assert!(ada.say(said).is_well(), "{said}");
    }
    ada.history()
}

/// What enters two states: the server dies in each of them.
const TESTED: &[&str] = &["\"state\":\"generating_skill\"", "\"state\":\"testing\""];

/// C-1: whenever the server dies, the conversation is the one that it would have been: each sentence once and in its order.
#[test]
fn k_7_notion_example_killed_in_each_state_with_a_model() {
    for tested in TESTED {
        let said: &[Killed] = &[
            (WISH, MODE),
            (PAGES, "Got "),
            (DETAILS, "\"state\":\"defining_triggers\""),
            (EXAMPLES, tested),
            ("yes", "\"state\":\"complete\""),
        ];
        let history = talk_killed(&model(), said);
        assert_eq!(history, talk(&model(), said), "{tested}");
        assert_eq!(history[1], ("assistant".to_owned(), CONNECT.to_owned()), "K7: {history:?}");
    }
}

#[test]
fn k_7_notion_example_killed_in_each_state_without_a_model() {
    for tested in TESTED {
        let said: &[Killed] = &[
            (WISH, MODE),
            (PAGES, "\"answered\":3"),
            ("Notion Summary", "\"state\":\"defining_triggers\""),
            (EXAMPLES, "\"answered\":5"),
            ("skip", tested),
            ("yes", "\"state\":\"complete\""),
        ];
        let history = talk_killed("", said);
        assert_eq!(history, talk("", said), "{tested}");
        assert_eq!(history[1], ("assistant".to_owned(), ANNOUNCED.to_owned()), "K7: {history:?}");
    }
}
