//! Kill -9 of the server while a hundred runs are at work: when it is back, each of them ends, and nothing that was acknowledged is lost.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use super::wire::{self, Answer};
use crate::served::{LONG, Served};

const RUNS: usize = 100;
/// A piece takes 12 ms, so that all runs are at work at the same time.
const PIECES: usize = 150;

/// Sends a message and returns when its run has been announced, with the stream still open.
fn begin(served: &Served, thread: &str) -> TcpStream {
    let body = json!({ "content": format!("Message of {thread}") }).to_string();
    let stream =
        served.ask("POST", &format!("/api/v1/threads/{thread}/messages"), "text/event-stream", &body);
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("RUN_STARTED")).expect("the run begins").unwrap();
    stream
}

/// C-1, H8
#[test]
fn a_server_that_is_killed_under_load_loses_nothing() {
    let base_url = wire::serve(|_| {
        let frames = (0..PIECES).map(|piece| wire::text(&format!("{piece} "))).collect();
        Some(Answer { frames, finish: "stop" })
    });
    let dir = super::project(&base_url, "sqlite://baton.db");
    let threads: Vec<String> = (0..RUNS).map(|_| Uuid::new_v4().to_string()).collect();
    let mut served = Served::start(dir.path());
    let streams: Vec<TcpStream> = std::thread::scope(|scope| {
        let begun: Vec<_> = threads.iter().map(|thread| scope.spawn(|| begin(&served, thread))).collect();
        begun.into_iter().map(|stream| stream.join().unwrap()).collect()
    });
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    drop(streams);

    let served = Served::start(dir.path());
    let deadline = Instant::now() + LONG;
    for thread in &threads {
        let status = loop {
            let runs = served.get(&format!("/api/v1/runs?thread_id={thread}"));
            assert_eq!(runs["data"].as_array().unwrap().len(), 1, "{runs}");
            let status = runs["data"][0]["status"].as_str().unwrap().to_owned();
            if !matches!(status.as_str(), "queued" | "running") {
                break status;
            }
            assert!(Instant::now() < deadline, "a run of {thread} does not end");
            std::thread::sleep(Duration::from_millis(100));
        };
        assert_eq!(status, "completed");
        let messages = served.get(&format!("/api/v1/threads/{thread}/messages"));
        let texts =
            messages["data"].as_array().unwrap().iter().map(|message| message["parts"][0]["text"].clone());
        let texts: Vec<String> = texts.map(|text| text.as_str().unwrap().to_owned()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts.contains(&format!("Message of {thread}")), "{texts:?}");
        let answer: String = (0..PIECES).map(|piece| format!("{piece} ")).collect();
        assert!(texts.iter().any(|text| text.trim() == answer.trim()), "{texts:?}");
    }
}
