//! C-13: the person asks for something else while they make a skill. The server dies in each state of it.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::model::Model;
use super::person::Person;
use super::walk::{answer, asked, slack_alert};
use super::{ACTIVE, OCCUPIED, WISH, project};
use crate::served::Served;

const OTHER: &str = "Help me debug my crashing service";

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

#[test]
fn c_13_second_request_killed_in_each_state_without_a_model() {
    let dir = project("");
    let mut served = Served::start(dir.path());
    for reply in ["yes", "no", "later"] {
        let begun = Person::new(&served);
        assert!(begun.say(WISH).is_well());
        let (next, ada) = killed(&dir, served, &begun, OTHER, "finish that first");
        assert_eq!(ada.last_words(), OCCUPIED, "C-13: {reply}");
        assert_eq!(ada.get(&ada.path("/handoff"))["target_agent_id"], "skill-creator", "C-13: {reply}");
        let mark = match reply {
            "yes" => "finish this first",
            "no" => "Connecting you with Debugging Assistant",
            _ => "as soon as we're done here",
        };
        let (next, ada) = killed(&dir, next, &ada, reply, mark);
        served = next;
        let context = ada.context();
        is_clean(&ada);
        match reply {
            "yes" => assert_eq!(asked(&ada.last_words()), Some("steps"), "C-13: {}", ada.last_words()),
            "no" => {
                assert_eq!(context["current_active_agent"], "debugger", "C-13: {context}");
                let left = &context["resumable_handoffs"][0];
                assert_eq!(
                    (&left["agent"], &left["state"]),
                    (&json!("skill-creator"), &json!("cancelled")),
                    "C-13"
                );
            }
            _ => {
                let (_, last) = answer(&ada, &slack_alert("Slack Alert"), ada.last_words(), "");
                assert!(last.contains(ACTIVE), "C-13: {last}");
                let context = ada.at_rest();
                assert_eq!(context["current_active_agent"], "debugger", "C-13: {context}");
            }
        }
    }
}

#[test]
fn c_13_second_request_killed_in_each_state_with_a_model() {
    let model = Model::start(Duration::ZERO);
    let dir = project(&model.config);
    let served = Served::start(dir.path());
    let begun = Person::new(&served);
    assert!(begun.say(WISH).is_well());
    let (served, ada) = killed(&dir, served, &begun, OTHER, "finish that first");
    assert_eq!(ada.last_words(), OCCUPIED, "C-13");
    let (served, ada) = killed(&dir, served, &ada, "yes", "finish this first");
    is_clean(&ada);
    assert_eq!(ada.say(OTHER).said(), OCCUPIED, "C-13");
    let (_served, ada) = killed(&dir, served, &ada, "no", "Connecting you with Debugging Assistant");
    assert_eq!(ada.context()["current_active_agent"], "debugger", "C-13");
    is_clean(&ada);
}
