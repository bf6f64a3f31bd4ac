//! Skills that fit are loaded, and their steps told.

use serde_json::json;

use super::{NOTICE, Turn};

const SKILLS: &str = "\n\n## Skills\n\nEach line is the name of a skill and more.\n\n- slack-alert: \"Turns an incident report into a \
                      short alert. Examples: “write a slack alert”.\"\n- trip-plan: \"Plans trips: \\\"trains\\\" and hotels.\"\n";

fn turn(question: &str) -> Turn {
    Turn::of(&format!("You help people. Be brief.{SKILLS}"), question).tool(
        "load_skill",
        "Loads.",
        &json!({}),
    )
}

#[test]
fn a_skill_that_clearly_fits_is_loaded() {
    for (question, skill) in [
        ("Please write a Slack alert about the incident.", "slack-alert"),
        ("Plan a trip with trains.", "trip-plan"),
        ("Use the slack-alert skill", "slack-alert"),
    ] {
        assert_eq!(turn(question).calls(), ("load_skill".to_owned(), json!({ "name": skill })), "{question}");
    }
    for question in
        ["Hello!", "What is a short memory?", "Write me a poem about the sea, the sun and an alert crab"]
    {
        let said = turn(question).says();
        assert!(
            !said.contains("incident") && !said.contains("Each line"),
            "the list is no knowledge: {said}"
        );
    }
    let without = Turn::of(&format!("You help.{SKILLS}"), "Write a slack alert about the incident.");
    assert!(without.says().contains("You help."), "who cannot load skills does not");
}

#[test]
fn the_steps_of_a_skill_are_told_with_its_name() {
    let loaded = "The skill `slack-alert`. Follow it.\n\n# Slack Alert\n\nIntro.\n\n## Steps\n\n1. Read the report.\n2. Say who is on \
                  it.\n\n## Result\n\nOne message.\n\n## Example\n\nOther.";
    let asked = turn("Write a slack alert about the incident.");
    let said = asked.done("load_skill", &json!({ "name": "slack-alert" }), loaded, false).says();
    let steps = "I use the skill `slack-alert` for this. Its steps:\n\n1. Read the report.\n2. Say who is on it.\n\nOne message.";
    assert!(said.starts_with(steps) && said.contains(NOTICE), "{said}");
    let asked = turn("Write a slack alert about the incident.");
    let said = asked.done("load_skill", &json!({ "name": "slack-alert" }), "it is gone", true).says();
    assert!(!said.contains("I use the skill"), "{said}");
}
