//! What a run of one agent costs: commits, statements, bytes, and updates in place.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_core::event::RunOutcome;
use baton_core::ledger::{CallOutcome, Called};
use baton_core::store::work::{RunEnd, SessionChange};
use baton_core::store::{
    Append, AuditEntry, NewEvent, NewRun, RunEndData, RunStart, RunStatus, Step, StepKind, StepState,
};
use baton_core::usage::Cost;
use baton_core::{
    EventKind, LedgerRow, Message, MessageId, Part, Role, RunId, SessionId, Store as _, TenantStore,
    ThreadId, Tokens, Usage, Usd, Visibility,
};
use baton_store::Database;
use jiff::Timestamp;
use serde_json::json;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::{LEASE, acme, connect, fresh_postgres, fresh_sqlite, message, owner};

const ANSWER: &str =
    "A baton is a stick that runners of a relay race hand over, one after the other, while they run.";

fn event(kind: EventKind, visibility: Visibility) -> NewEvent {
    let agent = "assistant".parse().unwrap();
    NewEvent { at: Timestamp::now(), agent, path: "assistant".into(), visibility, kind }
}

fn step(run: RunId, path: &str, kind: StepKind, state: StepState, data: serde_json::Value) -> Step {
    let (path, session_id) = (path.to_owned(), SessionId::root(run));
    Step { path, session_id, kind, state, data: data.into(), at: Timestamp::now() }
}

fn audited(run: &NewRun, action: &str) -> AuditEntry {
    AuditEntry {
        actor: "assistant".to_owned(),
        on_behalf_of: Some("ada".to_owned()),
        action: action.to_owned(),
        thread_id: Some(run.thread_id),
        run_id: Some(run.run_id),
        decision: "allowed".to_owned(),
        detail: json!({"attempt": 1}),
        ..AuditEntry::default()
    }
}

fn session(run: RunId, status: RunStatus) -> SessionChange {
    let (session_id, agent) = (SessionId::root(run), "assistant".parse().unwrap());
    SessionChange { session_id, agent, path: "assistant".to_owned(), status, at: Timestamp::now() }
}

/// As the engine begins a run.
fn begin(run: &NewRun) -> Append {
    let id = run.run_id;
    let started = EventKind::SessionStarted { session_id: SessionId::root(id), parent: None, why: None };
    Append {
        number: 1,
        steps: vec![step(id, "assistant", StepKind::Session, StepState::Started, json!({}))],
        events: vec![
            event(EventKind::RunStarted { is_held: false }, Visibility::User),
            event(started, Visibility::Internal),
        ],
        sessions: vec![session(id, RunStatus::Running)],
        audit: vec![audited(run, "run.start")],
        ..Append::default()
    }
}

fn row(run: RunId) -> LedgerRow {
    LedgerRow {
        run_id: run,
        session_id: SessionId::root(run),
        agent: "assistant".parse().unwrap(),
        path: "assistant/turn:1".to_owned(),
        call: Called::Model { provider: "openai".to_owned(), model: "gpt-5-mini".to_owned() },
        tokens: Tokens { input_tokens: 120, output_tokens: 20, ..Tokens::default() },
        estimated: false,
        cost: Cost::Known(Usd::from_nanos(7_000)),
        started_at: Timestamp::now(),
        latency_ms: 400,
        outcome: CallOutcome::Ok,
        error: None,
    }
}

