//! From what a person says to a skill that agents can use.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::agent::SkillName;
use baton_core::{CallContext, TenantId, ThreadId, Tool, ToolError};
use baton_tools::save_skill::SaveSkill;
use baton_tools::skills::CheckSeverity;
use baton_tools::validate_skill::ValidateSkill;
use baton_tools::write_skill::WriteSkill;
use baton_tools::{SkillFolder, SkillStrictness, validate};
use serde_json::{Value, json};

use crate::{call, context};

mod conversations;
mod tenants;

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

fn acme() -> TenantId {
    context(Path::new("/")).tenant
}

/// A call of another tenant, in the same thread.
fn foreign(tenant: &str) -> Arc<CallContext> {
    Arc::new(CallContext { tenant: TenantId::parse(tenant).unwrap(), ..context(Path::new("/")) })
}

/// A call of the same tenant in another conversation.
fn elsewhere() -> Arc<CallContext> {
    Arc::new(CallContext { thread_id: ThreadId::random(), ..context(Path::new("/")) })
}

/// Where the conversation of [`context`] keeps a draft.
fn draft(dir: &Path, name: &str) -> PathBuf {
    let thread = context(dir).thread_id.to_string();
    dir.join(".drafts/acme").join(thread).join(name)
}

#[tokio::test]
async fn a_skill_is_written_checked_and_saved() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    let text = call(&WriteSkill::new(skills.clone()), slack_alert(), Path::new("/")).await.unwrap();
    insta::assert_snapshot!(text, @r#"
    Draft of the skill `slack-alert`, not saved yet:

    ```markdown
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
    ```
    "#);
    assert!(skills.all(&acme()).is_empty(), "a draft is not a skill");
    let report = by_name(&ValidateSkill::new(skills.clone()), "Slack Alert").await.unwrap();
    insta::assert_snapshot!(report, @r#"
    `slack-alert` keeps the rules of Agent Skills.

    It should be used for:

    - ✓ “write a slack alert”
    - ✓ “alert the on-call channel about this incident”

    It should leave alone:

    - ? “close the incident”: close to the skill; only “close” tells it apart
    - ? “who is on call?”: it sounds like what the skill is for; an agent could take it for that
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
    is_saved_alone(&skills, dir.path());
}

/// The file, and nothing of how it was made.
fn is_saved_alone(skills: &SkillFolder, dir: &Path) {
    let listed = skills.all(&acme());
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].folder, dir.join(".tenants/acme/slack-alert"));
    assert!(listed[0].head.description.starts_with("Turns an incident report"));
    assert!(skills.file(&acme(), &name("slack-alert")).unwrap().body().starts_with("# Slack Alert"));
    assert!(skills.file(&acme(), &name("other")).is_err());
    assert_eq!(validate(&listed[0].folder, SkillStrictness::Strict), []);
    let saved: Vec<_> =
        fs::read_dir(&listed[0].folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(saved, ["SKILL.md"]);
    assert!(!draft(dir, "slack-alert").exists());
}

#[tokio::test]
async fn names_in_use_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    let write = WriteSkill::new(skills.clone());
    call(&write, slack_alert(), Path::new("/")).await.unwrap();
    by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
    let error = call(&write, slack_alert(), Path::new("/")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid arguments: there is already a skill `slack-alert`; choose another name, such as `slack-alert-2`"
    );
}

#[tokio::test]
async fn a_broken_draft_is_reported_and_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    let mut wishes = slack_alert();
    wishes["non_triggers"] = json!("write slack alerts");
    call(&WriteSkill::new(skills.clone()), wishes, Path::new("/")).await.unwrap();
    let error = by_name(&ValidateSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    assert!(error.to_string().contains("it says the same as the trigger “write a slack alert”"), "{error}");
    let file = draft(dir.path(), "slack-alert").join("SKILL.md");
    fs::write(&file, "---\nname: Slack\nversion: 1\n---\n").unwrap();
    let error = by_name(&ValidateSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    insta::assert_snapshot!(error, @r#"
    failed: `slack-alert` is not ready, 4 things must be corrected.

    To correct:

    - unknown key `version`; only name, description, license, compatibility, metadata, allowed-tools are allowed
    - `Slack` is not a skill name: use lower-case letters, digits and single hyphens, at most 64 characters
    - the folder is called `slack-alert` and the skill `Slack`; they must be the same
    - `description` is missing or empty; say what the skill does and when to use it

    Advice:

    - there are no instructions below the head
    "#);
    let error = by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    assert_eq!(error.code(), "execution");
    assert!(skills.all(&acme()).is_empty());
}

#[tokio::test]
async fn something_must_be_said() {
    let dir = tempfile::tempdir().unwrap();
    let write = WriteSkill::new(SkillFolder::new(dir.path()));
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
            (found(SkillStrictness::Strict).as_str(), found(SkillStrictness::Lenient).as_str()),
            (strict, lenient),
            "{folder}"
        );
    }
    let listed = SkillFolder::new(dir.path()).all(&acme());
    let names: Vec<&str> = listed.iter().map(|found| found.head.name.as_str()).collect();
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
        let problems = validate(&dir.path().join(folder), SkillStrictness::Lenient);
        assert!(
            problems.iter().all(|p| p.severity == CheckSeverity::Error && p.rule == "file"),
            "{problems:?}"
        );
        assert_eq!(problems.len(), 1);
    }
    assert!(SkillFolder::new(dir.path()).all(&acme()).is_empty());
}
