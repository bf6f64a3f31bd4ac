//! `baton agents prompt`: what a model would be told.

use std::path::Path;

use serde_json::Value;

use crate::baton;
use crate::run::project;

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(format!("agents/{name}.md")), text).unwrap();
}

fn told(dir: &Path, args: &[&str]) -> Value {
    let ran = baton(dir, &[&["agents", "prompt"], args, &["--format", "json"]].concat());
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn tools(told: &Value) -> Vec<&str> {
    told["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Two agents that may read and write; sub-agents may only read.
fn two() -> tempfile::TempDir {
    let dir = project("http://127.0.0.1:1", "tools: [read_file, write_file]\nagents: [b]");
    let b = "---\ndescription: Knows the law.\ntools: [read_file, write_file]\n---\nYou are {{ agent.display_name }} for {{ user }}.\n";
    write(dir.path(), "b", b);
    let config = std::fs::read_to_string(dir.path().join("baton.toml")).unwrap();
    let config = config + "[orchestration]\nsub_agent_tool_allowlist = [\"read_*\"]\n";
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

#[test]
fn the_prompt_is_rendered_and_the_tools_are_listed() {
    let dir = two();
    let shown = told(dir.path(), &["b"]);
    assert_eq!(
        (shown["agent"].as_str(), shown["system"].as_str()),
        (Some("b"), Some("You are B for local."))
    );
    assert_eq!(tools(&shown), ["read_file", "write_file"]);
    assert_eq!(shown["tools"][0]["parameters"]["type"], "object");
    let text = baton(dir.path(), &["agents", "prompt", "b"]).stdout;
    assert!(
        text.starts_with("# System prompt\n\nYou are B for local.\n\n# Tools\n\nread_file\n  "),
        "{text}"
    );
    // Looking keeps nothing and asks nobody.
    assert!(!dir.path().join("baton.db").exists());
}

/// X22: what a sub-agent may use is less than what its file says.
#[test]
fn whoever_is_involved_by_another_gets_what_it_would_get_then() {
    let dir = two();
    assert_eq!(tools(&told(dir.path(), &["b", "--from", "a"])), ["read_file"]);
    let transferred = told(dir.path(), &["b", "--from", "a", "--via", "transfer"]);
    assert_eq!(tools(&transferred), ["read_file", "write_file"]);
    let again = baton(dir.path(), &["agents", "prompt", "a", "--from", "a"]);
    assert_eq!((again.code, again.stdout.as_str()), (1, ""));
    assert!(again.stderr.contains("already active above"), "{}", again.stderr);
}

/// X33: the message is the one of a run, in the form that the project asks for.
#[test]
fn the_message_is_what_the_receiver_would_get() {
    let dir = two();
    assert_eq!(told(dir.path(), &["b", "--from", "a", "--message", " Why? "])["message"], "Why?");
    let message = |extra: &str| {
        let config = std::fs::read_to_string(dir.path().join("baton.toml")).unwrap();
        std::fs::write(dir.path().join("baton.toml"), config + extra).unwrap();
        let shown = told(dir.path(), &["b", "--from", "a", "--via", "transfer", "--message", "Why?"]);
        shown["message"].as_str().unwrap().to_owned()
    };
    let fenced = message("");
    assert!(fenced.contains("## ORIGINAL USER REQUEST\n\nWhy?\n<<<end "), "{fenced}");
    assert!(fenced.contains("[what a gives as its reason]"), "{fenced}");
    let tags = message("enrich_format = \"tags\"\n");
    assert!(tags.contains("\nWhy?\n</request-") && !tags.contains("<<<"), "{tags}");
}

/// A coordinator is asked after each round and in the end, with other tools.
#[test]
fn a_coordinator_is_shown_in_both_of_its_parts() {
    let dir = project("http://127.0.0.1:1", "tools: [read_file]\nteam: { members: [b, c] }");
    for name in ["b", "c"] {
        write(dir.path(), name, "---\ndescription: Knows the law.\n---\nHelp.\n");
    }
    let shown = told(dir.path(), &["a"]);
    assert_eq!(tools(&shown), ["read_file"]);
    assert_eq!(tools(&shown["after_a_round"]), ["conclude_team"]);
    let text = baton(dir.path(), &["agents", "prompt", "a"]).stdout;
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
    let (tools_then, message_then) = ("# Tools after a round", "# Message after a round");
    let (tools_last, message_last) = ("# Tools after the last round", "# Message after the last round");
    assert_eq!(headings, ["# System prompt", tools_then, message_then, tools_last, message_last]);
    let member = told(dir.path(), &["b", "--from", "a", "--via", "member"]);
    assert_eq!(tools(&member), ["broadcast", "vote_conclude"]);
}

#[test]
fn mistakes_are_told_apart() {
    let dir = two();
    let code = |args: &[&str]| baton(dir.path(), &[&["agents", "prompt"], args].concat()).code;
    assert_eq!(code(&["nobody"]), 1);
    assert_eq!(code(&["b", "--via", "call"]), 2);
    assert_eq!(code(&["b", "--from", "a", "--via", "shout"]), 2);
    write(dir.path(), "c", "---\nagents: [nobody]\n---\nHelp.\n");
    assert_eq!(code(&["b"]), 3);
}

/// A server that cannot be reached costs its tools, and that is said.
#[test]
fn tools_that_are_missing_are_said_to_be() {
    let dir = project("http://127.0.0.1:1", "mcp_servers:\n  gone: { command: /does/not/exist }");
    let ran = baton(dir.path(), &["agents", "prompt", "a"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("# Tools\n\n(none)\n\n# Message\n"), "{}", ran.stdout);
    assert!(ran.stderr.contains("no tool of the MCP server `gone`"), "{}", ran.stderr);
}
