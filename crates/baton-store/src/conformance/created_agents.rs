//! Agents that people created, and their drafts.

use baton_core::store::{
    AgentDraft, AgentSaving, AgentSnapshot, AuditEntry, AuditQuery, NewAgent, StoredAgent,
};
use baton_core::{Store, StoreError, TenantStore, ThreadId};
use futures_util::future::join_all;
use serde_json::json;

use super::fixture::{Home, agent as name, new_run, page, tenant, user};

const MOST: u32 = 3;

/// A thread of the tenant.
async fn thread(tenant: &dyn TenantStore) -> ThreadId {
    let run = new_run(ThreadId::random(), "Create an agent");
    tenant.accept(run.clone()).await.unwrap();
    run.thread_id
}

fn new_agent(thread: ThreadId, called: &str, text: &str, replaces: Option<&str>) -> NewAgent {
    NewAgent {
        name: name(called),
        text: text.to_owned(),
        replaces: replaces.map(str::to_owned),
        user_id: user("ada"),
        thread_id: Some(thread),
    }
}

fn draft(text: &str) -> AgentDraft {
    AgentDraft { text: text.to_owned(), replaces: None }
}

fn entry(action: &str, thread: ThreadId) -> AuditEntry {
    AuditEntry {
        thread_id: Some(thread),
        detail: json!({ "agent": "helper" }),
        ..crate::audit::entry("agent-creator", action, "saved")
    }
}

async fn save(
    tenant: &dyn TenantStore,
    thread: ThreadId,
    called: &str,
    text: &str,
) -> Result<AgentSaving, StoreError> {
    tenant.save_agent(new_agent(thread, called, text, None), entry("agent.save", thread), MOST).await
}

async fn change(tenant: &dyn TenantStore, thread: ThreadId, before: &str, text: &str) -> AgentSaving {
    let agent = new_agent(thread, "helper", text, Some(before));
    tenant.save_agent(agent, entry("agent.save", thread), MOST).await.unwrap()
}

async fn actions(tenant: &dyn TenantStore, action: &str) -> usize {
    let query = AuditQuery { action: Some(action.to_owned()), ..AuditQuery::default() };
    tenant.audit(query, page(10)).await.unwrap().data.len()
}

async fn version(store: &dyn Store, tenant: &dyn TenantStore) -> u64 {
    let versions = store.agent_versions().await.unwrap();
    let found = versions.iter().find(|(one, _)| one == tenant.tenant()).map_or(0, |(_, version)| *version);
    assert_eq!(snapshot(tenant).await.version, found);
    assert_eq!(tenant.agent_snapshot(Some(found)).await, Ok(None), "nothing is read if nothing changed");
    assert!(tenant.agent_snapshot(Some(found + 1)).await.unwrap().is_some(), "a restored store may be older");
    found
}

async fn snapshot(tenant: &dyn TenantStore) -> AgentSnapshot {
    tenant.agent_snapshot(None).await.unwrap().unwrap()
}

/// An agent of the tenant, unless another thread has saved it, and a draft of the thread.
pub(super) async fn fill(tenant: &dyn TenantStore, thread: ThreadId) {
    let saving = save(tenant, thread, "helper", "saved").await.unwrap();
    assert!(matches!(saving, AgentSaving::Saved | AgentSaving::AlreadySaved), "{saving:?}");
    assert!(tenant.put_agent_draft(thread, &name("other"), draft("draft"), MOST).await.unwrap());
}

/// The draft is deleted, and saving again changes nothing, as after a crash between the effect and its record.
pub async fn k2_draft_becomes_an_agent_once(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread(&*tenant).await;
    let text = "---\nname: helper\n---\nÄ€🎷 'quoted' \"twice\"\n";
    assert_eq!(tenant.agent_draft(thread, &name("helper")).await, Ok(None));
    let changing = AgentDraft { text: text.to_owned(), replaces: Some("before".to_owned()) };
    for one in [changing.clone(), draft(text)] {
        assert!(tenant.put_agent_draft(thread, &name("helper"), one.clone(), MOST).await.unwrap());
        assert_eq!(tenant.agent_draft(thread, &name("helper")).await, Ok(Some(one)));
    }
    assert_eq!(snapshot(&*tenant).await.agents, Vec::new(), "a draft is not an agent");

    assert_eq!(save(&*tenant, thread, "helper", text).await, Ok(AgentSaving::Saved));
    assert_eq!(save(&*tenant, thread, "helper", text).await, Ok(AgentSaving::AlreadySaved));
    assert_eq!(tenant.agent_draft(thread, &name("helper")).await, Ok(None));
    assert_eq!(save(&*tenant, thread, "helper", "another").await, Ok(AgentSaving::Changed));
    let StoredAgent { text: kept, created_at, updated_at, .. } =
        tenant.created_agent(&name("helper")).await.unwrap().unwrap();
    assert_eq!((kept.as_str(), created_at), (text, updated_at));
    assert_eq!(tenant.created_agent(&name("other")).await, Ok(None));
}

/// Only the text that the person saw is replaced. Every change is found by its version.
pub async fn k2_agent_is_changed_only_from_the_text_that_was_seen(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread(&*tenant).await;
    assert_eq!(version(store, &*tenant).await, 0);
    assert_eq!(change(&*tenant, thread, "one", "two").await, AgentSaving::Changed, "there is none");
    assert_eq!(save(&*tenant, thread, "helper", "one").await, Ok(AgentSaving::Saved));
    assert_eq!(version(store, &*tenant).await, 1);
    assert_eq!(change(&*tenant, thread, "one", "two").await, AgentSaving::Saved);
    assert_eq!(change(&*tenant, thread, "one", "two").await, AgentSaving::AlreadySaved);
    assert_eq!(change(&*tenant, thread, "one", "three").await, AgentSaving::Changed);
    assert_eq!(version(store, &*tenant).await, 2);
    assert_eq!(tenant.created_agent(&name("helper")).await.unwrap().unwrap().text, "two");
    assert_eq!(tenant.delete_agent(&name("helper"), entry("agent.delete", thread)).await, Ok(true));
    assert_eq!(version(store, &*tenant).await, 3);
}

