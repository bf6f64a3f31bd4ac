//! K2: an agent is created in a conversation with the agent that creates them, without a model and with one.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::Model;
use super::person::Person;
use super::project;
use super::tenants::key;
use crate::baton;
use crate::postgres;
use crate::served::{LONG, Served};

const WISH: &str = "I want to create an agent that answers questions about rate limits";
/// Added to the name of an agent, one for each state.
const SUFFIXES: [&str; 7] = ["Anna", "Bert", "Carl", "Dora", "Emil", "Fritz", "Gerd"];
const STATES: [&str; 7] = [
    "gathering_requirements",
    "collecting_examples",
    "drafting",
    "validating",
    "trying_out",
    "reviewing",
    "complete",
];

/// What is asked for, and how the question is recognised.
const QUESTIONS: &[(&str, &str)] = &[
    ("instructions", "How should it work?"),
    ("tools", "Which tools may it use?"),
    ("collaborators", "Which other agents may it ask?"),
    ("name", "What shall we call it?"),
    ("examples", "What would people say to it?"),
    ("yes", "Save and activate this agent?"),
];

type Answers<'a> = [(&'a str, &'a str); 6];

fn limit_helper(name: &str) -> Answers<'_> {
    [
        ("instructions", "Name the setting; give an example"),
        ("tools", "search_docs"),
        ("collaborators", "knowledge"),
        ("name", name),
        (
            "examples",
            "How do I configure rate limiting for my agent?; What is the status of a refused request?",
        ),
        ("yes", "yes"),
    ]
}

/// What a text asks for: it is in its last paragraph.
fn asked(text: &str) -> Option<&'static str> {
    let last = text.trim().rsplit("\n\n").next()?;
    QUESTIONS.iter().find(|(_, question)| last.contains(question)).map(|(key, _)| *key)
}

/// Answers from `text` on until nothing is asked any more, or until what `before` names is asked. Returns the last text.
fn answer(person: &Person, answers: &Answers<'_>, text: String, before: &str) -> String {
    let (mut text, mut count) = (text, 0);
    while let Some(key) = asked(&text).filter(|key| *key != before) {
        let said = answers.iter().find(|(known, _)| *known == key).map(|(_, said)| *said).unwrap();
        let turn = person.say(said);
        assert!(turn.is_well(), "{key}: {:?}", turn.events);
        text = turn.said();
        count += 1;
        assert!(count < 20, "it does not end: {text}");
    }
    text
}

fn create(person: &Person, name: &str) -> String {
    answer(person, &limit_helper(name), person.say(WISH).said(), "")
}

