//! What people think of answers.

use std::sync::Arc;

use baton_core::store::{Append, Feedback, Hop, MessageQuery, Rating};
use baton_core::{MessageId, Store, StoreError, TenantStore, ThreadId, Visibility};
use futures_util::future::join_all;
use uuid::Uuid;

use super::belongings::{Owned, feedback, fill, hop};
use super::fixture::{TestWorker, agent, answered, in_seconds, tenant, user};

fn rated(owned: &Owned, by: &str, rating: Rating) -> Feedback {
    Feedback { user_id: user(by), rating, ..feedback(owned) }
}

/// Good and bad ratings of each way, by where it leads to.
async fn counted(tenant: &dyn TenantStore) -> Vec<(String, u64, u64)> {
    let patterns = tenant.patterns().await.unwrap();
    let mut counted: Vec<_> =
        patterns.into_iter().map(|one| (one.to.to_string(), one.liked, one.disliked)).collect();
    counted.sort();
    counted
}

fn way(to: &str, liked: u64, disliked: u64) -> (String, u64, u64) {
    (to.to_owned(), liked, disliked)
}

/// Of the same user; what others think of it stays.
pub async fn a_later_rating_replaces_an_earlier_one(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let message = owned.run.message.id;
    let first = tenant.feedback(message).await.unwrap();
    assert_eq!(first, [Feedback { at: first[0].at, ..feedback(&owned) }]);
    let of_bob = Feedback { at: in_seconds(1), comment: None, ..rated(&owned, "bob", Rating::Bad) };
    tenant.put_feedback(of_bob.clone()).await.unwrap();
    assert_eq!(tenant.feedback(message).await.unwrap(), [first[0].clone(), of_bob.clone()]);
    let again = Feedback {
        at: in_seconds(2),
        comment: Some("on se\u{0}cond thoughts".to_owned()),
        ..rated(&owned, "ada", Rating::Bad)
    };
    tenant.put_feedback(again.clone()).await.unwrap();
    let kept = Feedback { comment: Some("on second thoughts".to_owned()), ..again };
    assert_eq!(tenant.feedback(message).await.unwrap(), [of_bob, kept], "the oldest first");
    let unknown = MessageId::from_uuid(Uuid::now_v7());
    let lost = Feedback { message_id: unknown, ..feedback(&owned) };
    assert_eq!(tenant.put_feedback(lost).await, Err(StoreError::NotFound("message")));
    assert_eq!(tenant.feedback(unknown).await, Err(StoreError::NotFound("message")));
}

/// For each once, however often the baton went there; a rating that changes moves.
pub async fn a_rating_counts_for_the_ways_of_its_run(store: &dyn Store) {
    let tenant = tenant(store);
    let (owned, other) = (fill(&tenant).await, fill(&tenant).await);
    let again = |to: &str| Hop { hop_id: Uuid::new_v4(), to: agent(to), ..hop(&owned) };
    let elsewhere = Hop { hop_id: Uuid::new_v4(), to: agent("elsewhere"), ..hop(&other) };
    for hop in [again("research"), again("legal"), again("legal"), elsewhere] {
        tenant.record_hop(hop).await.unwrap();
    }
    // Each thread came with one good rating.
    let at_first = [way("elsewhere", 1, 0), way("legal", 1, 0), way("research", 2, 0)];
    assert_eq!(counted(&*tenant).await, at_first);
    tenant.put_feedback(rated(&owned, "bob", Rating::Bad)).await.unwrap();
    let with_bob = [way("elsewhere", 1, 0), way("legal", 1, 1), way("research", 2, 1)];
    assert_eq!(counted(&*tenant).await, with_bob);
    for rating in [Rating::Bad, Rating::Bad, Rating::Good, Rating::Bad] {
        tenant.put_feedback(rated(&owned, "ada", rating)).await.unwrap();
    }
    let moved = [way("elsewhere", 1, 0), way("legal", 0, 2), way("research", 1, 2)];
    assert_eq!(counted(&*tenant).await, moved);
    tenant.delete_thread(owned.thread, None).await.unwrap();
    assert_eq!(counted(&*tenant).await, moved, "what was learnt stays");
}

