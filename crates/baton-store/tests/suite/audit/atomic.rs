//! A change and its audit entry are stored together: if one of them cannot be written, neither is.

use baton_core::store::{
    ApiKey, Artifact, AuditEntry, AuditQuery, Cancel, Feedback, HandoffNotes, HandoffSession, HandoffState,
    NewHandoff, PageRequest, PushConfig, PushKey, PushTarget, Rating,
};
use baton_core::{HandoffId, StoreError, TenantStore, ThreadId};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rows::Opened;
use crate::support::{acme, message};

const TABLES: [&str; 11] = [
    "thread_work",
    "threads",
    "messages",
    "runs",
    "journal",
    "artifacts",
    "feedback",
    "handoffs",
    "push_configs",
    "api_keys",
    "audit",
];

/// Fails the insertion of the entry, after the change and before the commit: as a crash between the two would.
pub(super) const SQLITE_FAULT: &str =
    "CREATE TRIGGER fault BEFORE INSERT ON audit WHEN NEW.entries LIKE '%\"action\":\"probe\"%'
    BEGIN SELECT RAISE(ABORT, 'cut'); END";
pub(super) const POSTGRES_FAULT: &str = "CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.entries LIKE '%\"action\":\"probe\"%' THEN RAISE EXCEPTION 'cut'; END IF; RETURN NEW; END $$;
    CREATE TRIGGER fault BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION fault()";

fn probe() -> AuditEntry {
    AuditEntry {
        actor: "ada".to_owned(),
        action: "probe".to_owned(),
        decision: "allowed".to_owned(),
        address: Some("192.0.2.1".to_owned()),
        ..AuditEntry::default()
    }
}

/// Every row of the tables that an audited change writes.
async fn dump(opened: &Opened) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for table in TABLES {
        let sql = match opened {
            Opened::Sqlite(..) => {
                let names = opened.texts(&format!("SELECT name FROM pragma_table_info('{table}')")).await;
                let quoted: Vec<String> = names.iter().map(|name| format!("quote(\"{name}\")")).collect();
                format!("SELECT {} FROM {table} ORDER BY 1", quoted.join(" || ',' || "))
            }
            Opened::Postgres(..) => format!("SELECT t::text FROM {table} AS t ORDER BY 1"),
        };
        rows.push(opened.texts(&sql).await);
    }
    rows
}

/// What the changes are about.
struct Scene {
    thread: ThreadId,
    message: baton_core::MessageId,
    run: baton_core::RunId,
    handoff: HandoffSession,
    key: Uuid,
}

fn handoff(thread: ThreadId) -> NewHandoff {
    NewHandoff {
        handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
        thread_id: thread,
        user_id: "ada".parse().unwrap(),
        source_agent_id: "assistant".parse().unwrap(),
        target_agent_id: "maker".parse().unwrap(),
        context_summary: String::new(),
        handoff_reason: "a reason".to_owned(),
        metadata: Value::Null,
        notes: HandoffNotes::default(),
        max_open: None,
        activation: None,
    }
}