fn agents(person: &Person) -> Vec<String> {
    let listed = person.get("/api/v1/agents?all=true");
    listed["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// The definition of an agent of the local tenant as another process sees it.
fn shown(dir: &Path, name: &str) -> Option<Value> {
    let shown = baton(dir, &["agents", "show", name, "--format", "json"]);
    serde_json::from_str(&shown.stdout).ok()
}

fn kill(mut served: Served) {
    served.child.kill().unwrap();
    served.child.wait().unwrap();
}

/// J0d: agents build agents. The whole conversation: one question at a time, the draft, the check, the trial with its cost, the difference, the yes.
#[test]
fn k2_agent_is_created_and_active_at_once() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = ada.say(WISH);
    assert!(begun.is_well(), "{:?}", begun.events);
    assert_eq!(
        begun.sentences(),
        ["Connecting you with Agent Creation Assistant...", "[Agent Creation Mode]"]
    );
    assert_eq!(begun.states(), ["gathering_requirements"]);
    assert!(begun.said().contains("“answers questions about rate limits”"), "{}", begun.said());
    let answers = limit_helper("Limit Helper");
    let last = answer(&ada, &answers, begun.said(), "examples");
    assert_eq!(asked(&last), Some("examples"), "{last}");
    let ready = ada.say(answers[4].1);
    assert_eq!(ready.states(), ["drafting", "validating", "trying_out", "reviewing"]);
    let text = ready.said();
    let draft = "```markdown\n---\nname: limit-helper\ndisplay_name: \"Limit Helper\"\n";
    assert!(
        text.contains(draft) && text.contains("tools: [search_docs]\nagents: [knowledge]\n---\n"),
        "{text}"
    );
    assert!(text.contains("`limit-helper` keeps the rules of agent files."), "{text}");
    assert!(
        text.contains("Tried `limit-helper` on 2 examples") && text.contains("requests_per_minute"),
        "{text}"
    );
    assert!(
        text.contains("is a new agent. Saving adds:\n\n```diff\n+ ---\n+ name: limit-helper\n"),
        "{text}"
    );
    assert_eq!(asked(&text), Some("yes"), "{text}");
    let run = ada.get(&format!("/api/v1/runs/{}", ready.run_id()));
    assert!(run.to_string().contains("limit-helper"), "the trial is in the ledger: {run}");
    assert!(!agents(&ada).contains(&"limit-helper".to_owned()), "nothing is saved before the yes");

    let done = ada.say("yes");
    assert!(done.is_well(), "{:?}", done.events);
    assert_eq!(done.states(), ["complete"]);
    assert_eq!(done.sentences(), ["Your agent is ready! Returning you to the main assistant."]);
    assert_eq!(done.texts().last().unwrap().1, "Great, your 'Limit Helper' agent is now active.");
    is_active(&ada, dir.path());
    kill(served);
    let served = Served::start(dir.path());
    is_active(&ada.at(&served), dir.path());
    deleted(&ada.at(&served), dir.path());
}

/// It is listed and shown like the others, and answers.
fn is_active(ada: &Person, dir: &Path) {
    assert!(agents(ada).contains(&"limit-helper".to_owned()), "{:?}", agents(ada));
    let detail = ada.get("/api/v1/agents/limit-helper");
    assert_eq!(detail["display_name"], "Limit Helper", "{detail}");
    let other = ada.in_thread(&uuid::Uuid::new_v4().to_string());
    let answered = other.say_to("limit-helper", "How do I configure rate limiting for my agent?");
    assert!(answered.is_well() && answered.said().contains("requests_per_minute"), "{:?}", answered.texts());
    assert_eq!(answered.speakers(), ["Limit Helper"]);
    let listed = baton(dir, &["agents", "list"]);
    assert!(listed.stdout.contains("limit-helper"), "{} {}", listed.stdout, listed.stderr);
    assert_eq!(shown(dir, "limit-helper").unwrap()["agents"], json!(["knowledge"]));
}

fn deleted(ada: &Person, dir: &Path) {
    let file = baton(dir, &["agents", "delete", "knowledge"]);
    assert!(file.code != 0 && file.stderr.contains("agent of a file"), "{}", file.stderr);
    let gone = baton(dir, &["agents", "delete", "limit-helper"]);
    assert_eq!(gone.code, 0, "{}", gone.stderr);
    let deadline = Instant::now() + LONG;
    while agents(ada).contains(&"limit-helper".to_owned()) {
        assert!(Instant::now() < deadline, "the server still has it");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(ada.ask("GET", "/api/v1/agents/limit-helper", &Value::Null).0, 404);
    let trail = baton(dir, &["audit", "export"]);
    for action in ["agent.save", "agent.delete"] {
        assert_eq!(trail.stdout.matches(&format!("\"{action}\"")).count(), 1, "{action}: {}", trail.stdout);
    }
}

/// The line, the column and the message, and the question for the value that is wrong. Everything else is kept.
#[test]
fn k2_failed_check_returns_to_the_state_that_can_correct_it() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let mut answers = limit_helper("Limit Helper");
    answers[1].1 = "serch_docs";
    let last = answer(&ada, &answers, ada.say(WISH).said(), "examples");
    assert_eq!(asked(&last), Some("examples"), "{last}");
    let wrong = ada.say(answers[4].1);
    assert_eq!(wrong.states(), ["drafting", "validating", "gathering_requirements"], "{}", wrong.said());
    assert!(wrong.said().contains("line 5, column 9: "), "{}", wrong.said());
    assert!(
        wrong.said().contains("`serch_docs`") && wrong.said().contains("[unknown-tool]"),
        "{}",
        wrong.said()
    );
    assert!(wrong.said().contains("What should the tools be instead?"), "{}", wrong.said());
    let wrong = ada.say("python");
    assert!(
        wrong.said().contains("line 5, column 9: no other agent has the tool `python`"),
        "{}",
        wrong.said()
    );
    let right = ada.say("tools: search_docs");
    assert_eq!(asked(&right.said()), Some("yes"), "{}", right.said());
    let taken = ada.say("name: Knowledge");
    assert!(taken.said().contains("`knowledge` is an agent of a file"), "{}", taken.said());
    let other = ada.say("ok");
    assert_eq!(asked(&other.said()), Some("yes"), "{}", other.said());
    assert!(ada.say("yes").is_well());
    assert!(agents(&ada).contains(&"knowledge-2".to_owned()), "{:?}", agents(&ada));
    assert_eq!(ada.get("/api/v1/agents/knowledge")["display_name"], "Knowledge", "the file's agent stays");
}

/// The same name again is a change: the difference to the saved agent is shown.
#[test]
fn k2_change_shows_the_difference_to_the_saved_agent() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    create(&ada, "Limit Helper");
    let again = Person::new(&served);
    let mut answers = limit_helper("Limit Helper");
    answers[2].1 = "none";
    let text = answer(&again, &answers, again.say(WISH).said(), "yes");
    assert!(text.contains("Saving changes the agent `limit-helper`:"), "{text}");
    assert!(text.contains("\n- agents: [knowledge]\n"), "{text}");
    again.say("yes");
    assert_eq!(shown(dir.path(), "limit-helper").unwrap()["agents"], json!([]));
}

