//! Guarantees of a batch of jobs, tested with jobs that no caller can send.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tempfile::TempDir;
use tokio::sync::Barrier;
use tokio::task::unconstrained;
use uuid::Uuid;

use super::*;
use crate::tx::Tx;
use crate::value::params;

macro_rules! on_both {
    ($($property:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $property() {
                let (store, _folder) = super::sqlite().await;
                super::$property(store).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $property() {
                super::$property(super::postgres().await.0).await;
            })*
        }
    };
}

on_both!(
    a_job_that_fails_takes_no_other_with_it,
    jobs_of_a_thread_keep_their_order,
    what_waits_is_written_before_it_closes
);

async fn sqlite() -> (Database, TempDir) {
    let folder = TempDir::new().unwrap();
    (crate::open("sqlite://baton.db", folder.path()).await.unwrap(), folder)
}

async fn postgres() -> (Database, String) {
    let server = std::env::var("BATON_TEST_POSTGRES")
        .expect("these tests need a PostgreSQL: start the tests with make test, or set BATON_TEST_POSTGRES");
    let (client, connection) = tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let name = format!("baton_{}", Uuid::new_v4().simple());
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    connection.abort();
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    (crate::open(url.as_str(), folder()).await.unwrap(), url.into())
}

fn folder() -> &'static std::path::Path {
    std::path::Path::new("/")
}

fn acme(store: &Database) -> Tenant {
    Tenant { database: store.clone(), tenant: TenantId::parse("acme").unwrap(), audit: None }
}

fn rival(store: &Database) -> Tenant {
    Tenant { tenant: TenantId::parse("rival").unwrap(), ..acme(store) }
}

/// A random thread, so that jobs can run concurrently.
fn anywhere() -> JobSubject {
    JobSubject::Thread(ThreadId::random())
}

const KEEP: &str = "INSERT INTO results (tenant, key, value, expires_at) VALUES ($1, $2, '', 0)";

async fn keep(tx: &Tx<'_>, key: &str) -> Result<(), StoreError> {
    tx.execute(KEEP, params![key]).await.map(drop)
}

async fn kept(tenant: &Tenant) -> Vec<String> {
    let found = tenant.read((), |tx, ()| {
        Box::pin(async {
            let rows = tx.query("SELECT key FROM results WHERE tenant = $1 ORDER BY key", &[]).await?;
            rows.iter().map(|row| row.text(0).map(str::to_owned)).collect()
        })
    });
    found.await.unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Succeeds,
    IsRefused,
    WritesAndIsRefused,
    WritesAndPanics,
    /// A statement that fails.
    IsWrong,
}

async fn go(tx: &Tx<'_>, way: Way, key: &str) -> Result<(), StoreError> {
    match way {
        Way::Succeeds => keep(tx, key).await,
        Way::IsRefused => Err(StoreError::Fenced),
        Way::WritesAndIsRefused => keep(tx, key).await.and(Err(StoreError::Fenced)),
        Way::WritesAndPanics => {
            keep(tx, key).await?;
            panic!("on purpose")
        }
        Way::IsWrong => {
            keep(tx, key).await?;
            keep(tx, key).await
        }
    }
}

async fn a_job_that_fails_takes_no_other_with_it(store: Database) {
    let tenant = acme(&store);
    let ways = [Way::Succeeds, Way::IsRefused, Way::WritesAndIsRefused, Way::WritesAndPanics, Way::IsWrong];
    let jobs: Vec<(Way, String)> = (0..50).map(|at| (ways[at % ways.len()], format!("{at:02}"))).collect();
    let outcomes = join_all(jobs.iter().cloned().enumerate().map(|(at, job)| {
        let about = if at % 3 == 0 { JobSubject::Tenant } else { anywhere() };
        tenant.write(about, job, |tx, (way, key)| Box::pin(go(tx, *way, key)))
    }));
    for ((way, key), outcome) in jobs.iter().zip(outcomes.await) {
        match way {
            Way::Succeeds => assert_eq!(outcome, Ok(()), "{key}"),
            Way::IsRefused | Way::WritesAndIsRefused => assert_eq!(outcome, Err(StoreError::Fenced), "{key}"),
            Way::WritesAndPanics | Way::IsWrong => {
                assert!(matches!(outcome, Err(StoreError::Failed(_))), "{key}: {outcome:?}");
            }
        }
    }
    let good = jobs.into_iter().filter(|(way, _)| *way == Way::Succeeds).map(|(_, key)| key);
    assert_eq!(kept(&tenant).await, good.collect::<Vec<_>>());
}

