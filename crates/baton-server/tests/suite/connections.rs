//! Connections: how many, how slow, in which protocol, and what each costs.

use std::time::Duration;

use baton_models::scripted::Scripted;
use http::Version;

use crate::doors::doors;
use crate::site::{LONG, Plan};
use crate::wire::{Wire, exchange};

fn plan() -> Plan {
    Plan::new(&Scripted::default()).doors(doors())
}

const PING: &str = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn both_versions_of_http_are_answered_on_one_port() {
    let site = plan().start().await;
    let new = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let answer = new.get(site.url("/livez")).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    let posted =
        new.post(site.url("/test/order")).json(&serde_json::json!({"count": 2})).send().await.unwrap();
    assert_eq!(posted.status(), 200);
    let large = new.post(site.url("/test/order")).body(vec![b' '; 3_000_000]).send().await.unwrap();
    assert_eq!(large.status(), 413);
    let missing = new.head(site.url("/nowhere")).send().await.unwrap();
    assert_eq!(missing.status(), 404);
    assert!(missing.bytes().await.unwrap().is_empty());
    let streams = (0..50).map(|_| new.get(site.url("/test/stream")).send());
    let streams = futures_util::future::join_all(streams).await;
    assert!(streams.iter().all(|stream| stream.as_ref().unwrap().status() == 200));
    assert_eq!(site.get("/livez").await.version(), Version::HTTP_11);
    drop(streams);
    site.end().await;
}

#[tokio::test]
async fn requests_that_come_together_are_answered_in_order() {
    let site = plan().start().await;
    let second = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answers = exchange(site.address, format!("{PING}{PING}{second}")).await;
    let statuses: Vec<_> =
        answers.match_indices("HTTP/1.1 ").map(|(at, _)| &answers[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "200", "404"]);
    site.end().await;
}

/// A peer whose connection is reset while it still sends may lose the answer that says why (RFC 9112, 9.6).
#[tokio::test]
async fn who_is_refused_in_the_middle_of_a_body_hears_it_to_the_end() {
    let site = plan().start().await;
    let mut wire = Wire::connect(site.address).await;
    wire.send("POST /test/order HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n").await;
    wire.send(vec![b' '; 200_000]).await;
    assert!(wire.rest().await.starts_with("HTTP/1.1 413"));
    // Still listened to, although it was told that nothing follows: the first piece would bring a reset, the second would feel it.
    for _ in 0..2 {
        wire.send([b' '; 1000]).await;
        tokio::task::yield_now().await;
    }
    drop(wire);
    site.end().await;
}

/// Whoever connects and says nothing, or a letter now and then, does not keep a place.
#[tokio::test]
async fn who_says_nothing_is_hung_up_on() {
    let patience = Duration::from_millis(300);
    let site = plan().settings(|settings| settings.limits.read_timeout = patience).start().await;
    for beginning in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: loc"] {
        let mut wire = Wire::connect(site.address).await;
        wire.send(beginning).await;
        let said = wire.rest().await;
        assert!(!said.contains("HTTP/1.1 200"), "{said}");
    }
    let mut slow = Wire::connect(site.address).await;
    let drip = async {
        for letter in
            "GET /livez HTTP/1.1\r\nHost: localhost\r\nx-padding: ".bytes().chain(std::iter::repeat(b'x'))
        {
            slow.try_send([letter]).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            if slow.0.try_read(&mut [0; 64]).is_ok_and(|read| read == 0) {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, drip).await.expect("hung up on in the middle of the headers");
    site.end().await;
}

#[tokio::test]
async fn a_connection_that_is_not_used_is_closed_and_one_that_is_stays() {
    let between = Duration::from_millis(300);
    let site = plan().settings(|settings| settings.limits.keep_alive = between).start().await;
    let mut stream = Wire::connect(site.address).await;
    stream.send("GET /test/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    stream.until("hello").await;
    let new = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let mut multiplexed = new.get(site.url("/test/stream")).send().await.unwrap();
    multiplexed.chunk().await.unwrap();
    for _ in 0..2 {
        let mut idle = Wire::connect(site.address).await;
        idle.send(PING).await;
        assert!(idle.rest().await.starts_with("HTTP/1.1 200"));
    }
    // Two have come and gone since the streams began; those are still there when the server says goodbye.
    site.app.closing.cancel();
    stream.until("goodbye").await;
    assert_eq!(multiplexed.chunk().await.unwrap().unwrap(), ": goodbye\n\n");
    site.end().await;
}

#[tokio::test]
async fn connection_beyond_the_limit_is_refused_and_health_checks_are_answered() {
    let site = plan().settings(|settings| settings.limits.max_connections = 2).start().await;
    let mut first = Wire::connect(site.address).await;
    first.send("GET /test/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    first.until("hello").await;
    let mut second = Wire::connect(site.address).await;
    second.send(PING).await;
    second.until("ok").await;
    let refused = exchange(site.address, "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("\"overloaded\""), "{refused}");
    let head = refused.to_lowercase();
    assert!(head.contains("retry-after: 5") && head.contains("connection: close"), "{refused}");
    for path in ["/livez", "/readyz", "/healthz"] {
        let probe = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = exchange(site.address, probe).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop(second);
    let again = async {
        loop {
            let answer = exchange(
                site.address,
                "GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            )
            .await;
            if answer.starts_with("HTTP/1.1 200") {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, again).await.expect("there is room again");
    site.end().await;
}

/// In a process of its own, because all files of it are taken away.
#[test]
fn who_comes_when_there_are_no_more_files_waits_for_one() {
    let tests = std::env::current_exe().unwrap();
    let ran = std::process::Command::new(tests)
        .args(["--exact", "connections::without_files", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[tokio::test]
#[ignore = "only in a process of its own"]
async fn without_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::os::fd::AsRawFd as _;
    let site = plan().start().await;
    let before = getrlimit(Resource::Nofile);
    let sockets: Vec<_> = (0..3).map(|_| tokio::net::TcpSocket::new_v4().unwrap()).collect();
    let next = u64::try_from(std::fs::File::open("/dev/null").unwrap().as_raw_fd()).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(next), maximum: before.maximum }).unwrap();
    assert!(std::fs::File::open("/dev/null").is_err(), "no file is left");
    let mut waiting = Vec::new();
    for socket in sockets {
        let mut wire = Wire(socket.connect(site.address).await.unwrap());
        wire.send(PING).await;
        waiting.push(wire);
    }
    let none = tokio::time::timeout(Duration::from_millis(500), waiting[0].0.readable()).await;
    assert!(none.is_err(), "nobody can answer");
    setrlimit(Resource::Nofile, before).unwrap();
    for wire in &mut waiting {
        wire.until("HTTP/1.1 200").await;
    }
    drop(waiting);
    site.end().await;
}

/// The cost of an open stream, on the side of the server and of the test together.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stream_costs_little_memory() {
    const STREAMS: usize = 1000;
    let site = plan()
        .settings(|settings| {
            settings.limits.requests_per_minute = std::num::NonZeroU32::MAX;
            settings.limits.max_connections_per_address = 2 * STREAMS;
        })
        .start()
        .await;
    let open = async || {
        let mut wire = Wire::connect(site.address).await;
        wire.send("GET /test/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        wire.until("hello").await;
        wire
    };
    // What is allocated once and for all.
    let mut wires = vec![open().await];
    let before = resident();
    for _ in 0..STREAMS {
        wires.push(open().await);
    }
    let each = resident().saturating_sub(before) / STREAMS;
    println!("{each} bytes for each stream");
    assert!(each < 48 << 10, "{each} bytes for each stream");
    drop(wires);
    site.end().await;
}

#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
