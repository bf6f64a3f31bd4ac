//! Whose a skill is: nobody sees what another tenant made, and two at once never leave half of one.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use baton_core::{SkillOrigin, SkillSource as _, Tool, ToolError};
use baton_tools::list_files::ListFiles;
use baton_tools::read_file::ReadFile;
use baton_tools::save_skill::SaveSkill;
use baton_tools::validate_skill::ValidateSkill;
use baton_tools::write_skill::WriteSkill;
use baton_tools::{DocFolders, SkillFolder, SkillStrictness, validate};
use serde_json::json;

use super::{acme, by_name, draft, elsewhere, foreign, name, slack_alert};
use crate::{call, context};

/// A skill of everybody.
fn share(dir: &Path, name: &str) {
    fs::create_dir_all(dir.join(name)).unwrap();
    let text = format!("---\nname: {name}\ndescription: For everybody.\n---\nDo it.\n");
    fs::write(dir.join(name).join("SKILL.md"), text).unwrap();
}

async fn make(skills: &SkillFolder) {
    call(&WriteSkill::new(skills.clone()), slack_alert(), Path::new("/")).await.unwrap();
    by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
}

#[tokio::test]
async fn a19_what_one_tenant_makes_no_other_sees() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    share(dir.path(), "for-all");
    make(&skills).await;
    let names = async |tenant| -> Vec<String> {
        let heads = skills.list(&tenant).await.unwrap();
        heads.iter().map(|head| format!("{} {}", head.name.as_str(), head.origin)).collect()
    };
    assert_eq!(names(acme()).await, ["for-all shared", "slack-alert created"]);
    for other in ["evil", "Acme", "acme/", "..", "acme\u{0}", ".tenants/acme", "default"] {
        let Ok(tenant) = baton_core::TenantId::parse(other) else { continue };
        assert_eq!(names(tenant.clone()).await, ["for-all shared"], "{other}");
        let read = skills.read(&tenant, &name("slack-alert")).await.unwrap();
        assert_eq!(read, None, "{other}");
        // The name is free for them, and nothing tells them that somebody has it.
        let (write, save) = (WriteSkill::new(skills.clone()), SaveSkill::new(skills.clone()));
        for tool in [&save as &dyn Tool, &ValidateSkill::new(skills.clone())] {
            let error = tool.call(json!({"name": "slack-alert"}), foreign(other)).await.unwrap_err();
            assert!(error.to_string().contains("there is no draft `slack-alert`"), "{error}");
        }
        let mut theirs = slack_alert();
        theirs["purpose"] = json!("Something of their own");
        write.call(theirs, foreign(other)).await.unwrap();
        save.call(json!({"name": "slack-alert"}), foreign(other)).await.unwrap();
        assert_eq!(names(tenant).await, ["for-all shared", "slack-alert created"], "{other}");
    }
    let own = skills.read(&acme(), &name("slack-alert")).await.unwrap().unwrap();
    assert!(own.body().contains("Turns an incident report"), "{}", own.text);
    assert_eq!(own.head.origin, SkillOrigin::Created);
}

#[tokio::test]
async fn a19_file_tools_do_not_show_what_tenants_made() {
    let work = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(work.path().join(".agents/skills"));
    share(&work.path().join(".agents/skills"), "for-all");
    make(&skills).await;
    call(
        &WriteSkill::new(skills.clone()),
        json!({"name": "b", "purpose": "p", "steps": "s"}),
        Path::new("/"),
    )
    .await
    .unwrap();
    std::os::unix::fs::symlink(".agents/skills/.tenants/acme", work.path().join("link")).unwrap();
    let read = ReadFile::new(Vec::new(), DocFolders::default(), work.path().join(".agents/skills"));
    let list = ListFiles::default();
    for path in [
        ".agents/skills/.tenants/acme/slack-alert/SKILL.md",
        ".agents/skills/for-all/../.tenants/acme/slack-alert/SKILL.md",
        "link/slack-alert/SKILL.md",
        work.path().join(".agents/skills/.tenants/acme/slack-alert/SKILL.md").to_str().unwrap(),
        draft(&work.path().join(".agents/skills"), "b").join("SKILL.md").to_str().unwrap(),
    ] {
        let error = call(&read, json!({ "path": path }), work.path()).await.unwrap_err();
        assert!(error.to_string().contains("is protected"), "{path}: {error}");
    }
    for path in [".agents/skills/.tenants", ".agents/skills/.tenants/acme", "link", ".agents/skills/.drafts"]
    {
        let error = call(&list, json!({ "path": path }), work.path()).await.unwrap_err();
        assert!(error.to_string().contains("is protected"), "{path}: {error}");
    }
    let all = call(&list, json!({"recursive": true}), work.path()).await.unwrap();
    assert_eq!(all, "link (link)");
    let shared = call(&read, json!({"path": ".agents/skills/for-all/SKILL.md"}), work.path()).await.unwrap();
    assert!(shared.contains("For everybody"));
}

