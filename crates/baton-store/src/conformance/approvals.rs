//! Approvals, and the runs that wait for them.

use std::sync::Arc;

use baton_core::store::{
    Append, Approval, ApprovalFilter, ApprovalKind, ApprovalOutcome, ApprovalQuery, ApprovalRequest,
    ApprovalStatus, AuditQuery, Cancel, Decision, MessageQuery, NewRun, Order, PageRequest,
    RememberedDecision, Revocation, RunStatus,
};
use baton_core::{Store, StoreError, TenantStore, ThreadId};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::belongings::{approval, decision, fill, request};
use super::fixture::{
    Home, LEASE, TestWorker, a_moment, ended, in_seconds, new_run, now, page, said, tenant, user,
};

/// The ids of a whole list, read in small pages.
async fn all(tenant: &dyn TenantStore, query: ApprovalQuery) -> Vec<Uuid> {
    let (mut page_request, mut found) = (page(2), Vec::new());
    loop {
        let piece = tenant.approvals(query.clone(), page_request.clone()).await.unwrap();
        found.extend(piece.data.iter().map(|approval| approval.request.approval_id));
        match piece.next_cursor {
            Some(cursor) => page_request.cursor = Some(cursor),
            None => return found,
        }
    }
}

/// A request of its own.
fn asked(created_at: Timestamp, expires_at: Timestamp) -> ApprovalRequest {
    let approval_id = Uuid::new_v4();
    ApprovalRequest {
        approval_id,
        path: format!("assistant/{approval_id}"),
        created_at,
        expires_at,
        ..request()
    }
}

fn fresh() -> ApprovalRequest {
    asked(now(), in_seconds(3600))
}

async fn ask(worker: &mut TestWorker<'_>, requests: &[ApprovalRequest]) {
    worker.append(Append { approvals: requests.to_vec(), ..Append::default() }).await;
}

/// Asks and then parks the run.
async fn park(worker: &mut TestWorker<'_>, requests: &[ApprovalRequest]) {
    ask(worker, requests).await;
    wait_for(worker, requests).await;
}

async fn wait_for(worker: &mut TestWorker<'_>, requests: &[ApprovalRequest]) {
    let waits_for = requests.iter().map(|request| request.approval_id).collect();
    let end = Some(ended(RunStatus::Waiting));
    worker.append(Append { waits_for, end, ..Append::default() }).await;
}

async fn status(tenant: &dyn TenantStore, approval: &ApprovalRequest) -> ApprovalStatus {
    tenant.approval(approval.approval_id).await.unwrap().outcome.status
}

/// An append that is repeated after a crash asks the same again.
pub async fn an_approval_is_stored_once_with_its_append(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let first = tenant.approval(owned.id).await.unwrap();
    assert_eq!(first, approval(&owned));
    assert_eq!(tenant.run_approvals(owned.run.run_id).await, Ok(vec![first.clone()]));
    assert_eq!(tenant.open_approvals(owned.thread).await, Ok(vec![first.clone()]));
    let mut worker = TestWorker::in_tenant(&tenant).await;
    let new = fresh();
    ask(&mut worker, std::slice::from_ref(&new)).await;
    let denied = tenant.decide(decision(new.approval_id, ApprovalStatus::Denied)).await.unwrap();
    ask(&mut worker, std::slice::from_ref(&new)).await;
    assert_eq!(tenant.approval(new.approval_id).await, Ok(denied), "the first decision stays");
    let closed_approvals = vec![(new.approval_id, ApprovalOutcome::closed(ApprovalStatus::Invalidated))];
    worker.append(Append { closed_approvals, ..Append::default() }).await;
    assert_eq!(status(&*tenant, &new).await, ApprovalStatus::Denied);
}

