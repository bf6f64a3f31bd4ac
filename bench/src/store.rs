//! Durable appends beside a bare loop of single-row transactions on the same disk, and the last messages of a short and of a
//! long thread.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton::core::event::EventKind;
use baton::core::message::{Message, Role, Visibility};
use baton::core::store::run::RunEndData;
use baton::core::store::work::RunEnd;
use baton::core::store::{Append, Claim, MessageQuery, NewEvent, NewRun, Owner, RunStatus};
use baton::core::{AgentName, MessageId, Part, RunId, Store, TenantId, TenantStore, ThreadId, UserId};
use futures_util::future::join_all;
use jiff::Timestamp;
use uuid::Uuid;

use crate::Goals;

const APPENDS: u64 = 6_000;
const BARE: u64 = 2_000;
const READS: usize = 400;

pub fn run(goals: &mut Goals) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let before = bare(&folder.path().join("bare-1.db"));
    let rates = runtime.block_on(async {
        let url = format!("sqlite://{}", folder.path().join("baton.db").display());
        let store = baton_store::open(&url, Path::new("")).await.expect("a store");
        let tenant = store.tenant(&TenantId::parse("bench").expect("an id"));
        let mut rates = Vec::new();
        for writers in [1, 16, 256] {
            rates.push((writers, appends(&tenant, writers).await));
        }
        let (short, long) = last_messages(&tenant).await;
        goals.below("last 20 messages, thread of 100,000 to thread of 100", long / short, 1.5);
        rates
    });
    // Before and after, and the better of both: the disk may have other things to do.
    let bare = before.max(bare(&folder.path().join("bare-2.db")));
    println!("  bare loop of single-row transactions: {bare:.0}/s");
    for (writers, rate) in &rates {
        println!(
            "  {writers:>3} writers: {rate:.0} durable appends/s, {:.1} times the bare loop",
            rate / bare
        );
    }
    let widest = rates.last().map_or(0.0, |(_, rate)| *rate);
    goals.at_least("appends by 256 writers, times the bare loop", widest / bare, 5.0);
}

/// What anybody would write first: the same table, the same care, one transaction per row.
fn bare(path: &Path) -> f64 {
    let connection = rusqlite::Connection::open(path).expect("a file");
    let set_up = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE events (tenant TEXT, thread TEXT, seq INTEGER, body TEXT, PRIMARY KEY (tenant, thread, seq));";
    connection.execute_batch(set_up).expect("a table");
    let body = "x".repeat(200);
    let start = Instant::now();
    for seq in 0..BARE {
        let mut insert =
            connection.prepare_cached("INSERT INTO events VALUES ('bench', 'thread', ?1, ?2)").expect("SQL");
        insert.execute((i64::try_from(seq).expect("small"), &body)).expect("a row");
    }
    rate(BARE, start.elapsed())
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Each writer appends one event after the other to a thread of its own, each append acknowledged before the next.
async fn appends(tenant: &Arc<dyn TenantStore>, writers: u64) -> f64 {
    let claims = join_all((0..writers).map(|_| claimed(tenant))).await;
    let start = Instant::now();
    let work = claims.into_iter().map(|claim| {
        let tenant = Arc::clone(tenant);
        tokio::spawn(async move {
            for number in 1..=APPENDS / writers {
                let append = Append { number, events: vec![event()], ..Append::default() };
                tenant.append(&claim, Arc::new(append)).await.expect("an append");
            }
        })
    });
    join_all(work).await;
    rate(APPENDS / writers * writers, start.elapsed())
}

async fn claimed(tenant: &Arc<dyn TenantStore>) -> Claim {
    let (run_id, thread_id) = (RunId::from_uuid(Uuid::now_v7()), ThreadId::random());
    let (user, agent) = (UserId::parse("u").expect("an id"), AgentName::parse("a").expect("a name"));
    let run = NewRun::new(thread_id, user, agent, message(run_id));
    tenant.accept(run).await.expect("accepted");
    let owner = Owner("bench".into());
    let claimed = tenant.claim(thread_id, &owner).await.expect("a claim");
    claimed.expect("a run").claim
}

fn event() -> NewEvent {
    NewEvent {
        at: Timestamp::now(),
        agent: AgentName::parse("a").expect("a name"),
        path: "a".into(),
        visibility: Visibility::User,
        kind: EventKind::Status { text: "x".repeat(120) },
    }
}

fn message(run_id: RunId) -> Message {
    Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text("x".repeat(200))],
        created_at: Timestamp::now(),
    }
}

/// Medians in milliseconds, of a short thread and of a long one, taken in turns.
async fn last_messages(tenant: &Arc<dyn TenantStore>) -> (f64, f64) {
    let (short, long) = (thread_of(tenant, 100).await, thread_of(tenant, 100_000).await);
    let (mut of_short, mut of_long) = (Vec::new(), Vec::new());
    for _ in 0..READS {
        of_short.push(read(tenant, short).await);
        of_long.push(read(tenant, long).await);
    }
    let (short, long) = (median(&mut of_short), median(&mut of_long));
    println!("  last 20 messages: {short:.3} ms of 100, {long:.3} ms of 100,000");
    (short, long)
}

/// A thread with so many messages, whose run has ended.
pub async fn thread_of(tenant: &Arc<dyn TenantStore>, messages: u64) -> ThreadId {
    let claim = claimed(tenant).await;
    let size = messages.min(1_000);
    let appends = messages / size;
    for number in 1..=appends {
        let messages = (0..size).map(|_| message(claim.run_id)).collect();
        let end = RunEnd { status: RunStatus::Completed, end: RunEndData::default() };
        let end = (number == appends).then_some(end);
        let append = Append { number, messages, end, ..Append::default() };
        tenant.append(&claim, Arc::new(append)).await.expect("an append");
    }
    claim.thread_id
}

async fn read(tenant: &Arc<dyn TenantStore>, thread: ThreadId) -> f64 {
    let start = Instant::now();
    let messages = tenant.messages(thread, MessageQuery::last(20)).await.expect("messages");
    assert_eq!(messages.len(), 20);
    start.elapsed().as_secs_f64() * 1000.0
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
