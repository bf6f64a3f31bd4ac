//! Journey 4: somebody leaves in the middle, and comes back.

use serde_json::{Value, json};

use super::person::Person;
use super::walk::{all_asked, answer, asked, slack_alert};
use super::{ACTIVE, LATER, LEFT, WISH, project, skill};
use crate::served::Served;

const NAME: &str = "Slack Alert";

/// J4.1: in the middle of it, with the name as the open question.
fn in_the_middle(person: &Person) {
    let begun = person.say(WISH).said();
    let (answered, last) = answer(person, &slack_alert(NAME), begun, "name");
    assert_eq!((answered.as_slice(), asked(&last)), (["steps", "format"].as_slice(), Some("name")), "J4.1");
    assert_eq!(person.context()["is_handoff_active"], true, "J4.1");
}

/// J4.3 and J4.6: what is kept. Returns the id that it is gone on with.
fn kept(person: &Person) -> String {
    let context = person.at_rest();
    assert_eq!(
        (&context["is_handoff_active"], &context["current_active_agent"]),
        (&json!(false), &json!("assistant")),
        "J4.4"
    );
    let kept = &context["resumable_handoffs"][0];
    assert_eq!(
        (&kept["agent"], &kept["state"]),
        (&json!("skill-creator"), &json!("cancelled")),
        "J4.3: {context}"
    );
    assert_eq!(kept["progress"]["step"], 1, "J4.3: {kept}");
    assert_eq!(
        kept["message"], "Welcome back! Would you like to continue creating your Slack alert skill?",
        "J4.6, K9"
    );
    let (status, none) = person.ask("GET", &person.path("/handoff"), &Value::Null);
    assert_eq!((status, &none["code"]), (409, &json!("no_active_handoff")), "J4.4");
    kept["handoff_id"].as_str().unwrap().to_owned()
}

/// J4.6: it goes on with the question that was open, and is done.
fn goes_on(dir: &std::path::Path, person: &Person, words: String) {
    assert_eq!(asked(&words), Some("name"), "J4.6: exactly where it was: {words}");
    assert!(words.contains("- Purpose: sends Slack alerts"), "J4.6: nothing is lost: {words}");
    let (answered, last) = answer(person, &slack_alert(NAME), words, "");
    assert_eq!(answered, ["name", "triggers", "non_triggers", "yes"], "J4.6: nothing is asked twice");
    assert!(last.ends_with(ACTIVE), "J4.6: {last}");
    let written = skill(dir, "default", "slack-alert").expect("J4.6: it is saved");
    assert!(written.contains("1. Read the report.") && written.contains("one message"), "J4.6: {written}");
    let count = |wanted| all_asked(person).iter().filter(|key| **key == wanted).count();
    assert_eq!((count("purpose"), count("steps"), count("format")), (0, 1, 1), "J4.6");
    assert_eq!(person.context()["resumable_handoffs"], json!([]), "J4.6: there is nothing left");
}

#[test]
fn j4_a_word_leaves_and_the_api_goes_on() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    in_the_middle(&ada);
    let left = ada.say("cancel");
    assert!(left.is_well(), "J4.2: {:?}", left.events);
    assert_eq!(left.phases(), ["cancelled"], "J4.2");
    assert_eq!(left.sentences(), [LEFT], "J4.4");
    assert_eq!(left.texts(), [("Assistant".to_owned(), LATER.to_owned())], "J4.5");
    assert_eq!(left.holder()["id"], "assistant", "J4.4");
    let id = kept(&ada);

    let meanwhile = ada.say("How do I configure rate limiting?");
    assert_eq!(meanwhile.speakers(), ["Assistant"], "J4.5: it is itself again");
    let (status, resumed) = ada.ask("POST", &ada.path("/handoff/resume"), &json!({ "handoff_id": id }));
    assert_eq!(status, 200, "J4.6: {resumed}");
    let turn = ada.run(resumed["run_id"].as_str().unwrap(), "");
    assert_eq!(turn.phases(), ["active"], "J4.6");
    assert!(turn.sentences()[0].starts_with("Welcome back!"), "J4.6: {:?}", turn.sentences());
    assert_eq!(turn.holder()["exitable"], true, "J4.6");
    goes_on(dir.path(), &ada, turn.said());
}

#[test]
fn j4_the_button_leaves_and_a_word_goes_on() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    in_the_middle(&ada);
    let (status, returned) = ada.ask("DELETE", &ada.path("/handoff"), &Value::Null);
    assert_eq!((status, &returned["completion_status"]), (200, &json!("cancelled")), "J4.2: {returned}");
    assert_eq!(returned["message"], LEFT, "J4.4");
    kept(&ada);
    assert_eq!(ada.last_words(), LATER, "J4.5");
    let turn = ada.say("continue");
    assert!(turn.is_well(), "J4.6: {:?}", turn.events);
    assert!(turn.sentences()[0].starts_with("Welcome back!"), "J4.6: {:?}", turn.sentences());
    assert_eq!(turn.speakers(), ["Skill Creation Assistant"], "J4.6");
    goes_on(dir.path(), &ada, turn.said());
}