pub async fn a_decision_is_made_once_and_in_time(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let (once, late) = (fresh(), asked(now(), now()));
    ask(&mut worker, &[once.clone(), late.clone()]).await;
    let conflict = Err(StoreError::Conflict("the approval"));
    for wrong in [ApprovalStatus::Pending, ApprovalStatus::Expired, ApprovalStatus::Cancelled] {
        assert_eq!(tenant.decide(decision(once.approval_id, wrong)).await, conflict, "that is no decision");
    }
    let decisions = [ApprovalStatus::Approved, ApprovalStatus::Denied].map(|status| {
        let reason = Some("be\u{0}cause".to_owned());
        tenant.decide(Decision { reason, ..decision(once.approval_id, status) })
    });
    let decisions = join_all(decisions).await;
    let made: Vec<&Approval> = decisions.iter().filter_map(|decision| decision.as_ref().ok()).collect();
    let [made] = made[..] else { panic!("{} were made", made.len()) };
    assert_eq!(made.outcome.decided_by, Some(user("bob")));
    assert_eq!(made.outcome.reason.as_deref(), Some("because"));
    assert!(made.outcome.decided_at.is_some_and(|at| at >= once.created_at));
    assert_eq!(tenant.approval(once.approval_id).await.as_ref(), Ok(made));
    let unknown = tenant.decide(decision(Uuid::new_v4(), ApprovalStatus::Approved)).await;
    assert_eq!(unknown, Err(StoreError::NotFound("approval")));
    a_moment().await;
    assert_eq!(tenant.decide(decision(late.approval_id, ApprovalStatus::Approved)).await, conflict);
    assert_eq!(status(&*tenant, &late).await, ApprovalStatus::Expired);
}

/// The run is claimed ahead of messages that came later, and counts its attempts from one again.
pub async fn a_decision_makes_a_waiting_run_claimable(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, thread, run) = (worker.tenant.clone(), worker.thread, worker.run);
    let (first, second) = (fresh(), fresh());
    park(&mut worker, &[first.clone(), second.clone()]).await;
    assert_eq!(tenant.run(run).await.unwrap().status, RunStatus::Waiting);
    let mut other = {
        tenant.accept(new_run(thread, "meanwhile")).await.unwrap();
        TestWorker::claim(&tenant, thread, LEASE).await
    };
    tenant.accept(new_run(thread, "later")).await.unwrap();
    tenant.decide(decision(first.approval_id, ApprovalStatus::Approved)).await.unwrap();
    assert_eq!(tenant.run(run).await.unwrap().status, RunStatus::Queued);
    tenant.decide(decision(second.approval_id, ApprovalStatus::Denied)).await.unwrap();
    assert_eq!(tenant.thread(thread, None).await.unwrap().queued, 2, "it is queued once");
    other.end(RunStatus::Completed).await;
    let mut resumed = TestWorker::claim(&tenant, thread, LEASE).await;
    assert_eq!((resumed.run, resumed.claimed.run.attempts), (run, 2));
    assert_eq!(tenant.thread(thread, None).await.unwrap().queued, 1);
    resumed.end(RunStatus::Completed).await;
    assert_ne!(TestWorker::claim(&tenant, thread, LEASE).await.run, run);
}

/// The decision comes while other calls of the run are still in progress.
pub async fn an_early_decision_is_not_lost(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run) = (worker.tenant.clone(), worker.run);
    let early = fresh();
    ask(&mut worker, std::slice::from_ref(&early)).await;
    tenant.decide(decision(early.approval_id, ApprovalStatus::Approved)).await.unwrap();
    assert_eq!(tenant.run(run).await.unwrap().status, RunStatus::Running);
    wait_for(&mut worker, std::slice::from_ref(&early)).await;
    assert_eq!(tenant.run(run).await.unwrap().status, RunStatus::Queued);
    assert_eq!(TestWorker::claim(&tenant, worker.thread, LEASE).await.run, run);
}

/// With [`Append::claim_next`] the same worker continues.
pub async fn a_run_that_parks_after_its_decision_is_claimed_again(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let early = fresh();
    ask(&mut worker, std::slice::from_ref(&early)).await;
    worker.tenant.accept(new_run(worker.thread, "later")).await.unwrap();
    worker.tenant.decide(decision(early.approval_id, ApprovalStatus::Denied)).await.unwrap();
    let append = Append {
        number: 2,
        waits_for: vec![early.approval_id],
        end: Some(ended(RunStatus::Waiting)),
        claim_next: true,
        ..Append::default()
    };
    for _ in 0..2 {
        let appended = worker.tenant.append(&worker.claimed.claim, Arc::new(append.clone())).await.unwrap();
        let next = appended.next.expect("it goes on");
        assert_eq!((next.run.run_id, appended.queued), (worker.run, 1), "also if the append is repeated");
    }
}

