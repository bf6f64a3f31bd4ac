//! Somebody who talks with a server.

use std::io::{BufRead as _, BufReader, Read as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::turn::Turn;
use crate::served::{LONG, Served, ask};

#[derive(Clone)]
pub(super) struct Person {
    address: String,
    key: Option<String>,
    pub(super) thread: String,
}

impl Person {
    /// Whoever comes first, with a conversation of their own.
    pub(super) fn new(served: &Served) -> Self {
        Self { address: served.address.clone(), key: None, thread: Uuid::new_v4().to_string() }
    }

    pub(super) fn with_key(served: &Served, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..Self::new(served) }
    }

    /// The same person and conversation at a server that was started again.
    pub(super) fn at(&self, served: &Served) -> Self {
        let (key, thread) = (self.key.clone(), self.thread.clone());
        Self { address: served.address.clone(), key, thread }
    }

    /// The same person in another conversation.
    pub(super) fn in_thread(&self, thread: &str) -> Self {
        Self { thread: thread.to_owned(), ..self.clone() }
    }

    fn accepting(&self, kind: &str) -> String {
        let key = self.key.iter().map(|key| format!("\r\nAuthorization: Bearer {key}"));
        key.fold(kind.to_owned(), |head, line| head + &line)
    }

    /// The path of something about this conversation.
    pub(super) fn path(&self, below: &str) -> String {
        format!("/api/v1/threads/{}{below}", self.thread)
    }

    /// Status and body.
    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let sent = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.exchange(method, path, "application/json", &sent);
        let read = serde_json::from_str(&text);
        (status, read.unwrap_or_else(|error| panic!("{method} {path}: {status} {error}: {text}")))
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Says something and hears the whole answer.
    pub(super) fn say(&self, text: &str) -> Turn {
        let body = json!({ "content": text }).to_string();
        self.hear("POST", &self.path("/messages"), &body)
    }

    /// Says something to an agent by name.
    pub(super) fn say_to(&self, agent: &str, text: &str) -> Turn {
        let body = json!({ "content": text, "agent": agent }).to_string();
        self.hear("POST", &self.path("/messages"), &body)
    }

    /// All events of a run.
    pub(super) fn run(&self, run: &str, query: &str) -> Turn {
        self.hear("GET", &format!("/api/v1/runs/{run}/events{query}"), "")
    }

    fn hear(&self, method: &str, path: &str, body: &str) -> Turn {
        let (status, text) = self.exchange(method, path, "text/event-stream", body);
        assert_eq!(status, 200, "{path}: {text}");
        Turn::read(&text)
    }

    /// Says something and goes away at the first line of the stream that has `mark` in it.
    pub(super) fn say_until(&self, text: &str, mark: &str) {
        let body = json!({ "content": text }).to_string();
        let accept = self.accepting("text/event-stream");
        let stream = ask(&self.address, "POST", &self.path("/messages"), &accept, &body);
        let mut lines = BufReader::new(stream).lines();
        let found = lines.any(|line| line.unwrap().contains(mark));
        assert!(found, "the stream ended without {mark}");
    }

    /// Says something and listens as long as there is somebody to listen to.
    pub(super) fn try_say(&self, text: &str) {
        let body = json!({ "content": text }).to_string();
        let accept = self.accepting("text/event-stream");
        let mut stream = ask(&self.address, "POST", &self.path("/messages"), &accept, &body);
        let _ = stream.read_to_end(&mut Vec::new());
    }

    /// The conversation as it stands.
    pub(super) fn context(&self) -> Value {
        self.get(&self.path(""))
    }

    /// The conversation once nobody is at work in it, or about to be.
    pub(super) fn at_rest(&self) -> Value {
        let deadline = Instant::now() + LONG;
        loop {
            let runs = self.get(&format!("/api/v1/runs?thread_id={}", self.thread));
            let is_open = |run: &Value| matches!(run["status"].as_str(), Some("queued" | "running"));
            if !runs["data"].as_array().unwrap().iter().any(is_open) {
                return self.context();
            }
            assert!(Instant::now() < deadline, "{runs}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Who said what, as the person sees it: role or agent, and text.
    pub(super) fn history(&self) -> Vec<(String, String)> {
        let page = self.get(&self.path("/messages?limit=200"));
        let messages = page["data"].as_array().unwrap().iter().map(|message| {
            assert_eq!(message["visibility"], "user", "{message}");
            let who = message["agent"].as_str().or(message["role"].as_str()).unwrap();
            let parts = message["parts"].as_array().unwrap().iter();
            (who.to_owned(), parts.filter_map(|part| part["text"].as_str()).collect())
        });
        messages.collect()
    }

    /// What agents said last.
    pub(super) fn last_words(&self) -> String {
        self.history().pop().unwrap().1
    }

    fn exchange(&self, method: &str, path: &str, accept: &str, body: &str) -> (u16, String) {
        let mut bytes = Vec::new();
        ask(&self.address, method, path, &self.accepting(accept), body).read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = &bytes[end + 4..];
        let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_vec() };
        (status, String::from_utf8(body).unwrap())
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|part| part == b"\r\n") {
        let size = std::str::from_utf8(&body[..end]).unwrap();
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
    whole
}