/// As the engine ends a run, with its only turn.
fn end(run: &NewRun) -> Append {
    let (id, message_id) = (run.run_id, MessageId::from_uuid(Uuid::now_v7()));
    let (usage, text) = (Usage { tokens: row(id).tokens, ..Usage::default() }, ANSWER.to_owned());
    let agent: baton_core::AgentName = "assistant".parse().unwrap();
    let end =
        RunEndData { answer: Some(text.clone()), answered_by: Some(agent.clone()), ..RunEndData::default() };
    let finished = EventKind::RunFinished {
        outcome: RunOutcome::Success,
        usage,
        limit: None,
        answered_by: Some(agent.clone()),
        sources: Vec::new(),
        by_agent: vec![baton_core::ledger::AgentUsage { agent: agent.clone(), usage }],
    };
    let turn = json!({"reply": {"text": text}, "message_id": message_id, "model": "openai/gpt-5-mini"});
    Append {
        number: 2,
        steps: vec![
            step(id, "assistant/turn:1", StepKind::Turn, StepState::Finished, turn),
            step(id, "assistant", StepKind::Session, StepState::Finished, json!(end)),
        ],
        events: vec![
            event(
                EventKind::TextFinished { message_id, speaker: "assistant".to_owned(), text: text.clone() },
                Visibility::User,
            ),
            event(EventKind::SessionFinished { session_id: SessionId::root(id) }, Visibility::Internal),
            event(finished, Visibility::User),
        ],
        messages: vec![Message {
            id: message_id,
            run_id: id,
            role: Role::Assistant,
            agent: Some(agent.clone()),
            visibility: Visibility::User,
            parts: vec![Part::text(text)],
            created_at: Timestamp::now(),
        }],
        rows: vec![row(id)],
        sessions: vec![session(id, RunStatus::Completed)],
        audit: vec![audited(run, "run.end")],
        holder: Some(agent),
        end: Some(RunEnd { status: RunStatus::Completed, end }),
        claim_next: true,
        ..Append::default()
    }
}

async fn run(tenant: &dyn TenantStore, thread: ThreadId) -> NewRun {
    let request = json!({"overrides": {}, "task": "answer", "rights": [], "trace": null});
    let run = NewRun { max_active: Some(1000), request, ..message(thread, "What is a baton?") };
    let start = RunStart { owner: owner("one"), append: Arc::new(begin(&run)) };
    let (_, started) = tenant.start(run.clone(), start).await.unwrap();
    let claim = started.unwrap().claimed.claim;
    tenant.append(&claim, Arc::new(end(&run))).await.unwrap();
    run
}

/// Runs one after the other, each in a thread of its own, so that none shares a transaction.
async fn many(store: &Database, count: u64) {
    store.beat(&owner("one"), LEASE).await.unwrap();
    let tenant = acme(store);
    run(&*tenant, ThreadId::random()).await;
    let before = store.load();
    for _ in 0..count {
        run(&*tenant, ThreadId::random()).await;
    }
    let after = store.load();
    assert_eq!(after.batches - before.batches, 2 * count, "accept and begin, then end");
    let statements = (after.statements - before.statements) / count;
    println!("{statements} statements per run");
    // Nothing shares a transaction here. Runs that do share most of them: those that begin and commit, those of the audit trail
    // and, on SQLite, those that insert rows.
    assert!(statements <= 27, "{statements} statements per run");
}

