//! I13: what may go wrong on the way, and what the person hears then.

use std::time::Duration;

use serde_json::{Value, json};

use super::person::Person;
use super::walk::{answer, asked, slack_alert};
use super::{OCCUPIED, QUESTION, UNAVAILABLE, WISH, edit, project};
use crate::served::Served;

/// Nobody listens there.
const DEAD: &str = "[models.providers.local]\nbase_url = \"http://127.0.0.1:1/v1\"\n";

/// B13, C-13: the knowledge agent is down; two handoffs at once.
#[test]
fn b_13_c_13_i13_a_colleague_who_is_down_and_two_handoffs_at_once() {
    let dir = project(DEAD);
    edit(&dir, "knowledge", "name: knowledge\n", "name: knowledge\nmodel: local/m\n");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let turn = ada.say(QUESTION);
    assert!(turn.is_well(), "B13: {:?}", turn.events);
    assert_eq!(turn.of_type("SUBAGENT_ERROR").count(), 1, "B13: {:?}", turn.events);
    let limited = "I'm working with limited resources right now, but here's what I know";
    assert!(turn.said().starts_with(limited), "B13: {}", turn.said());
    assert!(!turn.said().contains("127.0.0.1"), "B13: inner workings stay inside: {}", turn.said());

    ada.say(WISH);
    let wanted = json!({ "target_agent_id": "debugger", "handoff_reason": "it keeps crashing" });
    let (status, problem) = ada.ask("POST", &ada.path("/handoff"), &wanted);
    assert_eq!((status, &problem["code"]), (409, &json!("handoff_active")), "C-13: {problem}");
    assert_eq!(problem["detail"], OCCUPIED, "C-13");
    let named = json!({ "content": "It keeps crashing", "agent": "debugger" });
    let (status, problem) = ada.ask("POST", &ada.path("/messages"), &named);
    assert_eq!((status, &problem["detail"]), (409, &json!(OCCUPIED)), "C-13: {problem}");
    let held = ada.get(&ada.path("/handoff"));
    assert_eq!(held["target_agent_id"], "skill-creator", "C-13: it is untouched");
    assert_eq!(asked(&ada.last_words()), Some("steps"), "C-13: and goes on where it was");

    let stranger = Person::new(&served);
    let (status, problem) = stranger.ask("GET", &stranger.path(""), &Value::Null);
    assert_eq!((status, &problem["code"]), (404, &json!("thread_not_found")), "A20");
    assert!(problem["detail"].as_str().unwrap().contains("start a new conversation"), "A20: {problem}");
}

/// C-14: whoever should take over is down.
#[test]
fn c_14_i13_the_maker_of_skills_is_down() {
    let dir = project(DEAD);
    edit(&dir, "skill-creator", "name: skill-creator\n", "name: skill-creator\nmodel: local/m\n");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let turn = ada.say(WISH);
    assert!(turn.is_well(), "C-14: {:?}", turn.events);
    assert_eq!(turn.phases().last(), Some(&"error"), "C-14");
    assert_eq!(turn.sentences().last(), Some(&UNAVAILABLE), "C-14");
    assert_eq!(
        (turn.speakers(), &turn.holder()["id"]),
        (vec!["Assistant".to_owned(); 2], &json!("assistant")),
        "C-14"
    );
    assert!(turn.said().contains(UNAVAILABLE), "C-14: {}", turn.said());
    let context = ada.context();
    assert_eq!(context["is_handoff_active"], false, "C-14: {context}");
    let next = ada.say("How do I configure rate limiting?");
    assert!(next.is_well() && next.said().contains("requests_per_minute"), "C-14: it helps: {}", next.said());
}

/// C-15: the person closes the browser, and comes back after the session has ended.
#[test]
fn c_15_i13_whoever_comes_back_is_asked_and_goes_on() {
    let dir = project("");
    edit(&dir, "skill-creator", "max_session: 1h", "max_session: 3s");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let answers = slack_alert("Slack Alert");
    let (_, last) = answer(&ada, &answers, ada.say(WISH).said(), "triggers");
    assert_eq!(asked(&last), Some("triggers"), "{last}");
    std::thread::sleep(Duration::from_millis(3100));
    let context = ada.context();
    assert_eq!(context["is_handoff_active"], false, "C-15: {context}");
    let kept = &context["resumable_handoffs"][0];
    let question = "Welcome back! Would you like to continue creating your 'Slack Alert' skill?";
    assert_eq!(
        (&kept["message"], &kept["progress"]["step"]),
        (&json!(question), &json!(2)),
        "C-15: {context}"
    );
    let back = ada.say("Hello");
    assert_eq!(back.texts(), [("Assistant".to_owned(), question.to_owned())], "C-15");
    let resumed = ada.say("yes");
    assert_eq!(resumed.speakers(), ["Skill Creation Assistant"], "C-15: {:?}", resumed.events);
    assert_eq!(asked(&resumed.said()), Some("triggers"), "C-15: exactly where it was: {}", resumed.said());
    assert!(resumed.said().contains("- Name: Slack Alert"), "C-15: nothing is lost: {}", resumed.said());
}
