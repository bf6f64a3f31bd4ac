//! API keys.

use baton_core::store::ApiKey;
use baton_core::{Permission, Store, StoreError};
use uuid::Uuid;

use super::fixture::{in_seconds, now, tenant, user};

/// Across all tenants, because whoever comes with a key has not said yet whose it is.
pub async fn a_key_is_found_by_its_hash_until_it_is_revoked(store: &dyn Store) {
    let (mine, theirs) = (tenant(store), tenant(store));
    let key = ApiKey {
        key_id: Uuid::new_v4(),
        user_id: user("ada"),
        roles: vec!["admin".to_owned(), "user".to_owned()],
        name: "nightly export".to_owned(),
        scopes: Some(vec![Permission::parse("thread:read").unwrap()]),
        prefix: "bt_1234".to_owned(),
        created_at: now(),
        expires_at: Some(in_seconds(3600)),
        last_used_at: None,
        revoked_at: None,
    };
    let hash = format!("hash-{}", Uuid::new_v4());
    assert_eq!(store.key(&hash).await, Ok(None));
    mine.put_key(key.clone(), &hash).await.unwrap();
    assert_eq!(store.key(&hash).await, Ok(Some((mine.tenant().clone(), key.clone()))));
    assert_eq!(mine.keys().await, Ok(vec![key.clone()]));
    let used = now();
    mine.touch_keys(vec![(Uuid::new_v4(), used), (key.key_id, used)]).await.unwrap();
    theirs.touch_keys(vec![(key.key_id, in_seconds(5))]).await.unwrap();
    mine.touch_keys(vec![(key.key_id, in_seconds(-5))]).await.unwrap();
    let key = ApiKey { last_used_at: Some(used), ..key };
    assert_eq!(mine.keys().await, Ok(vec![key.clone()]), "the latest use of the tenant's own key");
    let taken = Err(StoreError::Conflict("the API key"));
    assert_eq!(mine.put_key(key.clone(), "another hash").await, taken);
    let of_theirs = ApiKey { key_id: Uuid::new_v4(), ..key.clone() };
    assert_eq!(theirs.put_key(of_theirs, &hash).await, taken);
    assert_eq!(theirs.revoke_key(key.key_id).await, Err(StoreError::NotFound("API key")));
    let revoked = mine.revoke_key(key.key_id).await.unwrap();
    assert!(revoked.revoked_at.is_some_and(|at| at >= key.created_at));
    assert_eq!(mine.revoke_key(key.key_id).await, Ok(revoked.clone()), "it stays revoked since then");
    assert_eq!(store.key(&hash).await, Ok(None));
    assert_eq!(mine.keys().await, Ok(vec![revoked.clone()]));
    assert_eq!(mine.put_key(key, &hash).await, taken, "and cannot be given again");
    let revoked = ApiKey { key_id: Uuid::new_v4(), revoked_at: Some(in_seconds(60)), ..revoked };
    let hash = format!("hash-{}", Uuid::new_v4());
    mine.put_key(revoked, &hash).await.unwrap();
    assert_eq!(store.key(&hash).await, Ok(None), "whatever its time says");
}
