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
