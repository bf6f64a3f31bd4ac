//! C-13: the person asks for something else while they make a skill. The server dies in each state of it.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::model::Model;
use super::person::Person;
use super::scripted::{FIRST, SECOND};
use super::walk::{answer, asked, slack_alert};
use super::{ACTIVE, OCCUPIED, WISH, project, skill};
use crate::served::Served;

const OTHER: &str = "Help me debug my crashing service";
const CHOICES: &str = "Say “yes” to finish it, “no” to pause it and switch now, or “later” to come to your other request afterwards.";
const QUEUED: &str = "I'll connect you with Debugging Assistant as soon as we're done here.";
const SWITCHED: &str = "Connecting you with Debugging Assistant";
const KEPT: &str = "finish this first";

/// Says it, kills the server as soon as `mark` is in the stream, and returns when the next server has gone on with it.
pub(super) fn killed(
    dir: &TempDir,
    mut served: Served,
    person: &Person,
    said: &str,
    mark: &str,
) -> (Served, Person) {
    person.say_until(said, mark);
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    let served = Served::start(dir.path());
    let person = person.at(&served);
    person.at_rest();
    (served, person)
}

/// No value of the skill's workflow has anything of the other request.
fn is_clean(person: &Person) {
    let held = person.get(&person.path("/handoff"));
    assert!(!held["workflow_metadata"].to_string().contains("crashing service"), "C-13: {held}");
}

/// The replies, and what is in the stream when the server dies.
const REPLIES: &[(&str, &str)] =
    &[("yes", KEPT), ("no", SWITCHED), ("later", QUEUED), ("hmm", "Say “yes” to finish it")];

/// Asks for something else, and replies in each way, with a server that dies each time. `finish` makes the skill up to the last yes.
fn killed_in_each_state(config: &str, finish: fn(&Person)) {
    let dir = project(config);
    let mut served = Served::start(dir.path());
    for (reply, mark) in REPLIES {
        let begun = Person::new(&served);
        assert!(begun.say(WISH).is_well());
        let (next, ada) = killed(&dir, served, &begun, OTHER, "finish that first");
        assert_eq!(ada.last_words(), OCCUPIED, "C-13: {reply}");
        assert_eq!(ada.get(&ada.path("/handoff"))["target_agent_id"], "skill-creator", "C-13: {reply}");
        is_clean(&ada);
        let (next, ada) = killed(&dir, next, &ada, reply, mark);
        is_clean(&ada);
        served = match *reply {
            "yes" => goes_on(next, &ada),
            "no" => is_paused(next, &ada),
            "later" => {
                finish(&ada);
                carried_out(&dir, next, &ada)
            }
            _ => {
                assert_eq!(ada.last_words(), format!("{OCCUPIED} {CHOICES}"), "C-13");
                // A second unclear reply is no request either.
                let (next, ada) = killed(&dir, next, &ada, reply, KEPT);
                is_clean(&ada);
                goes_on(next, &ada)
            }
        };
        let said: Vec<String> = ada.at(&served).history().into_iter().map(|(_, text)| text).collect();
        let count = |text: &str| said.iter().filter(|said| said.contains(text)).count();
        assert_eq!((count(OTHER), count(CHOICES)), (1, usize::from(*reply == "hmm")), "C-13: {said:?}");
    }
}

/// The holder repeats its question.
fn goes_on(served: Served, ada: &Person) -> Served {
    assert_eq!(asked(&ada.last_words()), Some("steps"), "C-13: {}", ada.last_words());
    assert_eq!(ada.context()["current_active_agent"], "skill-creator", "C-13");
    served
}

fn is_paused(served: Served, ada: &Person) -> Served {
    let context = ada.context();
    assert_eq!(context["current_active_agent"], "debugger", "C-13: {context}");
    let left = &context["resumable_handoffs"][0];
    assert_eq!((&left["agent"], &left["state"]), (&json!("skill-creator"), &json!("cancelled")), "C-13");
    served
}

/// The queued request is carried out when the skill is saved. The server dies in between.
fn carried_out(dir: &TempDir, served: Served, ada: &Person) -> Served {
    assert_eq!(asked(&ada.last_words()), Some("yes"), "C-13: {}", ada.last_words());
    let (served, ada) = killed(dir, served, ada, "yes", SWITCHED);
    let context = ada.context();
    assert_eq!(context["current_active_agent"], "debugger", "C-13: {context}");
    assert!(skill(dir.path(), "default", "slack-alert").is_some(), "C-13: it is saved");
    let said = ada.history();
    let count = |words: &str| said.iter().filter(|(_, text)| text.contains(words)).count();
    let introduced = count("I'll connect you with our Debugging Assistant.");
    assert_eq!((count(QUEUED), count(ACTIVE), introduced), (1, 1, 1), "C-13: {said:?}");
    assert!(ada.last_words().contains("What goes wrong?"), "C-13: {said:?}");
    served
}

#[test]
fn c_13_second_request_killed_in_each_state_without_a_model() {
    killed_in_each_state("", |ada| {
        answer(ada, &slack_alert("Slack Alert"), ada.last_words(), "yes");
    });
}

#[test]
fn c_13_second_request_killed_in_each_state_with_a_model() {
    let model = Model::start(Duration::ZERO);
    killed_in_each_state(&model.config, |ada| {
        assert!(ada.say(FIRST).is_well() && ada.say(SECOND).is_well());
    });
}