fn key() -> ApiKey {
    ApiKey {
        key_id: Uuid::now_v7(),
        user_id: "ada".parse().unwrap(),
        name: "probe".to_owned(),
        roles: vec!["user".to_owned()],
        scopes: None,
        prefix: "baton_probe".to_owned(),
        created_at: Timestamp::now(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

fn push(task: baton_core::RunId, id: &str) -> PushConfig {
    let target = PushTarget {
        url: "https://example.com".to_owned(),
        token: None,
        credentials: None,
        schemes: Vec::new(),
        version: "0.3".to_owned(),
        agent: "assistant".parse().unwrap(),
    };
    PushConfig { task, id: id.to_owned(), target }
}

async fn scene(tenant: &dyn TenantStore) -> Scene {
    let new = message(ThreadId::random(), "hello");
    let (thread, message, run) = (new.thread_id, new.message.id, new.run_id);
    tenant.accept(new).await.unwrap();
    let other = another_thread(tenant).await;
    let handoff = tenant.open_handoff(handoff(other)).await.unwrap();
    let stored = key();
    let key = stored.key_id;
    tenant.put_key(stored, &Uuid::new_v4().to_string()).await.unwrap();
    tenant.put_push_config(push(run, "old"), 5).await.unwrap();
    Scene { thread, message, run, handoff, key }
}

async fn another_thread(tenant: &dyn TenantStore) -> ThreadId {
    let new = message(ThreadId::random(), "hello");
    let thread = new.thread_id;
    tenant.accept(new).await.unwrap();
    thread
}

/// Every write of a request or command that is audited through [`TenantStore::audited`].
const CHANGES: [&str; 12] = [
    "rename",
    "artifact",
    "feedback",
    "open handoff",
    "change handoff",
    "queue handoff",
    "set push",
    "delete push",
    "create key",
    "revoke key",
    "cancel",
    "delete",
];

async fn change(tenant: &dyn TenantStore, scene: &Scene, which: &str) -> Result<(), StoreError> {
    let Scene { thread, message, run, handoff: open, key: key_id } = scene;
    match which {
        "rename" => tenant.rename_thread(*thread, None, "New title").await.map(drop),
        "artifact" => {
            let artifact = Artifact {
                artifact_id: Uuid::now_v7(),
                thread_id: *thread,
                run_id: None,
                name: "a.txt".to_owned(),
                media_type: "text/plain".to_owned(),
                size: 1,
                created_at: Timestamp::now(),
            };
            tenant.put_artifact(artifact, None, vec![7]).await
        }
        "feedback" => {
            let (user_id, at) = ("ada".parse().unwrap(), Timestamp::now());
            let feedback =
                Feedback { message_id: *message, user_id, rating: Rating::Good, comment: None, at };
            tenant.put_feedback(feedback).await
        }
        "open handoff" => tenant.open_handoff(handoff(*thread)).await.map(drop),
        "change handoff" => {
            let changed = HandoffSession { state: HandoffState::Cancelled, ..open.clone() };
            tenant.update_handoff(changed).await.map(drop)
        }
        "queue handoff" => tenant.queue_handoff(open.handoff_id, json!({"next": 1})).await.map(drop),
        "set push" => tenant.put_push_config(push(*run, "new"), 5).await,
        "delete push" => {
            tenant.delete_push_config(PushKey { task: *run, id: "old".to_owned() }).await.map(drop)
        }
        "create key" => tenant.put_key(key(), &Uuid::new_v4().to_string()).await,
        "revoke key" => tenant.revoke_key(*key_id).await.map(drop),
        "cancel" => tenant.cancel_run(*run, Cancel::Abort).await.map(drop),
        "delete" => tenant.delete_thread(*thread, None).await,
        other => unreachable!("{other}"),
    }
}

async fn probes(tenant: &dyn TenantStore) -> usize {
    let query = AuditQuery { action: Some("probe".to_owned()), ..AuditQuery::default() };
    let found = tenant.audit(query, PageRequest::first(200)).await.unwrap().data;
    assert!(found.iter().all(|one| one.entry == probe()), "{found:?}");
    found.len()
}

async fn both_or_neither(opened: &Opened) {
    let tenant = acme(opened.store());
    let audited = tenant.audited(probe());
    let (fault, repair) = match opened {
        Opened::Sqlite(..) => (SQLITE_FAULT, "DROP TRIGGER fault"),
        Opened::Postgres(..) => (POSTGRES_FAULT, "DROP TRIGGER fault ON audit; DROP FUNCTION fault()"),
    };
    for (number, which) in CHANGES.into_iter().enumerate() {
        let scene = scene(&*tenant).await;
        opened.execute(fault).await;
        let before = dump(opened).await;
        let failed = change(&*audited, &scene, which).await;
        assert!(failed.is_err(), "{which}");
        assert_eq!(dump(opened).await, before, "{which} was stored without its entry");
        opened.execute(repair).await;
        change(&*audited, &scene, which).await.unwrap_or_else(|error| panic!("{which}: {error}"));
        assert_ne!(dump(opened).await, before, "{which}");
        assert_eq!(probes(&*tenant).await, number + 1, "{which} has one entry");
    }
    // The other way round: a change that is refused, or changes nothing, has no entry.
    let unknown = ThreadId::random();
    assert_eq!(audited.delete_thread(unknown, None).await, Err(StoreError::ThreadNotFound));
    assert!(audited.rename_thread(unknown, None, "x").await.is_err());
    let absent = PushKey { task: message(unknown, "").run_id, id: "none".to_owned() };
    assert_eq!(audited.delete_push_config(absent).await, Ok(false));
    assert_eq!(probes(&*tenant).await, CHANGES.len());
    // A long thread is deleted in several transactions, with one entry.
    let long = scene(&*tenant).await;
    opened.execute("UPDATE thread_work SET records = 100000 WHERE tenant = 'acme'").await;
    change(&*audited, &long, "delete").await.unwrap();
    assert_eq!(probes(&*tenant).await, CHANGES.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_and_its_entry_are_stored_together_on_sqlite() {
    both_or_neither(&Opened::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_and_its_entry_are_stored_together_on_postgres() {
    both_or_neither(&Opened::postgres().await).await;
}
