//! Results that may be used again.

use baton_core::Store;
use serde_json::json;

use super::fixture::{a_moment, in_seconds, now, tenant};

pub async fn a_result_is_found_while_its_time_lasts(store: &dyn Store) {
    let tenant = tenant(store);
    assert_eq!(tenant.cached("key").await, Ok(None));
    tenant.keep("key", json!({"answer": 42}), in_seconds(60)).await.unwrap();
    assert_eq!(tenant.cached("key").await, Ok(Some(json!({"answer": 42}))));
    assert_eq!(tenant.cached("another key").await, Ok(None));
    tenant.keep("key", json!("new"), in_seconds(60)).await.unwrap();
    assert_eq!(tenant.cached("key").await, Ok(Some(json!("new"))), "the last one counts");
    tenant.keep("key", json!("old"), now()).await.unwrap();
    a_moment().await;
    assert_eq!(tenant.cached("key").await, Ok(None));
}
