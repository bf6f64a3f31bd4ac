//! A plain client of the streams: what comes over the wire, cut into frames.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use reqwest::Response;
use serde_json::Value;

use crate::site::{LONG, Site};

/// One event as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub id: u64,
    pub event: Value,
}

impl Frame {
    pub fn kind(&self) -> &str {
        self.event["type"].as_str().expect("a type")
    }

    /// Whether it ends its run.
    pub fn is_end(&self) -> bool {
        matches!(self.kind(), "RUN_FINISHED" | "RUN_ERROR")
    }
}

/// An open stream.
pub struct Frames {
    response: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    rest: String,
    ready: VecDeque<Frame>,
    /// Lines that are no event: comments, `retry`.
    pub asides: Vec<String>,
    pub is_cut: bool,
}

impl Frames {
    pub fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let response = response.bytes_stream().boxed();
        Self { response, rest: String::new(), ready: VecDeque::new(), asides: Vec::new(), is_cut: false }
    }

    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            let chunk = tokio::time::timeout(LONG, self.response.next()).await.expect("something happens");
            match chunk {
                Some(Ok(bytes)) => self.read(&bytes),
                Some(Err(_)) => {
                    self.is_cut = true;
                    return None;
                }
                None => return None,
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        self.rest.push_str(std::str::from_utf8(bytes).expect("whole characters"));
        while let Some(end) = self.rest.find("\n\n") {
            let block: String = self.rest.drain(..end + 2).collect();
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            match field("data: ") {
                Some(data) => {
                    let id = field("id: ").expect("every event has a number").parse().expect("a number");
                    self.ready.push_back(Frame { id, event: serde_json::from_str(data).expect("JSON") });
                }
                None => self.asides.extend(block.lines().map(str::to_owned)),
            }
        }
    }

    /// Everything up to the end of the stream.
    pub async fn all(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        assert!(!self.is_cut, "cut after {:?}", frames.last());
        frames
    }

    /// Up to and including the first event for which this is true.
    pub async fn until(&mut self, is_it: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await.expect("it comes before the end");
            let is_last = is_it(&frame);
            frames.push(frame);
            if is_last {
                return frames;
            }
        }
    }
}

impl Site {
    /// Sends a message and listens to its run.
    pub async fn say(&self, thread: &str, content: &str) -> Frames {
        let body = serde_json::json!({ "content": content });
        Frames::of(self.post(&format!("/api/v1/threads/{thread}/messages"), &body).await)
    }

    /// Listens from a number on.
    pub async fn listen(&self, path: &str, after: u64) -> Frames {
        let request = self.http.get(self.url(path)).header("last-event-id", after.to_string());
        Frames::of(request.send().await.expect("an answer"))
    }
}

/// An open WebSocket on a thread.
pub struct Socket {
    wire: crate::wire::Wire,
    rest: Vec<u8>,
}

impl Socket {
    /// Joins after the event `after`, with `?after=`.
    pub async fn join(site: &Site, thread: &str, query: &str) -> Self {
        let mut wire = crate::wire::Wire::connect(site.address).await;
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13";
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
        let path = format!("/api/v1/threads/{thread}/ws?{query}");
        wire.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n{key}\r\n\r\n")).await;
        let mut socket = Self { wire, rest: Vec::new() };
        while socket.head_end().is_none() {
            socket.more().await;
        }
        let end = socket.head_end().expect("just found");
        let head: Vec<u8> = socket.rest.drain(..end).collect();
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        socket
    }

    fn head_end(&self) -> Option<usize> {
        self.rest.windows(4).position(|at| at == b"\r\n\r\n").map(|at| at + 4)
    }

    async fn more(&mut self) {
        use tokio::io::AsyncReadExt as _;
        let reading = self.wire.0.read_buf(&mut self.rest);
        let read = tokio::time::timeout(LONG, reading).await.expect("it comes").expect("more");
        assert!(read > 0, "the server hung up");
    }

    /// The next event, without its `id`, which becomes that of the frame.
    pub async fn next(&mut self) -> Frame {
        loop {
            if let Some(text) = self.next_text() {
                let mut event: Value = serde_json::from_str(&text).expect("JSON");
                let id = event.as_object_mut().expect("an object").remove("id").expect("a number");
                return Frame { id: id.as_u64().expect("a number"), event };
            }
            self.more().await;
        }
    }

    /// A text message that has arrived in full. Others are left out.
    fn next_text(&mut self) -> Option<String> {
        loop {
            let [kind, length, rest @ ..] = &self.rest[..] else { return None };
            let (start, length) = match *length {
                126 => (4, usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?))),
                127 => (10, usize::try_from(u64::from_be_bytes(rest.get(..8)?.try_into().ok()?)).ok()?),
                short => (2, usize::from(short)),
            };
            let is_text = kind & 0x0f == 1;
            let payload = self.rest.get(start..start + length)?.to_vec();
            self.rest.drain(..start + length);
            if is_text {
                return Some(String::from_utf8(payload).expect("text"));
            }
        }
    }

    /// Up to and including the end of a run.
    pub async fn until_end(&mut self) -> Vec<Frame> {
        let mut frames = vec![self.next().await];
        while !frames.last().expect("one").is_end() {
            frames.push(self.next().await);
        }
        frames
    }
}

/// What the person has read in the end: snapshots replace, pieces are added.
pub fn text_of(frames: &[Frame]) -> String {
    let mut texts: Vec<(String, String)> = Vec::new();
    for Frame { event, .. } in frames {
        let id = event["messageId"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("TEXT_MESSAGE_START")
                if event.get("subagentRunId").is_none() && !texts.iter().any(|(known, _)| *known == id) =>
            {
                texts.push((id, String::new()));
            }
            Some("TEXT_MESSAGE_CONTENT") => {
                if let Some((_, text)) = texts.iter_mut().find(|(known, _)| *known == id) {
                    text.push_str(event["delta"].as_str().expect("a delta"));
                }
            }
            Some("MESSAGES_SNAPSHOT") => {
                let messages = event["messages"].as_array().expect("messages").iter();
                let said = messages
                    .filter(|message| message["role"] == "assistant" && message["content"].is_string());
                let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
                texts = said.map(|message| (text(&message["id"]), text(&message["content"]))).collect();
            }
            _ => {}
        }
    }
    texts.into_iter().map(|(_, text)| text).collect()
}