/// Decisions and the end of the run's other work meet in any order; each run is claimed again.
pub async fn decisions_race_with_parking(store: &dyn Store) {
    let tenant = tenant(store);
    for _ in 0..20 {
        let mut worker = TestWorker::in_tenant(&tenant).await;
        let (run, thread, asked) = (worker.run, worker.thread, fresh());
        ask(&mut worker, std::slice::from_ref(&asked)).await;
        let decide = tenant.decide(decision(asked.approval_id, ApprovalStatus::Approved));
        let (decided, ()) = futures_util::join!(decide, wait_for(&mut worker, std::slice::from_ref(&asked)));
        decided.unwrap();
        assert_eq!(TestWorker::claim(&tenant, thread, LEASE).await.run, run);
    }
}

pub async fn an_overdue_approval_makes_its_run_claimable(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run) = (worker.tenant.clone(), worker.run);
    let (soon, later) = (asked(now(), in_seconds(1)), fresh());
    park(&mut worker, &[soon.clone(), later.clone()]).await;
    let overdue = async || {
        let found = store.overdue_approvals(1000).await.unwrap();
        found.into_iter().filter(|(of, _)| of == tenant.tenant()).map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert!(overdue().await.is_empty());
    let waits = tenant.expire(soon.approval_id).await.unwrap();
    assert_eq!(waits.outcome, ApprovalOutcome::pending(), "not before its time");
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(overdue().await, [soon.approval_id]);
    assert_eq!(tenant.run(run).await.unwrap().status, RunStatus::Waiting);
    let expired = tenant.expire(soon.approval_id).await.unwrap();
    assert_eq!(expired.outcome.status, ApprovalStatus::Expired);
    assert!(expired.outcome.decided_at.is_some() && expired.outcome.decided_by.is_none());
    assert_eq!(tenant.expire(soon.approval_id).await, Ok(expired), "once");
    assert!(overdue().await.is_empty());
    assert_eq!(TestWorker::claim(&tenant, worker.thread, LEASE).await.run, run);
    assert_eq!(status(&*tenant, &later).await, ApprovalStatus::Pending);
}

/// An approval and its expiry meet; exactly one of them is the outcome, and the run knows which.
pub async fn approving_races_with_expiry(store: &dyn Store) {
    let tenant = tenant(store);
    for nth in 0..20_i64 {
        let mut worker = TestWorker::in_tenant(&tenant).await;
        let soon = asked(now(), now() + SignedDuration::from_micros(500 * nth));
        park(&mut worker, std::slice::from_ref(&soon)).await;
        let approve = tenant.decide(decision(soon.approval_id, ApprovalStatus::Approved));
        let expire = async {
            loop {
                let seen = tenant.expire(soon.approval_id).await.unwrap();
                if seen.outcome.status != ApprovalStatus::Pending {
                    return seen;
                }
            }
        };
        let (approved, seen) = futures_util::join!(approve, expire);
        let outcome = tenant.approval(soon.approval_id).await.unwrap().outcome;
        assert_eq!(approved.is_ok(), outcome.status == ApprovalStatus::Approved);
        assert_eq!(seen.outcome, outcome);
        assert_eq!(TestWorker::claim(&tenant, worker.thread, LEASE).await.run, worker.run);
    }
}