/// A created agent is its tenant's, needs `agent:write`, and the same name is free for others.
#[test]
fn k2_created_agent_belongs_to_its_tenant_and_needs_a_permission() {
    let dir = project("[auth]\nmode = \"required\"\n");
    let served = Served::start(dir.path());
    let person = |tenant, user, role| Person::with_key(&served, &key(dir.path(), tenant, user, role));
    let (ada, bob, carl) = (
        person("acme", "ada", "builder"),
        person("globex", "bob", "builder"),
        person("acme", "carl", "user"),
    );
    let refused = carl.say(WISH);
    let sentence = "I cannot connect you: this needs the permission `agent:write`, which you do not have.";
    assert!(refused.is_well() && refused.said().starts_with(sentence), "{}", refused.said());
    assert_eq!(carl.context()["is_handoff_active"], false);

    create(&ada, "Limit Helper");
    for (who, count) in [(&ada, 1), (&carl, 1), (&bob, 0)] {
        let found = agents(who).iter().filter(|name| *name == "limit-helper").count();
        assert_eq!(found, count, "{:?}", agents(who));
    }
    let question = "How do I configure rate limiting for my agent?";
    assert_eq!(
        carl.in_thread(&uuid::Uuid::new_v4().to_string()).say_to("limit-helper", question).speakers(),
        ["Limit Helper"]
    );
    let body = json!({ "content": question, "agent": "limit-helper" });
    let (status, problem) = bob.ask("POST", &bob.path("/messages"), &body);
    assert_eq!((status, &problem["code"]), (404, &json!("agent_not_found")), "{problem}");
    assert!(!problem.to_string().contains("did you mean"), "{problem}");
    for path in ["/api/v1/agents/limit-helper", "/api/v1/agents/limit-helper/prompt"] {
        assert_eq!(bob.ask("GET", path, &Value::Null).0, 404, "{path}");
    }
    assert!(!bob.get("/api/v1/graph").to_string().contains("limit-helper"));
    create(&bob, "Limit Helper");
    assert!(agents(&bob).contains(&"limit-helper".to_owned()));
}

/// Another server with the same store has it at once, and can execute its runs.
#[test]
fn k2_created_agent_is_active_on_every_server_of_the_store() {
    active_on_every_server("");
}

#[test]
fn k2_created_agent_is_active_on_every_server_of_the_store_on_postgres() {
    active_on_every_server(&format!("[store]\nurl = \"{}\"\n", postgres::new_span_id()));
}

