//! The journeys with a model that does what a good one would.

use std::time::Duration;

use serde_json::{Value, json};

use super::model::Model;
use super::person::Person;
use super::tenants::key;
use super::walk::asked;
use super::{
    ACTIVE, CONNECTING, LATER, LEFT, MODE, QUESTION, READY, UNAVAILABLE, WISH, edit, project, skill,
};
use crate::served::Served;

pub(super) const FIRST: &str =
    "Do this: read the report, then write the alert. I want it as a message. Call it Slack Alarm.";
pub(super) const SECOND: &str =
    "Sorry, call it Slack Alert. People say alert the team on Slack. Not when they say summarize a channel.";

#[test]
fn j1_a_model_asks_behind_the_scenes_and_answers_alone() {
    let model = Model::start(Duration::from_millis(2200));
    let dir = project(&model.config);
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let turn = ada.say(QUESTION);
    assert!(turn.is_well(), "J1.1: {:?}", turn.events);
    assert_eq!(model.heard(), ["assistant", "knowledge", "knowledge", "assistant"], "J1.2");
    assert_eq!(turn.statuses(), ["Researching…"], "J1.3");
    assert!(turn.place("ACTIVITY_SNAPSHOT") < turn.place("TEXT_MESSAGE_START"), "J1.3: while it waits");
    let traced = ada.run(turn.run_id(), "?detail=trace");
    let hidden = traced.of_type("TEXT_MESSAGE_CONTENT").filter(|event| event.get("subagentRunId").is_some());
    let hidden: String = hidden.filter_map(|event| event["delta"].as_str()).collect();
    assert!(hidden.contains("Rate limiting"), "J1.4: {hidden}");
    assert!(turn.said().contains("```toml\n[limits]"), "J1.5: {}", turn.said());
    assert!(turn.of_type("TEXT_MESSAGE_CONTENT").count() > 3, "J1.6: it is streamed");
    assert_eq!(turn.speakers(), ["Assistant"], "J1.7");
    let said = |who: &str, text: &str| (who.to_owned(), text.trim_end().to_owned());
    let history: Vec<_> = ada.history().iter().map(|(who, text)| said(who, text)).collect();
    assert_eq!(history, [said("user", QUESTION), said("assistant", &turn.said())], "J1.7");
}

/// The main agent's model is asked before and after, and never while somebody else has the thread.
#[test]
fn j2_c_37_a_model_makes_a_skill_and_the_main_agent_spends_nothing() {
    let model = Model::start(Duration::ZERO);
    let dir = project(&model.config);
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = ada.say(WISH);
    assert!(begun.is_well(), "J2.1: {:?}", begun.events);
    assert_eq!(begun.phases(), ["connecting", "active"], "J2.2");
    assert_eq!(begun.sentences(), [CONNECTING, MODE], "J2.3");
    assert_eq!(begun.speakers().last().unwrap(), "Skill Creation Assistant", "J2.4");
    assert_eq!(begun.holder()["exitable"], true, "J2.4");
    assert_eq!(asked(&begun.said()), Some("steps"), "J2.4: the purpose is known: {}", begun.said());
    assert_eq!(begun.states(), ["gathering_requirements"], "J2.5");
    assert_eq!(model.heard(), ["assistant", "skill-creator"], "C-37: one call before");

    let several = ada.say(FIRST);
    assert_eq!(
        (several.states(), asked(&several.said())),
        (vec!["defining_triggers"], Some("triggers")),
        "J2.5"
    );
    let corrected = ada.say(SECOND);
    assert_eq!(corrected.states(), ["generating_skill", "testing"], "J2.5");
    assert_eq!(asked(&corrected.said()), Some("yes"), "J2.5: {}", corrected.said());
    let saved = || skill(dir.path(), "default", "slack-alert");
    assert_eq!(saved(), None, "J2.5: not without a yes");
    assert_eq!(model.heard(), ["skill-creator"; 4], "C-37: nothing of the main agent while it lasts");

    let done = ada.say("yes");
    assert!(done.is_well(), "J2.5: {:?}", done.events);
    assert_eq!(done.states(), ["complete"], "J2.5");
    assert_eq!(done.sentences(), [READY], "J2.6");
    assert_eq!(done.texts().last().unwrap(), &("Assistant".to_owned(), ACTIVE.to_owned()), "J2.7");
    assert_eq!(model.heard(), ["skill-creator", "skill-creator", "assistant"], "C-37: one call after");
    let written = saved().expect("J2.5: saved under the corrected name");
    assert!(written.contains("read the report") && !written.contains("Alarm"), "J2.5: {written}");
    let usage = ada.get(&format!("/api/v1/runs/{}", several.run_id())).to_string();
    assert!(!usage.contains("\"assistant\""), "C-37: nor is anything put on its account: {usage}");
    let prompt = ada.get(&format!("/api/v1/agents/assistant/prompt?thread_id={}", ada.thread)).to_string();
    assert!(prompt.contains("- slack-alert: "), "J2.7: {prompt}");
}

