//! From what a person says to a skill that agents can use.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use baton_core::agent::SkillName;
use baton_core::store::NewRun;
use baton_core::{
    CallContext, Message, MessageId, Part, Role, RunId, SkillOrigin, SkillSource as _, Store, TenantId,
    ThreadId, Tool, ToolError, Visibility,
};
use baton_tools::save_skill::SaveSkill;
use baton_tools::skills::{CheckSeverity, export};
use baton_tools::validate_skill::ValidateSkill;
use baton_tools::write_skill::WriteSkill;
use baton_tools::{SkillFolder, SkillLibrary, SkillStrictness, validate};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{call, context, memory};

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

/// Makes sure that the thread of a call exists.
async fn begin(store: &Arc<dyn Store>, context: &CallContext) {
    let message = Message {
        id: MessageId::from_uuid(Uuid::new_v4()),
        run_id: RunId::from_uuid(Uuid::now_v7()),
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text("Make a skill")],
        created_at: Timestamp::now(),
    };
    let run = NewRun::new(context.thread_id, context.user.clone(), context.agent.clone(), message);
    store.tenant(&context.tenant).accept(run).await.unwrap();
}

/// A new store in which the thread of [`context`] exists.
async fn store() -> Arc<dyn Store> {
    let store = memory().await;
    begin(&store, &context(Path::new("/"))).await;
    store
}

/// The shared skills of a folder, and those of a new store.
async fn library(dir: &Path) -> SkillLibrary {
    SkillLibrary::new(SkillFolder::new(dir), store().await)
}

/// A call of another tenant, in a thread with the same id.
async fn foreign(store: &Arc<dyn Store>, tenant: &str) -> Arc<CallContext> {
    let context = CallContext { tenant: TenantId::parse(tenant).unwrap(), ..context(Path::new("/")) };
    begin(store, &context).await;
    Arc::new(context)
}

/// A call of the same tenant in another conversation.
async fn elsewhere(store: &Arc<dyn Store>) -> Arc<CallContext> {
    let context = CallContext { thread_id: ThreadId::random(), ..context(Path::new("/")) };
    begin(store, &context).await;
    Arc::new(context)
}

#[tokio::test]
async fn a_skill_is_written_checked_and_saved() {
    let dir = tempfile::tempdir().unwrap();
    let skills = library(dir.path()).await;
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
    assert!(skills.list(&acme()).await.unwrap().is_empty(), "a draft is not a skill");
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
    is_saved(&skills, dir.path()).await;
}

/// In the store, and as a folder where it is exported to.
async fn is_saved(skills: &SkillLibrary, dir: &Path) {
    let listed = skills.list(&acme()).await.unwrap();
    assert_eq!((listed.len(), listed[0].origin), (1, SkillOrigin::Created));
    assert!(listed[0].description.starts_with("Turns an incident report"));
    let file = skills.read(&acme(), &name("slack-alert")).await.unwrap().unwrap();
    assert!(file.body().starts_with("# Slack Alert"));
    assert_eq!(skills.read(&acme(), &name("other")).await.unwrap(), None);
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "no file is written");
    let exported = export(dir, &name("slack-alert"), &file.text).unwrap();
    assert_eq!(exported, dir.join("slack-alert/SKILL.md"));
    assert_eq!(validate(&dir.join("slack-alert"), SkillStrictness::Strict), []);
    assert_eq!(fs::read_to_string(&exported).unwrap(), file.text);
    assert!(export(dir, &name("slack-alert"), &file.text).is_ok(), "the same again");
    assert!(export(dir, &name("slack-alert"), "another").is_err());
    let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["slack-alert"]);
}

#[tokio::test]
async fn names_in_use_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let skills = library(dir.path()).await;
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
    let skills = library(dir.path()).await;
    let mut wishes = slack_alert();
    wishes["non_triggers"] = json!("write slack alerts");
    call(&WriteSkill::new(skills.clone()), wishes, Path::new("/")).await.unwrap();
    let error = by_name(&ValidateSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    assert!(error.to_string().contains("it says the same as the trigger “write a slack alert”"), "{error}");
    let broken = "---\nname: Slack\nversion: 1\n---\n";
    skills.write_draft(&context(Path::new("/")), &name("slack-alert"), broken).await.unwrap();
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
    assert!(skills.list(&acme()).await.unwrap().is_empty());
}

#[tokio::test]
async fn something_must_be_said() {
    let dir = tempfile::tempdir().unwrap();
    let write = WriteSkill::new(library(dir.path()).await);
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
    let listed = SkillFolder::new(dir.path()).all();
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
    assert!(SkillFolder::new(dir.path()).all().is_empty());
}
