//! Connections, made when they are needed and replaced when they break.

use std::time::Duration;

use baton_core::StoreError;
use deadpool_postgres::{Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};

use super::address::Address;
use super::fault::Fault;

/// How long a read waits for its turn, and how long connecting may take altogether.
const PATIENCE: Duration = Duration::from_secs(30);

/// Under which role a connection works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// That of the URL, which owns the tables: row-level security does not apply to it.
    AsLoggedIn,
    /// One that owns nothing.
    AsApplication,
}

/// Locks are held for moments; whoever waits longer waits for something that is stuck. A transaction whose process is frozen ends
/// well before a lease does, so that it costs others a moment and not their runs.
const APPLICATION: &str = "SET ROLE baton_app; SET search_path = baton, pg_temp; SET statement_timeout = '60s'; \
     SET lock_timeout = '3s'; SET idle_in_transaction_session_timeout = '5s'";

pub(super) fn build(address: &Address, size: usize, session: Session) -> Result<Pool, StoreError> {
    let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(address.config.clone(), address.tls.clone(), fast);
    let mut builder = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(PATIENCE))
        .create_timeout(Some(PATIENCE));
    if session == Session::AsApplication {
        builder = builder.post_create(Hook::async_fn(|client, _| {
            Box::pin(async { client.batch_execute(APPLICATION).await.map_err(HookError::Backend) })
        }));
    }
    builder.build().map_err(|error| StoreError::Failed(error.to_string()))
}

pub(super) async fn client(pool: &Pool) -> Result<Client, Fault> {
    Ok(pool.get().await?)
}
