//! Conversations.

use std::time::Duration;

use std::sync::Arc;

use baton_core::store::{Append, MessageQuery, RunQuery, RunStatus, Thread};
use baton_core::{SessionId, Store, StoreError, TenantStore, ThreadId};

use super::belongings::fill;
use super::fixture::{
    LEASE, TestWorker, a_moment, agent, answered, happened, new_run, once, page, tenant, user,
};

/// A caller names the thread; it exists from its first message on, under that name.
pub async fn a1_a2_a_thread_begins_with_its_first_message(store: &dyn Store) {
    let (tenant, id) = (tenant(store), ThreadId::random());
    assert_eq!(tenant.thread(id, None).await, Err(StoreError::ThreadNotFound));
    let run = new_run(id, "Hello there");
    tenant.accept(run.clone()).await.unwrap();
    let thread = tenant.thread(id, None).await.unwrap();
    let expected = Thread {
        thread_id: id,
        user_id: user("ada"),
        title: "Hello there".to_owned(),
        created_at: thread.created_at,
        updated_at: thread.created_at,
        holder: None,
        handoff: None,
        total_messages: 1,
        last_seq: 0,
        active_run: None,
        queued: 1,
    };
    assert_eq!(thread, expected);
    let messages = tenant.messages(id, MessageQuery::default()).await.unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].number, &messages[0].message), (1, &run.message));
}

pub async fn a10_a_thread_shows_where_it_stands(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, id) = (worker.tenant.clone(), worker.thread);
    let before = tenant.thread(id, None).await.unwrap();
    assert_eq!((before.active_run, before.holder), (Some(worker.run), None));
    // A shorter run does not move its thread again.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let messages = vec![answered(worker.run, "assistant", "Hi"), answered(worker.run, "research", "Hi")];
    let events = vec![happened("one"), happened("two")];
    worker.append(Append { messages, events, holder: Some(agent("research")), ..Append::default() }).await;
    worker.end(RunStatus::Completed).await;
    let after = tenant.thread(id, None).await.unwrap();
    assert_eq!((after.total_messages, after.last_seq, after.active_run), (3, 2, None));
    assert_eq!(after.holder, Some(agent("research")), "an append without a holder leaves it");
    assert_eq!(after.created_at, before.created_at);
    assert!(after.updated_at > before.updated_at);
}

pub async fn last_numbers_of_many_threads_are_read_at_once(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let silent = ThreadId::random();
    worker.tenant.accept(new_run(silent, "Hello")).await.unwrap();
    worker.append(Append { events: vec![happened("one"), happened("two")], ..Append::default() }).await;
    let mut last = worker.tenant.last_seqs(&[worker.thread, ThreadId::random(), silent]).await.unwrap();
    last.sort_by_key(|(_, seq)| *seq);
    assert_eq!(last, [(silent, 0), (worker.thread, 2)], "a thread that does not exist has none");
    assert_eq!(worker.tenant.last_seqs(&[]).await.unwrap(), []);
}

/// I1: a thread is found by its tenant and user, and by no other.
pub async fn a11_only_its_user_finds_a_thread(store: &dyn Store) {
    let (tenant, id) = (tenant(store), ThreadId::random());
    tenant.accept(new_run(id, "Hello")).await.unwrap();
    assert!(tenant.thread(id, Some(&user("ada"))).await.is_ok());
    assert_eq!(tenant.thread(id, Some(&user("bob"))).await, Err(StoreError::ThreadNotFound));
    assert_eq!(tenant.delete_thread(id, Some(&user("bob"))).await, Err(StoreError::ThreadNotFound));
    let mut foreign = new_run(id, "Hello from Bob");
    foreign.user_id = user("bob");
    assert_eq!(tenant.accept(foreign.clone()).await, Err(StoreError::ThreadNotFound));
    foreign.idempotency = Some(once("key", "print"));
    assert_eq!(tenant.accept(foreign).await, Err(StoreError::ThreadNotFound));
    assert_eq!(tenant.thread(id, None).await.unwrap().total_messages, 1, "nothing was written");
    assert!(tenant.delete_thread(id, Some(&user("ada"))).await.is_ok());
}

