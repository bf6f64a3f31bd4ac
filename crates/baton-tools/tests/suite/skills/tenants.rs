//! Whose a skill is: no tenant sees what another made, and two that save at once make one skill.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use baton_core::store::AuditQuery;
use baton_core::store::page::PageRequest;
use baton_core::{SkillOrigin, SkillSource as _, TenantId, Tool, ToolError};
use baton_tools::save_skill::SaveSkill;
use baton_tools::validate_skill::ValidateSkill;
use baton_tools::write_skill::WriteSkill;
use baton_tools::{SkillFolder, SkillLibrary};
use serde_json::json;

use super::{acme, by_name, elsewhere, foreign, library, name, slack_alert, store};
use crate::{call, context};

/// A skill of everybody.
fn share(dir: &Path, name: &str) {
    fs::create_dir_all(dir.join(name)).unwrap();
    let text = format!("---\nname: {name}\ndescription: For everybody.\n---\nDo it.\n");
    fs::write(dir.join(name).join("SKILL.md"), text).unwrap();
}

async fn make(skills: &SkillLibrary) {
    call(&WriteSkill::new(skills.clone()), slack_alert(), Path::new("/")).await.unwrap();
    by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
}

#[tokio::test]
async fn a19_what_one_tenant_makes_no_other_sees() {
    let (dir, store) = (tempfile::tempdir().unwrap(), store().await);
    let skills = SkillLibrary::new(SkillFolder::new(dir.path()), Arc::clone(&store));
    share(dir.path(), "for-all");
    make(&skills).await;
    let names = async |tenant| -> Vec<String> {
        let heads = skills.list(&tenant).await.unwrap();
        heads.iter().map(|head| format!("{} {}", head.name.as_str(), head.origin)).collect()
    };
    assert_eq!(names(acme()).await, ["for-all shared", "slack-alert created"]);
    for other in ["evil", "Acme", "acme/", "..", "acme' OR '1'='1", "acme%", "default"] {
        let tenant = TenantId::parse(other).unwrap();
        assert_eq!(names(tenant.clone()).await, ["for-all shared"], "{other}");
        let read = skills.read(&tenant, &name("slack-alert")).await.unwrap();
        assert_eq!(read, None, "{other}");
        // The name is free for them, and nothing tells them that another tenant has it.
        let (write, save) = (WriteSkill::new(skills.clone()), SaveSkill::new(skills.clone()));
        let there = foreign(&store, other).await;
        for tool in [&save as &dyn Tool, &ValidateSkill::new(skills.clone())] {
            let error = tool.call(json!({"name": "slack-alert"}), there.clone()).await.unwrap_err();
            assert!(error.to_string().contains("there is no draft `slack-alert`"), "{error}");
        }
        let mut theirs = slack_alert();
        theirs["purpose"] = json!("Something of their own");
        write.call(theirs, there.clone()).await.unwrap();
        save.call(json!({"name": "slack-alert"}), there).await.unwrap();
        assert_eq!(names(tenant).await, ["for-all shared", "slack-alert created"], "{other}");
    }
    let own = skills.read(&acme(), &name("slack-alert")).await.unwrap().unwrap();
    assert!(own.body().contains("Turns an incident report"), "{}", own.text);
    assert_eq!(own.head.origin, SkillOrigin::Created);
}

#[tokio::test]
async fn names_of_shared_skills_are_taken_for_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let skills = library(dir.path()).await;
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
    let read = skills.read(&acme(), &name("slack-alert")).await.unwrap().unwrap();
    assert!(read.text.contains("Turns an incident report"), "{}", read.text);
}

#[tokio::test]
async fn two_conversations_do_not_overwrite_each_others_draft() {
    let (dir, store) = (tempfile::tempdir().unwrap(), store().await);
    let skills = SkillLibrary::new(SkillFolder::new(dir.path()), Arc::clone(&store));
    let (write, save) = (WriteSkill::new(skills.clone()), SaveSkill::new(skills.clone()));
    call(&write, slack_alert(), Path::new("/")).await.unwrap();
    let (there, mut other) = (elsewhere(&store).await, slack_alert());
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
    let (dir, store) = (tempfile::tempdir().unwrap(), store().await);
    let skills = SkillLibrary::new(SkillFolder::new(dir.path()), Arc::clone(&store));
    for round in 0..10 {
        let called = format!("alert {round}");
        let (write, save) = (WriteSkill::new(skills.clone()), Arc::new(SaveSkill::new(skills.clone())));
        let mut saving = Vec::new();
        for who in 0..8 {
            let there = elsewhere(&store).await;
            let wishes = json!({"name": called, "purpose": format!("For {who}"), "steps": "Do it"});
            write.call(wishes, there.clone()).await.unwrap();
            saving.push((there, save.clone(), called.clone()));
        }
        let saving = saving.into_iter().map(|(there, save, called)| {
            tokio::spawn(async move { save.call(json!({ "name": called }), there).await })
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
    assert_eq!(skills.list(&acme()).await.unwrap().len(), 10);
}

/// The process died after the skill was saved and before the run recorded it: the tool is called again.
#[tokio::test]
async fn a_call_that_is_repeated_after_a_crash_saves_one_skill() {
    let (dir, store) = (tempfile::tempdir().unwrap(), store().await);
    let skills = SkillLibrary::new(SkillFolder::new(dir.path()), Arc::clone(&store));
    make(&skills).await;
    let text = by_name(&SaveSkill::new(skills.clone()), "slack-alert").await.unwrap();
    assert_eq!(text, "The skill `slack-alert` was saved before. It can be used.");
    assert_eq!(skills.list(&acme()).await.unwrap().len(), 1);
    let query = AuditQuery { action: Some("skill.save".to_owned()), ..AuditQuery::default() };
    let entries = store.tenant(&acme()).audit(query, PageRequest::first(10)).await.unwrap().data;
    let [saved] = &entries[..] else { panic!("{entries:?}") };
    let who = context(Path::new("/"));
    assert_eq!(
        (saved.entry.actor.as_str(), &saved.entry.detail["skill"]),
        (who.agent.as_str(), &json!("slack-alert"))
    );
    assert_eq!((saved.entry.on_behalf_of.as_deref(), saved.entry.run_id), (Some("ann"), Some(who.run_id)));
}
