//! PostgreSQL migrations. All objects live in the schema `baton`, so the database can be shared.

use baton_core::StoreError;
use deadpool_postgres::{Client, GenericClient};

use super::{MIGRATIONS, development, newer};
use crate::postgres::{FaultKind, PostgresFault};

/// The oldest supported major version. It is the first in which the schema `public` is not writable by every user.
const OLDEST: i32 = 15;
/// Advisory lock held while migrating, so that only one of several starting servers migrates. "BATON" in ASCII.
const LOCK: i64 = 0x42_4154_4F4E;

/// Another server that starts may be migrating.
const WAIT_FOR_MIGRATION: &str = "SET LOCAL lock_timeout = '60s'";
/// While a migration waits for a table, all later statements on that table wait behind it: it gives up before they do harm.
const WAIT_FOR_TABLE: &str = "SET LOCAL lock_timeout = '5s'";

const SCHEMA: &str = "DO $$ BEGIN IF to_regnamespace('baton') IS NULL THEN CREATE SCHEMA baton; END IF; END $$; \
     SET LOCAL search_path = baton, pg_temp; \
     CREATE TABLE IF NOT EXISTS baton_schema (version BIGINT NOT NULL)";
/// Whether the user of the URL may switch to the role `baton_app`.
const IS_MEMBER: &str = "SELECT pg_has_role(current_user, oid, \
     CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) \
     FROM pg_roles WHERE rolname = 'baton_app'";

/// The version, and whether the tables are not those of a development version: the newest of those lacks this column.
const VERSION: &str = "SELECT coalesce(max(version), 0), EXISTS (SELECT FROM pg_attribute \
     WHERE attrelid = to_regclass('baton.hops') AND attname = 'win' AND NOT attisdropped) \
     FROM baton.baton_schema";

/// Migrates the schema, in one transaction. If it is current, membership in `baton_app` suffices.
pub(crate) async fn postgres(client: &mut Client) -> Result<(), StoreError> {
    check_server(client).await?;
    let version = version_as_application(client).await?;
    let known = MIGRATIONS.len() as u64;
    match u64::try_from(version).unwrap_or_default() {
        seen if seen == known => Ok(()),
        seen if seen > known => Err(newer(version)),
        _ => match migrate(client).await {
            Err(fault) if fault.kind == FaultKind::Forbidden => Err(forbidden(client, &fault).await),
            Err(fault) if fault.kind == FaultKind::Locked => Err(locked()),
            migrated => Ok(migrated?),
        },
    }
}

async fn check_server(client: &Client) -> Result<(), PostgresFault> {
    let sql = "SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version')";
    let row = client.query_one(sql, &[]).await?;
    let (number, name): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    Ok(check_version(number, &name)?)
}

fn check_version(number: i32, name: &str) -> Result<(), StoreError> {
    if number >= OLDEST {
        return Ok(());
    }
    let text = format!("it is PostgreSQL {name}, and Baton needs PostgreSQL {OLDEST} or newer");
    Err(StoreError::Failed(text))
}

async fn is_member(client: &impl GenericClient) -> Result<bool, PostgresFault> {
    let member = client.query_opt(IS_MEMBER, &[]).await?;
    Ok(member.map_or(Ok(false), |row| row.try_get(0))?)
}

/// Returns 0 if there is no schema, or none visible to `baton_app`.
async fn version_as_application(client: &Client) -> Result<i64, PostgresFault> {
    if !is_member(client).await? {
        return Ok(0);
    }
    client.batch_execute("SET ROLE baton_app").await?;
    let seen = match version(client).await {
        Err(fault) if fault.kind == FaultKind::Forbidden => Ok(0),
        seen => seen,
    };
    client.batch_execute("RESET ROLE").await?;
    seen
}

async fn version(client: &impl GenericClient) -> Result<i64, PostgresFault> {
    let exists = client.query_one("SELECT to_regclass('baton.baton_schema') IS NOT NULL", &[]).await?;
    if !exists.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row = client.query_one(VERSION, &[]).await?;
    match (row.try_get(0)?, row.try_get(1)?) {
        (1.., false) => Err(development().into()),
        (version, _) => Ok(version),
    }
}

async fn migrate(client: &mut Client) -> Result<(), PostgresFault> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(WAIT_FOR_MIGRATION).await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction.batch_execute(WAIT_FOR_TABLE).await?;
    let version = version(&transaction).await?;
    let seen = usize::try_from(version).unwrap_or_default();
    let Some(missing) = MIGRATIONS.get(seen..) else { return Err(newer(version).into()) };
    if missing.is_empty() && is_member(&transaction).await? {
        // Another server migrated while this one waited for the lock, and may already use the tables.
        return Ok(());
    }
    transaction.batch_execute(SCHEMA).await?;
    for migration in missing {
        transaction.batch_execute(migration).await?;
    }
    transaction.batch_execute(include_str!("../../schema/postgres.sql")).await?;
    let mark = format!("DELETE FROM baton_schema; INSERT INTO baton_schema VALUES ({})", MIGRATIONS.len());
    transaction.batch_execute(&mark).await?;
    Ok(transaction.commit().await?)
}

/// The transaction was rolled back.
fn locked() -> StoreError {
    StoreError::Unavailable(
        "its schema has to be migrated, and a table is locked by a long transaction (see pg_stat_activity) or another server \
         migrates it: nothing was migrated; end the transaction or wait, then start again"
            .to_owned(),
    )
}

/// Names the statements that an administrator has to run once.
async fn forbidden(client: &Client, fault: &PostgresFault) -> StoreError {
    let names = client.query_one("SELECT quote_ident(current_user)::text", &[]).await;
    let user = names.and_then(|row| row.try_get::<_, String>(0)).unwrap_or_else(|_| "…".to_owned());
    let error = match &fault.error {
        StoreError::Failed(text) => text.clone(),
        other => other.to_string(),
    };
    StoreError::Failed(format!(
        "the user {user} may not prepare the database: {error}. An administrator has to run, once and in this database: \
         CREATE ROLE baton_app NOLOGIN; GRANT baton_app TO {user}; CREATE SCHEMA baton AUTHORIZATION {user};"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_named() {
        let refused = check_version(14, "14.11").unwrap_err().to_string();
        assert!(refused.contains("14.11") && refused.contains("15 or newer"), "{refused}");
        assert_eq!(check_version(15, "15.0"), Ok(()));
    }
}
