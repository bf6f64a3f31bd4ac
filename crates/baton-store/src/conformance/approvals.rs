//! Decisions that wait for a person.

use baton_core::store::{Approval, ApprovalFilter, ApprovalQuery, ApprovalStatus, Order, PageRequest};
use baton_core::{Store, StoreError, TenantStore, ThreadId};
use futures_util::future::join_all;
use jiff::SignedDuration;
use uuid::Uuid;

use super::belongings::{approval, fill};
use super::fixture::{a_moment, in_seconds, new_run, now, page, run_id, tenant, user};

/// The ids of a whole list, read in small pages.
async fn all(tenant: &dyn TenantStore, query: ApprovalQuery) -> Vec<Uuid> {
    let (mut request, mut found) = (page(2), Vec::new());
    loop {
        let piece = tenant.approvals(query.clone(), request.clone()).await.unwrap();
        found.extend(piece.data.iter().map(|approval| approval.approval_id));
        match piece.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => return found,
        }
    }
}

/// After a crash the same place asks again. It gets what was decided meanwhile.
pub async fn asking_again_gives_the_first_answer(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let first = tenant.approval(owned.id).await.unwrap();
    assert_eq!(
        first,
        Approval { created_at: first.created_at, expires_at: first.expires_at, ..approval(&owned) }
    );
    let again = Approval { approval_id: Uuid::new_v4(), ..approval(&owned) };
    assert_eq!(tenant.ask(again.clone()).await, Ok(first));
    tenant.decide(owned.id, ApprovalStatus::Denied, &user("bob"), Some("no")).await.unwrap();
    assert_eq!(tenant.ask(again.clone()).await.unwrap().status, ApprovalStatus::Denied);
    let elsewhere = Approval { thread_id: ThreadId::random(), ..again.clone() };
    assert_eq!(tenant.ask(elsewhere).await, Err(StoreError::ThreadNotFound));
    let no_run = Approval { run_id: run_id(), ..again };
    assert_eq!(tenant.ask(no_run).await, Err(StoreError::NotFound("run")));
}

pub async fn a_decision_is_made_once_and_in_time(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let (approved, denied) = (ApprovalStatus::Approved, ApprovalStatus::Denied);
    let conflict = Err(StoreError::Conflict("the approval"));
    for status in [ApprovalStatus::Pending, ApprovalStatus::Expired] {
        assert_eq!(
            tenant.decide(owned.id, status, &user("bob"), None).await,
            conflict,
            "that is no decision"
        );
    }
    let bob = user("bob");
    let decisions =
        [approved, denied].map(|status| tenant.decide(owned.id, status, &bob, Some("be\u{0}cause")));
    let decisions = join_all(decisions).await;
    let made: Vec<&Approval> = decisions.iter().filter_map(|decision| decision.as_ref().ok()).collect();
    let [made] = made[..] else { panic!("{} were made", made.len()) };
    assert_eq!((made.decided_by.as_ref(), made.reason.as_deref()), (Some(&bob), Some("because")));
    assert!(made.decided_at.is_some_and(|at| at >= made.created_at));
    assert_eq!(tenant.approval(owned.id).await.as_ref(), Ok(made));
    let unknown = tenant.decide(Uuid::new_v4(), approved, &bob, None).await;
    assert_eq!(unknown, Err(StoreError::NotFound("approval")));

    let (path, expires_at) = ("assistant/turn:2/tool:1".to_owned(), now());
    let late = Approval { approval_id: Uuid::new_v4(), path, expires_at, ..approval(&owned) };
    tenant.ask(late.clone()).await.unwrap();
    a_moment().await;
    assert_eq!(tenant.decide(late.approval_id, approved, &bob, None).await, conflict);
    assert_eq!(tenant.approval(late.approval_id).await.unwrap().status, ApprovalStatus::Expired);
}

pub async fn the_oldest_approvals_come_first(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let mut ids = vec![owned.id];
    for number in 1..=4 {
        let (approval_id, path) = (Uuid::new_v4(), format!("assistant/turn:{number}/tool:9"));
        let expires_at = if number == 2 { now() } else { in_seconds(60) };
        let created_at = in_seconds(number);
        tenant.ask(Approval { approval_id, path, created_at, expires_at, ..approval(&owned) }).await.unwrap();
        ids.push(approval_id);
    }
    tenant.decide(ids[3], ApprovalStatus::Approved, &user("bob"), None).await.unwrap();
    a_moment().await;
    let of = async |status| all(&*tenant, ApprovalQuery { status, ..ApprovalQuery::default() }).await;
    assert_eq!(of(None).await, ids);
    assert_eq!(
        of(Some(ApprovalFilter::Pending)).await,
        [ids[0], ids[1], ids[4]],
        "one is too late to be decided"
    );
    assert_eq!(of(Some(ApprovalFilter::Expired)).await, [ids[2]]);
    assert_eq!(of(Some(ApprovalFilter::Approved)).await, [ids[3]]);
    assert_eq!(of(Some(ApprovalFilter::Decided)).await, [ids[2], ids[3]], "also one whose time is over");
}

pub async fn approvals_are_listed_in_either_order(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let mut ids = vec![owned.id];
    for number in 1..=4 {
        let (approval_id, path) = (Uuid::new_v4(), format!("assistant/turn:{number}/tool:9"));
        // Two of the same moment are told apart by their ids.
        let created_at = in_seconds(60) + SignedDuration::from_secs(i64::from(number / 3));
        tenant.ask(Approval { approval_id, path, created_at, ..approval(&owned) }).await.unwrap();
        ids.push(approval_id);
    }
    for id in [ids[1], ids[3]] {
        tenant.decide(id, ApprovalStatus::Denied, &user("bob"), None).await.unwrap();
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
        let in_order =
            async |order| all(&*tenant, ApprovalQuery { status, user_id: user_id.clone(), order }).await;
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
    let mut of_bob = new_run(ThreadId::random(), "Hello");
    of_bob.user_id = user("bob");
    tenant.accept(of_bob.clone()).await.unwrap();
    let mut ids = Vec::new();
    for turn in 1..=3 {
        let (approval_id, path) = (Uuid::new_v4(), format!("assistant/turn:{turn}/tool:1"));
        let (thread_id, run_id, created_at) = (of_bob.thread_id, of_bob.run_id, in_seconds(turn));
        let new = Approval { approval_id, thread_id, run_id, path, created_at, ..approval(&owned) };
        tenant.ask(new).await.unwrap();
        ids.push(approval_id);
    }
    tenant.decide(ids[1], ApprovalStatus::Approved, &user("ada"), None).await.unwrap();
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
