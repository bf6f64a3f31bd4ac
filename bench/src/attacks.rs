//! A user's latency while another one attacks, as a ratio to the latency without the attack, in turns within one run. The attacker has
//! an address, a tenant and a key of its own, and sends at a fixed rate, because both share the machine.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, Response};
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use crate::Goals;
use crate::provider::ProviderProcess;
use crate::server::{ServedProcess, known_models};

const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Runs of the user in each round.
const RUNS: usize = 60;
const ROUNDS: usize = 3;
/// How long an attack lasts before its effect is measured.
const BUILD_UP: Duration = Duration::from_secs(3);
/// Connections that the attacker can hold: those of this process are limited too.
const HELD: usize = 1500;

#[derive(Debug, Clone, Copy)]
enum Attack {
    Connections,
    RandomKeys,
    IdleStreams,
    Bombs,
}

/// The server, and the two that use it.
#[derive(Debug, Clone)]
struct Target {
    url: String,
    user: String,
    attacker: String,
}

pub fn run(goals: &mut Goals) {
    let provider = ProviderProcess::start();
    let dir = tempfile::tempdir().expect("a folder");
    prepare(dir.path(), &provider);
    let (user, attacker) = (key(dir.path(), "acme", "ann"), key(dir.path(), "evil", "eve"));
    let baton = ServedProcess::start(&["--baton", "serve"], dir.path());
    let target = Target { url: baton.url.clone(), user, attacker };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        // Everything is there once before anything is measured.
        median_run(&target).await;
        for (attack, name) in [
            (Attack::Connections, "300 connections per second from one address"),
            (Attack::RandomKeys, "300 random keys per second from one address"),
            (Attack::IdleStreams, "300 idle streams per second of one user"),
            (Attack::Bombs, "20 decompression bombs per second"),
        ] {
            compare(goals, &target, attack, name).await;
        }
    });
}

fn prepare(dir: &Path, provider: &ProviderProcess) {
    std::fs::create_dir(dir.join("agents")).expect("a folder");
    let agent = "---\ndescription: Helps.\nmodel: bench/m\n---\nYou help.\n";
    std::fs::write(dir.join("agents/m.md"), agent).expect("a file");
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[agents]\nmain = \"m\"\n[auth]\nmode = \"required\"\n\
         [models]\ndefault = \"bench/m\"\n[models.providers.bench]\nbase_url = \"{}\"\n{}\
         [limits]\nrequests_per_minute = 100000000\n",
        provider.base_url,
        known_models(&["m"])
    );
    std::fs::write(dir.join("baton.toml"), config).expect("a file");
}

fn key(dir: &Path, tenant: &str, user: &str) -> String {
    let program = std::env::current_exe().expect("this program");
    let arguments = ["--baton", "keys", "create", "--tenant", tenant, "--user", user, "--role", "admin"];
    let made = Command::new(program).args(arguments).current_dir(dir).output().expect("a key");
    String::from_utf8(made.stdout).expect("text").trim().to_owned()
}

/// The best of some rounds each, taken in turns: noise only ever adds.
async fn compare(goals: &mut Goals, target: &Target, attack: Attack, name: &str) {
    let (mut calm, mut attacked) = (Duration::MAX, Duration::MAX);
    let mut sent = 0;
    for _ in 0..ROUNDS {
        calm = calm.min(median_run(target).await);
        let mut attacks = JoinSet::new();
        let count = Arc::new(AtomicUsize::new(0));
        attacks.spawn(perform(target.clone(), attack, Arc::clone(&count)));
        tokio::time::sleep(BUILD_UP).await;
        attacked = attacked.min(median_run(target).await);
        attacks.shutdown().await;
        sent += count.load(Ordering::Relaxed);
    }
    println!(
        "  {name}: a run of another user takes {:.2} ms, {:.2} ms without; {sent} attempts",
        attacked.as_secs_f64() * 1000.0,
        calm.as_secs_f64() * 1000.0
    );
    goals.below(
        &format!("latency during {name} / without"),
        attacked.as_secs_f64() / calm.as_secs_f64(),
        1.5,
    );
}

/// The median time of a run, from the message to its end, each on a new connection as the first request of a client is.
async fn median_run(target: &Target) -> Duration {
    let mut took = Vec::new();
    for _ in 0..RUNS {
        let client = Client::builder().no_proxy().build().expect("a client");
        let begun = Instant::now();
        let path = format!("{}/api/v1/threads/{}/messages", target.url, Uuid::new_v4());
        let request = client.post(path).bearer_auth(&target.user).header("accept", "application/json");
        let answer = request.json(&json!({ "content": "Hello" })).send().await.expect("an answer");
        let answer = answer.error_for_status().expect("served").text().await.expect("whole");
        assert!(answer.contains("completed"), "{answer}");
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    took[took.len() / 2]
}

fn attacker() -> Client {
    let client = Client::builder().local_address(IpAddr::V4(ATTACKER)).no_proxy();
    client.build().expect("a client")
}

/// Attacks until it is dropped.
async fn perform(target: Target, attack: Attack, count: Arc<AtomicUsize>) {
    let per_second = if matches!(attack, Attack::Bombs) { 20 } else { 300 };
    let mut ticks = interval(Duration::from_secs(1) / per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (client, bomb) = (attacker(), bomb());
    let thread = format!("{}/api/v1/threads/{}", target.url, Uuid::new_v4());
    if matches!(attack, Attack::IdleStreams) {
        let message = client.post(format!("{thread}/messages")).bearer_auth(&target.attacker);
        let answer = message.json(&json!({ "content": "Hello" })).send().await.expect("an answer");
        let _ = answer.text().await;
    }
    let mut connections: Vec<TcpStream> = Vec::new();
    let mut streams: Vec<Response> = Vec::new();
    loop {
        ticks.tick().await;
        count.fetch_add(1, Ordering::Relaxed);
        match attack {
            Attack::Connections => {
                if connections.len() == HELD {
                    connections.remove(0);
                }
                connections.extend(connect(&target.url).await);
            }
            Attack::RandomKeys => {
                let guess = format!(
                    "{}{:06}",
                    &target.attacker[..target.attacker.len() - 6],
                    Uuid::new_v4().as_u128() % 1_000_000
                );
                let _ = client.get(format!("{}/version", target.url)).bearer_auth(guess).send().await;
            }
            Attack::IdleStreams => {
                let stream =
                    client.get(format!("{thread}/events")).bearer_auth(&target.attacker).send().await;
                streams.extend(stream.ok().filter(|stream| stream.status() == 200));
            }
            Attack::Bombs => {
                let request = client.post(format!("{thread}/messages")).bearer_auth(&target.attacker);
                let request =
                    request.header("content-encoding", "gzip").header("content-type", "application/json");
                let _ = request.body(bomb.clone()).send().await;
            }
        }
    }
}

async fn connect(url: &str) -> Option<TcpStream> {
    let address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind(SocketAddr::from((ATTACKER, 0))).ok()?;
    socket.connect(address).await.ok()
}

/// 256 MiB of zeros, compressed.
fn bomb() -> bytes::Bytes {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..256 {
        gzip.write_all(&zeros).expect("memory can be written");
    }
    gzip.finish().expect("memory can be written").into()
}
