//! Broken files give every error with a place and a way out; files of other tools load.

use std::collections::BTreeSet;

use baton_agents::Rule;
use baton_core::choice::Choice as _;
use serde_json::Value;

use crate::{baton, fixtures};

/// Rules about folders and configuration rather than about a file; tested in `commands.rs` and `hostile_files.rs`.
const NOT_ABOUT_ONE_FILE: &[Rule] = &[
    Rule::Unreadable,
    Rule::TooLarge,
    Rule::NoAgents,
    Rule::UnknownMain,
    Rule::InvalidTenant,
    Rule::InvalidMcp,
    Rule::TooManyProblems,
];

#[test]
fn every_broken_file_is_explained() {
    let ran = baton(&fixtures(), &["validate", "broken"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    insta::assert_snapshot!("broken", ran.stdout);
}

#[test]
fn e12_every_rule_has_a_broken_file_and_every_problem_a_place_and_a_way_out() {
    let ran = baton(&fixtures(), &["validate", "broken", "foreign/claude-code", "--format", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let problems = report["problems"].as_array().unwrap();
    let broken: BTreeSet<&str> = problems.iter().map(|problem| problem["rule"].as_str().unwrap()).collect();
    let expected: BTreeSet<&str> = Rule::ALL
        .iter()
        .filter(|(_, rule)| !NOT_ABOUT_ONE_FILE.contains(rule))
        .map(|(word, _)| *word)
        .collect();
    assert_eq!(broken, expected);
    for problem in problems {
        assert!(problem["file"].as_str().is_some_and(|file| file.contains(".md")), "{problem}");
        assert!(problem["line"].as_u64() >= Some(1) && problem["column"].as_u64() >= Some(1), "{problem}");
        assert!(problem["help"].as_str().is_some_and(|help| help.len() > 5), "{problem}");
    }
    let errors = problems.iter().filter(|problem| problem["severity"] == "error").count();
    assert_eq!(report["errors"], errors);
}

/// A secret in a file is reported without being repeated, in any format.
#[test]
fn a_secret_never_reaches_the_output() {
    for format in ["text", "json", "sarif"] {
        let ran = baton(&fixtures(), &["validate", "broken", "--format", format]);
        assert!(ran.stdout.contains("literal-secret"), "{format}");
        assert!(!ran.stdout.contains("sk-live") && !ran.stderr.contains("sk-live"), "{format}");
    }
}

#[test]
fn a_single_file_is_checked_within_its_roster() {
    let ran = baton(&fixtures(), &["validate", "broken/unknown-agent.md"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stdout.contains("did you mean `good`?") && ran.stdout.ends_with("1 file checked: 3 errors\n"),
        "{}",
        ran.stdout
    );
    let ran = baton(&fixtures(), &["validate", "broken/good.md"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1 file checked: no problems\n"));
}

/// A mistake that two files make together is shown for either.
#[test]
fn a_single_file_shows_what_it_has_part_in() {
    for file in ["cycle-a.md", "cycle-b.md", "cycle-c.md"] {
        let ran = baton(&fixtures(), &["validate", &format!("broken/{file}")]);
        assert!(ran.stdout.contains("error[cycle]"), "{file}: {}", ran.stdout);
    }
    for file in ["duplicate-1.md", "duplicate-2.md"] {
        let ran = baton(&fixtures(), &["validate", &format!("broken/{file}")]);
        assert!(ran.stdout.contains("error[duplicate-name]"), "{file}: {}", ran.stdout);
    }
}

fn foreign(tool: &str) -> (String, Value) {
    let ran = baton(&fixtures(), &["validate", &format!("foreign/{tool}")]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let list =
        baton(&fixtures(), &["agents", "list", "--agents", &format!("foreign/{tool}"), "--format", "json"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    (ran.stdout, serde_json::from_str(&list.stdout).unwrap())
}

#[test]
fn claude_code_files_load() {
    let (report, agents) = foreign("claude-code");
    insta::assert_snapshot!("claude-code", report);
    let reviewer = &agents[0];
    assert_eq!(
        reviewer["tools"]["allow"],
        serde_json::json!(["read_file", "list_files", "shell", "mcp:github/get_pull_request"])
    );
    assert_eq!(reviewer["tools"]["deny"], serde_json::json!(["write_file"]));
    assert_eq!(reviewer["agents"], serde_json::json!(["test-writer"]));
    assert_eq!(reviewer["limits"]["max_turns"], 12);
    assert_eq!(reviewer["effort"], "high");
    assert_eq!(agents[1]["tools"]["read_only"], true);
}

#[test]
fn vs_code_files_load_with_their_buttons() {
    let (report, agents) = foreign("vscode");
    insta::assert_snapshot!("vscode", report);
    let planner = &agents[1];
    assert_eq!(
        (planner["name"].as_str(), planner["display_name"].as_str()),
        (Some("planner"), Some("Release Planner"))
    );
    let button = serde_json::json!({"label": "Ask for a second opinion", "agent": "second-opinion", "prompt": "What is missing from this plan?", "send": true});
    assert_eq!(planner["handoffs"][1], button);
    assert_eq!(planner["tools"]["allow"], serde_json::json!(["web_fetch", "mcp:github/*"]));
}

#[test]
fn gemini_cli_files_load() {
    let (report, agents) = foreign("gemini");
    insta::assert_snapshot!("gemini", report);
    let analyst = &agents[0];
    assert_eq!(analyst["limits"]["timeout"], "15m");
    assert_eq!(analyst["limits"]["max_turns"], 20);
    assert_eq!(analyst["tools"]["allow"], serde_json::json!(["read_file", "shell", "mcp:logs/query"]));
    assert_eq!(agents[1]["kind"], "remote");
    assert_eq!(
        agents[1]["auth"],
        serde_json::json!({"type": "api_key", "header": "X-Partner-Key", "key": "PARTNER_KEY"})
    );
}

#[test]
fn opencode_files_load() {
    let (report, agents) = foreign("opencode");
    insta::assert_snapshot!("opencode", report);
    let writer = &agents[0];
    assert_eq!(writer["tools"]["allow"], serde_json::json!(["write_file"]));
    assert_eq!(writer["tools"]["deny"], serde_json::json!(["shell"]));
    assert_eq!(
        writer["approvals"],
        serde_json::json!({"ask": ["write_file", "shell"], "deny": [], "auto": ["web_fetch"]})
    );
    assert_eq!(
        (writer["badge"]["color"].as_str(), writer["badge"]["hidden"].as_bool()),
        (Some("#38A3EE"), Some(true))
    );
}

#[test]
fn cursor_files_load() {
    let (report, agents) = foreign("cursor");
    insta::assert_snapshot!("cursor", report);
    assert_eq!(agents[0]["tools"]["read_only"], true);
}
