//! API keys of a tenant.

use baton_core::StoreError;
use baton_core::store::{ApiKey, Keys, Pending};
use jiff::Timestamp;
use uuid::Uuid;

use crate::closing::know_tenant;
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};

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

    fn touch_keys(&self, used: Vec<(Uuid, Timestamp)>) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, used, |tx, used| {
            let rows = used.iter().map(|(key, at)| row_values![*key, *at]);
            Box::pin(tx.execute_each(TOUCH, rows))
        })
    }
}

const PUT: &str = "
    INSERT INTO api_keys (
        tenant, key_id, hash, user_id, roles, prefix, created_at, revoked_at, name, scopes, expires_at, last_used_at
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT DO NOTHING";

/// A hash stays bound to one key of one tenant, even after the key is revoked.
async fn put(tx: &Tx<'_>, key: &ApiKey, hash: &str) -> Result<(), StoreError> {
    let (roles, prefix) = (SqlValue::json(&key.roles)?, key.prefix.as_str());
    let scopes = key.scopes.as_ref().map(SqlValue::json).transpose()?.unwrap_or(SqlValue::Null);
    let (name, expires_at, last_used_at) = (key.name.replace('\0', ""), key.expires_at, key.last_used_at);
    let params = params![
        key.key_id,
        hash,
        &key.user_id,
        roles,
        prefix,
        key.created_at,
        key.revoked_at,
        name,
        scopes,
        expires_at,
        last_used_at
    ];
    if tx.execute(PUT, params).await? == 0 {
        return Err(StoreError::Conflict("the API key"));
    }
    know_tenant(tx).await
}

async fn list(tx: &Tx<'_>) -> Result<Vec<ApiKey>, StoreError> {
    let sql = "SELECT key_id, user_id, roles, prefix, created_at, revoked_at, name, scopes, expires_at, last_used_at
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
        RETURNING key_id, user_id, roles, prefix, created_at, revoked_at, name, scopes, expires_at, last_used_at";
    let row = tx.first(sql, params![key, tx.now()]).await?;
    read(&row.ok_or(StoreError::NotFound("API key"))?, 0)
}

const TOUCH: &str = "
    UPDATE api_keys SET last_used_at = $3
    WHERE tenant = $1 AND key_id = $2 AND (last_used_at IS NULL OR last_used_at < $3)";

/// Reads ten columns starting at `at`: id, user, roles, prefix, created, revoked, name, scopes, expiry, last use.
pub(crate) fn read(row: &Row, at: usize) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        key_id: row.parse(at)?,
        user_id: row.parse(at + 1)?,
        roles: row.json(at + 2)?,
        prefix: row.text(at + 3)?.to_owned(),
        created_at: row.time(at + 4)?,
        revoked_at: row.optional(at + 5, Row::time)?,
        name: row.text(at + 6)?.to_owned(),
        scopes: row.optional(at + 7, Row::json)?,
        expires_at: row.optional(at + 8, Row::time)?,
        last_used_at: row.optional(at + 9, Row::time)?,
    })
}
