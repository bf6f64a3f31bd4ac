//! The worked example of seed 001, in the person's words: a skill that summarizes Notion pages.

use serde_json::json;

use super::person::Person;
use super::walk::asked;
use super::{CONNECTING, project};
use crate::served::Served;

#[test]
fn k_7_c_25_notion_example_word_for_word() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = ada.say("I want to create a skill that summarizes Notion pages");
    assert!(begun.is_well(), "{:?}", begun.events);
    assert_eq!(begun.sentences(), [CONNECTING], "C-19");
    assert!(
        begun.said().contains("I'm here to help you create a skill that summarizes Notion pages."),
        "{}",
        begun.said()
    );
    assert_eq!(begun.states(), ["gathering_requirements"], "K7");
    let second = ada.say("I want to summarize my project pages. Bullet points would be great.");
    assert!(second.is_well(), "{:?}", second.events);
    assert_eq!(second.states(), ["gathering_requirements"], "K7: progress accompanies the reply");
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
}