#[tokio::test]
async fn names_of_shared_skills_are_taken_for_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    share(dir.path(), "slack-alert");
    let write = WriteSkill::new(skills.clone());
    let error = call(&write, slack_alert(), Path::new("/")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("already a skill `slack-alert`; choose another name, such as `slack-alert-2`")
    );
    // One that was shared after the tenant made theirs takes nothing from them.
    fs::remove_dir_all(dir.path().join("slack-alert")).unwrap();
    make(&skills).await;
    share(dir.path(), "slack-alert");
    let found = skills.list(&acme()).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].origin, SkillOrigin::Created);
}

#[tokio::test]
async fn two_conversations_do_not_overwrite_each_others_draft() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    let (write, save) = (WriteSkill::new(skills.clone()), SaveSkill::new(skills.clone()));
    call(&write, slack_alert(), Path::new("/")).await.unwrap();
    let (there, mut other) = (elsewhere(), slack_alert());
    other["purpose"] = json!("Another alert");
    write.call(other, there.clone()).await.unwrap();
    by_name(&save, "slack-alert").await.unwrap();
    let kept = skills.read(&acme(), &name("slack-alert")).await.unwrap().unwrap();
    assert!(kept.text.contains("Turns an incident report"), "what was confirmed is what is saved");
    let error = save.call(json!({"name": "slack-alert"}), there).await.unwrap_err();
    assert!(error.to_string().contains("already a skill `slack-alert`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_save_at_once_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    for round in 0..10 {
        let called = format!("alert {round}");
        let (write, save) = (WriteSkill::new(skills.clone()), Arc::new(SaveSkill::new(skills.clone())));
        let desks: Vec<_> = (0..8).map(|_| elsewhere()).collect();
        for (who, desk) in desks.iter().enumerate() {
            let wishes = json!({"name": called, "purpose": format!("For {who}"), "steps": "Do it"});
            write.call(wishes, desk.clone()).await.unwrap();
        }
        let saving = desks.into_iter().map(|desk| {
            let (save, called) = (save.clone(), called.clone());
            tokio::spawn(async move { save.call(json!({ "name": called }), desk).await })
        });
        let saving: Vec<_> = saving.collect();
        let mut won = 0;
        for saved in saving {
            match saved.await.unwrap() {
                Ok(output) => won += usize::from(output.text.starts_with("Saved the skill")),
                Err(ToolError::NameTaken { problem, .. }) => {
                    assert!(problem.contains("already"), "{problem}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(won, 1);
    }
    let left: Vec<String> = fs::read_dir(dir.path().join(".tenants/acme"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left.len(), 10, "nothing half done is left: {left:?}");
    for skill in left {
        assert_eq!(validate(&dir.path().join(".tenants/acme").join(skill), SkillStrictness::Strict), []);
    }
}

#[tokio::test]
async fn a_crash_in_the_middle_leaves_no_half_skill() {
    let dir = tempfile::tempdir().unwrap();
    let skills = SkillFolder::new(dir.path());
    call(&WriteSkill::new(skills.clone()), slack_alert(), Path::new("/")).await.unwrap();
    // What a process leaves that died before the rename: a folder under another name, half written.
    let staged = dir.path().join(".tenants/acme/.0123");
    fs::create_dir_all(&staged).unwrap();
    fs::write(staged.join("SKILL.md"), "---\nname: slack-al").unwrap();
    fs::write(draft(dir.path(), "slack-alert").join(".1.tmp"), "half").unwrap();
    assert!(skills.list(&acme()).await.unwrap().is_empty());
    // What one leaves that died after the rename: the draft is still there, and saving again is no mistake.
    by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
    let (kept, again) = (dir.path().join(".tenants/acme/slack-alert"), draft(dir.path(), "slack-alert"));
    fs::create_dir_all(&again).unwrap();
    fs::copy(kept.join("SKILL.md"), again.join("SKILL.md")).unwrap();
    let text = by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
    assert_eq!(text, "The skill `slack-alert` was saved before. It can be used.");
    assert_eq!(fs::read_dir(kept).unwrap().count(), 1);
}

#[test]
fn old_drafts_are_swept_away() {
    let dir = tempfile::tempdir().unwrap();
    let (skills, old) = (SkillFolder::new(dir.path()), dir.path().join(".drafts/acme/old"));
    fs::create_dir_all(old.join("x")).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(100 * 24);
    fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
    let desk = (&context(dir.path())).into();
    skills.write_draft(&desk, &name("a"), "text").unwrap();
    assert!(!old.exists() && draft(dir.path(), "a").join("SKILL.md").is_file());
}

#[tokio::test]
async fn a_skill_that_would_not_be_seen_is_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join(".tenants/acme");
    for number in 0..2_000 {
        share(&own, &format!("s{number:04}"));
    }
    let skills = SkillFolder::new(dir.path());
    call(&WriteSkill::new(skills.clone()), slack_alert(), Path::new("/")).await.unwrap();
    let error = by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap_err();
    assert_eq!(error.code(), "limit");
    fs::remove_dir_all(own.join("s0007")).unwrap();
    by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
    assert!(skills.all(&acme()).iter().any(|found| found.head.name == name("slack-alert")));
}
