//! Two thousand streams at the same time, with a model that takes two seconds: all of them whole and in order, and what each takes
//! of the server's memory. Then two hundred that are read, beside two hundred whose readers do not read.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use super::{ServedProcess, events};
use crate::provider::{MANY_TOKENS, ProviderProcess, TOKENS, words};
use crate::{Goals, cpu};

const STREAMS: u32 = 2000;
const BESIDE: u32 = 200;
/// How long a reader that dawdles reads nothing: longer than its answer takes, also on a machine that has other things to do.
const ABSENT: Duration = Duration::from_secs(20);
/// Whoever has got nothing for so long never will.
const PATIENCE: Duration = Duration::from_mins(2);

pub fn run(goals: &mut Goals) {
    let provider = ProviderProcess::start();
    let dir = tempfile::tempdir().expect("a folder");
    let baton = ServedProcess::baton(dir.path(), &provider, &["steady", "torrent"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // Everything is there once before anything is measured.
        at_once(&baton, 50).await;
        many(goals, &baton).await;
        beside(goals, &baton).await;
    });
}

async fn many(goals: &mut Goals, baton: &ServedProcess) {
    let idle = cpu::memory_of(&baton.pid());
    let (begun, before) = (Instant::now(), cpu::time_of(&baton.pid()));
    let peak = Cell::new(0);
    let watch = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            peak.set(cpu::memory_of(&baton.pid()).max(peak.get()));
        }
    };
    let whole = tokio::select! {
        whole = at_once(baton, STREAMS) => whole,
        () = watch => unreachable!("it never ends"),
    };
    let (took, peak) = (begun.elapsed(), peak.get());
    let spent = cpu::time_of(&baton.pid()).saturating_sub(before);
    let good = complete(&whole);
    let each = mib(peak.saturating_sub(idle)) * 1024.0 / f64::from(STREAMS);
    println!(
        "  {STREAMS} streams at once: {good} whole and in order, all after {:.1} s and {:.1} s of processor time; {:.1} MiB idle, \
         {:.1} MiB at most",
        took.as_secs_f64(),
        spent.as_secs_f64(),
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

/// Some that read, beside as many long answers; those are read the first time, and then they are not. The work is the same.
async fn beside(goals: &mut Goals, baton: &ServedProcess) {
    let others = |absent| join_all((0..BESIDE).map(move |_| dawdle(&baton.url, absent)));
    let (read, all_read) = tokio::join!(at_once(baton, BESIDE), others(Duration::ZERO));
    let behind = behind(&baton.url).await;
    let (fast, slow) = tokio::join!(at_once(baton, BESIDE), others(ABSENT));
    let left = self::behind(&baton.url).await - behind;
    println!(
        "  {BESIDE} that read: {:.2} s (the last {:.2} s) beside {BESIDE} that read, {:.2} s (the last {:.2} s) beside {BESIDE} that \
         read nothing for {ABSENT:?}; {left} times one of those was left behind, {} of them got everything in the end",
        seconds(median(&read)),
        seconds(slowest(&read)),
        seconds(median(&fast)),
        seconds(slowest(&fast)),
        complete(&slow)
    );
    goals.at_least("readers that got everything", f64::from(complete(&fast)), f64::from(BESIDE));
    goals.at_least("readers that dawdled and got everything", f64::from(complete(&slow)), f64::from(BESIDE));
    goals.at_least(
        "the same readers when they do not dawdle",
        f64::from(complete(&all_read)),
        f64::from(BESIDE),
    );
    goals.at_least("times somebody was left behind", f64::from(left), f64::from(BESIDE));
    let ratio = |of: fn(&[Option<Duration>]) -> Duration| seconds(of(&fast)) / seconds(of(&read));
    goals.below("readers beside those that dawdle / beside those that read", ratio(median), 1.1);
    goals.below("the same for the last of them", ratio(slowest), 1.2);
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn complete(took: &[Option<Duration>]) -> u32 {
    u32::try_from(took.iter().flatten().count()).expect("few")
}

fn median(took: &[Option<Duration>]) -> Duration {
    let mut took: Vec<Duration> = took.iter().flatten().copied().collect();
    took.sort_unstable();
    took.get(took.len() / 2).copied().unwrap_or(Duration::MAX)
}

fn slowest(took: &[Option<Duration>]) -> Duration {
    took.iter().flatten().max().copied().unwrap_or(Duration::MAX)
}

/// How long each of so many streams took, if everything came and in order.
async fn at_once(baton: &ServedProcess, streams: u32) -> Vec<Option<Duration>> {
    // One client, and a connection for each stream.
    let client = Client::builder().pool_max_idle_per_host(0).build().expect("a client");
    join_all((0..streams).map(|_| tokio::time::timeout(PATIENCE, listen(&client, &baton.url))))
        .await
        .into_iter()
        .map(|took| took.ok().flatten())
        .collect()
}

async fn listen(client: &Client, url: &str) -> Option<Duration> {
    let begun = Instant::now();
    let path = format!("{url}/api/v1/threads/{}/messages", Uuid::new_v4());
    let response = client.post(path).json(&json!({ "content": "Hello" })).send().await;
    let response = response.ok()?.error_for_status().ok()?;
    let mut body = response.bytes_stream();
    let mut text = Vec::new();
    while let Some(chunk) = body.next().await {
        text.extend_from_slice(&chunk.ok()?);
    }
    let took = begun.elapsed();
    is_whole(std::str::from_utf8(&text).ok()?, TOKENS).then_some(took)
}

/// Asks for an answer that is longer than what fits between the two, and reads nothing of it for a while.
async fn dawdle(url: &str, absent: Duration) -> Option<Duration> {
    let begun = Instant::now();
    let address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    let mut stream = narrow(address).ok()?;
    let body = json!({ "content": "Hello", "agent": "torrent" }).to_string();
    let head = format!(
        "POST /api/v1/threads/{}/messages HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        Uuid::new_v4(),
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
    tokio::time::sleep(absent).await;
    let mut text = Vec::new();
    // HTTP/1.0: the answer is not cut into chunks, and ends with the connection.
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await.ok()?.ok()?;
    is_whole(std::str::from_utf8(&text).ok()?, MANY_TOKENS).then(|| begun.elapsed())
}

/// A connection over which little is under way at a time, as to a telephone far away. On loopback some megabytes would be.
fn narrow(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_recv_buffer_size(4096)?;
    socket.set_tcp_mss(1000)?;
    socket.connect(&address.into())?;
    socket.set_nonblocking(true)?;
    TcpStream::from_std(socket.into())
}

/// How often a listener was left behind so far.
async fn behind(url: &str) -> u32 {
    let metrics =
        reqwest::get(format!("{url}/metrics")).await.expect("an answer").text().await.expect("a text");
    let line = metrics.lines().find_map(|line| line.strip_prefix("baton_streams_behind_total "));
    line.expect("it is counted").parse().expect("a number")
}

fn is_whole(text: &str, tokens: usize) -> bool {
    let events: Vec<_> = events(text).collect();
    let said: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    let is = |event: Option<&Value>, kind: &str| event.is_some_and(|event| event["type"] == kind);
    is(events.first(), "RUN_STARTED") && is(events.last(), "RUN_FINISHED") && said == words(tokens).concat()
}
