//! `baton skills`, and skills in a run of the command.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::baton;

fn skill(folder: &Path, description: &str) {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    fs::create_dir_all(folder).unwrap();
    let text = format!(
        "---\nname: {name}\ndescription: {description}\n---\n\n# Title\n\n## Steps\n\n1. Read the report.\n2. Name the service.\n"
    );
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// A project with a shared skill, one of `default` and one of `acme`.
fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("baton.toml"), "").unwrap();
    fs::create_dir(dir.path().join("agents")).unwrap();
    let agent = "---\nname: assistant\ndescription: Helps.\nskills: all\n---\nYou help people.\n";
    fs::write(dir.path().join("agents/assistant.md"), agent).unwrap();
    let skills = dir.path().join(".agents/skills");
    skill(&skills.join("for-all"), "For everybody.");
    for (tenant, name, description) in [
        ("default", "slack-alert", "Writes Slack alerts about incidents."),
        ("acme", "secret-sauce", "Only theirs."),
    ] {
        skill(&dir.path().join("import").join(name), description);
        let path = format!("import/{name}");
        let imported = baton(dir.path(), &["skills", "import", &path, "--tenant", tenant]);
        assert_eq!(imported.code, 0, "{}", imported.stderr);
    }
    fs::remove_dir_all(dir.path().join("import")).unwrap();
    dir
}