fn active_on_every_server(config: &str) {
    let dir = project(config);
    let (first, second) = (Served::start(dir.path()), Served::start(dir.path()));
    let ada = Person::new(&first);
    create(&ada, "Limit Helper");
    let there = ada.at(&second).in_thread(&uuid::Uuid::new_v4().to_string());
    let answered = there.say_to("limit-helper", "How do I configure rate limiting for my agent?");
    assert_eq!(answered.speakers(), ["Limit Helper"], "{:?}", answered.texts());
    assert!(agents(&there).contains(&"limit-helper".to_owned()));
    baton(dir.path(), &["agents", "delete", "limit-helper"]);
    let deadline = Instant::now() + LONG;
    let body = json!({ "content": "Hello", "agent": "limit-helper" });
    while there.ask("POST", &there.path("/messages"), &body).0 != 404 {
        assert!(Instant::now() < deadline, "the other server still has it");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The server dies as soon as it has said that it is in the state. The conversation goes on, and the agent is the same.
#[test]
fn k2_killed_in_each_state_of_the_creation() {
    // Which answer leads there.
    const BY: [&str; 7] = ["", "name", "examples", "examples", "examples", "examples", "yes"];
    let dir = project("");
    let mut served = Served::start(dir.path());
    create(&Person::new(&served), "Limit Helper");
    let expected = shown(dir.path(), "limit-helper").unwrap()["prompt"].as_str().unwrap().to_owned();
    for (at, (state, by)) in STATES.into_iter().zip(BY).enumerate() {
        let name = format!("Limit Helper {}", SUFFIXES[at]);
        let answers = limit_helper(&name);
        let ada = Person::new(&served);
        let mark = format!("\"state\":\"{state}\"");
        if by.is_empty() {
            ada.say_until(WISH, &mark);
        } else {
            answer(&ada, &answers, ada.say(WISH).said(), by);
            ada.say_until(answers.iter().find(|(key, _)| *key == by).unwrap().1, &mark);
        }
        kill(served);
        served = Served::start(dir.path());
        let ada = ada.at(&served);
        ada.at_rest();
        let last = answer(&ada, &answers, ada.last_words(), "");
        assert!(last.ends_with(&format!("Great, your '{name}' agent is now active.")), "{state}: {last}");
        let written = shown(dir.path(), &name.to_lowercase().replace(' ', "-")).unwrap();
        assert_eq!(written["prompt"].as_str().unwrap().replace(&name, "Limit Helper"), expected, "{state}");
    }
    assert_eq!(baton(dir.path(), &["audit", "export"]).stdout.matches("\"agent.save\"").count(), 8);
}

/// With a model that does what a good one would. It answers the trial too, and the trial is billed to the draft.
#[test]
fn k2_model_creates_an_agent() {
    let model = Model::start(Duration::ZERO);
    let dir = project(&model.config);
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = ada.say("I want to create an agent that plans trips");
    assert!(begun.is_well(), "{:?}", begun.events);
    assert_eq!(begun.speakers().last().unwrap(), "Agent Creation Assistant");
    assert_eq!(model.heard(), ["assistant", "agent-creator"]);
    let ready = ada.say(
        "Use the tools search_docs and write_file. Call it Trip Planner. People ask how do I get to Rome.",
    );
    assert_eq!(
        ready.states(),
        ["collecting_examples", "drafting", "validating", "trying_out", "reviewing"],
        "{}",
        ready.said()
    );
    assert_eq!(asked(&ready.said()), Some("yes"), "{}", ready.said());
    assert_eq!(model.heard(), ["agent-creator", "created", "agent-creator"], "one real session of the draft");
    let run = ada.get(&format!("/api/v1/runs/{}", ready.run_id())).to_string();
    assert!(run.contains("trip-planner"), "the trial is in the ledger: {run}");
    assert_eq!(model.tools_of_created(), ["search_docs"], "no tool that writes in a trial");
    let done = ada.say("yes");
    assert!(done.is_well() && done.states() == ["complete"], "{:?}", done.events);
    model.heard();
    let other = ada.in_thread(&uuid::Uuid::new_v4().to_string());
    assert_eq!(other.say_to("trip-planner", "How do I get to Rome?").said().trim(), "Take the night train.");
    assert_eq!(model.heard(), ["created"]);
    assert_eq!(model.tools_of_created(), ["search_docs", "write_file"], "saved, it has all its tools");
}

/// The same with a model. Each conversation ends with one agent that has everything that was said.
#[test]
fn k2_model_killed_in_each_state_of_the_creation() {
    let model = Model::start(Duration::ZERO);
    let dir = project(&model.config);
    let mut served = Served::start(dir.path());
    for (at, state) in STATES.into_iter().enumerate() {
        let name = format!("Trip Planner {}", SUFFIXES[at]);
        let details = format!("Use the tools search_docs. Call it {name}. People ask how do I get to Rome.");
        let messages = ["I want to create an agent that plans trips", &details, "yes"];
        // Which message leads there.
        let by = usize::from(at > 0) + usize::from(state == "complete");
        let ada = Person::new(&served);
        for message in &messages[..by] {
            assert!(ada.say(message).is_well(), "{state}: {message}");
        }
        ada.say_until(messages[by], &format!("\"state\":\"{state}\""));
        kill(served);
        served = Served::start(dir.path());
        let ada = ada.at(&served);
        ada.at_rest();
        for message in &messages[by + 1..] {
            let turn = ada.say(message);
            assert!(turn.is_well(), "{state}: {message}: {:?}", turn.events);
        }
        assert_eq!(ada.context()["is_handoff_active"], false, "{state}: {}", ada.last_words());
        let created = shown(dir.path(), &name.to_lowercase().replace(' ', "-")).expect(state);
        assert_eq!(
            (&created["display_name"], &created["tools"]["allow"]),
            (&json!(name), &json!(["search_docs"]))
        );
    }
    assert_eq!(baton(dir.path(), &["audit", "export"]).stdout.matches("\"agent.save\"").count(), 7);
}
