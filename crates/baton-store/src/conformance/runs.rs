//! Runs and what they did.

use baton_core::ledger::{CallOutcome, Called};
use baton_core::store::{Append, RunQuery, RunRecord, RunStatus, SessionRecord};
use baton_core::usage::Cost;
use baton_core::{LedgerRow, RunId, SessionId, Store, StoreError, TenantStore, ThreadId, Tokens, Usage, Usd};

use super::fixture::{
    LEASE, TestWorker, a_moment, agent, call, in_seconds, new_run, now, page, run_id, session, tenant, user,
};

pub async fn the_newest_runs_come_first(store: &dyn Store) {
    let tenant = tenant(store);
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(tenant.accept(new_run(ThreadId::random(), "Hello")).await.unwrap().run_id);
    }
    let (mut request, mut found) = (page(2), Vec::new());
    loop {
        let piece = tenant.runs(RunQuery::default(), request.clone()).await.unwrap();
        found.extend(piece.data);
        match piece.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    assert!(found.is_sorted_by(|a, b| (a.created_at, a.run_id) > (b.created_at, b.run_id)));
    let mut found: Vec<RunId> = found.iter().map(|run| run.run_id).collect();
    found.sort();
    ids.sort();
    assert_eq!(found, ids, "each of them once");
    request.cursor = Some("1".to_owned());
    assert!(tenant.runs(RunQuery::default(), request).await.is_err());
}

pub async fn runs_are_found_by_what_they_are(store: &dyn Store) {
    let tenant = tenant(store);
    let mut of_bob = new_run(ThreadId::random(), "Hello");
    of_bob.user_id = user("bob");
    of_bob.agent = agent("research");
    tenant.accept(of_bob.clone()).await.unwrap();
    let of_ada = new_run(ThreadId::random(), "Hello");
    tenant.accept(of_ada.clone()).await.unwrap();
    TestWorker::claim(&tenant, of_ada.thread_id, LEASE).await;
    let ask = async |query| {
        let found = tenant.runs(query, page(10)).await.unwrap().data;
        found.iter().map(|run| run.run_id).collect::<Vec<RunId>>()
    };
    let any = RunQuery::default;
    let (ada, bob) = ([of_ada.run_id], [of_bob.run_id]);
    assert_eq!(ask(RunQuery { user_id: Some(user("bob")), ..any() }).await, bob);
    assert_eq!(ask(RunQuery { agent: Some(agent("research")), ..any() }).await, bob);
    assert_eq!(ask(RunQuery { status: Some(RunStatus::Running), ..any() }).await, ada);
    assert_eq!(ask(RunQuery { thread_id: Some(of_ada.thread_id), ..any() }).await, ada);
    assert_eq!(
        ask(RunQuery { thread_id: Some(of_ada.thread_id), status: Some(RunStatus::Queued), ..any() }).await,
        []
    );
    let all_of_it = RunQuery {
        thread_id: None,
        user_id: Some(user("bob")),
        agent: Some(agent("research")),
        status: Some(RunStatus::Queued),
        since: Some(in_seconds(-60)),
    };
    assert_eq!(ask(all_of_it.clone()).await, bob);
    for one_is_not in [
        RunQuery { user_id: Some(user("ada")), ..all_of_it.clone() },
        RunQuery { agent: Some(agent("assistant")), ..all_of_it.clone() },
        RunQuery { status: Some(RunStatus::Running), ..all_of_it.clone() },
        RunQuery { status: Some(RunStatus::Completed), ..all_of_it.clone() },
        RunQuery { status: Some(RunStatus::Completed), user_id: None, ..all_of_it.clone() },
        RunQuery { status: Some(RunStatus::Completed), user_id: None, agent: None, ..all_of_it.clone() },
        RunQuery { thread_id: Some(of_ada.thread_id), ..all_of_it.clone() },
        RunQuery { since: Some(in_seconds(60)), ..all_of_it },
    ] {
        assert_eq!(ask(one_is_not).await, []);
    }
    assert_eq!(ask(RunQuery { since: Some(in_seconds(60)), ..any() }).await, []);
    assert_eq!(ask(RunQuery { since: Some(in_seconds(-60)), ..any() }).await.len(), 2);
    let missing = tenant.run(run_id()).await;
    assert_eq!(missing, Err(StoreError::NotFound("run")));
}

/// Of a run and of a session. A cost that is not known makes the sum unknown, never cheaper.
pub async fn usage_is_the_sum_of_the_ledger(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let run = worker.run;
    assert_eq!(worker.tenant.run(run).await.unwrap().usage, Usage::default());
    let rows = vec![
        LedgerRow { started_at: in_seconds(-1), ..call(run, "assistant/turn:2") },
        LedgerRow { started_at: in_seconds(-2), ..call(run, "assistant/turn:1") },
    ];
    worker.append(Append { rows: rows.clone(), ..Append::default() }).await;
    let usage = worker.tenant.run(run).await.unwrap().usage;
    let tokens = Tokens {
        input_tokens: 20,
        output_tokens: 10,
        cached_tokens: 4,
        cache_write_tokens: 6,
        reasoning_tokens: 2,
    };
    assert_eq!(usage, Usage { tokens, cost: Cost::Known(Usd::from_nanos(14)), estimated: false });
    let tool = LedgerRow {
        call: Called::Tool { tool: "web_search".to_owned() },
        tokens: Tokens::default(),
        estimated: true,
        cost: Cost::Unknown(Usd::from_nanos(1)),
        outcome: CallOutcome::Failed,
        error: Some("timeout".to_owned()),
        ..call(run, "assistant/turn:2/tool:1")
    };
    worker.append(Append { rows: vec![tool.clone()], ..Append::default() }).await;
    let usage = worker.tenant.run(run).await.unwrap().usage;
    assert_eq!(usage, Usage { tokens, cost: Cost::Unknown(Usd::from_nanos(15)), estimated: true });
    let kept = worker.tenant.ledger(run).await.unwrap();
    assert_eq!(kept, [rows[1].clone(), rows[0].clone(), tool], "in the order of their beginning");
}

