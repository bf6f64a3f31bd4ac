//! Who may make a skill, and who sees it.

use std::path::Path;

use serde_json::{Value, json};

use super::person::Person;
use super::walk::{answer, slack_alert};
use super::{ACTIVE, WISH, project, skill};
use crate::baton;
use crate::served::Served;

/// A new key of somebody.
pub(super) fn key(dir: &Path, tenant: &str, user: &str, role: &str) -> String {
    let made = baton(dir, &["keys", "create", "--tenant", tenant, "--user", user, "--role", role]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    made.stdout.trim().to_owned()
}

fn skills(person: &Person) -> Vec<Value> {
    let listed = person.get("/api/v1/skills");
    listed["data"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect()
}

fn prompt(person: &Person) -> String {
    person.get(&format!("/api/v1/agents/assistant/prompt?thread_id={}", person.thread)).to_string()
}

#[test]
fn h_6_a20_x16_a_skill_is_its_tenants_and_needs_a_right() {
    let dir = project("[auth]\nmode = \"required\"\n");
    let person =
        |served: &Served, tenant, user, role| Person::with_key(served, &key(dir.path(), tenant, user, role));
    let served = Served::start(dir.path());
    let ada = person(&served, "acme", "ada", "builder");
    let bob = person(&served, "globex", "bob", "builder");
    let carl = person(&served, "acme", "carl", "user");

    let make = |person: &Person| answer(person, &slack_alert("Slack Alert"), person.say(WISH).said(), "").1;
    assert!(make(&ada).ends_with(ACTIVE));
    bob.say("Hello");
    assert_eq!((skills(&ada), skills(&bob)), (vec![json!("slack-alert")], vec![]), "each tenant its own");
    assert_eq!(skills(&carl), ["slack-alert"], "it is for all people of the tenant");
    let (status, problem) = bob.ask("GET", "/api/v1/skills/slack-alert", &Value::Null);
    assert_eq!(status, 404, "{problem}");
    assert!(
        prompt(&ada).contains("- slack-alert: ") && !prompt(&bob).contains("slack-alert"),
        "{}",
        prompt(&bob)
    );
    let used = bob.say("Please send a Slack alert to the team about the report").said();
    assert!(!used.contains("I use the skill"), "{used}");
    assert!(make(&bob).ends_with(ACTIVE), "the same name is free for others");
    for tenant in ["acme", "globex"] {
        assert!(skill(dir.path(), tenant, "slack-alert").is_some(), "{tenant}");
    }

    foreign([&bob, &carl], &ada);
    refused(&carl);
}

/// A20: somebody else's thread is not there, in the same tenant and in another one.
fn foreign(others: [&Person; 2], ada: &Person) {
    for other in others {
        for (method, below) in
            [("GET", ""), ("GET", "/messages"), ("GET", "/handoff"), ("DELETE", "/handoff")]
        {
            let (status, problem) = other.ask(method, &ada.path(below), &Value::Null);
            assert_eq!(
                (status, &problem["code"]),
                (404, &json!("thread_not_found")),
                "A20: {method} {below}"
            );
            let told = problem["detail"].as_str().unwrap();
            assert!(told.contains("start a new conversation"), "A20: {method} {below}: {told}");
        }
    }
    let [_, carl] = others;
    let (status, problem) = carl.ask("POST", &ada.path("/messages"), &json!({ "content": "Hello" }));
    assert_eq!((status, &problem["code"]), (404, &json!("thread_not_found")), "A20: {problem}");
    assert!(problem["detail"].as_str().unwrap().contains("start a new conversation"), "A20: {problem}");
}

/// X16: the right to make skills is asked for at every door.
fn refused(carl: &Person) {
    let turn = carl.say(WISH);
    assert!(turn.is_well(), "{:?}", turn.events);
    let sentence = "I cannot connect you: this needs the permission `skill:create`, which you do not have.";
    assert!(turn.said().starts_with(sentence), "X16: {}", turn.said());
    assert_eq!(
        (turn.phases(), turn.speakers()),
        (vec![], vec!["Assistant".to_owned()]),
        "X16: nobody takes over"
    );
    let wanted = json!({ "target_agent_id": "skill-creator", "handoff_reason": "a skill is wanted" });
    let (status, problem) = carl.ask("POST", &carl.path("/handoff"), &wanted);
    assert_eq!((status, &problem["permission"]), (403, &json!("skill:create")), "X16: {problem}");
    assert!(problem["detail"].as_str().unwrap().contains("skill:create"), "X16: {problem}");
    assert_eq!(carl.context()["is_handoff_active"], false, "X16");
}