pub async fn stopping_a_waiting_run_queues_its_closing_turn(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run, asked) = (worker.tenant.clone(), worker.run, fresh());
    park(&mut worker, std::slice::from_ref(&asked)).await;
    assert_eq!(tenant.cancel_run(run, Cancel::Stop).await, Ok(RunStatus::Queued));
    let mut closing = TestWorker::claim(&tenant, worker.thread, LEASE).await;
    assert_eq!((closing.run, closing.claimed.run.cancel), (run, Some(Cancel::Stop)));
    let closed_approvals = vec![(asked.approval_id, ApprovalOutcome::closed(ApprovalStatus::Cancelled))];
    let end = Some(ended(RunStatus::Completed));
    closing.append(Append { closed_approvals, end, ..Append::default() }).await;
    assert_eq!(status(&*tenant, &asked).await, ApprovalStatus::Cancelled);
    let late = tenant.decide(decision(asked.approval_id, ApprovalStatus::Approved)).await;
    assert_eq!(late, Err(StoreError::Conflict("the approval")));
}

/// A stop that comes while the run is busy is not forgotten when it parks.
pub async fn a_stop_before_parking_queues_the_run(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run, asked) = (worker.tenant.clone(), worker.run, fresh());
    ask(&mut worker, std::slice::from_ref(&asked)).await;
    assert_eq!(tenant.cancel_run(run, Cancel::Stop).await, Ok(RunStatus::Running));
    wait_for(&mut worker, std::slice::from_ref(&asked)).await;
    assert_eq!(TestWorker::claim(&tenant, worker.thread, LEASE).await.run, run);
}

pub async fn aborting_a_waiting_run_closes_its_approvals(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, run) = (worker.tenant.clone(), worker.run);
    let (open, decided) = (fresh(), fresh());
    ask(&mut worker, &[open.clone(), decided.clone()]).await;
    tenant.decide(decision(decided.approval_id, ApprovalStatus::Approved)).await.unwrap();
    wait_for(&mut worker, std::slice::from_ref(&open)).await;
    assert_eq!(tenant.cancel_run(run, Cancel::Abort).await, Ok(RunStatus::Cancelled));
    assert_eq!(status(&*tenant, &open).await, ApprovalStatus::Cancelled);
    assert_eq!(status(&*tenant, &decided).await, ApprovalStatus::Approved);
    assert_eq!(tenant.open_approvals(worker.thread).await, Ok(Vec::new()));
    assert_eq!(tenant.claim(worker.thread, &worker.claimed.claim.owner).await, Ok(None));
}

/// With the message as part of the history, and no new run.
pub async fn a_message_answers_the_only_question(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, thread) = (worker.tenant.clone(), worker.thread);
    let question = ApprovalRequest { kind: ApprovalKind::Question, ..fresh() };
    park(&mut worker, &[question.clone(), fresh()]).await;
    let reply = NewRun { unless_asked: true, ..new_run(thread, "blue") };
    assert_eq!(tenant.accept(reply.clone()).await, Err(StoreError::QuestionOpen));
    let message = said(worker.run, "blue");
    let answered = Decision {
        answer: Some("blue".into()),
        message: Some(message.clone()),
        ..decision(question.approval_id, ApprovalStatus::Answered)
    };
    assert_eq!(tenant.decide(answered).await.unwrap().outcome.answer, Some("blue".into()));
    let history = tenant.messages(thread, MessageQuery::last(10)).await.unwrap();
    assert_eq!((history.len(), history[1].number, history[1].message.id), (2, 2, message.id));
    assert!(tenant.accept(reply).await.is_ok(), "no question is open any more");
    let mut resumed = TestWorker::claim(&tenant, thread, LEASE).await;
    assert_eq!(resumed.run, worker.run);
    let two = [1, 2].map(|_| ApprovalRequest { kind: ApprovalKind::Question, ..fresh() });
    park(&mut resumed, &two).await;
    let ambiguous = NewRun { unless_asked: true, ..new_run(thread, "which?") };
    assert!(tenant.accept(ambiguous).await.is_ok(), "of two questions none is meant");
}

