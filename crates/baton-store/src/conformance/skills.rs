//! Skills that people created, and their drafts.

use baton_core::agent::SkillName;
use baton_core::store::{AuditEntry, AuditQuery, NewSkill, SkillSaving, StoredSkill};
use baton_core::{Store, StoreError, TenantStore, ThreadId};
use futures_util::future::join_all;
use serde_json::json;

use super::fixture::{Home, new_run, page, tenant, user};

const MOST: u32 = 3;

fn name(text: &str) -> SkillName {
    SkillName::parse(text).unwrap()
}

/// A thread of the tenant.
async fn thread(tenant: &dyn TenantStore) -> ThreadId {
    let run = new_run(ThreadId::random(), "Make a skill");
    tenant.accept(run.clone()).await.unwrap();
    run.thread_id
}

fn skill(thread: ThreadId, called: &str, text: &str) -> NewSkill {
    let description = format!("Describes {called}.");
    NewSkill {
        name: name(called),
        description,
        text: text.to_owned(),
        user_id: user("ada"),
        thread_id: Some(thread),
    }
}

fn entry(action: &str, thread: ThreadId) -> AuditEntry {
    AuditEntry {
        thread_id: Some(thread),
        detail: json!({ "skill": "alert" }),
        ..crate::audit::entry("skill-creator", action, "saved")
    }
}

async fn save(
    tenant: &dyn TenantStore,
    thread: ThreadId,
    called: &str,
    text: &str,
) -> Result<SkillSaving, StoreError> {
    tenant.save_skill(skill(thread, called, text), entry("skill.save", thread), MOST).await
}

async fn actions(tenant: &dyn TenantStore, action: &str) -> usize {
    let query = AuditQuery { action: Some(action.to_owned()), ..AuditQuery::default() };
    tenant.audit(query, page(10)).await.unwrap().data.len()
}

/// A skill of the tenant, unless another thread has saved it, and a draft of the thread.
pub(super) async fn fill(tenant: &dyn TenantStore, thread: ThreadId) {
    let saving = save(tenant, thread, "alert", "saved").await.unwrap();
    assert!(matches!(saving, SkillSaving::Saved | SkillSaving::AlreadySaved), "{saving:?}");
    assert!(tenant.put_skill_draft(thread, &name("other"), "draft", MOST).await.unwrap());
}

/// The draft is deleted, and saving again changes nothing, as after a crash between the effect and its record.
pub async fn a_draft_becomes_a_skill_once(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread(&*tenant).await;
    let text = "---\nname: alert\n---\nÄ€🎷 'quoted' \"twice\"\n";
    assert_eq!(tenant.skill_draft(thread, &name("alert")).await, Ok(None));
    assert!(tenant.put_skill_draft(thread, &name("alert"), "first", MOST).await.unwrap());
    assert!(tenant.put_skill_draft(thread, &name("alert"), text, MOST).await.unwrap());
    assert_eq!(tenant.skill_draft(thread, &name("alert")).await, Ok(Some(text.to_owned())));
    assert_eq!(tenant.skills().await, Ok(Vec::new()), "a draft is not a skill");

    assert_eq!(save(&*tenant, thread, "alert", text).await, Ok(SkillSaving::Saved));
    assert_eq!(save(&*tenant, thread, "alert", text).await, Ok(SkillSaving::AlreadySaved));
    assert_eq!(tenant.skill_draft(thread, &name("alert")).await, Ok(None));
    assert_eq!(save(&*tenant, thread, "alert", "another").await, Ok(SkillSaving::NameTaken));
    let StoredSkill { text: kept, description, .. } = tenant.skill(&name("alert")).await.unwrap().unwrap();
    assert_eq!((kept.as_str(), description.as_str()), (text, "Describes alert."));
    assert_eq!(tenant.skill(&name("other")).await, Ok(None));
    assert_eq!(tenant.skills().await.unwrap().len(), 1);
}

