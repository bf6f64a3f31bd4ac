//! A turn in a thread with 100,000 messages beside one in a thread with 100.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton::core::ThreadId;
use baton::core::store::RunStatus;
use baton::engine::Engine;
use baton_agents::SourceFile;

use crate::Goals;
use crate::provider::ProviderProcess;
use crate::store::thread_of;
use crate::turns::{engine_of, request_to};

/// Of each kind, taken in turns.
const TURNS: usize = 200;
/// Threads of 100 messages; each gets a few turns, so that it stays short.
const SHORT_THREADS: usize = 20;

pub async fn compare(goals: &mut Goals, provider: &ProviderProcess) {
    let dir = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite://{}", dir.path().join("baton.db").display());
    let agent = SourceFile::new("a.md", "---\ndescription: Helps.\nmodel: bench/few\n---\nYou help.\n");
    let engine = engine_of(&[agent], &provider.base_url, &url).await;
    let tenant = engine.parts.store.tenant(&request_to("a").caller.tenant);
    let long = thread_of(&tenant, 100_000).await;
    let mut short = Vec::new();
    for _ in 0..SHORT_THREADS {
        short.push(thread_of(&tenant, 100).await);
    }
    let (mut of_short, mut of_long) = (Vec::new(), Vec::new());
    for at in 0..TURNS {
        of_short.push(turn(&engine, short[at % SHORT_THREADS]).await);
        of_long.push(turn(&engine, long).await);
    }
    let (short, long) = (median(of_short), median(of_long));
    println!("  a turn: {short:.2?} in a thread of 100 messages, {long:.2?} in one of 100,000");
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    goals.at_most("a turn in a thread of 100,000 messages / in one of 100", ratio, 1.2);
}

async fn turn(engine: &Arc<Engine>, thread_id: ThreadId) -> Duration {
    let mut request = request_to("a");
    request.caller.thread_id = thread_id;
    let begun = Instant::now();
    let mut run = engine.start(request).await.expect("a run");
    while run.events.recv().await.is_some() {}
    let took = begun.elapsed();
    assert_eq!(run.join().await.status, RunStatus::Completed);
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