/// What a closed store takes, without its audit trail: that has its own tests.
fn bytes(folder: &Path) -> i64 {
    let copy = folder.join("copy.db");
    std::fs::copy(folder.join("baton.db"), &copy).unwrap();
    let file = rusqlite::Connection::open(&copy).unwrap();
    let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    file.execute_batch("DROP TABLE audit; DROP TABLE audit_threads; DROP TABLE audit_names").unwrap();
    let pages = number("PRAGMA page_count") - number("PRAGMA freelist_count");
    pages * number("PRAGMA page_size")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_two_commits_and_few_bytes_on_sqlite() {
    const RUNS: u32 = 400;
    let (store, folder) = fresh_sqlite().await;
    many(&store, 10).await;
    store.close().await.unwrap();
    let before = bytes(folder.path());
    let store = crate::support::open_sqlite(folder.path(), "").await.unwrap();
    many(&store, RUNS.into()).await;
    store.close().await.unwrap();
    let each = (bytes(folder.path()) - before) / i64::from(RUNS + 1);
    println!("{each} bytes per run");
    assert!(each <= 3_200, "{each} bytes per run");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_read_as_it_was_written() {
    let (store, _folder) = fresh_sqlite().await;
    let tenant = acme(&store);
    let new = run(&*tenant, ThreadId::random()).await;
    let record = tenant.run(new.run_id).await.unwrap();
    assert_eq!(record.end.unwrap().answer.as_deref(), Some(ANSWER));
    let steps = tenant.steps(new.run_id).await.unwrap();
    assert!(steps.iter().any(|step| step.data.json()["answer"] == ANSWER));
    assert!(steps.iter().any(|step| step.data.json()["reply"]["text"] == ANSWER));
    let events = tenant.run_events(new.run_id, 0, 10).await.unwrap();
    let is_text = |kind: &EventKind| matches!(kind, EventKind::TextFinished { text, .. } if text == ANSWER);
    assert!(events.iter().any(|event| is_text(&event.kind)), "{events:?}");
    assert_eq!(events, tenant.events(new.thread_id, 0, 10).await.unwrap());
}

/// The text of a message is left out of what is stored beside it, but not out of sessions.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_read_whose_path_is_the_answer() {
    let (store, _folder) = fresh_sqlite().await;
    store.beat(&owner("one"), LEASE).await.unwrap();
    let tenant = acme(&store);
    let new = message(ThreadId::random(), "What is a baton?");
    let start = RunStart { owner: owner("one"), append: Arc::new(begin(&new)) };
    let (_, started) = tenant.start(new.clone(), start).await.unwrap();
    let mut append = end(&new);
    append.sessions[0].path = ANSWER.to_owned();
    append.steps[0].path = ANSWER.to_owned();
    append.sessions.push(SessionChange { path: new.run_id.to_string(), ..append.sessions[0].clone() });
    tenant.append(&started.unwrap().claimed.claim, Arc::new(append)).await.unwrap();
    let sessions = tenant.run_sessions(new.run_id).await.unwrap();
    assert_eq!((sessions.len(), sessions[0].path.as_str()), (1, "assistant"));
    let steps = tenant.steps(new.run_id).await.unwrap();
    assert!(steps.iter().any(|step| step.path == ANSWER));
}

const HOT: &str = "SELECT coalesce(sum(n_tup_upd), 0)::bigint, coalesce(sum(n_tup_hot_upd), 0)::bigint
    FROM pg_stat_all_tables WHERE schemaname = 'baton' AND relname IN ('thread_work', 'servers', 'audit_chains')";

const INDEXES: &str = "SELECT count(*) FROM pg_indexes
    WHERE schemaname = 'baton' AND tablename IN ('thread_work', 'servers', 'audit_chains')";

/// Statistics are published about once a second.
async fn updates(client: &Client, least: i64) -> (i64, i64) {
    loop {
        let row = client.query_one(HOT, &[]).await.unwrap();
        if row.get::<_, i64>(0) >= least {
            return (row.get(0), row.get(1));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_few_statements_and_updates_in_place_on_postgres() {
    const RUNS: u64 = 100;
    let (store, url) = fresh_postgres().await;
    store.beat(&owner("one"), LEASE).await.unwrap();
    let tenant = acme(&store);
    let threads: Vec<ThreadId> = (0..10).map(|_| ThreadId::random()).collect();
    for thread in &threads {
        run(&*tenant, *thread).await;
    }
    let client = connect(&url).await;
    let wal = async || {
        let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    let (before, written) = (store.load(), wal().await);
    for n in 0..RUNS {
        run(&*tenant, threads[usize::try_from(n % 10).unwrap()]).await;
    }
    let (after, written) = (store.load(), wal().await - written);
    assert_eq!(after.batches - before.batches, 2 * RUNS, "accept and begin, then end");
    let statements = (after.statements - before.statements).div_ceil(RUNS);
    println!("{statements} statements and {} bytes of log per run", written / i64::try_from(RUNS).unwrap());
    // Nothing shares a transaction here: six of them begin, name the tenant and commit, and four are the audit trail. One reads the
    // messages before, and open runs are counted now and then.
    assert!(statements <= 17, "{statements} statements per run");
    let before = store.load().statements;
    for _ in 0..RUNS {
        run(&*tenant, ThreadId::random()).await;
    }
    let statements = (store.load().statements - before) / RUNS;
    assert!(statements <= 15, "{statements} statements per run of a new thread");
    let (updated, in_place) = updates(&client, i64::try_from(2 * RUNS).unwrap()).await;
    println!("{in_place} of {updated} updates were made in place");
    // How many it is depends on when pages are pruned; that it is most of them depends on the indexes.
    assert!(in_place * 10 >= updated * 9, "{in_place} of {updated} updates were made in place");
    let indexes = client.query_one(INDEXES, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(indexes, 3, "the primary keys are the only indexes");
}