pub async fn of_many_that_save_a_name_at_once_one_succeeds(store: &dyn Store) {
    let tenant = tenant(store);
    let threads = join_all((0..8).map(|_| thread(&*tenant))).await;
    let saving = threads.iter().enumerate().map(|(number, thread)| {
        let tenant = tenant.clone();
        async move { save(&*tenant, *thread, "alert", &format!("text {number}")).await.unwrap() }
    });
    let results = join_all(saving).await;
    let count = |wanted| results.iter().filter(|result| **result == wanted).count();
    assert_eq!((count(SkillSaving::Saved), count(SkillSaving::NameTaken)), (1, 7));
    let won = results.iter().position(|result| *result == SkillSaving::Saved).unwrap();
    assert_eq!(tenant.skill(&name("alert")).await.unwrap().unwrap().text, format!("text {won}"));
    assert_eq!(actions(&*tenant, "skill.save").await, 1);
}

pub async fn a_skill_outlives_its_thread_and_a_draft_does_not(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread(&*tenant).await;
    fill(&*tenant, thread).await;
    tenant.delete_thread(thread, None).await.unwrap();
    assert!(tenant.skill(&name("alert")).await.unwrap().is_some());
    assert_eq!(tenant.skill_draft(thread, &name("other")).await, Ok(None));
    let gone = tenant.put_skill_draft(thread, &name("other"), "late", MOST).await;
    assert_eq!(gone, Err(StoreError::ThreadNotFound));
    assert_eq!(save(&*tenant, thread, "late", "late").await, Err(StoreError::ThreadNotFound));
}

pub async fn a8_skills_and_drafts_belong_to_their_tenant(store: &dyn Store) {
    let (own, other) = (tenant(store), tenant(store));
    let thread_of_own = thread(&*own).await;
    fill(&*own, thread_of_own).await;
    assert_eq!(other.skills().await, Ok(Vec::new()));
    assert_eq!(other.skill(&name("alert")).await, Ok(None));
    assert_eq!(other.skill_draft(thread_of_own, &name("other")).await, Ok(None));
    let foreign = other.put_skill_draft(thread_of_own, &name("other"), "mine", MOST).await;
    assert_eq!(foreign, Err(StoreError::ThreadNotFound));
    assert_eq!(save(&*other, thread_of_own, "alert", "mine").await, Err(StoreError::ThreadNotFound));
    assert_eq!(other.delete_skill(&name("alert"), entry("skill.delete", thread_of_own)).await, Ok(false));
    let thread_of_other = thread(&*other).await;
    assert_eq!(save(&*other, thread_of_other, "alert", "theirs").await, Ok(SkillSaving::Saved));
    assert_eq!(own.skill(&name("alert")).await.unwrap().unwrap().text, "saved");
    assert_eq!(own.skill_draft(thread_of_own, &name("other")).await, Ok(Some("draft".to_owned())));
}

pub async fn skills_and_drafts_are_limited_in_number(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread(&*tenant).await;
    for number in 0..MOST {
        let called = format!("s{number}");
        assert!(tenant.put_skill_draft(thread, &name(&called), "text", MOST).await.unwrap());
    }
    assert!(!tenant.put_skill_draft(thread, &name("more"), "text", MOST).await.unwrap());
    assert!(tenant.put_skill_draft(thread, &name("s0"), "again", MOST).await.unwrap());
    for number in (0..MOST).rev() {
        assert_eq!(save(&*tenant, thread, &format!("s{number}"), "text").await, Ok(SkillSaving::Saved));
    }
    assert_eq!(save(&*tenant, thread, "more", "text").await, Ok(SkillSaving::LimitReached));
    assert_eq!(save(&*tenant, thread, "s0", "text").await, Ok(SkillSaving::AlreadySaved));
    let names: Vec<_> = tenant.skills().await.unwrap().into_iter().map(|skill| skill.name).collect();
    assert_eq!(names, [name("s0"), name("s1"), name("s2")]);
}

/// Nothing is recorded for what had no effect.
pub async fn a_skill_is_audited_with_its_effect(store: &dyn Store) {
    let tenant: Home<'_> = tenant(store);
    let thread = thread(&*tenant).await;
    for text in ["text", "text", "another"] {
        save(&*tenant, thread, "alert", text).await.unwrap();
    }
    assert_eq!(actions(&*tenant, "skill.save").await, 1);
    for expected in [true, false] {
        let deleted = tenant.delete_skill(&name("alert"), entry("skill.delete", thread)).await;
        assert_eq!(deleted, Ok(expected));
    }
    assert_eq!((actions(&*tenant, "skill.delete").await, tenant.skills().await), (1, Ok(Vec::new())));
}
