//! Floods: of connections, of keys, of streams, of bytes, and of log lines that are not read.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use reqwest::Client;
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use uuid::Uuid;

use super::target::{ATTACKER, OTHER, REQUIRED, client, folder, key, refusal, url};
use crate::served::{LONG, Served};

async fn connect(from: Ipv4Addr, to: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(to.parse().unwrap()).await.unwrap()
}

/// Repeats until it holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// H16: 300 connections from one address do not keep another from being served, nor a health check of the same address.
#[tokio::test]
async fn h16_flood_of_connections_from_one_address_keeps_none_out() {
    let dir =
        folder(&format!("{REQUIRED}[limits]\nmax_connections = 200\nmax_connections_per_address = 50\n"));
    let key = key(dir.path(), "acme", "ann");
    let served = Served::start(dir.path());
    let mut flood = Vec::new();
    for _ in 0..300 {
        flood.push(connect(ATTACKER, &served.address).await);
    }
    // Each request on a connection of its own.
    let request = async |from, path: &str| {
        let client = client(from).pool_max_idle_per_host(0).build().unwrap();
        client.get(url(&served, path)).bearer_auth(&key).send().await.unwrap()
    };
    for path in ["/version", "/api/v1/threads", "/readyz"] {
        assert_eq!(request(OTHER, path).await.status(), 200, "{path}");
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(request(ATTACKER, path).await.status(), 200, "{path}");
    }
    let refused = refusal(request(ATTACKER, "/version").await).await;
    assert_eq!(refused, (429, "too_many_connections".to_owned()));
    drop(flood);
    until("the address is served again", async || request(ATTACKER, "/version").await.status() == 200).await;
}

/// H16: with all connections taken by many addresses, health checks are still answered, and others hear that it is full.
#[tokio::test]
async fn h16_health_checks_are_answered_when_all_connections_are_taken() {
    let dir =
        folder(&format!("{REQUIRED}[limits]\nmax_connections = 40\nmax_connections_per_address = 10\n"));
    let served = Served::start(dir.path());
    let mut flood = Vec::new();
    for number in 0..200 {
        flood.push(connect(Ipv4Addr::new(127, 0, 1, 1 + number / 10), &served.address).await);
    }
    let request = async |path: &str| {
        let client = client(OTHER).pool_max_idle_per_host(0).build().unwrap();
        client.get(url(&served, path)).send().await.unwrap()
    };
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(request(path).await.status(), 200, "{path}");
    }
    assert_eq!(refusal(request("/version").await).await, (503, "overloaded".to_owned()));
    drop(flood);
    until("there is room again", async || request("/version").await.status() == 401).await;
}

