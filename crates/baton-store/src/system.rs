//! Queries across tenants.

use std::time::Duration;

use baton_core::store::{AgentsVersion, ApiKey, LeaseRenewal, Owner, PushKey};
use baton_core::{StoreError, TenantId, ThreadId};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::keys;
use crate::postgres::Postgres;
use crate::sqlite::SqliteConnection;
use crate::tenant::Driver;
use crate::value::{Row, SqlValue, params};

/// A query for each database. SQLite's parameters begin at `$2`, as in every statement. PostgreSQL calls a function owned by
/// the tables' owner (see `schema/postgres.sql`).
struct SystemStatement {
    sqlite: &'static str,
    postgres: &'static str,
}

const TENANTS: SystemStatement = SystemStatement {
    sqlite: "SELECT tenant FROM tenants ORDER BY tenant",
    postgres: "SELECT * FROM system_tenants()",
};

const AGENT_VERSIONS: SystemStatement = SystemStatement {
    sqlite: "SELECT tenant, version FROM agent_versions",
    postgres: "SELECT * FROM system_agent_versions()",
};

/// SQLite has no clock with microseconds, so the time is a parameter; PostgreSQL uses its own.
const DUE: SystemStatement = SystemStatement {
    sqlite: "SELECT DISTINCT r.tenant, r.thread_id FROM runs AS r
        JOIN thread_work AS w ON w.tenant = r.tenant AND w.thread_number = r.thread_number
        WHERE r.finished_at IS NULL AND r.status <> 'waiting' AND CASE
            WHEN w.active_run IS NULL THEN r.status = 'queued'
            ELSE r.run_id = w.active_run
                AND NOT EXISTS (SELECT 1 FROM servers AS s WHERE s.owner = w.owner AND s.lease_until >= $3)
        END
        ORDER BY random() LIMIT $2",
    postgres: "SELECT * FROM system_due($1)",
};

/// Served by a partial index of the open approvals.
const DUE_NOTIFICATIONS: SystemStatement = SystemStatement {
    sqlite: "SELECT tenant, approval_id FROM approvals
        WHERE status = 'pending' AND notify_at <= $3 AND expires_at > $3 ORDER BY notify_at LIMIT $2",
    postgres: "SELECT * FROM system_due_notifications($1)",
};

/// Served by a partial index of the tasks whose state still changes. Few of each tenant, so that none waits for the receivers of
/// another.
const DUE_PUSH: SystemStatement = SystemStatement {
    sqlite: "SELECT d.tenant, d.task_id, d.config_id FROM (
            SELECT p.tenant, p.task_id, p.config_id, p.due_at,
                row_number() OVER (PARTITION BY p.tenant ORDER BY p.due_at) AS place
            FROM push_configs AS p JOIN runs AS r ON r.tenant = p.tenant AND r.run_id = p.run_id
            WHERE p.due_at <= $3 AND (p.recheck = 1 OR p.seen <> r.status)
        ) AS d WHERE d.place <= 8 ORDER BY d.due_at LIMIT $2",
    postgres: "SELECT * FROM system_due_push($1)",
};

const OVERDUE: SystemStatement = SystemStatement {
    sqlite: "SELECT tenant, approval_id FROM approvals WHERE status = 'pending' AND expires_at <= $3 LIMIT $2",
    postgres: "SELECT * FROM system_overdue($1)",
};

const OWNERS: &str = "SELECT owner FROM servers ORDER BY owner";

/// Whether the lease has expired while another process had one: 1 or 0. No row if the process has no lease, or had it so long ago
/// that it is forgotten.
const CLAIMABLE: SystemStatement = SystemStatement {
    sqlite: "SELECT s.lease_until < $3 AND EXISTS (
            SELECT 1 FROM servers AS o WHERE o.owner <> s.owner AND o.lease_until >= s.lease_until
        ) FROM servers AS s WHERE s.owner = $2",
    postgres: "SELECT CASE
            WHEN s.lease_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND EXISTS (
                SELECT 1 FROM servers AS o WHERE o.owner <> s.owner AND o.lease_until >= s.lease_until
            ) THEN 1::bigint ELSE 0 END
        FROM servers AS s WHERE s.owner = $1",
};

/// Renews an existing lease.
const RENEW: SystemStatement = SystemStatement {
    sqlite: "UPDATE servers SET lease_until = $3 WHERE owner = $2 RETURNING owner",
    postgres:
        "UPDATE servers SET lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $2
        WHERE owner = $1 RETURNING owner",
};

