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
    Rule::UnmaskedRefused,
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

/// Braces, statements that are never closed, a bracket at the column of its key: all as in the file.
#[test]
fn the_body_of_a_foreign_file_reaches_the_model_as_it_is() {
    let args = ["agents", "prompt", "ui-builder", "--agents", "foreign/claude-code"];
    let ran = baton(&fixtures(), &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for text in [
        "for {{title}} in",
        "style={{ padding: 8 }}",
        "{{ user.name }}",
        "`{% block body %}` is never closed",
    ] {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
}

/// One broken file of another program disables no other agent, unless the configuration says so.
#[test]
fn a_broken_foreign_file_is_skipped_or_refuses_as_configured() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
    write("agents/assistant.md", "---\ndescription: Helps.\nlimits: {}\n---\nHelp.\n");
    write("agents/odd.md", "---\ndescription: x\ntools: Read\ntemperature: hot\n---\nx\n");
    write("baton.toml", "");
    let validate = || baton(dir.path(), &["validate"]);
    let ran = validate();
    assert!(ran.code == 0 && ran.stdout.contains("warning[skipped-file]"), "{} {}", ran.stdout, ran.stderr);
    let ran = baton(dir.path(), &["run", "hello"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(baton(dir.path(), &["validate", "--strict"]).code, 3);
    write("baton.toml", "[agents]\non_error = \"refuse\"\n");
    let ran = validate();
    assert!(ran.code == 3 && ran.stdout.contains("error[wrong-type]"), "{} {}", ran.stdout, ran.stderr);
    assert_ne!(baton(dir.path(), &["run", "hello"]).code, 0);
}

/// H2: `sanitize: false` needs the operator's permission where others use the server.
#[test]
fn h2_sanitize_false_is_refused_without_permission() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
    write("agents/assistant.md", "---\ndescription: Helps.\nsanitize: false\n---\nHelp.\n");
    let required = "[auth]\nmode = \"required\"\n";
    for (config, is_masked) in [
        (String::new(), false),
        ("[agents]\nallow_unmasked = []\n".to_owned(), true),
        (required.to_owned(), true),
        (format!("[agents]\nallow_unmasked = [\"assistant\"]\n{required}"), false),
    ] {
        write("baton.toml", &config);
        let shown = baton(dir.path(), &["agents", "show", "assistant", "--format", "json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(shown["sanitize"], is_masked, "{config}: {shown:#}");
        let report = baton(dir.path(), &["validate"]).stdout;
        assert_eq!(report.contains("warning[unmasked-refused]"), is_masked, "{config}: {report}");
    }
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
