//! Push notifications of A2A tasks: due when the status of the run has changed.

use std::time::Duration;

use baton_core::store::{PushConfig, PushKey, PushOutcome, PushTarget, RunStatus};
use baton_core::{RunId, Store, StoreError, TenantStore};

use super::fixture::{TestWorker, agent, run_id, tenant, user};

const LEASE: Duration = Duration::from_mins(10);
/// More than a test of this suite creates in a shared database.
const ALL: u32 = 10_000;
const MOST: u32 = 2;

fn config(task: RunId, id: &str) -> PushConfig {
    let target = PushTarget {
        url: format!("https://example.com/{id}"),
        token: Some("a token".to_owned()),
        credentials: None,
        schemes: vec!["Bearer".to_owned()],
        version: "0.3".to_owned(),
        agent: agent("assistant"),
    };
    PushConfig { task, id: id.to_owned(), target }
}

fn key(task: RunId, id: &str) -> PushKey {
    PushKey { task, id: id.to_owned() }
}

/// A configuration of a task.
pub(super) async fn fill(tenant: &dyn TenantStore, task: RunId) {
    tenant.put_push_config(config(task, "filled"), MOST).await.unwrap();
}

async fn is_due(store: &dyn Store, key: &PushKey) -> bool {
    store.due_push(ALL).await.unwrap().iter().any(|(_, due)| due == key)
}

fn done(run: RunId, status: RunStatus, state: &str, recheck: Option<Duration>) -> PushOutcome {
    PushOutcome::Done { run, status, state: state.to_owned(), recheck }
}

/// Also when the process that should deliver it is not there yet.
pub async fn a_status_is_due_until_it_is_delivered(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (task, tenant) = (worker.run, worker.tenant.clone());
    let key = key(task, "one");
    tenant.put_push_config(config(task, "one"), MOST).await.unwrap();
    assert!(is_due(store, &key).await);
    let taken = tenant.take_push(key.clone(), LEASE).await.unwrap().unwrap();
    assert_eq!((taken.delivered.as_str(), taken.attempt), ("", 1));
    assert_eq!((&taken.config, &taken.user_id), (&config(task, "one"), &user("ada")));
    let working = done(task, RunStatus::Running, "working", None);
    tenant.settle_push(key.clone(), taken.until, working).await.unwrap();
    assert!(!is_due(store, &key).await, "the status is the one that was seen");

    worker.end(RunStatus::Completed).await;
    assert!(is_due(store, &key).await, "the status has changed");
    let taken = tenant.take_push(key.clone(), LEASE).await.unwrap().unwrap();
    assert_eq!((taken.delivered.as_str(), taken.attempt), ("working", 1), "attempts begin again");
    let asks = done(task, RunStatus::Completed, "input-required", Some(Duration::ZERO));
    tenant.settle_push(key.clone(), taken.until, asks).await.unwrap();
    assert!(is_due(store, &key).await, "a task that waits for its client is looked at again");
    let taken = tenant.take_push(key.clone(), LEASE).await.unwrap().unwrap();
    tenant.settle_push(key.clone(), taken.until, PushOutcome::Ended).await.unwrap();
    assert!(!is_due(store, &key).await);
    assert_eq!(tenant.take_push(key, LEASE).await, Ok(None));
}

pub async fn a_delivery_is_made_by_one_process_at_a_time(store: &dyn Store) {
    let worker = TestWorker::start(store).await;
    let (task, tenant) = (worker.run, worker.tenant.clone());
    let key = key(task, "one");
    tenant.put_push_config(config(task, "one"), MOST).await.unwrap();
    let (first, second) =
        tokio::join!(tenant.take_push(key.clone(), LEASE), tenant.take_push(key.clone(), LEASE));
    let taken: Vec<_> = [first.unwrap(), second.unwrap()].into_iter().flatten().collect();
    assert_eq!(taken.len(), 1);
    assert!(!is_due(store, &key).await, "while it is taken");
    tenant.settle_push(key.clone(), taken[0].until, PushOutcome::Retry(Duration::ZERO)).await.unwrap();
    assert!(is_due(store, &key).await, "it was not delivered");
    let taken = tenant.take_push(key.clone(), Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(taken.attempt, 2);
    assert!(is_due(store, &key).await, "the process that took it was killed, and its lease is over");
    let late = tenant.take_push(key.clone(), LEASE).await.unwrap().unwrap();
    let mut other = config(task, "one");
    "https://example.org/".clone_into(&mut other.target.url);
    tenant.put_push_config(other, MOST).await.unwrap();
    tenant.settle_push(key.clone(), late.until, PushOutcome::Ended).await.unwrap();
    assert!(is_due(store, &key).await, "the new address was not notified yet");
}

/// They are limited in number, replaced by id, unknown to other tenants, and deleted with the thread.
pub async fn configurations_belong_to_their_task(store: &dyn Store) {
    let worker = TestWorker::start(store).await;
    let (task, owner) = (worker.run, worker.tenant.clone());
    assert_eq!(
        owner.put_push_config(config(run_id(), "one"), MOST).await,
        Err(StoreError::NotFound("run")),
        "of an unknown task"
    );
    for id in ["one", "two"] {
        owner.put_push_config(config(task, id), MOST).await.unwrap();
    }
    let refused = owner.put_push_config(config(task, "three"), MOST).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    let mut other = config(task, "two");
    "https://example.org/".clone_into(&mut other.target.url);
    owner.put_push_config(other.clone(), MOST).await.unwrap();
    assert_eq!(owner.push_configs(task).await.unwrap(), [config(task, "one"), other]);

    let stranger = tenant(store);
    assert_eq!(stranger.push_configs(task).await, Ok(Vec::new()));
    assert_eq!(stranger.delete_push_config(key(task, "one")).await, Ok(false));
    assert_eq!(stranger.take_push(key(task, "one"), LEASE).await, Ok(None));
    let foreign = stranger.put_push_config(config(task, "one"), MOST).await;
    assert_eq!(foreign, Err(StoreError::NotFound("run")));

    assert_eq!(owner.delete_push_config(key(task, "one")).await, Ok(true));
    assert_eq!(owner.delete_push_config(key(task, "one")).await, Ok(false));
    owner.delete_thread(worker.thread, None).await.unwrap();
    assert_eq!(owner.push_configs(task).await, Ok(Vec::new()));
    assert!(!is_due(store, &key(task, "two")).await);
}
