//! Kill -9 of the server in each state of the workflow: nothing is asked twice, nothing is lost, and the skill is the same.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::model::Model;
use super::person::Person;
use super::walk::{all_asked, answer, slack_alert};
use super::{WISH, project, skill};
use crate::served::Served;

const STATES: [&str; 5] =
    ["gathering_requirements", "defining_triggers", "generating_skill", "testing", "complete"];

fn name(state: &str) -> String {
    let at = STATES.iter().position(|one| *one == state).unwrap();
    format!("Slack Alert {}", ["Anna", "Bert", "Carl", "Dora", "Emil"][at])
}

fn kill(mut served: Served) {
    served.child.kill().unwrap();
    served.child.wait().unwrap();
}

/// What was saved, but for its name.
fn written(dir: &Path, name: &str) -> String {
    let folder = name.to_lowercase().replace(' ', "-");
    let text = skill(dir, "default", &folder).unwrap_or_else(|| panic!("{name} is not saved"));
    text.replace(name, "NAME").replace(&folder, "NAME")
}

fn is_asked_once(person: &Person, state: &str) {
    let mut keys = all_asked(person);
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{state}: asked twice: {keys:?}");
}

fn messages_of_the_person(person: &Person) -> Vec<String> {
    person.history().into_iter().filter(|(who, _)| who == "user").map(|(_, text)| text).collect()
}

/// The server dies as soon as it has said that it is in the state.
#[test]
fn c_1_d_killed_in_each_state_without_a_model() {
    // Which answer leads there.
    const BY: [&str; 5] = ["", "name", "non_triggers", "non_triggers", "yes"];
    let dir = project("");
    let mut served = Served::start(dir.path());
    let whole = Person::new(&served);
    answer(&whole, &slack_alert("Slack Alert"), whole.say(WISH).said(), "");
    let expected = written(dir.path(), "Slack Alert");
    for (state, by) in STATES.into_iter().zip(BY) {
        let name = name(state);
        let answers = slack_alert(&name);
        let ada = Person::new(&served);
        let mark = format!("\"state\":\"{state}\"");
        if by.is_empty() {
            ada.say_until(WISH, &mark);
        } else {
            answer(&ada, &answers, ada.say(WISH).said(), by);
            ada.say_until(answers[by], &mark);
        }
        kill(served);
        served = Served::start(dir.path());
        let ada = ada.at(&served);
        ada.at_rest();
        let (_, last) = answer(&ada, &answers, ada.last_words(), "");
        assert!(last.ends_with(&format!("Great, your '{name}' skill is now active.")), "{state}: {last}");
        assert_eq!(written(dir.path(), &name), expected, "{state}: the skill is the same");
        is_asked_once(&ada, state);
        let said = messages_of_the_person(&ada);
        assert_eq!(
            said.len(),
            messages_of_the_person(&whole.at(&served)).len(),
            "{state}: said twice: {said:?}"
        );
    }
}

const DETAILS: &str = "Do this: read the report, then write the alert. I want it as a message. Call it";
const WORDS: &str = "People say alert the team on Slack. Not when they say summarize a channel.";

/// The provider has begun its answer in the state, and does not go on with it.
#[test]
fn c_1_d_killed_in_each_state_in_the_middle_of_an_answer() {
    let model = Model::start(Duration::ZERO);
    let dir = project(&model.config);
    let mut served = Served::start(dir.path());
    let whole = Person::new(&served);
    for said in [WISH, &format!("{DETAILS} Slack Alert."), WORDS, "yes"] {
        assert!(whole.say(said).is_well());
    }
    let expected = written(dir.path(), "Slack Alert");
    for state in STATES {
        let name = name(state);
        let said = [WISH.to_owned(), format!("{DETAILS} {name}."), WORDS.to_owned(), "yes".to_owned()];
        let mut ada = Person::new(&served);
        // Nobody is asked for anything there: the next state follows by itself.
        let mark = (state == "generating_skill").then(|| format!("\"state\":\"{state}\""));
        if mark.is_none() {
            model.hang_in(state);
        }
        let mut is_killed = false;
        for (at, said) in said.iter().enumerate() {
            match &mark {
                Some(mark) if at == 2 => ada.say_until(said, mark),
                _ if !is_cut(&ada, said, &model) => continue,
                _ => {}
            }
            kill(served);
            served = Served::start(dir.path());
            ada = ada.at(&served);
            stands(&ada.at_rest(), state);
            is_killed = true;
        }
        assert!(is_killed, "{state}: it was never met");
        assert_eq!(ada.last_words(), super::ACTIVE, "{state}: the main agent has the last word");
        assert_eq!(written(dir.path(), &name), expected, "{state}: the skill is the same");
        is_asked_once(&ada, state);
        assert_eq!(messages_of_the_person(&ada), said, "{state}: each message once");
        let half = ada.history().into_iter().find(|(_, text)| text.contains("I was about to"));
        assert_eq!(half, None, "{state}: what was cut is gone");
    }
}

/// Says it, and returns when it is answered, or when the answer does not go on.
fn is_cut(person: &Person, said: &str, model: &Model) -> bool {
    let (person, said) = (person.clone(), said.to_owned());
    let turn = std::thread::spawn(move || person.try_say(&said));
    loop {
        if model.is_hung() {
            return true;
        }
        if turn.is_finished() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// It went on by itself as far as it could.
fn stands(context: &Value, state: &str) {
    match state {
        "complete" => assert_eq!(context["is_handoff_active"], false, "{context}"),
        "generating_skill" => assert_eq!(context["progress"]["state"], "testing", "{context}"),
        _ => assert_eq!(context["progress"]["state"], state, "{context}"),
    }
}