/// Inserts a lease.
const REGISTER: SystemStatement = SystemStatement {
    sqlite: "INSERT INTO servers (owner, started_at, lease_until) VALUES ($2, $4, $3)",
    postgres: "INSERT INTO servers (owner, started_at, lease_until)
        SELECT $1, clock.now, clock.now + $2
        FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS clock
        ON CONFLICT (owner) DO UPDATE SET lease_until = excluded.lease_until",
};

/// Deletes processes whose lease expired more than 24 h ago.
const FORGET: SystemStatement = SystemStatement {
    sqlite: "DELETE FROM servers WHERE lease_until < $2",
    postgres: "DELETE FROM servers
        WHERE lease_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 86400000000",
};

const CANCELLED: SystemStatement = SystemStatement {
    sqlite: "SELECT r.tenant, r.run_id, r.cancel FROM runs AS r
        JOIN thread_work AS w ON w.tenant = r.tenant AND w.thread_number = r.thread_number
        WHERE r.status = 'running' AND r.cancel IS NOT NULL AND w.active_run = r.run_id AND w.owner = $2",
    postgres: "SELECT * FROM system_cancelled($1)",
};

const CLAIMS: SystemStatement = SystemStatement {
    sqlite: "SELECT count(*) FROM runs AS r
        JOIN thread_work AS w ON w.tenant = r.tenant AND w.thread_number = r.thread_number
        WHERE r.finished_at IS NULL AND r.status <> 'waiting' AND w.active_run = r.run_id AND w.owner = $2",
    postgres: "SELECT system_claims($1)",
};

const RELEASE: SystemStatement = SystemStatement {
    sqlite: "DELETE FROM servers WHERE owner = $2",
    postgres: "DELETE FROM servers WHERE owner = $1",
};

/// Returns a row if the process has the duty now.
const TAKE_DUTY: SystemStatement = SystemStatement {
    sqlite: "INSERT INTO duties (name, owner, lease_until) VALUES ($2, $3, $4)
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
        WHERE duties.owner = excluded.owner OR duties.lease_until < $5
        RETURNING owner",
    postgres: "INSERT INTO duties (name, owner, lease_until)
        SELECT $1, $2, clock.now + $3
        FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS clock
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
        WHERE duties.owner = excluded.owner
            OR duties.lease_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
        RETURNING owner",
};

const UNSEALED: SystemStatement = SystemStatement {
    sqlite: "SELECT tenant FROM audit_chains GROUP BY tenant
        HAVING sum(CASE WHEN chain < 16 THEN entries ELSE -entries END) <> 0
            OR ($2 <> '' AND max(chain = 16 AND entries > 0 AND key_id <> $2))",
    postgres: "SELECT * FROM system_unsealed($1)",
};

const KEY: SystemStatement = SystemStatement {
    sqlite: "SELECT tenant, key_id, user_id, roles, prefix, created_at, revoked_at, name, scopes, expires_at, last_used_at
        FROM api_keys
        WHERE hash = $2 AND revoked_at IS NULL",
    postgres: "SELECT * FROM system_key($1)",
};

const PING: SystemStatement =
    SystemStatement { sqlite: "SELECT 1 FROM tenants LIMIT 1", postgres: "SELECT 1" };