/// Somebody may rate while the run is still at work.
pub async fn a_rating_counts_for_ways_that_are_taken_later(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    let late = Hop { hop_id: Uuid::new_v4(), to: agent("legal"), ..hop(&owned) };
    for _ in 0..2 {
        tenant.record_hop(late.clone()).await.unwrap();
    }
    tenant.record_hop(Hop { hop_id: Uuid::new_v4(), ..late }).await.unwrap();
    assert_eq!(counted(&*tenant).await, [way("legal", 1, 0), way("research", 1, 0)]);
    tenant.put_feedback(rated(&owned, "ada", Rating::Bad)).await.unwrap();
    assert_eq!(counted(&*tenant).await, [way("legal", 0, 1), way("research", 0, 1)]);
}

pub async fn ratings_at_the_same_time_are_counted_once_each(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = Arc::new(fill(&tenant).await);
    let ratings = (0..60).map(|n: u32| {
        let (tenant, owned) = (tenant.clone(), Arc::clone(&owned));
        async move {
            if n.is_multiple_of(6) {
                let to = agent(&format!("agent-{}", n % 4));
                tenant.record_hop(Hop { hop_id: Uuid::new_v4(), to, ..hop(&owned) }).await
            } else {
                let rating = if n.is_multiple_of(2) { Rating::Good } else { Rating::Bad };
                tenant.put_feedback(rated(&owned, &format!("user-{}", n % 5), rating)).await
            }
        }
    });
    for outcome in join_all(ratings).await {
        outcome.unwrap();
    }
    let kept = tenant.feedback(owned.run.message.id).await.unwrap();
    let count = |rating| kept.iter().filter(|one| one.rating == rating).count() as u64;
    let (liked, disliked) = (count(Rating::Good), count(Rating::Bad));
    assert_eq!(liked + disliked, 6, "Ada and five others");
    let expected = ["agent-0", "agent-2", "research"].map(|to| way(to, liked, disliked));
    assert_eq!(counted(&*tenant).await, expected, "as many as are kept");
}

pub async fn ratings_of_one_user_are_read_for_a_stretch_of_messages(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let answers: Vec<_> = (0..4).map(|_| answered(worker.run, "assistant", "Hi")).collect();
    worker.append(Append { messages: answers.clone(), ..Append::default() }).await;
    let rate = async |message_id, by: &str, rating| {
        let feedback = Feedback { message_id, user_id: user(by), rating, comment: None, at: in_seconds(0) };
        worker.tenant.put_feedback(feedback).await.unwrap();
    };
    for (at, by, rating) in [
        (0, "ada", Rating::Good),
        (1, "ada", Rating::Bad),
        (2, "bob", Rating::Good),
        (3, "ada", Rating::Good),
    ] {
        rate(answers[at].id, by, rating).await;
    }
    // The first message is the person's.
    let mut found = worker.tenant.ratings(worker.thread, &user("ada"), 2..=4).await.unwrap();
    found.sort_by_key(|(message, _)| answers.iter().position(|answer| answer.id == *message));
    assert_eq!(found, [(answers[0].id, Rating::Good), (answers[1].id, Rating::Bad)]);
    let of_bob = worker.tenant.ratings(worker.thread, &user("bob"), 1..=10).await.unwrap();
    assert_eq!(of_bob, [(answers[2].id, Rating::Good)]);
    assert_eq!(worker.tenant.ratings(ThreadId::random(), &user("ada"), 1..=10).await, Ok(Vec::new()));
}

pub async fn a_message_is_found_with_its_thread(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let mut answer = answered(worker.run, "assistant", "Hi");
    answer.visibility = Visibility::Internal;
    worker.append(Append { messages: vec![answer.clone()], ..Append::default() }).await;
    let query = MessageQuery { include_internal: true, ..MessageQuery::default() };
    for message in worker.tenant.messages(worker.thread, query).await.unwrap() {
        let found = worker.tenant.message(message.message.id).await;
        assert_eq!(found, Ok((worker.thread, message)));
    }
    assert_eq!(worker.tenant.message(answer.id).await.unwrap().1.number, 2);
    let unknown = worker.tenant.message(MessageId::from_uuid(Uuid::now_v7())).await;
    assert_eq!(unknown, Err(StoreError::NotFound("message")));
}
