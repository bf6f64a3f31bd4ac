//! What has outlived its time.

use baton_core::store::{HandoffSession, HandoffState, NewRun, Retention, Swept};
use baton_core::{Store, ThreadId};
use jiff::SignedDuration;
use serde_json::json;

use super::belongings::fill;
use super::fixture::{a_moment, in_seconds, new_run, now, once, tenant};

const KEEP: Retention = Retention { workflow_state: SignedDuration::from_hours(24 * 30) };
const KEEP_NOTHING: Retention = Retention { workflow_state: SignedDuration::ZERO };

/// An open handoff keeps it, however old; one that has ended keeps everything else.
pub async fn c_27_partial_state_goes_when_its_time_is_over(store: &dyn Store) {
    let tenant = tenant(store);
    let owned = fill(&tenant).await;
    a_moment().await;
    assert_eq!(tenant.sweep(KEEP_NOTHING).await, Ok(Swept::default()), "it is still open");
    let open = tenant.handoff(owned.handoff).await.unwrap();
    let ended = HandoffSession { state: HandoffState::Cancelled, ..open };
    let ended = tenant.update_handoff(ended).await.unwrap();
    a_moment().await;
    assert_eq!(tenant.sweep(KEEP).await, Ok(Swept::default()), "it is not old");
    assert_eq!(tenant.resumable_handoffs(owned.thread).await.unwrap().len(), 1);
    let swept = tenant.sweep(KEEP_NOTHING).await.unwrap();
    assert_eq!(swept, Swept { workflow_states: 1, ..Swept::default() });
    assert_eq!(tenant.handoff(owned.handoff).await, Ok(HandoffSession { workflow: None, ..ended }));
    assert_eq!(tenant.resumable_handoffs(owned.thread).await, Ok(Vec::new()));
}

/// Of this tenant only. History stays.
pub async fn what_has_outlived_its_time_goes(store: &dyn Store) {
    let (mine, theirs) = (tenant(store), tenant(store));
    for tenant in [&mine, &theirs] {
        fill(tenant).await;
        tenant.keep("old", json!(1), now()).await.unwrap();
        tenant.keep("new", json!(1), in_seconds(60)).await.unwrap();
        let mut idempotency = once("old", "print");
        idempotency.expires_at = now();
        let run = NewRun { idempotency: Some(idempotency), ..new_run(ThreadId::random(), "Hello") };
        tenant.accept(run).await.unwrap();
    }
    a_moment().await;
    let swept = Swept { workflow_states: 0, idempotency_records: 1, cached_results: 1, spooled_outputs: 0 };
    assert_eq!(mine.sweep(KEEP).await, Ok(swept));
    assert_eq!(mine.sweep(KEEP).await, Ok(Swept::default()), "once");
    assert_eq!(theirs.sweep(KEEP).await, Ok(swept), "nobody else's");
    assert_eq!(mine.cached("new").await, Ok(Some(json!(1))));
    assert_eq!(mine.threads(None, super::fixture::page(10)).await.unwrap().data.len(), 2);
}
