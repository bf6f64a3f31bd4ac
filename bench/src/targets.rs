//! The latency targets of the requirements (H4 to H6, G21, X34): the 95th percentile over HTTP, with a store on disk, for one client and
//! for 64 at once. With `BATON_TEST_POSTGRES`, as `scripts/with-postgres.sh` sets it, also with PostgreSQL.
//!
//! Every model call takes 300 ms until its only token, so that 64 runs are active all the time. This time is subtracted; what is left is
//! Baton's. What clients can see is measured by their clocks. The parts of passing the baton are between spans of the server's traces,
//! whose export is part of the load.

mod spans;

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use uuid::Uuid;

use self::spans::{Collector, SpanTimes};
use crate::Goals;
use crate::provider::{DELAY, ProviderProcess};
use crate::server::{ServedProcess, known_models};

/// Clients at once, and the rounds of each of them that are measured.
const LOADS: [(usize, usize); 2] = [(1, 10), (64, 5)];
/// Transfers of each round: one within a run, one of the thread.
const TRANSFERS: usize = 2;
/// The agent that gets the baton within a run.
const COLLEAGUE: &str = "colleague";
/// Until the last spans have been exported.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(20);

pub fn run(goals: &mut Goals) {
    println!("  times in milliseconds, without the {} ms of each model call", DELAY.as_millis());
    if cfg!(debug_assertions) {
        println!("  this is a debug build: times of a release build are shorter");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let provider = ProviderProcess::start();
    let postgres = std::env::var("BATON_TEST_POSTGRES").ok();
    if postgres.is_none() {
        println!("  PostgreSQL is not measured: start with scripts/with-postgres.sh");
    }
    for (clients, rounds) in LOADS {
        let load = Load { store: "SQLite", clients, rounds };
        runtime.block_on(measure(goals, load, "sqlite://baton.db", &provider));
        if let Some(server) = &postgres {
            let database = runtime.block_on(new_database(server));
            runtime.block_on(measure(goals, Load { store: "PostgreSQL", ..load }, &database, &provider));
        }
    }
}

/// Which store, how many clients at once, and how many rounds each.
#[derive(Debug, Clone, Copy)]
struct Load {
    store: &'static str,
    clients: usize,
    rounds: usize,
}

/// What the clients have measured, without the time of the models.
#[derive(Debug, Default)]
struct ClientTimes {
    orchestrated: Vec<Duration>,
    sub_agent: Vec<Duration>,
    transition: Vec<Duration>,
    in_handoff: Vec<Duration>,
}

impl ClientTimes {
    fn add(&mut self, other: Self) {
        self.orchestrated.extend(other.orchestrated);
        self.sub_agent.extend(other.sub_agent);
        self.transition.extend(other.transition);
        self.in_handoff.extend(other.in_handoff);
    }
}

/// H4, H5, H6, G21, X34: the P95 of each latency, with concurrent clients and a real store, is below its target.
async fn measure(goals: &mut Goals, load: Load, store_url: &str, provider: &ProviderProcess) {
    let collector = Collector::start();
    let dir = tempfile::tempdir().expect("a folder");
    prepare(dir.path(), provider, store_url, &collector);
    let export = [("OTEL_BSP_SCHEDULE_DELAY", "200"), ("OTEL_BSP_MAX_QUEUE_SIZE", "100000")];
    let baton = ServedProcess::start_with(&["--baton", "serve"], dir.path(), &export);
    // The first round warms up caches and connections, and is not measured.
    let clients: Vec<Client> =
        (0..load.clients).map(|_| Client::builder().no_proxy().build().expect("a client")).collect();
    rounds(&baton.url, &clients, 1).await;
    exported(&collector, load.clients).await;
    collector.clear();
    let seen = rounds(&baton.url, &clients, load.rounds).await;
    let spans = exported(&collector, load.clients * load.rounds).await;
    let Load { store, clients, .. } = load;
    println!("  {store}, {clients} at once:");
    for (what, mut times, target) in [
        ("H4 first token of an orchestrated answer", seen.orchestrated, 3000.0),
        ("H5 handoff transition, from the request to the first response", seen.transition, 1000.0),
        ("H5 first token in a handoff", seen.in_handoff, 1000.0),
        ("H6 request to the first event of a sub-agent", seen.sub_agent, 500.0),
        ("G21 detection", spans.detection, 10.0),
        ("G21 context injection", spans.injection, 50.0),
        ("G21 session update", spans.session_update, 20.0),
        ("G21 total overhead", spans.overhead, 100.0),
    ] {
        times.sort_unstable();
        let (median, slowest, count) = (percentile(&times, 50), percentile(&times, 100), times.len());
        println!("  {what}: median {median:.1}, slowest {slowest:.1} of {count}");
        goals.below(
            &format!("{what}, P95 with {store} and {clients} at once"),
            percentile(&times, 95),
            target,
        );
    }
}

/// In milliseconds, of times in rising order.
fn percentile(times: &[Duration], percent: usize) -> f64 {
    assert!(!times.is_empty(), "nothing was measured");
    let rank = (times.len() * percent).div_ceil(100).clamp(1, times.len());
    times[rank - 1].as_secs_f64() * 1000.0
}

/// Every transfer was traced: none is left out because it took long.
async fn exported(collector: &Collector, rounds: usize) -> SpanTimes {
    let (transfers, begun) = (rounds * TRANSFERS, Instant::now());
    loop {
        let times = collector.times();
        if times.overhead.len() == transfers {
            return times;
        }
        assert!(begun.elapsed() < EXPORT_TIMEOUT, "{} of {transfers} transfers traced", times.overhead.len());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// All clients at once. They start one after the other within the time of one model call: clients that start together would stay
/// together, because every call takes the same time, and 64 requests in the same millisecond are not what 64 people do.
async fn rounds(url: &str, clients: &[Client], rounds: usize) -> ClientTimes {
    let step = DELAY / u32::try_from(clients.len()).expect("a few clients");
    let talks = (0..).zip(clients).map(async |(number, client)| {
        tokio::time::sleep(step * number).await;
        let mut times = ClientTimes::default();
        for _ in 0..rounds {
            times.add(talk(client, url).await);
        }
        times
    });
    let mut all = ClientTimes::default();
    for times in join_all(talks).await {
        all.add(times);
    }
    all
}

/// An orchestrated answer, a handoff that the user starts, a message in it, and two transfers by models.
async fn talk(client: &Client, url: &str) -> ClientTimes {
    let thread = format!("{url}/api/v1/threads/{}", Uuid::new_v4());
    let say = |thread: &str, agent: Option<&str>| {
        let body = agent.map_or_else(
            || json!({ "content": "Go on" }),
            |agent| json!({ "content": "Hello", "agent": agent }),
        );
        client.post(format!("{thread}/messages")).json(&body)
    };
    let asked = follow(say(&thread, Some("boss")), Instant::now()).await;
    let (orchestrated, sub_agent) = (asked.text, asked.sub_agent.expect("a sub-agent"));
    let begun = Instant::now();
    let offer = json!({ "target_agent_id": "taker", "handoff_reason": "It is theirs" });
    let accepted = client.post(format!("{thread}/handoff")).json(&offer).send().await.expect("an answer");
    let accepted: Value = accepted.error_for_status().expect("accepted").json().await.expect("JSON");
    let run = accepted["run_id"].as_str().expect("a run");
    let greeting = follow(client.get(format!("{url}/api/v1/runs/{run}/events")), begun).await.text;
    let reply = follow(say(&thread, None), Instant::now()).await.text;
    for giver in ["giver", "opener"] {
        let thread = format!("{url}/api/v1/threads/{}", Uuid::new_v4());
        follow(say(&thread, Some(giver)), Instant::now()).await;
    }
    ClientTimes {
        // The model of the boss, those of the sub-agents at the same time, and the model of the boss again.
        orchestrated: vec![orchestrated.saturating_sub(3 * DELAY)],
        sub_agent: vec![sub_agent.saturating_sub(DELAY)],
        transition: vec![greeting.saturating_sub(DELAY)],
        in_handoff: vec![reply.saturating_sub(DELAY)],
    }
}

/// When the first text for the user and the first event of a sub-agent arrived.
struct Arrival {
    text: Duration,
    sub_agent: Option<Duration>,
}

/// Sends the request and reads its stream to the end. Times are since `begun`.
async fn follow(request: RequestBuilder, begun: Instant) -> Arrival {
    let request = request.header("accept", "text/event-stream");
    let response = request.send().await.expect("an answer").error_for_status().expect("a stream");
    let (mut body, mut buffer) = (response.bytes_stream(), Vec::new());
    let (mut text, mut sub_agent) = (None, None);
    while let Some(chunk) = body.next().await {
        buffer.extend_from_slice(&chunk.expect("bytes"));
        let end = buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for event in crate::server::events(std::str::from_utf8(&buffer[..end]).expect("text")) {
            let of_sub_agent = event["subagentRunId"].is_string();
            match event["type"].as_str() {
                Some("TEXT_MESSAGE_CONTENT") if !of_sub_agent => {
                    _ = text.get_or_insert_with(|| begun.elapsed());
                }
                Some("RUN_ERROR") => panic!("{event}"),
                _ if of_sub_agent => _ = sub_agent.get_or_insert_with(|| begun.elapsed()),
                _ => {}
            }
        }
        buffer.drain(..end);
    }
    Arrival { text: text.expect("a text"), sub_agent }
}

fn prepare(dir: &Path, provider: &ProviderProcess, store: &str, collector: &Collector) {
    std::fs::create_dir(dir.join("agents")).expect("a folder");
    let call = |tool: &str, arguments: &Value| format!("later:call:{tool}:{arguments}");
    let transfer = |to: &str| call(&format!("transfer_to_{to}"), &json!({ "reason": "It is theirs" }));
    let delegate = call("delegate", &json!({ "agents": ["left", "right"], "message": "Look it up." }));
    let word = || "later:word".to_owned();
    let agents = [
        ("boss", delegate, "agents: [left, right]"),
        ("left", word(), ""),
        ("right", word(), ""),
        ("giver", transfer(COLLEAGUE), "collaborations: [colleague]"),
        (COLLEAGUE, word(), ""),
        ("opener", transfer("taker"), "collaborations: [taker]"),
        ("taker", word(), "accepts_handoff: { triggers: [take it] }"),
    ];
    for (name, model, head) in &agents {
        let model = json!(format!("bench/{model}"));
        let file = format!("---\ndescription: The {name}.\nmodel: {model}\n{head}\n---\nYou help.\n");
        std::fs::write(dir.join(format!("agents/{name}.md")), file).expect("a file");
    }
    let models: Vec<&str> = agents.iter().map(|(_, model, _)| model.as_str()).collect();
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[agents]\nmain = \"boss\"\n[store]\nurl = {}\n\
         [telemetry]\notlp_endpoint = \"{}\"\n\
         [models]\ndefault = \"bench/later:word\"\n[models.providers.bench]\nbase_url = \"{}\"\n{}\
         [limits]\nrequests_per_minute = 100000000\nmax_concurrent_runs_per_user = 1000\nmax_streams_per_user = 1000\n",
        json!(store),
        collector.url,
        provider.base_url,
        known_models(&models)
    );
    std::fs::write(dir.join("baton.toml"), config).expect("a file");
}

/// A database of its own on this server.
async fn new_database(server: &str) -> String {
    let name = format!("baton_{}", Uuid::new_v4().simple());
    let (client, connection) =
        tokio_postgres::connect(server, tokio_postgres::NoTls).await.expect("PostgreSQL");
    let create = format!("CREATE DATABASE {name}");
    tokio::select! {
        made = client.batch_execute(&create) => made.expect("a database"),
        ended = connection => ended.expect("a connection"),
    }
    let (address, _) = server.rsplit_once('/').expect("an address with a database");
    format!("{address}/{name}")
}