/// It is remembered for its thread only, and revoked once.
pub async fn a_remembered_decision_is_revoked(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let shell = ApprovalRequest { tool: "shell".to_owned(), ..fresh() };
    ask(&mut worker, std::slice::from_ref(&shell)).await;
    let remember = Decision { remember: true, ..decision(shell.approval_id, ApprovalStatus::Approved) };
    tenant.decide(remember).await.unwrap();
    let revocation =
        |thread_id| Revocation { thread_id, tool: "shell".to_owned(), by: user("ada"), trace_id: None };
    let elsewhere = TestWorker::in_tenant(&tenant).await.thread;
    assert_eq!(tenant.forget_decisions(revocation(elsewhere)).await, Ok(false));
    assert_eq!(tenant.remembered_decisions(worker.thread).await.unwrap().len(), 1);
    assert_eq!(tenant.forget_decisions(revocation(worker.thread)).await, Ok(true));
    assert_eq!(tenant.forget_decisions(revocation(worker.thread)).await, Ok(false));
    assert_eq!(tenant.remembered_decisions(worker.thread).await, Ok(Vec::new()));
    let known = tenant.approval(shell.approval_id).await.unwrap();
    assert_eq!((known.outcome.status, known.outcome.remember), (ApprovalStatus::Approved, false));
}

pub async fn the_newest_remembered_decision_counts(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let named = |tool: &str| ApprovalRequest { tool: tool.to_owned(), ..fresh() };
    let asked = [named("shell"), named("shell"), named("write_file"), named("other")];
    ask(&mut worker, &asked).await;
    for (nth, status) in
        [(0, ApprovalStatus::Approved), (1, ApprovalStatus::Denied), (2, ApprovalStatus::Approved)]
    {
        let remember = Decision { remember: true, ..decision(asked[nth].approval_id, status) };
        assert!(tenant.decide(remember).await.unwrap().outcome.remember);
        a_moment().await;
    }
    tenant.decide(decision(asked[3].approval_id, ApprovalStatus::Approved)).await.unwrap();
    let known = |nth: usize, is_approved| RememberedDecision {
        approval_id: asked[nth].approval_id,
        tool: asked[nth].tool.clone(),
        is_approved,
    };
    assert_eq!(tenant.remembered_decisions(worker.thread).await, Ok(vec![known(1, false), known(2, true)]));
    assert_eq!(tenant.remembered_decisions(ThreadId::random()).await, Ok(Vec::new()), "of this thread only");
}

pub async fn decisions_are_in_the_trail(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let trace_id = Some("0af7651916cd43dd8448eb211c80319c".to_owned());
    let decided = Decision { trace_id: trace_id.clone(), ..decision(owned.id, ApprovalStatus::Approved) };
    tenant.decide(decided).await.unwrap();
    let query = AuditQuery { action: Some("approval.decide".to_owned()), ..AuditQuery::default() };
    let found = tenant.audit(query, page(10)).await.unwrap().data;
    let [entry] = &found[..] else { panic!("{found:?}") };
    assert_eq!((entry.entry.actor.as_str(), entry.entry.decision.as_str()), ("bob", "approved"));
    assert_eq!((entry.entry.run_id, &entry.entry.trace_id), (Some(owned.run.run_id), &trace_id));
    assert_eq!(entry.entry.detail["approval_id"], owned.id.to_string());
}

pub async fn the_oldest_approvals_come_first(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let asked: Vec<ApprovalRequest> = (0..5)
        .map(|number| asked(in_seconds(number), if number == 2 { now() } else { in_seconds(60) }))
        .collect();
    ask(&mut worker, &asked).await;
    let ids: Vec<Uuid> = asked.iter().map(|request| request.approval_id).collect();
    tenant.decide(decision(ids[3], ApprovalStatus::Approved)).await.unwrap();
    a_moment().await;
    let of = async |status| all(&*tenant, ApprovalQuery { status, ..ApprovalQuery::default() }).await;
    assert_eq!(of(None).await, ids);
    let pending = [ids[0], ids[1], ids[4]];
    assert_eq!(of(Some(ApprovalFilter::Pending)).await, pending, "one is too late to be decided");
    assert_eq!(of(Some(ApprovalFilter::Expired)).await, [ids[2]]);
    assert_eq!(of(Some(ApprovalFilter::Approved)).await, [ids[3]]);
    assert_eq!(of(Some(ApprovalFilter::Decided)).await, [ids[2], ids[3]], "also one whose time is over");
}