/// H16: random keys from one address neither keep a new key of another from signing in, nor a known one of the same address.
#[tokio::test]
async fn h16_random_keys_from_one_address_do_not_keep_a_new_key_out() {
    let dir = folder(REQUIRED);
    let known = key(dir.path(), "acme", "ann");
    let served = Served::start(dir.path());
    let (attacker, other) = (client(ATTACKER).build().unwrap(), client(OTHER).build().unwrap());
    let sign_in = async |client: &Client, key: &str| {
        client.get(url(&served, "/version")).bearer_auth(key).send().await.unwrap()
    };
    assert_eq!(sign_in(&attacker, &known).await.status(), 200);
    let mut refused = 0;
    for number in 0..300 {
        let guess = format!("{}{number:06}", &known[..known.len() - 6]);
        match sign_in(&attacker, &guess).await.status().as_u16() {
            401 => {}
            429 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(refused > 100, "only {refused} of 300 guesses were refused without a look-up");
    let token = sign_in(&attacker, "a.b.c").await;
    assert_eq!(refusal(token).await, (429, "rate_limited".to_owned()), "whatever the credential");
    let new = key(dir.path(), "acme", "bob");
    assert_eq!(sign_in(&other, &new).await.status(), 200, "the first attempt of a new key");
    assert_eq!(sign_in(&other, "a.b.c").await.status(), 401);
    assert_eq!(sign_in(&attacker, &known).await.status(), 200, "a known key of the same address");
}

/// H16: idle streams of one user stop at the limit; another user streams.
#[tokio::test]
async fn h16_idle_streams_of_one_user_are_limited() {
    let dir = folder(&format!("{REQUIRED}[limits]\nmax_streams_per_user = 20\n"));
    let (ann, bob) = (key(dir.path(), "acme", "ann"), key(dir.path(), "acme", "bob"));
    let served = Served::start(dir.path());
    let client = client(OTHER).build().unwrap();
    let say = async |key: &str, thread: Uuid| {
        let path = url(&served, &format!("/api/v1/threads/{thread}/messages"));
        client.post(path).bearer_auth(key).json(&json!({ "content": "Hello" })).send().await.unwrap()
    };
    let (hers, his) = (Uuid::new_v4(), Uuid::new_v4());
    for (key, thread) in [(&ann, hers), (&bob, his)] {
        let told = say(key, thread).await;
        assert_eq!(told.status(), 200);
        told.bytes().await.unwrap();
    }
    let listen = async |key: &str, thread: Uuid| {
        let path = url(&served, &format!("/api/v1/threads/{thread}/events"));
        client.get(path).bearer_auth(key).send().await.unwrap()
    };
    let mut open = Vec::new();
    for number in 0..40 {
        let stream = listen(&ann, hers).await;
        if number < 20 {
            assert_eq!(stream.status(), 200, "{number}");
            open.push(stream);
        } else {
            assert_eq!(refusal(stream).await, (429, "too_many_streams".to_owned()));
        }
    }
    assert_eq!(listen(&bob, his).await.status(), 200);
    let answer = say(&bob, his).await.text().await.unwrap();
    assert!(answer.contains("RUN_FINISHED"), "{answer}");
    drop(open);
    until("closed streams are not counted", async || listen(&ann, hers).await.status() == 200).await;
}

/// H16: 10,000 attempts to hold an idle stream of one user, from many connections at once. None is held beyond the limit, and another user
/// streams throughout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h16_ten_thousand_idle_streams_of_one_user_are_limited() {
    const ATTEMPTS: usize = 10_000;
    const ALLOWED: usize = 100;
    let limits = format!(
        "{REQUIRED}[limits]\nmax_streams_per_user = {ALLOWED}\nrequests_per_minute = 10000000\n\
         max_connections_per_address = 1000\n"
    );
    let dir = folder(&limits);
    let (ann, bob) = (key(dir.path(), "acme", "ann"), key(dir.path(), "acme", "bob"));
    let served = Served::start(dir.path());
    let (attacker, other) = (client(ATTACKER).build().unwrap(), client(OTHER).build().unwrap());
    let (hers, his) = (Uuid::new_v4(), Uuid::new_v4());
    let say = async |key: &str, thread: Uuid| {
        let path = url(&served, &format!("/api/v1/threads/{thread}/messages"));
        let sent =
            other.post(path).bearer_auth(key).json(&json!({ "content": "Hello" })).send().await.unwrap();
        sent.text().await.unwrap()
    };
    for (key, thread) in [(&ann, hers), (&bob, his)] {
        assert!(say(key, thread).await.contains("RUN_FINISHED"));
    }
    let events = |thread: Uuid| url(&served, &format!("/api/v1/threads/{thread}/events"));
    let attempts = stream::iter(0..ATTEMPTS).map(|_| {
        let request = attacker.get(events(hers)).bearer_auth(&ann).send();
        async move {
            let response = request.await.unwrap();
            if response.status() == 200 {
                return Some(response);
            }
            assert_eq!(refusal(response).await, (429, "too_many_streams".to_owned()));
            None
        }
    });
    let mut attempts = attempts.buffer_unordered(32);
    let (mut held, mut tried) = (Vec::new(), 0);
    while let Some(attempt) = attempts.next().await {
        held.extend(attempt);
        tried += 1;
        if tried % 2_000 == 0 {
            let stream = other.get(events(his)).bearer_auth(&bob).send().await.unwrap();
            assert_eq!(stream.status(), 200, "after {tried} attempts");
            assert!(say(&bob, his).await.contains("RUN_FINISHED"), "after {tried} attempts");
        }
    }
    assert_eq!((tried, held.len()), (ATTEMPTS, ALLOWED));
}

/// H16: what is compressed to a thousandth is not inflated.
#[tokio::test]
async fn h16_decompression_bomb_is_refused() {
    let dir = folder("");
    let served = Served::start(dir.path());
    let client = client(OTHER).build().unwrap();
    let bomb = bomb();
    let messages = format!("/api/v1/threads/{}/messages", Uuid::new_v4());
    let upload = "multipart/form-data; boundary=x";
    for (path, kind) in [(messages.as_str(), "application/json"), ("/api/v1/artifacts", upload)] {
        let request =
            client.post(url(&served, path)).header("content-type", kind).header("content-encoding", "gzip");
        let answer = request.body(bomb.clone()).send().await.unwrap();
        assert_eq!(refusal(answer).await, (415, "unsupported_media_type".to_owned()));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 400 << 10, "{peak} kB at most");
}

/// 1 GiB of zeros in 1 MiB.
fn bomb() -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..1 << 10 {
        gzip.write_all(&zeros).unwrap();
    }
    gzip.finish().unwrap()
}

/// H16: a log that is not read stops neither the requests nor the end of the server.
#[tokio::test]
async fn h16_log_that_is_not_read_stops_nothing() {
    let dir = folder("");
    let mut served = Served::start_unread(dir.path(), &[("BATON_LOG", "trace")]);
    let client = client(OTHER).build().unwrap();
    // Each is at least one line of more than 100 bytes; a pipe holds 64 KiB.
    for _ in 0..1500 {
        let answer = tokio::time::timeout(LONG, client.get(url(&served, "/version")).send()).await;
        assert!(answer.expect("it answers").is_ok());
    }
    let pid = rustix::process::Pid::from_child(&served.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    until("it ends", async || served.child.try_wait().unwrap().is_some()).await;
}
