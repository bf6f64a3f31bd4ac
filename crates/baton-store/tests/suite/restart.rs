//! A PostgreSQL that crashes while everyone writes.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use baton_core::store::{Claim, MessageQuery};
use baton_core::{StoreError, TenantStore};
use futures_util::future::join_all;

use crate::support::{Server, acme, append, claimed, fresh_database, open_postgres};

const WRITERS: usize = 8;

/// What is true of all writers.
#[derive(Default)]
struct Progress {
    acknowledged: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    async fn further(&self, by: u64) {
        let goal = self.acknowledged.load(Ordering::Relaxed) + by;
        while self.acknowledged.load(Ordering::Relaxed) < goal {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Again until it works. Only errors that pass may come.
async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(mut call: impl FnMut() -> F) -> T {
    loop {
        match call().await {
            Ok(done) => return done,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Appends until it is over; returns the number of each first event.
async fn write(tenant: Arc<dyn TenantStore>, claim: Claim, progress: &Progress) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !progress.is_over.load(Ordering::Relaxed) {
        let next = append(numbers.len() as u64 + 1);
        numbers.push(patiently(|| tenant.append(&claim, Arc::clone(&next))).await.first_seq);
        progress.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    numbers
}

async fn read(tenant: Arc<dyn TenantStore>, claim: Claim, progress: &Progress) {
    while !progress.is_over.load(Ordering::Relaxed) {
        patiently(|| tenant.messages(claim.thread_id, MessageQuery::default())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_append_that_was_acknowledged_is_there_once() {
    let server = Server::start();
    let store = open_postgres(&fresh_database(&server.url).await).await.unwrap();
    let tenant = acme(&store);
    let claims: Vec<Claim> = join_all((0..WRITERS).map(|_| claimed(&*tenant, "one"))).await;

    let progress = Progress::default();
    let writers = join_all(claims.iter().map(|claim| write(Arc::clone(&tenant), claim.clone(), &progress)));
    let crash = async {
        progress.further(100).await;
        for _ in 0..2 {
            tokio::task::block_in_place(|| server.restart("immediate"));
            progress.further(100).await;
        }
        progress.is_over.store(true, Ordering::Relaxed);
    };
    let reader = read(Arc::clone(&tenant), claims[0].clone(), &progress);
    let (written, (), ()) = tokio::join!(writers, reader, crash);

    for (claim, numbers) in claims.iter().zip(written) {
        let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "an append that was repeated has its first numbers");
        let events = tenant.events(claim.thread_id, 0, 1_000_000).await.unwrap();
        let paths: Vec<&str> = events.iter().map(|event| &*event.path).collect();
        let appended: Vec<String> = expected.iter().map(|number| format!("append:{number}")).collect();
        assert_eq!(paths, appended, "each once, in order");
    }
}