impl Driver {
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.ask(|connection| connection.query(PING.sqlite, "", &[])).await?,
            Self::Postgres(postgres) => postgres.system(PING.postgres, &[]).await?,
        };
        Ok(())
    }

    pub(crate) async fn tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                sqlite.ask(|connection| connection.query(TENANTS.sqlite, "", &[])).await?
            }
            Self::Postgres(postgres) => postgres.system(TENANTS.postgres, &[]).await?,
        };
        rows.iter().map(|row| row.parse(0)).collect()
    }

    pub(crate) async fn agent_versions(&self) -> Result<Vec<AgentsVersion>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                sqlite.ask(|connection| connection.query(AGENT_VERSIONS.sqlite, "", &[])).await?
            }
            Self::Postgres(postgres) => postgres.system(AGENT_VERSIONS.postgres, &[]).await?,
        };
        Ok(readable(&rows, |row| Ok((row.parse(0)?, row.count(1)?))))
    }

    pub(crate) async fn due(&self, limit: u32) -> Result<Vec<(TenantId, ThreadId)>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                let values = [SqlValue::from(limit), SqlValue::from(Timestamp::now())];
                sqlite.ask(move |connection| connection.query(DUE.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => postgres.system(DUE.postgres, params![limit]).await?,
        };
        Ok(readable(&rows, |row| Ok((row.parse(0)?, row.parse(1)?))))
    }

    pub(crate) async fn due_notifications(&self, limit: u32) -> Result<Vec<(TenantId, Uuid)>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                let values = [SqlValue::from(limit), SqlValue::from(Timestamp::now())];
                sqlite.ask(move |connection| connection.query(DUE_NOTIFICATIONS.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => postgres.system(DUE_NOTIFICATIONS.postgres, params![limit]).await?,
        };
        Ok(readable(&rows, |row| Ok((row.parse(0)?, row.parse(1)?))))
    }

    pub(crate) async fn due_push(&self, limit: u32) -> Result<Vec<(TenantId, PushKey)>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                let values = [SqlValue::from(limit), SqlValue::from(Timestamp::now())];
                sqlite.ask(move |connection| connection.query(DUE_PUSH.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => postgres.system(DUE_PUSH.postgres, params![limit]).await?,
        };
        Ok(readable(&rows, |row| {
            let key = PushKey { task: row.parse(1)?, id: row.text(2)?.to_owned() };
            Ok((row.parse(0)?, key))
        }))
    }

    pub(crate) async fn overdue_approvals(&self, limit: u32) -> Result<Vec<(TenantId, Uuid)>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => {
                let values = [SqlValue::from(limit), SqlValue::from(Timestamp::now())];
                sqlite.ask(move |connection| connection.query(OVERDUE.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => postgres.system(OVERDUE.postgres, params![limit]).await?,
        };
        Ok(readable(&rows, |row| Ok((row.parse(0)?, row.parse(1)?))))
    }

    pub(crate) async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let rows = match self {
            Self::Sqlite(sqlite) => sqlite.ask(|connection| connection.query(OWNERS, "", &[])).await?,
            Self::Postgres(postgres) => postgres.system(OWNERS, &[]).await?,
        };
        rows.iter().map(|row| Ok(Owner(row.text(0)?.into()))).collect()
    }

    pub(crate) async fn beat(&self, owner: Owner, lease: Duration) -> Result<LeaseRenewal, StoreError> {
        let (claimable, cancelled) = match self {
            Self::Sqlite(sqlite) => {
                sqlite.change(move |connection| beat_on_sqlite(connection, &owner, lease)).await?
            }
            Self::Postgres(postgres) => beat_on_postgres(postgres, &owner, lease).await?,
        };
        // The first renewal of a process finds no lease, and the process no runs.
        let was_claimable = claimable.first().map_or(Ok(1), |row| row.int(0))? != 0;
        let cancelled = readable(&cancelled, |row| Ok((row.parse(0)?, row.parse(1)?, row.choice(2)?)));
        Ok(LeaseRenewal { cancelled, was_claimable })
    }

    pub(crate) async fn release(&self, owner: Owner) -> Result<u64, StoreError> {
        let owner = [SqlValue::from(&*owner.0)];
        let claims = match self {
            Self::Sqlite(sqlite) => {
                let release = move |connection: &SqliteConnection| {
                    let claims = connection.query(CLAIMS.sqlite, "", &owner)?;
                    connection.execute(RELEASE.sqlite, "", &owner).map(|_| claims)
                };
                sqlite.change(release).await?
            }
            Self::Postgres(postgres) => {
                let claims = postgres.system(CLAIMS.postgres, &owner).await?;
                postgres.system(RELEASE.postgres, &owner).await.map(|_| claims)?
            }
        };
        claims.first().map_or(Ok(0), |row| row.count(0))
    }

    pub(crate) async fn take_duty(
        &self,
        duty: &'static str,
        owner: Owner,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let taken = match self {
            Self::Sqlite(sqlite) => {
                let now = Timestamp::now();
                let until = now.saturating_add(lease).unwrap_or(Timestamp::MAX);
                let values = [
                    SqlValue::from(duty),
                    SqlValue::from(&*owner.0),
                    SqlValue::from(until),
                    SqlValue::from(now),
                ];
                sqlite.change(move |connection| connection.query(TAKE_DUTY.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => {
                let micros = u64::try_from(lease.as_micros()).unwrap_or(u64::MAX).min(1 << 60);
                let values = [SqlValue::from(duty), SqlValue::from(&*owner.0), SqlValue::from(micros)];
                postgres.system(TAKE_DUTY.postgres, &values).await?
            }
        };
        Ok(!taken.is_empty())
    }

    /// Merges SQLite's log into its file, as far as no reader needs it. PostgreSQL does this by itself.
    pub(crate) async fn purge_files(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.change(SqliteConnection::truncate_log).await,
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Tenants whose audit trail has entries after its last seal, or whose last seal was signed with another key than `signer`.
    pub(crate) async fn unsealed(&self, signer: &str) -> Result<Vec<TenantId>, StoreError> {
        let signer = [SqlValue::from(signer)];
        let rows = match self {
            Self::Sqlite(sqlite) => {
                sqlite.ask(move |connection| connection.query(UNSEALED.sqlite, "", &signer)).await?
            }
            Self::Postgres(postgres) => postgres.system(UNSEALED.postgres, &signer).await?,
        };
        rows.iter().map(|row| row.parse(0)).collect()
    }

    pub(crate) async fn key(&self, hash: String) -> Result<Option<(TenantId, ApiKey)>, StoreError> {
        let values = [SqlValue::from(hash)];
        let rows = match self {
            Self::Sqlite(sqlite) => {
                sqlite.ask(move |connection| connection.query(KEY.sqlite, "", &values)).await?
            }
            Self::Postgres(postgres) => postgres.system(KEY.postgres, &values).await?,
        };
        rows.first().map(|row| Ok((row.parse(0)?, keys::read(row, 1)?))).transpose()
    }
}

/// Skips rows that cannot be read, for example because a newer version wrote them: one of them must not stop the other tenants.
fn readable<T>(rows: &[Row], read: impl Fn(&Row) -> Result<T, StoreError>) -> Vec<T> {
    let read =
        |row| read(row).inspect_err(|error| tracing::error!(%error, "a row cannot be read, and is skipped"));
    rows.iter().filter_map(|row| read(row).ok()).collect()
}

/// How long a process is kept after its lease expired.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// The rows of [`CLAIMABLE`] and [`CANCELLED`].
type BeatRows = (Vec<Row>, Vec<Row>);

fn beat_on_sqlite(
    connection: &SqliteConnection,
    owner: &Owner,
    lease: Duration,
) -> Result<BeatRows, StoreError> {
    let now = Timestamp::now();
    let until = now.saturating_add(lease).unwrap_or(Timestamp::MAX);
    let (owner, until) = (SqlValue::from(&*owner.0), SqlValue::from(until));
    let claimable = connection.query(CLAIMABLE.sqlite, "", &[owner.clone(), SqlValue::from(now)])?;
    if connection.query(RENEW.sqlite, "", &[owner.clone(), until.clone()])?.is_empty() {
        connection.execute(REGISTER.sqlite, "", &[owner.clone(), until, SqlValue::from(now)])?;
        let oldest = now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
        connection.execute(FORGET.sqlite, "", params![oldest])?;
    }
    Ok((claimable, connection.query(CANCELLED.sqlite, "", &[owner])?))
}

async fn beat_on_postgres(
    postgres: &Postgres,
    owner: &Owner,
    lease: Duration,
) -> Result<BeatRows, StoreError> {
    let micros = u64::try_from(lease.as_micros()).unwrap_or(u64::MAX);
    let lease = [SqlValue::from(&*owner.0), SqlValue::from(micros.min(1 << 60))];
    let claimable = postgres.system(CLAIMABLE.postgres, &lease[..1]).await?;
    if postgres.system(RENEW.postgres, &lease).await?.is_empty() {
        postgres.system(REGISTER.postgres, &lease).await?;
        postgres.system(FORGET.postgres, &[]).await?;
    }
    Ok((claimable, postgres.system(CANCELLED.postgres, &lease[..1]).await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn only_open_runs_are_looked_at() {
        let due = plan(DUE.sqlite);
        assert!(due[0].starts_with("SCAN r USING INDEX runs_open"), "{due:?}");
        let cancelled = plan(CANCELLED.sqlite);
        assert!(cancelled[0].starts_with("SCAN r USING INDEX runs_to_cancel"), "{cancelled:?}");
        let overdue = plan(OVERDUE.sqlite);
        assert_eq!(overdue, ["SEARCH approvals USING INDEX approvals_by_expiry (expires_at<?)"]);
        for plan in [due, cancelled] {
            assert!(plan[1].starts_with("SEARCH w USING INTEGER PRIMARY KEY"), "{plan:?}");
        }
    }
}