/// Page by page, for everybody and for one user; a cursor that nobody gave is refused.
pub async fn those_that_were_used_last_come_first(store: &dyn Store) {
    let tenant = tenant(store);
    let mut ids = Vec::new();
    for number in 0..5 {
        let mut run = new_run(ThreadId::random(), "Hello");
        run.user_id = user(if number == 2 { "bob" } else { "ada" });
        ids.push(run.thread_id);
        tenant.accept(run).await.unwrap();
        a_moment().await;
    }
    tenant.accept(new_run(ids[0], "Again")).await.unwrap();
    let newest_first = [ids[0], ids[4], ids[3], ids[2], ids[1]];
    assert_eq!(all_threads(&*tenant, None).await, newest_first);
    let of_ada: Vec<ThreadId> = newest_first.into_iter().filter(|id| *id != ids[2]).collect();
    assert_eq!(all_threads(&*tenant, Some("ada")).await, of_ada);
    let mut request = page(2);
    request.cursor = Some("'; DROP TABLE threads".to_owned());
    let refused = tenant.threads(None, request).await.unwrap_err();
    assert!(refused.to_string().contains("the cursor is not valid"), "{refused}");
}

async fn all_threads(tenant: &dyn TenantStore, of: Option<&str>) -> Vec<ThreadId> {
    let (of, mut request, mut found) = (of.map(user), page(2), Vec::new());
    loop {
        let piece = tenant.threads(of.as_ref(), request.clone()).await.unwrap();
        assert!(piece.data.len() <= 2);
        found.extend(piece.data.iter().map(|thread| thread.thread_id));
        match piece.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => return found,
        }
    }
}

pub async fn a_title_is_one_line(store: &dyn Store) {
    let tenant = tenant(store);
    let title = async |text: &str| {
        let id = ThreadId::random();
        tenant.accept(new_run(id, text)).await.unwrap();
        tenant.thread(id, None).await.unwrap().title
    };
    assert_eq!(title("  one\ntwo\tthree\u{0}\u{7}\n").await, "one two three");
    assert_eq!(title(&"ä".repeat(500)).await, "ä".repeat(80));
    assert_eq!(title("").await, "");
}

/// Wildcards are ordinary characters, and pages are as complete as those of all threads.
pub async fn threads_are_found_by_a_part_of_their_title(store: &dyn Store) {
    let tenant = tenant(store);
    let mut ids = Vec::new();
    for title in ["Plan a TRIP", "50% off_!", "trip to Rome", "Übersicht", "another Trip", "500 off"] {
        let run = new_run(ThreadId::random(), title);
        ids.push(run.thread_id);
        tenant.accept(run).await.unwrap();
        a_moment().await;
    }
    let found = async |of: Option<&str>, text: &str| {
        let (of, mut request, mut found) = (of.map(user), page(1), Vec::new());
        loop {
            let piece = tenant.find_threads(of.as_ref(), text, request.clone()).await.unwrap();
            found.extend(piece.data.iter().map(|thread| thread.thread_id));
            match piece.next_cursor {
                Some(cursor) => request.cursor = Some(cursor),
                None => return found,
            }
        }
    };
    let trips = vec![ids[4], ids[2], ids[0]];
    assert_eq!(found(None, "tRiP").await, trips);
    assert_eq!(found(Some("ada"), "trip").await, trips);
    assert_eq!(found(Some("bob"), "trip").await, []);
    assert_eq!(found(None, "0% o").await, [ids[1]]);
    assert_eq!(found(None, "f_!").await, [ids[1]]);
    assert_eq!(found(None, "Übers").await, [ids[3]]);
    assert_eq!(found(None, "\\").await, []);
    let mut request = page(2);
    request.cursor = Some("nonsense".to_owned());
    assert_eq!(tenant.find_threads(None, "trip", request).await, Err(StoreError::InvalidCursor));
}

pub async fn a_renamed_title_survives_later_messages(store: &dyn Store) {
    let (tenant, id) = (tenant(store), ThreadId::random());
    tenant.accept(new_run(id, "Hello")).await.unwrap();
    let before = tenant.thread(id, None).await.unwrap();
    a_moment().await;
    let renamed = tenant.rename_thread(id, Some(&user("ada")), "Trip to Rome").await.unwrap();
    assert_eq!(renamed, Thread { title: "Trip to Rome".to_owned(), ..before });
    tenant.accept(new_run(id, "And Naples?")).await.unwrap();
    assert_eq!(tenant.thread(id, None).await.unwrap().title, "Trip to Rome");
    let not_found = Err(StoreError::ThreadNotFound);
    assert_eq!(tenant.rename_thread(id, Some(&user("bob")), "Mine").await, not_found);
    assert_eq!(tenant.rename_thread(ThreadId::random(), None, "Nothing").await, not_found);
    assert_eq!(tenant.rename_thread(id, None, "By an administrator").await.unwrap().user_id, user("ada"));
}

