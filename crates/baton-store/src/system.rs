//! The few questions that concern all tenants.

use baton_core::store::{ApiKey, Owner};
use baton_core::{StoreError, TenantId, ThreadId};
use jiff::Timestamp;

use crate::keys;
use crate::tenant::Driver;
use crate::value::{Value, params};

/// A question in the words of both databases. SQLite's begins its values at `$2`, as every statement does; PostgreSQL's asks a
/// function that belongs to the owner of the tables (see `schema/postgres.sql`).
struct Question {
    sqlite: &'static str,
    postgres: &'static str,
}

const TENANTS: Question = Question {
    sqlite: "SELECT tenant FROM tenants ORDER BY tenant",
    postgres: "SELECT * FROM system_tenants()",
};

/// SQLite has no clock that counts microseconds, so the moment is a value; PostgreSQL takes its own.
const DUE: Question = Question {
    sqlite: "SELECT tenant, thread_id FROM (
        SELECT * FROM (
            SELECT tenant, thread_id, updated_at AS since FROM threads
            WHERE active_run IS NULL AND queued > 0 ORDER BY updated_at LIMIT $2)
        UNION ALL SELECT * FROM (
            SELECT tenant, thread_id, coalesce(lease_until, 0) AS since FROM threads
            WHERE active_run IS NOT NULL AND (lease_until IS NULL OR lease_until < $3)
            ORDER BY lease_until LIMIT $2)
        ) ORDER BY since LIMIT $2",
    postgres: "SELECT * FROM system_due($1)",
};

const OWNERS: Question = Question {
    sqlite: "SELECT DISTINCT owner FROM threads WHERE active_run IS NOT NULL AND owner IS NOT NULL ORDER BY owner",
    postgres: "SELECT * FROM system_owners()",
};

const RELEASE: Question = Question {
    sqlite: "UPDATE threads SET lease_until = 0 WHERE active_run IS NOT NULL AND owner = $2",
    postgres: "SELECT system_release($1)",
};

const UNSEALED: Question = Question {
    sqlite: "SELECT tenant FROM audit_chains GROUP BY tenant
        HAVING sum(CASE WHEN chain < 16 THEN entries ELSE -entries END) <> 0",
    postgres: "SELECT * FROM system_unsealed()",
};

const KEY: Question = Question {
    sqlite: "SELECT tenant, key_id, user_id, roles, prefix, created_at, revoked_at FROM api_keys
        WHERE hash = $2 AND revoked_at IS NULL",
    postgres: "SELECT * FROM system_key($1)",
};

impl Driver {
    pub(crate) async fn tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                sqlite.ask(|connection| connection.query(TENANTS.sqlite, "", &[])).await?
            }
            Self::Postgres(postgres) => postgres.system(TENANTS.postgres, &[]).await?,
        };
        rows.iter().map(|row| row.parse(0)).collect()
    }

    pub(crate) async fn due(&self, limit: u32) -> Result<Vec<(TenantId, ThreadId)>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                let values = [Value::from(limit), Value::from(Timestamp::now())];
                sqlite.ask(move |connection| connection.query(DUE.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => postgres.system(DUE.postgres, params![limit]).await?,
        };
        rows.iter().map(|row| Ok((row.parse(0)?, row.parse(1)?))).collect()
    }

    pub(crate) async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => sqlite.ask(|connection| connection.query(OWNERS.sqlite, "", &[])).await?,
            Self::Postgres(postgres) => postgres.system(OWNERS.postgres, &[]).await?,
        };
        rows.iter().map(|row| Ok(Owner(row.text(0)?.into()))).collect()
    }

    pub(crate) async fn release(&self, owner: Owner) -> Result<u64, StoreError> {
        match self {
            Self::Sqlite(sqlite) => {
                let values = [Value::from(&*owner.0)];
                sqlite.change(move |connection| connection.execute(RELEASE.sqlite, "", &values)).await
            }
            Self::Postgres(postgres) => {
                let rows = postgres.system(RELEASE.postgres, params![&*owner.0]).await?;
                rows.first().map_or(Ok(0), |row| row.count(0))
            }
        }
    }

    /// Tenants whose audit trail has entries after its last seal.
    pub(crate) async fn unsealed(&self) -> Result<Vec<TenantId>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                sqlite.ask(|connection| connection.query(UNSEALED.sqlite, "", &[])).await?
            }
            Self::Postgres(postgres) => postgres.system(UNSEALED.postgres, &[]).await?,
        };
        rows.iter().map(|row| row.parse(0)).collect()
    }

    pub(crate) async fn key(&self, hash: String) -> Result<Option<(TenantId, ApiKey)>, StoreError> {
        let values = [Value::from(hash)];
        let rows = match self {
            Self::Sqlite(sqlite) => {
                sqlite.ask(move |connection| connection.query(KEY.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => postgres.system(KEY.postgres, &values).await?,
        };
        rows.first().map(|row| Ok((row.parse(0)?, keys::read(row, 1)?))).transpose()
    }
}