pub async fn numbers_from_a_wire_may_be_as_large_as_they_like(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tokens = Tokens { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Tokens::default() };
    let cost = Cost::Known(Usd::from_nanos(i64::MAX));
    let rows = (0..10).map(|n| LedgerRow {
        tokens,
        cost,
        latency_ms: u64::MAX,
        ..call(worker.run, &format!("{n}"))
    });
    worker.append(Append { rows: rows.collect(), ..Append::default() }).await;
    let usage = worker.tenant.run(worker.run).await.unwrap().usage;
    assert!(usage.tokens.input_tokens > 1_000_000_000_000);
    assert!(usage.cost.known_part().nanos() > 1_000_000_000);
}

/// Parents before children, each with its own calls only; none outlives its run.
pub async fn f9_f15_sessions_form_a_tree(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let root = SessionId::root(worker.run);
    let child = root.child(&agent("research"), 0x1f);
    let grandchild = child.child(&agent("web"), 2);
    let running = |id: &SessionId| session(id, RunStatus::Running);
    let sessions = vec![running(&grandchild), running(&root), running(&child)];
    let rows = vec![call(worker.run, "a"), LedgerRow { session_id: child.clone(), ..call(worker.run, "b") }];
    worker.append(Append { sessions, rows, ..Append::default() }).await;
    let sessions = vec![session(&grandchild, RunStatus::Failed)];
    worker.append(Append { sessions, ..Append::default() }).await;
    let found = all_sessions(&*worker.tenant, worker.thread).await;
    let tree: Vec<(&SessionId, RunStatus)> = found.iter().map(|one| (&one.session_id, one.status)).collect();
    let (running, failed) = (RunStatus::Running, RunStatus::Failed);
    assert_eq!(tree, [(&root, running), (&child, running), (&grandchild, failed)]);
    assert_eq!(found[2].usage, Usage::default());
    assert_eq!((found[0].usage, found[1].usage.tokens.input_tokens), (call(worker.run, "").usage(), 10));
    assert!(found[2].finished_at.is_some() && found[2].started_at <= found[2].finished_at.unwrap());
    worker.end(RunStatus::Completed).await;
    let statuses: Vec<RunStatus> =
        all_sessions(&*worker.tenant, worker.thread).await.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [RunStatus::Completed, RunStatus::Completed, failed]);
    let one = worker.tenant.session(&child).await.unwrap();
    assert_eq!((one.run_id, one.path.as_str(), one.usage), (worker.run, "assistant/2", found[1].usage));
    let of_run = worker.tenant.run_sessions(worker.run).await.unwrap();
    assert_eq!(of_run, all_sessions(&*worker.tenant, worker.thread).await);
    let unknown = worker.tenant.session(&root.child(&agent("x"), 0)).await;
    assert_eq!(unknown, Err(StoreError::NotFound("session")));
}

async fn all_sessions(tenant: &dyn TenantStore, thread: ThreadId) -> Vec<SessionRecord> {
    tenant.sessions(Some(thread), page(10)).await.unwrap().data
}

/// A page has whole runs, the newest first; runs that have not begun have none.
pub async fn sessions_are_listed_run_by_run(store: &dyn Store) {
    let tenant = tenant(store);
    let mut newest_first = Vec::new();
    for _ in 0..3 {
        let mut worker = TestWorker::in_tenant(&tenant).await;
        let root = SessionId::root(worker.run);
        let both = [root.clone(), root.child(&agent("a"), 1)];
        let sessions = both.iter().map(|id| session(id, RunStatus::Running)).collect();
        worker.append(Append { sessions, ..Append::default() }).await;
        newest_first.splice(0..0, both);
        a_moment().await;
    }
    tenant.accept(new_run(ThreadId::random(), "queued")).await.unwrap();
    let first = tenant.sessions(None, page(2)).await.unwrap();
    let mut request = page(2);
    request.cursor.clone_from(&first.next_cursor);
    let rest = tenant.sessions(None, request).await.unwrap();
    assert_eq!((first.data.len(), rest.data.len(), rest.next_cursor), (4, 2, None));
    let found: Vec<SessionId> = first.data.into_iter().chain(rest.data).map(|one| one.session_id).collect();
    assert_eq!(found, newest_first);
    assert_eq!(tenant.sessions(Some(ThreadId::random()), page(1)).await, Err(StoreError::ThreadNotFound));
}

/// Kept so that other properties can compare whole records.
pub(super) fn is_queued(record: &RunRecord) -> bool {
    record.status == RunStatus::Queued
        && record.started_at.is_none()
        && record.finished_at.is_none()
        && record.end.is_none()
        && record.attempts == 0
        && record.created_at <= now()
}
