//! Several servers on one PostgreSQL, all at the same time at the same things.

use std::sync::Arc;
use std::time::Duration;

use baton_core::budget::{Amount, BudgetLimit, Budgets, PeriodLimits};
use baton_core::ledger::{CallOutcome, Called};
use baton_core::store::run::Idempotency;
use baton_core::store::{
    Append, ApprovalRequest, ApprovalStatus, AuditQuery, AuditScope, AuditVerdict, Cancel, Claim, Claimed,
    Decision, HandoffNotes, HandoffState, Hop, HopKind, HopOutcome, MessageQuery, NewHandoff, NewRun,
    PageRequest, Reservation, ReservationOutcome, RunEndData, RunQuery, RunStatus, work,
};
use baton_core::usage::Cost;
use baton_core::{
    AgentName, HandoffId, LedgerRow, SessionId, Store as _, StoreError, TenantStore, ThreadId, Tokens, Usd,
};
use baton_store::Database;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::support::{
    LEASE, acme, append, claimed, connect, count, fresh_postgres, message, open_postgres, owner,
};

const SERVERS: usize = 4;

/// Servers with a common database, as one tenant sees them. They last as long as the first value.
async fn servers() -> (Vec<Database>, Vec<Arc<dyn TenantStore>>) {
    let (first, url) = fresh_postgres().await;
    join_servers(first, &url).await
}

async fn join_servers(first: Database, url: &str) -> (Vec<Database>, Vec<Arc<dyn TenantStore>>) {
    let mut stores = vec![first];
    while stores.len() < SERVERS {
        stores.push(open_postgres(url).await.unwrap());
    }
    let tenants = stores.iter().map(acme).collect();
    (stores, tenants)
}

fn agent(name: &str) -> AgentName {
    name.parse().unwrap()
}

