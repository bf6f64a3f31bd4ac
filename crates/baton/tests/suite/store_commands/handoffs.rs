//! `baton handoff`: who has a conversation, getting it back, going on.

use super::{THREAD, UNKNOWN, json, ok, say};
use crate::baton;
use crate::provider::{Provider, Reply};
use crate::run::project;

const MAKER: &str = "---\ndescription: Makes skills.\ndisplay_name: Skill Creation Assistant\naccepts_handoff:\n  triggers: [create a skill]\n\
    workflow:\n  states:\n    - name: ask_name\n      collect: [{key: name, ask: What is it called?}]\n    - name: write_it\n---\nYou make \
    skills.\n";

/// C-16: the whole way in the terminal: given away, shown, left, and gone on with.
#[test]
fn c_16_a_handoff_is_shown_left_and_resumed() {
    let provider = Provider::start(vec![
        Reply::Call { tool: "transfer_to_maker", arguments: r#"{"reason": "a skill is wanted"}"# },
        Reply::Text(&["What is it called?"]),
        Reply::Text(&["We were at the name."]),
    ]);
    let dir = project(&provider.base_url, "collaborations: [maker]");
    std::fs::write(dir.path().join("agents/maker.md"), MAKER).unwrap();
    assert_eq!(say(dir.path(), "I want a skill").code, 0);
    let shown = json(dir.path(), &["handoff", "show"]);
    assert_eq!((&shown["target_agent_id"], &shown["state"]), (&json!("maker"), &json!("active")));
    assert_eq!((&shown["thread_id"], &shown["progress"]["total"]), (&json!(THREAD), &json!(2)));
    let text = ok(dir.path(), &["handoff", "show", "--thread", &THREAD[..8]]);
    assert!(
        text.contains("Skill Creation Assistant (maker)") && text.contains("step 1 of 2: Ask name"),
        "{text}"
    );
    let thread = ok(dir.path(), &["threads", "show", THREAD]);
    assert!(thread.contains("maker (by a handoff)") && thread.contains("step 1 of 2: Ask name"), "{thread}");

    let left = ok(dir.path(), &["handoff", "exit"]);
    assert!(left.starts_with("No problem! Returning you to "), "{left}");
    let none = baton(dir.path(), &["handoff", "show"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    assert!(none.stderr.starts_with("no handoff is active on this thread\n"), "{}", none.stderr);
    assert!(
        none.stderr.contains("Welcome back! Would you like to continue creating your skill?"),
        "{}",
        none.stderr
    );
    assert_eq!(baton(dir.path(), &["handoff", "exit"]).code, 1);
    let context = json(dir.path(), &["threads", "show", THREAD]);
    assert_eq!(context["resumable_handoffs"][0]["handoff_id"], shown["handoff_id"]);

    let id = shown["handoff_id"].as_str().unwrap();
    let resumed = ok(dir.path(), &["handoff", "resume", &id[..13]]);
    assert!(resumed.contains("We were at the name."), "{resumed}");
    assert_eq!(json(dir.path(), &["handoff", "show"])["handoff_id"], shown["handoff_id"]);
    let again = baton(dir.path(), &["handoff", "resume", id]);
    assert_eq!(again.code, 1, "{}", again.stdout);
    assert!(again.stderr.contains("You're currently in a skill creation session."), "{}", again.stderr);
    let returned = json(dir.path(), &["handoff", "exit", "--thread", THREAD]);
    assert_eq!(
        (&returned["completion_status"], &returned["source_agent_id"]),
        (&json!("cancelled"), &json!("maker"))
    );
    provider.finish();
    let unknown = baton(dir.path(), &["handoff", "show", "--thread", UNKNOWN]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (1, ""));
}

#[test]
fn without_a_store_there_is_no_handoff() {
    let dir = project("http://127.0.0.1:1", "");
    for command in ["show", "exit", "resume"] {
        let ran = baton(dir.path(), &["handoff", command]);
        assert_eq!((ran.code, ran.stderr.as_str()), (1, "nothing was kept yet\n"), "{command}");
    }
    assert!(!dir.path().join("baton.db").exists());
}
