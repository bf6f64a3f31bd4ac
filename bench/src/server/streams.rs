//! Two thousand streams at the same time, with a model that takes two seconds: all of them whole and in order, and what each takes
//! of the server's memory. Then two hundred that are not read beside two hundred that are.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::json;
use uuid::Uuid;

use super::{Served, events};
use crate::provider::{Provider, TOKENS};
use crate::{Goals, cpu};

const STREAMS: u32 = 2000;
const BESIDE: u32 = 200;

pub fn run(goals: &mut Goals) {
    let provider = Provider::start();
    let dir = tempfile::tempdir().expect("a folder");
    let baton = Served::baton(dir.path(), &provider, "steady");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // Everything is there once before anything is measured.
        join_all((0..50).map(|_| listen(&baton.url, Duration::ZERO))).await;
        many(goals, &baton).await;
        beside(goals, &baton).await;
    });
}

async fn many(goals: &mut Goals, baton: &Served) {
    let idle = cpu::memory_of(&baton.pid());
    let begun = Instant::now();
    let peak = Cell::new(0);
    let watch = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            peak.set(cpu::memory_of(&baton.pid()).max(peak.get()));
        }
    };
    let all = join_all((0..STREAMS).map(|_| listen(&baton.url, Duration::ZERO)));
    let whole = tokio::select! {
        whole = all => whole,
        () = watch => unreachable!("it never ends"),
    };
    let peak = peak.get();
    let good = complete(&whole);
    let each = mib(peak.saturating_sub(idle)) * 1024.0 / f64::from(STREAMS);
    println!(
        "  {STREAMS} streams at once: {good} whole and in order, all after {:.1} s; {:.1} MiB idle, {:.1} MiB at most",
        begun.elapsed().as_secs_f64(),
        mib(idle),
        mib(peak)
    );
    goals.at_least("streams that were whole", f64::from(good), f64::from(STREAMS));
    goals.below("memory of a stream above idle, in KiB", each, 64.0);
}

fn mib(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let bytes = bytes as f64;
    bytes / 1024.0 / 1024.0
}

/// Those that read, alone and then beside as many that do not.
async fn beside(goals: &mut Goals, baton: &Served) {
    let alone = median(join_all((0..BESIDE).map(|_| listen(&baton.url, Duration::ZERO))).await);
    let slow = join_all((0..BESIDE).map(|_| listen(&baton.url, Duration::from_millis(400))));
    let fast = async { median(join_all((0..BESIDE).map(|_| listen(&baton.url, Duration::ZERO))).await) };
    let (slow, fast) = tokio::join!(slow, fast);
    let good = complete(&slow);
    println!(
        "  {BESIDE} that read: {:.2} s alone, {:.2} s beside {BESIDE} that read slowly, of which {good} got everything",
        alone.as_secs_f64(),
        fast.as_secs_f64()
    );
    goals.at_least("slow readers that got everything", f64::from(good), f64::from(BESIDE));
    goals.below("fast readers beside slow ones / alone", fast.as_secs_f64() / alone.as_secs_f64(), 1.3);
}

fn complete(took: &[Option<Duration>]) -> u32 {
    u32::try_from(took.iter().flatten().count()).expect("few")
}

fn median(took: Vec<Option<Duration>>) -> Duration {
    let mut took: Vec<Duration> = took.into_iter().map(|took| took.expect("a whole stream")).collect();
    took.sort_unstable();
    took[took.len() / 2]
}

/// How long it took, if everything came and in order. `pause` is how long the reader rests after each read.
async fn listen(url: &str, pause: Duration) -> Option<Duration> {
    let begun = Instant::now();
    let path = format!("{url}/api/v1/threads/{}/messages", Uuid::new_v4());
    let request = reqwest::Client::new().post(path).json(&json!({ "content": "Hello" }));
    let response = request.send().await.ok()?.error_for_status().ok()?;
    let mut body = response.bytes_stream();
    let mut text = Vec::new();
    while let Some(chunk) = body.next().await {
        text.extend_from_slice(&chunk.ok()?);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    is_whole(std::str::from_utf8(&text).ok()?).then(|| begun.elapsed())
}

fn is_whole(text: &str) -> bool {
    let events: Vec<_> = events(text).collect();
    let said: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    let expected: String = (0..TOKENS).map(|at| format!("word{at} ")).collect();
    let is = |event: Option<&serde_json::Value>, kind: &str| event.is_some_and(|event| event["type"] == kind);
    is(events.first(), "RUN_STARTED") && is(events.last(), "RUN_FINISHED") && said == expected
}