pub async fn a_thread_counts_its_queued_runs(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let queued = async |tenant: &dyn TenantStore, id| tenant.thread(id, None).await.unwrap().queued;
    let (tenant, id) = (worker.tenant.clone(), worker.thread);
    assert_eq!(queued(&*tenant, id).await, 0);
    for number in 1..=2 {
        tenant.accept(new_run(id, "Next")).await.unwrap();
        assert_eq!(queued(&*tenant, id).await, number);
    }
    worker.end(RunStatus::Completed).await;
    TestWorker::claim(&tenant, id, LEASE).await;
    assert_eq!(queued(&*tenant, id).await, 1);
}

/// Nothing of it comes back, not even when a thread of the same name begins. The trail says who deleted it.
pub async fn a_deleted_thread_leaves_nothing(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    tenant.delete_thread(owned.thread, Some(&user("ada"))).await.unwrap();
    let not_found = |what| StoreError::NotFound(what);
    let gone = StoreError::ThreadNotFound;
    assert_eq!(tenant.thread(owned.thread, None).await, Err(gone.clone()));
    assert_eq!(tenant.delete_thread(owned.thread, None).await, Err(gone.clone()));
    assert_eq!(tenant.messages(owned.thread, MessageQuery::default()).await, Err(gone.clone()));
    assert_eq!(tenant.events(owned.thread, 0, 10).await, Err(gone.clone()));
    assert_eq!(tenant.artifacts(owned.thread).await, Err(gone.clone()));
    assert_eq!(tenant.hops(owned.thread).await, Err(gone.clone()));
    assert_eq!(tenant.open_handoff_of(owned.thread).await, Err(gone.clone()));
    assert_eq!(tenant.run(owned.run.run_id).await, Err(not_found("run")));
    assert_eq!(tenant.ledger(owned.run.run_id).await, Err(not_found("run")));
    assert_eq!(tenant.session(&SessionId::root(owned.run.run_id)).await, Err(not_found("session")));
    assert_eq!(tenant.handoff(owned.handoff).await, Err(not_found("handoff")));
    assert_eq!(tenant.approval(owned.id).await, Err(not_found("approval")));
    assert_eq!(tenant.artifact(owned.id).await.map(|_| ()), Err(not_found("artifact")));
    assert_eq!(tenant.message(owned.run.message.id).await.map(|_| ()), Err(not_found("message")));
    assert_eq!(tenant.feedback(owned.run.message.id).await, Err(not_found("message")));
    assert_eq!(tenant.runs(RunQuery::default(), page(10)).await.unwrap().data, []);
    assert_eq!(tenant.sessions(None, page(10)).await.unwrap().data, []);
    let patterns = tenant.patterns().await.unwrap();
    assert_eq!((patterns[0].count, patterns[0].liked), (1, 1), "sums stay");

    let again = tenant.accept(owned.run.clone()).await.unwrap();
    assert!(again.is_new, "its idempotency record is gone, too");
    let thread = tenant.thread(owned.thread, None).await.unwrap();
    assert_eq!((thread.total_messages, thread.last_seq, thread.handoff), (1, 0, None));
    assert_eq!(tenant.steps(owned.run.run_id).await.unwrap(), []);
    assert_eq!(tenant.feedback(owned.run.message.id).await.unwrap(), []);
}

pub async fn whoever_works_on_a_deleted_thread_notices(store: &dyn Store) {
    let worker = TestWorker::start(store).await;
    worker.tenant.delete_thread(worker.thread, None).await.unwrap();
    let append = Arc::new(Append { number: 1, events: vec![happened("late")], ..Append::default() });
    let claim = &worker.claimed.claim;
    assert_eq!(worker.tenant.append(claim, append).await, Err(StoreError::Fenced));
    assert_eq!(worker.tenant.claim(worker.thread, &claim.owner).await, Ok(None));
}
