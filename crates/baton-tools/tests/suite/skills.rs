//! From what a person says to a skill that agents can use.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use baton_core::agent::SkillName;
use baton_core::{CallContext, TenantId, Tool, ToolError};
use baton_tools::save_skill::SaveSkill;
use baton_tools::skills::Severity;
use baton_tools::validate_skill::ValidateSkill;
use baton_tools::write_skill::WriteSkill;
use baton_tools::{Skills, Strictness, validate};
use serde_json::{Value, json};

use crate::{call, context};

fn slack_alert() -> Value {
    json!({
        "name": "Slack Alert",
        "purpose": "Turns an incident report into a short alert for the on-call channel",
        "steps": "Read the report\nName the affected service and since when\nSay who is on it",
        "format": "message",
        "triggers": ["write a slack alert", "alert the on-call channel about this incident"],
        "non_triggers": "close the incident; who is on call?",
    })
}

async fn by_name(tool: &dyn Tool, name: &str) -> Result<String, ToolError> {
    call(tool, json!({"name": name}), Path::new("/")).await
}

fn name(text: &str) -> SkillName {
    SkillName::parse(text).unwrap()
}

#[tokio::test]
async fn a_skill_is_written_checked_and_saved() {
    let dir = tempfile::tempdir().unwrap();
    let skills = Skills::new(dir.path());
    let text = call(&WriteSkill::new(skills.clone()), slack_alert(), Path::new("/")).await.unwrap();
    insta::assert_snapshot!(text, @r#"
    Draft of the skill `slack-alert`, not saved yet. Check it with validate_skill.

    ---
    name: slack-alert
    description: "Turns an incident report into a short alert for the on-call channel. Use when the person asks for Slack Alert. Examples: “write a slack alert”, “alert the on-call channel about this incident”."
    metadata:
      baton.triggers: "write a slack alert; alert the on-call channel about this incident"
      baton.non_triggers: "close the incident; who is on call?"
    ---

    # Slack Alert

    Turns an incident report into a short alert for the on-call channel.

    ## When to use it

    Use it for requests such as:

    - write a slack alert
    - alert the on-call channel about this incident

    Leave these alone; they want something else:

    - close the incident
    - who is on call?

    ## Steps

    1. Read the report.
    2. Name the affected service and since when.
    3. Say who is on it.

    ## Result

    Give the result as one message that can be sent as it is.

    ## Example

    Request: write a slack alert

    Begin with step 1 (Read the report), go through the steps in order, and give only the result.

    ## When something is missing

    Ask one short question for what the steps need and the request does not say. Do not guess about anything that sends, deletes, pays or publishes.
    "#);
    assert!(skills.list().is_empty(), "a draft is not a skill");
    let report = by_name(&ValidateSkill::new(skills.clone()), "Slack Alert").await.unwrap();
    insta::assert_snapshot!(report, @r#"
    `slack-alert` is valid.
    - trigger “write a slack alert”, 100 % of its words known: good
    - trigger “alert the on-call channel about this incident”, 100 % of its words known: good
    - near miss “close the incident”, 50 % of its words known: warning: near it; only “close” tells it apart
    - near miss “who is on call?”, 100 % of its words known: warning: no word tells it from what the skill is for
    "#);
    let save = SaveSkill::new(skills.clone());
    assert_eq!(
        by_name(&save, "slack-alert").await.unwrap(),
        "Saved the skill `slack-alert`. It can be used from now on."
    );
    assert_eq!(
        by_name(&save, "Slack Alert").await.unwrap(),
        "The skill `slack-alert` was saved before. It can be used."
    );
    let listed = skills.list();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].path, dir.path().join("slack-alert/SKILL.md"));
    assert!(listed[0].description.starts_with("Turns an incident report"));
    assert!(skills.read(&name("slack-alert")).unwrap().contains("# Slack Alert"));
    assert!(skills.read(&name("other")).is_err());
    assert_eq!(validate(&dir.path().join("slack-alert"), Strictness::Strict), []);
}

#[tokio::test]
async fn names_in_use_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let skills = Skills::new(dir.path());
    let write = WriteSkill::new(skills.clone());
    call(&write, slack_alert(), Path::new("/")).await.unwrap();
    by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
    let error = call(&write, slack_alert(), Path::new("/")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid arguments: there is already a skill `slack-alert`; choose another name, such as `slack-alert-2`"
    );
    // Another tenant was drafting the same name meanwhile.
    let other = Arc::new(CallContext { tenant: TenantId::parse("../x").unwrap(), ..context(Path::new("/")) });
    let draft = dir.path().join(".drafts/%2e%2e%2fx/slack-alert");
    fs::create_dir_all(&draft).unwrap();
    fs::write(draft.join("SKILL.md"), "---\nname: slack-alert\ndescription: Other.\n---\nOther.\n").unwrap();
    let save = SaveSkill::new(skills.clone());
    assert!(
        save.call(json!({"name": "slack-alert"}), other.clone())
            .await
            .unwrap_err()
            .to_string()
            .contains("already")
    );
    // The same text is the same skill.
    fs::copy(dir.path().join("slack-alert/SKILL.md"), draft.join("SKILL.md")).unwrap();
    assert!(save.call(json!({"name": "slack-alert"}), other).await.unwrap().text.contains("saved before"));
    assert!(!draft.exists());
}

