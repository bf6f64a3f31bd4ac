//! Cached results with an expiry time.

use baton_core::StoreError;
use baton_core::store::{Cache, Pending};
use jiff::Timestamp;
use serde_json::Value as Json;

use crate::closing::know_tenant;
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{SqlValue, params};

impl Cache for Tenant {
    fn cached(&self, key: &str) -> Pending<'_, Option<Json>> {
        self.read(key.to_owned(), |tx, key| Box::pin(cached(tx, key)))
    }

    fn keep(&self, key: &str, value: Json, expires_at: Timestamp) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, (key.to_owned(), value, expires_at), |tx, (key, value, expires_at)| {
            Box::pin(keep(tx, key, value, *expires_at))
        })
    }
}

async fn cached(tx: &Tx<'_>, key: &str) -> Result<Option<Json>, StoreError> {
    let sql = "SELECT value FROM results WHERE tenant = $1 AND key = $2 AND expires_at > $3";
    tx.first(sql, params![key, tx.now()]).await?.map(|row| row.json(0)).transpose()
}

const KEEP: &str = "
    INSERT INTO results (tenant, key, value, expires_at)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at";

async fn keep(tx: &Tx<'_>, key: &str, value: &Json, expires_at: Timestamp) -> Result<(), StoreError> {
    know_tenant(tx).await?;
    tx.execute(KEEP, params![key, SqlValue::json(value)?, expires_at]).await.map(drop)
}