#[test]
fn skills_are_listed_and_shown() {
    let dir = project();
    let listed = baton(dir.path(), &["skills", "list"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines[1].starts_with("for-all") && lines[1].contains("shared"), "{}", listed.stdout);
    assert!(lines[2].starts_with("slack-alert") && lines[2].contains("created"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("secret"), "{}", listed.stdout);
    let json_list: Value =
        serde_json::from_str(&baton(dir.path(), &["skills", "list", "--tenant", "acme", "--json"]).stdout)
            .unwrap();
    let names: Vec<&Value> = json_list["data"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!("for-all"), &json!("secret-sauce")]);
    let shown = baton(dir.path(), &["skills", "show", "slack-alert"]);
    assert!(shown.stdout.starts_with("---\nname: slack-alert\n"), "{}", shown.stdout);
    assert!(shown.stderr.contains("created by the people of the tenant `default`"), "{}", shown.stderr);
    let shown: Value =
        serde_json::from_str(&baton(dir.path(), &["skills", "show", "for-all", "--json"]).stdout).unwrap();
    assert_eq!((&shown["origin"], &shown["description"]), (&json!("shared"), &json!("For everybody.")));
    for name in ["secret-sauce", "../x", "nothing"] {
        let none = baton(dir.path(), &["skills", "show", name]);
        assert_eq!((none.code, none.stdout.as_str()), (1, ""));
        assert!(none.stderr.contains(&format!("there is no skill `{name}`")), "{}", none.stderr);
    }
    let empty = tempfile::tempdir().unwrap();
    let none = baton(empty.path(), &["skills", "list"]);
    assert_eq!(none.code, 0);
    assert!(none.stderr.contains("There are no skills yet"), "{}", none.stderr);
}

#[test]
fn a_created_skill_is_exported_imported_and_deleted() {
    let dir = project();
    let run = |args: &[&str]| baton(dir.path(), &[&["skills"], args].concat());
    let exported = run(&["export", "slack-alert", "out"]);
    assert_eq!(
        (exported.code, exported.stdout.as_str()),
        (0, "out/slack-alert/SKILL.md\n"),
        "{}",
        exported.stderr
    );
    let shown: Value = serde_json::from_str(&run(&["show", "slack-alert", "--json"]).stdout).unwrap();
    let file = fs::read_to_string(dir.path().join("out/slack-alert/SKILL.md")).unwrap();
    assert_eq!(shown["text"], json!(file));
    assert_eq!(run(&["validate", "out/slack-alert"]).code, 0);
    assert_eq!(run(&["export", "slack-alert", "out"]).code, 0, "the same again");
    fs::write(dir.path().join("out/slack-alert/SKILL.md"), "changed").unwrap();
    assert_eq!(run(&["export", "slack-alert", "out"]).code, 1, "nothing is overwritten");
    let foreign = run(&["export", "secret-sauce", "out"]);
    assert!(foreign.code == 1 && foreign.stderr.contains("no skill `secret-sauce`"), "{}", foreign.stderr);

    assert_eq!(run(&["import", "out/slack-alert", "--tenant", "acme"]).code, 3, "it breaks the rules");
    fs::write(dir.path().join("out/slack-alert/SKILL.md"), &file).unwrap();
    assert_eq!(run(&["import", "out/slack-alert", "--tenant", "acme"]).code, 0);
    let again = run(&["import", "out/slack-alert/SKILL.md", "--tenant", "acme"]);
    assert!(again.stdout.ends_with("which had it before\n"), "{}{}", again.stdout, again.stderr);

    assert_eq!(run(&["delete", "slack-alert"]).code, 0);
    let none = run(&["delete", "slack-alert"]);
    assert!(none.code == 1 && none.stderr.contains("no skill `slack-alert`"), "{}", none.stderr);
    assert_eq!(run(&["show", "slack-alert", "--tenant", "acme"]).code, 0, "that of another tenant stays");
    let shared = run(&["delete", "for-all"]);
    assert!(shared.code == 1 && shared.stderr.contains("shared skill"), "{}", shared.stderr);
    let trail = baton(dir.path(), &["audit", "--action", "skill.delete", "--json"]).stdout;
    let trail: Value = serde_json::from_str(&trail).unwrap();
    assert_eq!(trail["data"][0]["detail"], json!({ "skill": "slack-alert" }), "{trail}");
}

#[test]
fn folders_are_checked_with_exit_0_or_3() {
    let dir = tempfile::tempdir().unwrap();
    skill(&dir.path().join("good"), "Does.");
    skill(&dir.path().join("other"), "Does.");
    fs::rename(dir.path().join("other"), dir.path().join("bad")).unwrap();
    let good = baton(dir.path(), &["skills", "validate", "good", "good/SKILL.md"]);
    assert_eq!((good.code, good.stdout.as_str()), (0, "good: valid\ngood/SKILL.md: valid\n"));
    let inside = baton(&dir.path().join("good"), &["skills", "validate", "."]);
    assert_eq!(inside.code, 0, "{}", inside.stdout);
    let bad = baton(dir.path(), &["skills", "validate", "good", "bad", "missing"]);
    assert_eq!(bad.code, 3);
    assert!(
        bad.stdout.starts_with(
            "good: valid\nbad: not valid\n  error[folder]: the folder is called `bad` and the skill `other`"
        ),
        "{}",
        bad.stdout
    );
    assert!(bad.stdout.contains("missing: not valid\n  error[file]: "), "{}", bad.stdout);
    let report: Value =
        serde_json::from_str(&baton(dir.path(), &["skills", "validate", "bad", "--json"]).stdout).unwrap();
    assert_eq!((&report[0]["valid"], &report[0]["problems"][0]["rule"]), (&json!(false), &json!("folder")));
    assert_eq!(baton(dir.path(), &["skills", "validate"]).code, 2);
}

/// The offline model reads what the engine writes into the prompt.
#[test]
fn an_agent_without_a_model_uses_the_skill_that_fits() {
    let dir = project();
    let ran = baton(dir.path(), &["run", "Write a Slack alert about the incident"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let steps =
        "I use the skill `slack-alert` for this. Its steps:\n\n1. Read the report.\n2. Name the service.";
    assert!(ran.stdout.starts_with(steps), "{}", ran.stdout);
    let prompt = baton(dir.path(), &["agents", "prompt", "assistant"]);
    assert!(
        prompt.stdout.contains("- slack-alert: \"Writes Slack alerts about incidents.\""),
        "{}",
        prompt.stdout
    );
    assert!(
        prompt.stdout.contains("load_skill") && !prompt.stdout.contains("secret-sauce"),
        "{}",
        prompt.stdout
    );
    // One that comes a moment later is there.
    skill(&dir.path().join(".agents/skills/haiku-writer"), "Writes haiku about rain.");
    let ran = baton(dir.path(), &["run", "Write a haiku about rain"]);
    assert!(ran.stdout.starts_with("I use the skill `haiku-writer`"), "{}", ran.stdout);
}
