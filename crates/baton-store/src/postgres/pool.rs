//! Connection pools. Connections are opened on demand and replaced when they break.

use std::time::Duration;

use baton_core::StoreError;
use deadpool_postgres::{Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};

use super::address::PostgresAddress;
use super::fault::PostgresFault;

/// Limit for acquiring a connection from the pool, and for opening one.
const PATIENCE: Duration = Duration::from_secs(30);

/// The role a connection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionRole {
    /// The user of the URL, who owns the tables: row-level security does not apply.
    AsLoggedIn,
    /// `baton_app`, which owns nothing: row-level security applies.
    AsApplication,
}

/// Locks are held briefly; a longer wait means that a transaction is stuck. The transaction of a frozen process ends after 5 s,
/// well before its lease, so that it delays other processes only shortly.
const APPLICATION: &str = "SET ROLE baton_app; SET search_path = baton, pg_temp; SET statement_timeout = '60s'; \
     SET lock_timeout = '3s'; SET idle_in_transaction_session_timeout = '5s'";

pub(super) fn build(
    address: &PostgresAddress,
    size: usize,
    session: ConnectionRole,
) -> Result<Pool, StoreError> {
    let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(address.config.clone(), address.tls.clone(), fast);
    let mut builder = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(PATIENCE))
        .create_timeout(Some(PATIENCE));
    if session == ConnectionRole::AsApplication {
        builder = builder.post_create(Hook::async_fn(|client, _| {
            Box::pin(async { client.batch_execute(APPLICATION).await.map_err(HookError::Backend) })
        }));
    }
    builder.build().map_err(|error| StoreError::Failed(error.to_string()))
}

pub(super) async fn client(pool: &Pool) -> Result<Client, PostgresFault> {
    Ok(pool.get().await?)
}