async fn is_intact(tenant: &dyn TenantStore) -> bool {
    matches!(tenant.verify_audit(AuditScope::Full).await.unwrap(), AuditVerdict::Intact { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_to_one_thread_get_one_order() {
    let (_stores, servers) = servers().await;
    let thread = ThreadId::random();
    let accepting = (0..80).map(|n| servers[n % SERVERS].accept(message(thread, &n.to_string())));
    let accepted = join_all(accepting).await;
    let mut behind: Vec<_> = accepted.into_iter().filter_map(|accepted| accepted.unwrap().behind).collect();
    behind.sort();
    behind.dedup();
    assert_eq!(behind.len(), 79);
    let query = MessageQuery { limit: 100, ..MessageQuery::default() };
    let messages = servers[0].messages(thread, query).await.unwrap();
    assert!(
        messages.len() == 80 && messages.iter().zip(1..).all(|(message, number)| message.number == number)
    );
    assert!(is_intact(&*servers[1]).await);
    let trail = servers[0].audit(AuditQuery::default(), PageRequest::first(100)).await.unwrap().data;
    assert!(trail.len() == 80 && trail.is_sorted_by_key(|entry| entry.at), "times do not go back");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_to_many_servers_is_done_once() {
    let (_stores, servers) = servers().await;
    for round in 0..10 {
        let request = |fingerprint: &str| NewRun {
            idempotency: Some(Idempotency {
                key: format!("key {round}"),
                fingerprint: fingerprint.to_owned(),
                expires_at: Timestamp::MAX,
            }),
            ..message(ThreadId::random(), "Hello")
        };
        let accepted = join_all((0..12).map(|n| servers[n % SERVERS].accept(request("same")))).await;
        let accepted: Vec<_> = accepted.into_iter().map(Result::unwrap).collect();
        assert_eq!(accepted.iter().filter(|accepted| accepted.is_new).count(), 1);
        assert!(accepted.iter().all(|one| one.run_id == accepted[0].run_id));
        assert_eq!(
            servers[round % SERVERS].accept(request("other")).await,
            Err(StoreError::IdempotencyConflict)
        );
    }
}

/// Runs that this server says are open.
async fn open_runs(tenant: &dyn TenantStore) -> usize {
    let mut open = 0;
    for status in [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting] {
        let query = RunQuery { status: Some(status), ..RunQuery::default() };
        open += tenant.runs(query, PageRequest::first(PageRequest::MAX_LIMIT)).await.unwrap().data.len();
    }
    open
}

/// While others end, are cancelled and are deleted: there are never more, and no place is lost.
#[tokio::test(flavor = "multi_thread")]
async fn as_many_runs_are_open_as_may_be_whoever_accepts_them() {
    const MOST: u32 = 12;
    let (_stores, servers) = servers().await;
    let new = || NewRun { max_active: Some(MOST), ..message(ThreadId::random(), "Hello") };
    for _ in 0..5 {
        let accepting = join_all((0..40).map(async |n| {
            let run = new();
            (run.clone(), servers[n % SERVERS].accept(run).await)
        }));
        let (mut open, mut refused) = (Vec::new(), 0);
        for (run, accepted) in accepting.await {
            match accepted {
                Ok(_) => open.push(run),
                Err(error) => refused += usize::from(error == StoreError::TooManyRuns(MOST)),
            }
        }
        assert_eq!((open.len(), refused), (12, 28));
        assert_eq!(open_runs(&*servers[0]).await, 12);
        let ending = join_all(open.iter().enumerate().map(async |(n, run)| {
            let (here, there) = (&servers[n % SERVERS], &servers[(n + 1) % SERVERS]);
            let cancel = || there.cancel_run(run.run_id, Cancel::Abort);
            // Two that end the same run at once end it once.
            let (cancelled, other) = match n % 2 {
                0 => tokio::join!(cancel(), async { here.delete_thread(run.thread_id, None).await }),
                _ => tokio::join!(cancel(), async {
                    here.cancel_run(run.run_id, Cancel::Stop).await.map(drop)
                }),
            };
            assert!(
                matches!(cancelled, Ok(RunStatus::Cancelled) | Err(StoreError::NotFound("run"))),
                "{cancelled:?}"
            );
            assert_eq!(other, Ok(()));
        }));
        let more = join_all((0..SERVERS * 10).map(|n| servers[n % SERVERS].accept(new())));
        let (_, more) = tokio::join!(ending, more);
        assert!(open_runs(&*servers[0]).await <= 12);
        for accepted in more.into_iter().flatten() {
            servers[0].cancel_run(accepted.run_id, Cancel::Abort).await.unwrap();
        }
    }
    assert!(is_intact(&*servers[0]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_gets_a_run_and_no_other_writes_for_it() {
    let (stores, servers) = servers().await;
    let threads: Vec<ThreadId> = (0..10).map(|_| ThreadId::random()).collect();
    for thread in &threads {
        join_all((0..3).map(|n| servers[n].accept(message(*thread, "Hello")))).await;
    }
    for (n, store) in stores.iter().enumerate() {
        store.beat(&owner(&format!("server {n}")), LEASE).await.unwrap();
    }
    for epoch in 1..=3 {
        for thread in &threads {
            let claims = servers.iter().enumerate().map(async |(n, server)| {
                server.claim(*thread, &owner(&format!("server {n}"))).await.unwrap()
            });
            let won: Vec<Claimed> = join_all(claims).await.into_iter().flatten().collect();
            assert!(won.len() == 1 && won[0].claim.epoch == epoch && won[0].run.attempts == 1);
            let end = work::RunEnd { status: RunStatus::Completed, end: RunEndData::default() };
            let last = Arc::new(Append { number: 2, end: Some(end), ..(*append(2)).clone() });
            for written in
                join_all(servers.iter().map(|server| server.append(&won[0].claim, append(1)))).await
            {
                assert_eq!(
                    written.unwrap().first_seq,
                    epoch * 2 - 1,
                    "repeated elsewhere, it is the same append"
                );
            }
            assert_eq!(servers[0].append(&won[0].claim, last).await.unwrap().first_seq, epoch * 2);
        }
    }
    for thread in threads {
        assert_eq!(servers[0].events(thread, 0, 100).await.unwrap().len(), 6);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c_12_one_server_opens_the_handoff_and_changes_do_not_get_lost() {
    let (_stores, servers) = servers().await;
    for _ in 0..30 {
        let thread = ThreadId::random();
        servers[0].accept(message(thread, "Hello")).await.unwrap();
        let new = || NewHandoff {
            handoff_id: HandoffId::from_uuid(Uuid::new_v4()),
            thread_id: thread,
            user_id: "ada".parse().unwrap(),
            source_agent_id: agent("assistant"),
            target_agent_id: agent("skill-creator"),
            context_summary: String::new(),
            handoff_reason: String::new(),
            metadata: Value::Null,
            notes: HandoffNotes::default(),
            max_open: None,
            activation: None,
        };
        let opened = join_all((0..8).map(|n| servers[n % SERVERS].open_handoff(new()))).await;
        let handoff = opened.iter().find_map(|outcome| outcome.as_ref().ok()).unwrap();
        let refused = Err(StoreError::HandoffActive(handoff.handoff_id));
        assert_eq!(opened.iter().filter(|outcome| **outcome == refused).count(), 7, "{opened:?}");
        let mut changed = handoff.clone();
        changed.state = HandoffState::Completed;
        assert_eq!(servers[0].update_handoff(changed.clone()).await, Err(StoreError::HandoffChanged));
        changed.state = HandoffState::Cancelled;
        let outcomes = join_all(servers.iter().map(|server| server.update_handoff(changed.clone()))).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        // One resumes it while others open new ones: one of them all has the thread.
        let mut resumed = outcomes.into_iter().find_map(Result::ok).unwrap();
        resumed.state = HandoffState::Active;
        let resuming = servers[0].update_handoff(resumed);
        let (resumed, opened) =
            tokio::join!(resuming, join_all((1..SERVERS).map(|n| servers[n].open_handoff(new()))));
        let outcomes: Vec<_> = opened.iter().chain([&resumed]).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        let refused = |outcome: &&&Result<_, _>| matches!(outcome, Err(StoreError::HandoffActive(_)));
        assert_eq!(outcomes.iter().filter(refused).count(), SERVERS - 1, "{outcomes:?}");
    }
}

/// The sums are rows that everybody writes to, in any order.
#[tokio::test(flavor = "multi_thread")]
async fn hops_are_counted_whoever_counts() {
    let (_stores, servers) = servers().await;
    let threads: Vec<ThreadId> = (0..20).map(|_| ThreadId::random()).collect();
    for thread in &threads {
        servers[0].accept(message(*thread, "Hello")).await.unwrap();
    }
    let hops = (0..200).map(|n: usize| {
        let hop = Hop {
            hop_id: Uuid::new_v4(),
            thread_id: threads[n % 20],
            run_id: Some(message(threads[0], "").run_id),
            kind: HopKind::Transfer,
            from: agent("assistant"),
            to: agent(&format!("agent-{}", (n * 7) % 5)),
            reason: String::new(),
            query_class: String::new(),
            outcome: HopOutcome::Completed,
            latency_ms: 1,
            cost: Usd::default(),
            at: Timestamp::now(),
            request: 0,
        };
        servers[n % SERVERS].record_hop(hop)
    });
    for recorded in join_all(hops).await {
        recorded.unwrap();
    }
    let patterns = servers[0].patterns().await.unwrap();
    assert_eq!(patterns.iter().map(|pattern| pattern.count).collect::<Vec<_>>(), [40; 5]);
}

/// Whoever comes too late hears that there is no such thread, or that it was taken away, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_can_be_deleted_while_everybody_writes_to_it() {
    let (stores, servers) = servers().await;
    stores[0].beat(&owner("one"), LEASE).await.unwrap();
    for round in 0..20 {
        let thread = ThreadId::random();
        servers[0].accept(message(thread, "Hello")).await.unwrap();
        let claim = servers[0].claim(thread, &owner("one")).await.unwrap().unwrap().claim;
        let writing = async {
            for number in 1..=20 {
                if let Err(error) = servers[1].append(&claim, append(number)).await {
                    assert_eq!(error, StoreError::Fenced);
                    break;
                }
            }
        };
        let cancelling = async {
            let cancelled = servers[3].cancel_run(claim.run_id, Cancel::Stop).await;
            assert!(
                matches!(cancelled, Ok(RunStatus::Running) | Err(StoreError::NotFound("run"))),
                "{cancelled:?}"
            );
        };
        let deleting = async {
            tokio::time::sleep(Duration::from_millis(round)).await;
            servers[2].delete_thread(thread, None).await.unwrap();
        };
        tokio::join!(writing, cancelling, deleting);
        assert_eq!(servers[0].thread(thread, None).await, Err(StoreError::ThreadNotFound));
    }
    assert!(is_intact(&*servers[0]).await);
}

/// Reserves and settles calls of 100 tokens, until the tenant's day of 5,000 is used up. Returns how many were made.
async fn spend(tenant: Arc<dyn TenantStore>, name: String) -> u64 {
    let thread = ThreadId::random();
    let run = message(thread, "Hello");
    let run_id = run.run_id;
    tenant.accept(run).await.unwrap();
    let claim = tenant.claim(thread, &owner(&name)).await.unwrap().unwrap().claim;
    let limit = BudgetLimit { max_cost_usd: None, max_tokens: Some(5_000) };
    let enough = BudgetLimit { max_cost_usd: None, max_tokens: Some(1_000_000) };
    let (tenant_limits, user_limits) =
        (PeriodLimits { day: limit, month: limit }, PeriodLimits { day: enough, month: enough });
    let budgets = Budgets { tenant: tenant_limits, user: user_limits, thread: enough, ..Budgets::default() };
    let user = name.parse().unwrap();
    let hundred = Amount { nanos: 100, tokens: 100 };
    for made in 0.. {
        let path = format!("a/turn:{made}");
        let (verdict, started_at) = loop {
            let started_at = Timestamp::now();
            let accounts = budgets.accounts(Some(thread), Some(&user), started_at);
            let keys = accounts.iter().map(|account| account.key.clone());
            let recount = if made == 0 { keys.collect() } else { Vec::new() };
            let reserved = tenant.reserve(Reservation {
                thread_id: thread,
                run_id,
                path: path.clone(),
                started_at,
                accounts,
                wanted: hundred,
                least: hundred,
                is_closing: false,
                ttl: LEASE,
                recount,
            });
            match reserved.await.unwrap().verdict {
                ReservationOutcome::Busy => tokio::time::sleep(Duration::from_millis(2)).await,
                verdict => break (verdict, started_at),
            }
        };
        if matches!(verdict, ReservationOutcome::Exhausted { .. }) {
            return made;
        }
        let row = LedgerRow {
            run_id,
            session_id: SessionId::root(run_id),
            agent: agent("assistant"),
            path,
            call: Called::Model { provider: "offline".to_owned(), model: "m".to_owned() },
            tokens: Tokens { output_tokens: 100, ..Tokens::default() },
            estimated: false,
            cost: Cost::Known(Usd::from_nanos(100)),
            started_at,
            latency_ms: 1,
            outcome: CallOutcome::Ok,
            error: None,
        };
        let number = made + 1;
        let settling = Append { number, rows: vec![row], settles_budgets: true, ..Append::default() };
        tenant.append(&claim, Arc::new(settling)).await.unwrap();
    }
    unreachable!("the budget ends")
}

const DEADLOCKS: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

/// Servers that compete for the rest of a tenant's day spend exactly what it allows, and count every call once. Reservations of one
/// user and settled calls of another lock the same accounts, and do not deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_shared_by_all_servers() {
    let (first, url) = fresh_postgres().await;
    let (stores, servers) = join_servers(first, &url).await;
    let mut spending = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        for worker in 0..3 {
            let name = format!("server-{at}-{worker}");
            stores[at].beat(&owner(&name), LEASE).await.unwrap();
            spending.push(tokio::spawn(spend(Arc::clone(server), name)));
        }
    }
    let mut made = 0;
    for one in spending {
        made += one.await.unwrap();
    }
    assert_eq!(made, 50);
    let limit = BudgetLimit { max_cost_usd: None, max_tokens: Some(1) };
    let budgets = Budgets { tenant: PeriodLimits { day: limit, month: limit }, ..Budgets::default() };
    let keys =
        budgets.accounts(None, None, Timestamp::now()).into_iter().map(|account| account.key).collect();
    for state in servers[0].budget_states(keys).await.unwrap() {
        let spent = Amount { nanos: 5_000, tokens: 5_000 };
        assert_eq!((state.spent, state.reserved), (spent, Amount::default()), "{:?}", state.key);
    }
    // A connection publishes what it has counted when it closes.
    for store in stores {
        store.close().await.unwrap();
    }
    assert_eq!(count(&connect(&url).await, DEADLOCKS).await, 0);
}

/// An approval in a thread that a worker has claimed.
async fn asked(tenant: &dyn TenantStore) -> (Claim, Uuid) {
    let claim = claimed(tenant, "one").await;
    let approval_id = Uuid::new_v4();
    let path = format!("assistant/{approval_id}");
    let request = ApprovalRequest {
        approval_id,
        created_at: Timestamp::now(),
        expires_at: Timestamp::now() + LEASE,
        ..ApprovalRequest::of_call(&path, agent("assistant"), "file_write", Value::Null)
    };
    let append = Append { number: 1, approvals: vec![request], ..Append::default() };
    tenant.append(&claim, Arc::new(append)).await.unwrap();
    (claim, approval_id)
}

fn denied(approval_id: Uuid) -> Decision {
    Decision {
        approval_id,
        status: ApprovalStatus::Denied,
        by: "ada".parse().unwrap(),
        reason: None,
        edited: None,
        answer: None,
        remember: false,
        message: None,
        idempotency: None,
        trace_id: None,
    }
}

/// In any order, on any server.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_do_not_deadlock_with_the_runs_that_they_are_for() {
    let (first, url) = fresh_postgres().await;
    let (stores, servers) = join_servers(first, &url).await;
    stores[0].beat(&owner("one"), LEASE).await.unwrap();
    for _ in 0..5 {
        let all = join_all((0..40).map(|_| asked(&*servers[0]))).await;
        let decided = join_all(
            all.iter().zip(0..).map(|((_, approval), n)| servers[n % SERVERS].decide(denied(*approval))),
        );
        let backwards = all.iter().rev().zip(0..);
        let appended =
            join_all(backwards.map(|((claim, _), n)| servers[n % SERVERS].append(claim, append(2))));
        let (decided, appended) = tokio::join!(decided, appended);
        for decided in decided {
            decided.unwrap();
        }
        for appended in appended {
            appended.unwrap();
        }
    }
    for store in stores {
        store.close().await.unwrap();
    }
    assert_eq!(count(&connect(&url).await, DEADLOCKS).await, 0);
}