async fn jobs_of_a_thread_keep_their_order(store: Database) {
    let tenant = acme(&store);
    let about = anywhere();
    let jobs = (0..100).map(|_| {
        tenant.write(about, (), |tx, ()| {
            Box::pin(async {
                let counted = tx.first("SELECT count(*) FROM results WHERE tenant = $1", &[]).await?;
                let number = counted.map_or(Ok(0), |row| row.int(0))?;
                keep(tx, &number.to_string()).await.map(|()| number)
            })
        })
    });
    let numbers: Vec<i64> = join_all(jobs).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

async fn what_waits_is_written_before_it_closes(store: Database) {
    let tenant = acme(&store);
    let mut waiting: Vec<_> = (0..100)
        .map(|at| tenant.write(anywhere(), format!("{at}"), |tx, key| Box::pin(keep(tx, key))))
        .collect();
    // The first poll queues the job.
    let early: Vec<_> = waiting.iter_mut().map(|write| unconstrained(write).now_or_never()).collect();
    store.close().await.unwrap();
    for (early, write) in early.into_iter().zip(waiting) {
        assert_eq!(
            match early {
                Some(done) => done,
                None => write.await,
            },
            Ok(())
        );
    }
    let late = tenant.write(anywhere(), (), |tx, ()| Box::pin(keep(tx, "late")));
    assert!(matches!(late.await, Err(StoreError::Unavailable(_))));
    let read = tenant.read((), |tx, ()| Box::pin(tx.query("SELECT key FROM results WHERE tenant = $1", &[])));
    assert!(matches!(read.await, Err(StoreError::Unavailable(_))));
}

/// Two keys written in opposite order, with a barrier in between.
struct Crossing {
    keys: [&'static str; 2],
    meet: Arc<Barrier>,
    tries: AtomicU32,
}

async fn cross(tx: &Tx<'_>, crossing: &Crossing) -> Result<u32, StoreError> {
    let tries = crossing.tries.fetch_add(1, Ordering::Relaxed) + 1;
    let sql = "UPDATE results SET expires_at = expires_at + 1 WHERE tenant = $1 AND key = $2";
    tx.execute(sql, params![crossing.keys[0]]).await?;
    if tries == 1 {
        crossing.meet.wait().await;
    }
    tx.execute(sql, params![crossing.keys[1]]).await?;
    Ok(tries)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_lock_each_other_out_both_succeed() {
    let (first, url) = postgres().await;
    let second = crate::open(&url, folder()).await.unwrap();
    for key in ["a", "b"] {
        acme(&first).write(JobSubject::Tenant, key, |tx, key| Box::pin(keep(tx, key))).await.unwrap();
    }
    let meet = Arc::new(Barrier::new(2));
    let go = |store: &Database, keys| {
        let crossing = Crossing { keys, meet: Arc::clone(&meet), tries: AtomicU32::new(0) };
        acme(store).write(JobSubject::Tenant, crossing, |tx, crossing| Box::pin(cross(tx, crossing)))
    };
    let (one, other) = tokio::join!(go(&first, ["a", "b"]), go(&second, ["b", "a"]));
    let tries = one.unwrap() + other.unwrap();
    assert!(tries >= 3, "one of them was chosen to begin again");
    let sum = acme(&first).read((), |tx, ()| {
        Box::pin(tx.first("SELECT CAST(sum(expires_at) AS BIGINT) FROM results WHERE tenant = $1", &[]))
    });
    assert_eq!(sum.await.unwrap().unwrap().int(0), Ok(4), "each counted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_nobody_waits_for_leaves_a_usable_connection() {
    let (store, _) = postgres().await;
    let tenant = acme(&store);
    tenant.write(JobSubject::Tenant, (), |tx, ()| Box::pin(keep(tx, "a"))).await.unwrap();
    let slow = "SELECT key FROM results, pg_sleep(0.02) WHERE tenant = $1";
    for wait in 0..60 {
        let read = tenant.read(slow, |tx, sql| Box::pin(tx.query(sql, &[])));
        let _ = tokio::time::timeout(Duration::from_millis(wait % 20), read).await;
    }
    tenant.write(JobSubject::Tenant, (), |tx, ()| Box::pin(keep(tx, "b"))).await.unwrap();
    let reads = join_all((0..24).map(|_| async { (kept(&tenant).await, kept(&rival(&store)).await) }));
    for (ours, theirs) in reads.await {
        assert_eq!((ours.len(), theirs.len()), (2, 0), "nothing is left of another read");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_forgot_its_tenant_finds_nothing() {
    let (store, _) = postgres().await;
    acme(&store).write(JobSubject::Tenant, (), |tx, ()| Box::pin(keep(tx, "a"))).await.unwrap();
    let all = "SELECT key FROM results WHERE $1 <> ''";
    let found = rival(&store).read(all, |tx, sql| Box::pin(tx.query(sql, &[])));
    assert_eq!(found.await.unwrap(), []);
    let all = "UPDATE results SET value = 'stolen' WHERE $1 <> ''";
    let changed = rival(&store).write(JobSubject::Tenant, all, |tx, sql| Box::pin(tx.execute(sql, &[])));
    assert_eq!(changed.await, Ok(0));
    let foreign = "INSERT INTO results (tenant, key, value, expires_at) VALUES ('acme', $1, '', 0)";
    let refused = rival(&store).write(JobSubject::Tenant, foreign, |tx, sql| Box::pin(tx.execute(sql, &[])));
    assert!(matches!(refused.await, Err(StoreError::Failed(_))));
    assert_eq!(kept(&acme(&store)).await, ["a"]);
}