pub async fn approvals_are_listed_in_either_order(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    // Two of the same moment are told apart by their ids.
    let asked: Vec<ApprovalRequest> = (0..5)
        .map(|number| asked(in_seconds(60) + SignedDuration::from_secs(number / 3), in_seconds(3600)))
        .collect();
    ask(&mut worker, &asked).await;
    for nth in [1, 3] {
        tenant.decide(decision(asked[nth].approval_id, ApprovalStatus::Denied)).await.unwrap();
    }
    let (ada, decided, pending) =
        (Some(user("ada")), Some(ApprovalFilter::Decided), Some(ApprovalFilter::Pending));
    for (status, user_id, count) in [
        (None, None, 5),
        (None, ada.clone(), 5),
        (decided, None, 2),
        (decided, ada.clone(), 2),
        (pending, ada, 3),
    ] {
        let in_order = async |order| {
            all(&*tenant, ApprovalQuery { status, user_id: user_id.clone(), order, thread_id: None }).await
        };
        let (up, mut down) = (in_order(Order::Asc).await, in_order(Order::Desc).await);
        assert_eq!(up.len(), count, "{status:?}");
        down.reverse();
        assert_eq!(up, down, "{status:?}");
    }
    for (order, other) in [(Order::Asc, Order::Desc), (Order::Desc, Order::Asc)] {
        let query = |order| ApprovalQuery { order, ..ApprovalQuery::default() };
        let cursor = tenant.approvals(query(order), page(1)).await.unwrap().next_cursor;
        let request = PageRequest { cursor, ..page(1) };
        assert!(tenant.approvals(query(order), request.clone()).await.is_ok());
        assert_eq!(tenant.approvals(query(other), request).await, Err(StoreError::InvalidCursor));
    }
}

pub async fn a_user_sees_the_approvals_of_that_users_threads(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let of_bob = NewRun { user_id: user("bob"), ..new_run(ThreadId::random(), "Hello") };
    let asked = [1, 2, 3].map(|second| asked(in_seconds(second), in_seconds(3600)));
    let mut worker = worker_of(&tenant, of_bob).await;
    ask(&mut worker, &asked).await;
    let ids = asked.map(|request| request.approval_id);
    tenant.decide(decision(ids[1], ApprovalStatus::Approved)).await.unwrap();
    let of = async |status, name: &str| {
        let user_id = Some(user(name));
        all(&*tenant, ApprovalQuery { status, user_id, ..ApprovalQuery::default() }).await
    };
    assert_eq!(of(None, "bob").await, ids);
    assert_eq!(of(None, "ada").await, [owned.id]);
    assert!(of(None, "eve").await.is_empty());
    assert_eq!(of(Some(ApprovalFilter::Pending), "bob").await, [ids[0], ids[2]]);
    assert_eq!(of(Some(ApprovalFilter::Pending), "ada").await, [owned.id]);
    assert_eq!(of(Some(ApprovalFilter::Approved), "bob").await, [ids[1]], "regardless of who decided");
    assert!(of(Some(ApprovalFilter::Approved), "ada").await.is_empty());
}

async fn worker_of<'s>(tenant: &Home<'s>, run: NewRun) -> TestWorker<'s> {
    tenant.accept(run.clone()).await.unwrap();
    TestWorker::claim(tenant, run.thread_id, LEASE).await
}

/// Of its own user, if one is given: a thread of another user has nothing to show.
pub async fn a_list_can_be_of_one_thread(store: &dyn Store) {
    let tenant = tenant(store);
    let (first, second) = (fill(&tenant).await, fill(&tenant).await);
    let of = async |thread_id, status, user_id| {
        all(&*tenant, ApprovalQuery { thread_id, status, user_id, ..ApprovalQuery::default() }).await
    };
    assert_eq!(of(Some(first.thread), None, None).await, [first.id]);
    assert_eq!(of(Some(second.thread), Some(ApprovalFilter::Pending), None).await, [second.id]);
    assert!(of(Some(first.thread), Some(ApprovalFilter::Decided), None).await.is_empty());
    assert!(of(Some(first.thread), None, Some(user("stranger"))).await.is_empty());
}