#[tokio::test]
async fn drafts_belong_to_their_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let skills = Skills::new(dir.path());
    call(&WriteSkill::new(skills.clone()), slack_alert(), Path::new("/")).await.unwrap();
    let other = Arc::new(CallContext { tenant: TenantId::parse("evil").unwrap(), ..context(Path::new("/")) });
    for tool in [&SaveSkill::new(skills.clone()) as &dyn Tool, &ValidateSkill::new(skills.clone())] {
        let error = tool.call(json!({"name": "slack-alert"}), other.clone()).await.unwrap_err();
        assert!(error.to_string().contains("there is no draft `slack-alert`"), "{error}");
    }
}

#[tokio::test]
async fn a_broken_draft_is_reported_and_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let skills = Skills::new(dir.path());
    let mut wishes = slack_alert();
    wishes["non_triggers"] = json!("write slack alerts");
    call(&WriteSkill::new(skills.clone()), wishes, Path::new("/")).await.unwrap();
    let error = by_name(&ValidateSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    assert!(error.to_string().contains("it says the same as the trigger “write a slack alert”"), "{error}");
    let file = dir.path().join(".drafts/acme/slack-alert/SKILL.md");
    fs::write(&file, "---\nname: Slack\nversion: 1\n---\n").unwrap();
    let error = by_name(&ValidateSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    insta::assert_snapshot!(error, @r#"
    failed: `slack-alert` is not valid, 4 to correct:
    - error[key]: unknown key `version`; only name, description, license, compatibility, metadata, allowed-tools are allowed
    - error[name]: `Slack` is not a skill name: use lower-case letters, digits and single hyphens, at most 64 characters
    - error[folder]: the folder is called `slack-alert` and the skill `Slack`; they must be the same
    - error[description]: `description` is missing or empty; say what the skill does and when to use it
    - warning[body]: there are no instructions below the head
    "#);
    let error = by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    assert_eq!(error.code(), "execution");
    assert!(skills.list().is_empty());
}

#[tokio::test]
async fn something_must_be_said() {
    let dir = tempfile::tempdir().unwrap();
    let write = WriteSkill::new(Skills::new(dir.path()));
    for (key, value) in [("name", " "), ("purpose", "\u{0}\n"), ("steps", ""), ("steps", "\n- \n")] {
        let mut wishes = slack_alert();
        wishes[key] = json!(value);
        assert_eq!(crate::refusal(&write, wishes, Path::new("/")).await, "invalid_arguments", "{key}");
    }
    let mut wishes = slack_alert();
    wishes["purpose"] = json!("x".repeat(20_000));
    assert_eq!(crate::refusal(&write, wishes, Path::new("/")).await, "limit");
}

#[test]
fn rules_are_strict_for_us_and_lenient_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(1_025);
    for (folder, head, strict, lenient) in [
        ("good", "name: good\ndescription: Does.", "", ""),
        ("other", "name: good\ndescription: Does.", "error:folder", "warning:folder"),
        ("Bad_Name", "name: Bad_Name\ndescription: Does.", "error:name", "warning:name"),
        ("none", "description: Does.", "error:name", "warning:name"),
        ("long", &format!("name: long\ndescription: {long}"), "error:description", "warning:description"),
        ("angle", "name: angle\ndescription: a <b>", "error:description", "warning:description"),
        ("empty", "name: empty\ndescription: ''", "error:description", "error:description"),
        ("extra", "name: extra\ndescription: Does.\nmodel: x", "error:key", "warning:key"),
        (
            "list",
            "name: list\ndescription: Does.\nallowed-tools: [Read]",
            "warning:allowed-tools",
            "warning:allowed-tools",
        ),
        (
            "number",
            "name: number\ndescription: Does.\nmetadata: {version: 1.0}",
            "warning:metadata",
            "warning:metadata",
        ),
        (
            "nested",
            "name: nested\ndescription: Does.\nmetadata: {a: [b]}",
            "error:metadata",
            "warning:metadata",
        ),
        ("yaml", "name: yaml\ndescription: a: b", "error:head", "error:head"),
    ] {
        let path = dir.path().join(folder);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("SKILL.md"), format!("---\n{head}\n---\nBody.\n")).unwrap();
        let found = |strictness| {
            let problems = validate(&path, strictness);
            problems.iter().map(|p| format!("{}:{}", p.severity, p.rule)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            (found(Strictness::Strict).as_str(), found(Strictness::Lenient).as_str()),
            (strict, lenient),
            "{folder}"
        );
    }
    let names: Vec<String> =
        Skills::new(dir.path()).list().iter().map(|s| s.name.as_str().to_owned()).collect();
    assert_eq!(names, ["angle", "extra", "good", "list", "long", "nested", "none", "number", "other"]);
}

#[test]
fn folders_that_are_no_skills() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::create_dir(dir.path().join("large")).unwrap();
    fs::File::create(dir.path().join("large/SKILL.md")).unwrap().set_len(1 << 40).unwrap();
    fs::create_dir(dir.path().join("bytes")).unwrap();
    fs::write(dir.path().join("bytes/SKILL.md"), b"---\nname: \xff\n---\n").unwrap();
    for folder in ["empty", "large", "bytes", "missing"] {
        let problems = validate(&dir.path().join(folder), Strictness::Lenient);
        assert!(problems.iter().all(|p| p.severity == Severity::Error && p.rule == "file"), "{problems:?}");
        assert_eq!(problems.len(), 1);
    }
    assert!(Skills::new(dir.path()).list().is_empty());
}
