//! Whatever three tenants do at the same time, with their own ids and with those of others: each sees exactly its own.
//!
//! Random operations go to a store and to a model of it in memory, and every answer is compared. The tenants use the same few
//! thread ids, so each of them is a thread of one tenant, of several, or of none.

mod model;
mod operation;
mod reading;

use std::sync::Arc;

use baton_core::{Store, TenantId, TenantStore, ThreadId};
use proptest::strategy::Strategy as _;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::support::{LEASE, fresh_postgres, fresh_sqlite, owner};
use model::World;
use operation::{THREADS, operations};

const TENANTS: usize = 3;

/// One database for all cases; each has tenants and threads of its own.
fn check(runtime: &Runtime, store: &dyn Store, cases: u32, length: usize) {
    let config = Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let many = proptest::collection::vec(operations(TENANTS), 1..length);
    let outcome = TestRunner::new(config).run(&many.prop_map(Arc::new), |operations| {
        runtime.block_on(async {
            store.beat(&owner("worker"), LEASE).await.unwrap();
            let mut world = World::new(tenants(store), threads());
            for operation in operations.iter() {
                world.try_out(operation).await;
            }
            world.compare_all().await;
        });
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn tenants(store: &dyn Store) -> Vec<Arc<dyn TenantStore>> {
    let name = || TenantId::parse(&format!("tenant-{}", Uuid::new_v4())).unwrap();
    (0..TENANTS).map(|_| store.tenant(&name())).collect()
}

fn threads() -> Vec<ThreadId> {
    (0..THREADS).map(|_| ThreadId::random()).collect()
}

#[test]
fn a8_h9_tenants_on_sqlite_see_their_own() {
    let runtime = Runtime::new().unwrap();
    let (store, _folder) = runtime.block_on(fresh_sqlite());
    check(&runtime, &store, 24, 60);
}

#[test]
fn a8_h9_tenants_in_memory_see_their_own() {
    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(baton_store::open("sqlite::memory:", std::path::Path::new("."))).unwrap();
    check(&runtime, &store, 100, 150);
}

#[test]
fn a8_h9_tenants_on_postgres_see_their_own() {
    let runtime = Runtime::new().unwrap();
    let (store, _url) = runtime.block_on(fresh_postgres());
    check(&runtime, &store, 12, 60);
}