pub async fn k2_of_many_that_save_an_agent_at_once_one_succeeds(store: &dyn Store) {
    let tenant = tenant(store);
    let threads = join_all((0..8).map(|_| thread(&*tenant))).await;
    let saving = threads.iter().enumerate().map(|(number, thread)| {
        let tenant = tenant.clone();
        async move { save(&*tenant, *thread, "helper", &format!("text {number}")).await.unwrap() }
    });
    let results = join_all(saving).await;
    let count = |wanted| results.iter().filter(|result| **result == wanted).count();
    assert_eq!((count(AgentSaving::Saved), count(AgentSaving::Changed)), (1, 7));
    let won = results.iter().position(|result| *result == AgentSaving::Saved).unwrap();
    assert_eq!(tenant.created_agent(&name("helper")).await.unwrap().unwrap().text, format!("text {won}"));
    let before = format!("text {won}");
    let changing = threads.iter().enumerate().map(|(number, thread)| {
        let (tenant, before) = (tenant.clone(), before.as_str());
        async move { change(&*tenant, *thread, before, &format!("new {number}")).await }
    });
    let results = join_all(changing).await;
    assert_eq!(results.iter().filter(|result| **result == AgentSaving::Saved).count(), 1);
    assert_eq!(actions(&*tenant, "agent.save").await, 2);
    assert_eq!(version(store, &*tenant).await, 2);
}

pub async fn k2_agent_outlives_its_thread_and_a_draft_does_not(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread(&*tenant).await;
    fill(&*tenant, thread).await;
    tenant.delete_thread(thread, None).await.unwrap();
    assert!(tenant.created_agent(&name("helper")).await.unwrap().is_some());
    assert_eq!(tenant.agent_draft(thread, &name("other")).await, Ok(None));
    let gone = tenant.put_agent_draft(thread, &name("other"), draft("late"), MOST).await;
    assert_eq!(gone, Err(StoreError::ThreadNotFound));
    assert_eq!(save(&*tenant, thread, "late", "late").await, Err(StoreError::ThreadNotFound));
}

pub async fn k2_created_agents_and_drafts_belong_to_their_tenant(store: &dyn Store) {
    let (own, other) = (tenant(store), tenant(store));
    let thread_of_own = thread(&*own).await;
    fill(&*own, thread_of_own).await;
    assert_eq!(snapshot(&*other).await.agents, Vec::new());
    assert_eq!(other.created_agent(&name("helper")).await, Ok(None));
    assert_eq!(other.agent_draft(thread_of_own, &name("other")).await, Ok(None));
    let foreign = other.put_agent_draft(thread_of_own, &name("other"), draft("mine"), MOST).await;
    assert_eq!(foreign, Err(StoreError::ThreadNotFound));
    assert_eq!(save(&*other, thread_of_own, "helper", "mine").await, Err(StoreError::ThreadNotFound));
    assert_eq!(other.delete_agent(&name("helper"), entry("agent.delete", thread_of_own)).await, Ok(false));
    let thread_of_other = thread(&*other).await;
    assert_eq!(save(&*other, thread_of_other, "helper", "theirs").await, Ok(AgentSaving::Saved));
    assert_eq!(own.created_agent(&name("helper")).await.unwrap().unwrap().text, "saved");
    assert_eq!(own.agent_draft(thread_of_own, &name("other")).await, Ok(Some(draft("draft"))));
}

pub async fn k2_created_agents_and_drafts_are_limited_in_number(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread(&*tenant).await;
    for number in 0..MOST {
        let called = name(&format!("a{number}"));
        assert!(tenant.put_agent_draft(thread, &called, draft("text"), MOST).await.unwrap());
    }
    assert!(!tenant.put_agent_draft(thread, &name("more"), draft("text"), MOST).await.unwrap());
    assert!(tenant.put_agent_draft(thread, &name("a0"), draft("again"), MOST).await.unwrap());
    for number in (0..MOST).rev() {
        assert_eq!(save(&*tenant, thread, &format!("a{number}"), "text").await, Ok(AgentSaving::Saved));
    }
    assert_eq!(save(&*tenant, thread, "more", "text").await, Ok(AgentSaving::LimitReached));
    let names: Vec<_> = snapshot(&*tenant).await.agents.into_iter().map(|agent| agent.name).collect();
    assert_eq!(names, [name("a0"), name("a1"), name("a2")]);
}

/// Nothing is recorded for what had no effect.
pub async fn k2_created_agent_is_audited_with_its_effect(store: &dyn Store) {
    let tenant: Home<'_> = tenant(store);
    let thread = thread(&*tenant).await;
    for text in ["text", "text", "another"] {
        save(&*tenant, thread, "helper", text).await.unwrap();
    }
    assert_eq!(actions(&*tenant, "agent.save").await, 1);
    for expected in [true, false] {
        let deleted = tenant.delete_agent(&name("helper"), entry("agent.delete", thread)).await;
        assert_eq!(deleted, Ok(expected));
    }
    assert_eq!(actions(&*tenant, "agent.delete").await, 1);
    assert_eq!(snapshot(&*tenant).await.agents, Vec::new());
}
