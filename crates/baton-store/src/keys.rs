//! API keys of a tenant.

use baton_core::StoreError;
use baton_core::store::{ApiKey, Keys, Pending};
use uuid::Uuid;

use crate::closing::know_tenant;
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

impl Keys for Tenant {
    fn put_key(&self, key: ApiKey, hash: &str) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, (key, hash.to_owned()), |tx, (key, hash)| Box::pin(put(tx, key, hash)))
    }

    fn keys(&self) -> Pending<'_, Vec<ApiKey>> {
        self.read((), |tx, ()| Box::pin(list(tx)))
    }

    fn revoke_key(&self, key: Uuid) -> Pending<'_, ApiKey> {
        self.write(JobSubject::Tenant, key, |tx, key| Box::pin(revoke(tx, *key)))
    }
}

const PUT: &str = "
    INSERT INTO api_keys (tenant, key_id, hash, user_id, roles, prefix, created_at, revoked_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT DO NOTHING";

/// A hash stays bound to one key of one tenant, even after the key is revoked.
async fn put(tx: &Tx<'_>, key: &ApiKey, hash: &str) -> Result<(), StoreError> {
    let (roles, prefix) = (SqlValue::json(&key.roles)?, key.prefix.as_str());
    let params = params![key.key_id, hash, &key.user_id, roles, prefix, key.created_at, key.revoked_at];
    if tx.execute(PUT, params).await? == 0 {
        return Err(StoreError::Conflict("the API key"));
    }
    know_tenant(tx).await
}

async fn list(tx: &Tx<'_>) -> Result<Vec<ApiKey>, StoreError> {
    let sql = "SELECT key_id, user_id, roles, prefix, created_at, revoked_at
        FROM api_keys
        WHERE tenant = $1
        ORDER BY created_at, key_id";
    tx.query(sql, &[]).await?.iter().map(|row| read(row, 0)).collect()
}

/// Revokes a key. A key that is already revoked keeps its time.
async fn revoke(tx: &Tx<'_>, key: Uuid) -> Result<ApiKey, StoreError> {
    let sql = "
        UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3)
        WHERE tenant = $1 AND key_id = $2
        RETURNING key_id, user_id, roles, prefix, created_at, revoked_at";
    let row = tx.first(sql, params![key, tx.now()]).await?;
    read(&row.ok_or(StoreError::NotFound("API key"))?, 0)
}

/// Reads six columns starting at `at`: id, user, roles, prefix, created, revoked.
pub(crate) fn read(row: &Row, at: usize) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        key_id: row.parse(at)?,
        user_id: row.parse(at + 1)?,
        roles: row.json(at + 2)?,
        prefix: row.text(at + 3)?.to_owned(),
        created_at: row.time(at + 4)?,
        revoked_at: row.optional(at + 5, Row::time)?,
    })
}
