//! Journey 2: a skill is made in a conversation with the agent that makes them.

use serde_json::{Value, json};

use super::person::Person;
use super::turn::Turn;
use super::walk::{all_asked, answer, asked, slack_alert};
use super::{ACTIVE, ANNOUNCED, CONNECTING, MODE, READY, WISH, project, skill};
use crate::served::Served;

/// J2.1 to J2.4.
fn begin(ada: &Person) -> Turn {
    let turn = ada.say(WISH);
    assert!(turn.is_well(), "J2.1: {:?}", turn.events);
    assert_eq!(turn.phases(), ["connecting", "active"], "J2.2: it is handed over");
    assert_eq!(turn.sentences(), [CONNECTING, MODE], "J2.3");
    let creator = json!({
        "id": "skill-creator", "display_name": "Skill Creation Assistant", "color": "orange", "exitable": true, "mode": MODE,
    });
    assert_eq!(turn.holder(), creator, "J2.3: who has the baton, and that they can be left");
    assert_eq!(turn.speakers(), ["Assistant", "Skill Creation Assistant"], "J2.4: they speak themselves");
    assert_eq!(turn.texts()[0].1, ANNOUNCED, "K7");
    assert!(turn.said().contains("create a skill that sends Slack alerts"), "J2.4: {}", turn.said());
    assert!(turn.said().contains("“sends Slack alerts”"), "J2.4: what was said is not asked again");
    assert_eq!(turn.states(), ["gathering_requirements"], "J2.5");
    turn
}

/// J2.5: where it is after each answer.
const WAY: &[(&str, &str, &[&str])] = &[
    ("steps", "Read the report\nWrite the alert\nSend it to the channel", &["gathering_requirements"]),
    ("format", "message", &["gathering_requirements"]),
    ("name", "Slack Alert", &["defining_triggers"]),
    ("triggers", "alert the team on Slack; send a Slack alert", &["defining_triggers"]),
    ("non_triggers", "summarize a Slack channel", &["generating_skill", "testing"]),
];

fn progress(ada: &Person, begun: &Turn) -> Turn {
    let mut last = begun.said();
    for (key, said, states) in WAY {
        assert_eq!(asked(&last), Some(*key), "J2.5: one question at a time: {last}");
        let turn = ada.say(said);
        assert!(turn.is_well(), "J2.5: {key}: {:?}", turn.events);
        assert_eq!(turn.states(), *states, "J2.5: after {key}");
        assert_eq!(turn.speakers(), ["Skill Creation Assistant"], "J2.4: {key}");
        assert_eq!(turn.holder()["exitable"], true, "J2.4: {key}");
        assert_eq!(turn.holder()["mode"], MODE, "K7: {key}");
        last = turn.said();
    }
    assert!(last.contains("```markdown\n---\nname: slack-alert\n"), "J2.5: the draft is shown: {last}");
    assert!(last.contains("✓"), "J2.5: it is tried: {last}");
    assert_eq!(asked(&last), Some("yes"), "J2.5: it is asked for");
    ada.say("yes")
}

/// I3: a skill is created in a conversation, step by step.
#[test]
fn j2_a_skill_is_made_saved_and_active() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = begin(&ada);
    let context = ada.context();
    assert_eq!(context["handoff_target_agent"], "skill-creator", "J2.4: {context}");
    assert_eq!(
        context["progress"],
        json!({
            "state": "gathering_requirements", "label": "Gathering requirements", "step": 1, "total": 5,
            "answered": 1, "questions": 6, "mode": MODE, "text": "Gathering requirements - 1/6 answers",
        }),
        "J2.5"
    );
    let saved = || skill(dir.path(), "default", "slack-alert");
    assert_eq!(saved(), None, "J2.5: nothing is saved unasked");
    let done = progress(&ada, &begun);
    assert!(done.is_well(), "J2.5: {:?}", done.events);
    assert_eq!(done.states(), ["complete"], "J2.5");
    let written = saved().expect("J2.5: it is in the store");
    assert!(written.starts_with("---\nname: slack-alert\ndescription: "), "J2.5: {written}");
    assert!(written.contains("1. Read the report.\n2. Write the alert."), "J2.5: {written}");
    let listed = ada.get("/api/v1/skills");
    assert_eq!(listed["data"][0]["name"], "slack-alert", "J2.5: {listed}");
    assert_eq!(done.sentences(), [READY], "J2.6");
    assert_eq!(done.phases(), ["returning", "completed"], "J2.6");
    let texts = done.texts();
    assert_eq!(texts.last().unwrap(), &("Assistant".to_owned(), ACTIVE.to_owned()), "J2.7: {texts:?}");
    assert_eq!(
        done.holder(),
        json!({ "id": "assistant", "display_name": "Assistant", "color": "blue", "exitable": false }),
        "J2.7"
    );
    is_used(&ada);
    let history = ada.history();
    assert_eq!(history.iter().filter(|(who, _)| who == "user").count(), 8, "all of it is kept: {history:?}");
}

/// The main agent really has it.
fn is_used(ada: &Person) {
    let prompt = ada.get(&format!("/api/v1/agents/assistant/prompt?thread_id={}", ada.thread));
    assert!(prompt.to_string().contains("- slack-alert: "), "J2.7: the main agent is told of it: {prompt}");
    let context = ada.context();
    assert_eq!((&context["is_handoff_active"], &context["resumable_handoffs"]), (&json!(false), &json!([])));
    let used = ada.say("Please send a Slack alert to the team about the report");
    assert!(used.said().starts_with("I use the skill `slack-alert` for this."), "J2.7: {}", used.said());
    assert_eq!(used.speakers(), ["Assistant"], "J2.7");
}

/// The same name once more: it is refused with a proposal, and the answer is not asked for again.
#[test]
fn j2_5_a_name_that_is_taken_is_asked_for_once_more_and_nothing_else() {
    let dir = project("");
    let served = Served::start(dir.path());
    for (name, folder) in [("Slack Alert", "slack-alert"), ("Slack Alert", "slack-alert-2")] {
        let ada = Person::new(&served);
        let begun = ada.say(WISH).said();
        let (_, last) = answer(&ada, &slack_alert(name), begun, "");
        if folder == "slack-alert-2" {
            assert!(last.contains("Say “ok” to take “slack-alert-2”"), "{last}");
            let (answered, _) = answer(&ada, &slack_alert(name), ada.say("ok").said(), "");
            assert_eq!(answered, ["yes"]);
        }
        assert!(skill(dir.path(), "default", folder).is_some(), "{folder}: {last}");
        let mut keys = all_asked(&ada);
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "asked twice: {keys:?}");
    }
    let names: Vec<Value> = Person::new(&served).get("/api/v1/skills")["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["slack-alert", "slack-alert-2"]);
}