#[test]
fn j4_leaving_asks_no_model_even_while_it_is_busy() {
    let model = Model::start(Duration::ZERO);
    let dir = project(&model.config);
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    ada.say(WISH);
    let half = ada.say("Do this: read the report, then write the alert. I want it as a message.");
    assert_eq!(asked(&half.said()), Some("name"), "J4.1: {}", half.said());
    model.heard();
    let left = ada.say("cancel");
    assert_eq!(left.sentences(), [LEFT], "J4.4");
    assert_eq!(left.texts(), [("Assistant".to_owned(), LATER.to_owned())], "J4.5");
    assert_eq!(model.heard(), [""; 0], "J4.2: no model is asked about that");
    let back = ada.say("continue");
    assert_eq!(asked(&back.said()), Some("name"), "J4.6: {}", back.said());
    assert_eq!(model.heard(), ["skill-creator"], "J4.6");

    // The button, while the holder is in the middle of an answer that never ends.
    model.hang_in("gathering_requirements");
    std::thread::scope(|scope| {
        let cut = scope.spawn(|| ada.say("Hm, let me think."));
        model.until_hung();
        let (status, returned) = ada.ask("DELETE", &ada.path("/handoff"), &Value::Null);
        assert_eq!((status, &returned["message"]), (200, &json!(LEFT)), "J4.2: {returned}");
        let cut = cut.join().unwrap();
        assert_ne!(cut.events.last().unwrap()["type"], "TEXT_MESSAGE_CONTENT", "J4.2: the stream is ended");
    });
    let context = ada.at_rest();
    assert_eq!(ada.last_words(), LATER, "J4.5");
    model.heard();
    let id = context["resumable_handoffs"][0]["handoff_id"].clone();
    let (status, resumed) = ada.ask("POST", &ada.path("/handoff/resume"), &json!({ "handoff_id": id }));
    assert_eq!(status, 200, "J4.6: {resumed}");
    let back = ada.run(resumed["run_id"].as_str().unwrap(), "");
    assert_eq!(asked(&back.said()), Some("name"), "J4.6: {}", back.said());
    let ready = ada.say("Call it Slack Alert. People say alert the team on Slack.");
    assert_eq!(asked(&ready.said()), Some("yes"), "J4.6: {}", ready.said());
    assert_eq!(model.heard(), ["skill-creator"; 3], "C-37");
    assert!(ada.say("yes").said().ends_with(ACTIVE), "J4.6");
    let written = skill(dir.path(), "default", "slack-alert").expect("J4.6");
    assert!(written.contains("read the report"), "J4.6: nothing is lost: {written}");
}

/// C-14, X16: a model that is refused a transfer hears why, and the person from it.
#[test]
fn c_14_x16_a_model_tells_why_nobody_takes_over() {
    let model = Model::start(Duration::ZERO);
    let config =
        "[auth]\nmode = \"required\"\n[models.providers.dead]\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    let dir = project(&(config.to_owned() + &model.config));
    edit(&dir, "skill-creator", "name: skill-creator\n", "name: skill-creator\nmodel: dead/m\n");
    let served = Served::start(dir.path());
    let person = |user, role| Person::with_key(&served, &key(dir.path(), "acme", user, role));
    let (ada, carl) = (person("ada", "builder"), person("carl", "user"));
    let down = ada.say(WISH);
    assert_eq!(down.sentences(), [CONNECTING, MODE, UNAVAILABLE], "C-14");
    assert!(down.said().ends_with(UNAVAILABLE), "C-14: {}", down.said());
    assert_eq!(down.holder()["id"], "assistant", "C-14");
    assert_eq!(model.heard(), ["assistant", "assistant"], "C-14");
    let refused = carl.say(WISH);
    assert!(refused.is_well() && refused.sentences().is_empty(), "X16: {:?}", refused.events);
    assert!(refused.said().contains("You need the permission `skill:create`"), "X16: {}", refused.said());
    assert_eq!(carl.context()["is_handoff_active"], false, "X16");
}
