//! Clients that ask one after the other, and look at every token of what they get.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::provider::{Provider, words};
use crate::server::{Served, events};

/// No run takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whom to ask.
#[derive(Debug, Clone)]
pub struct Target {
    url: String,
    agent: String,
    wire: Wire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Baton,
    Floor,
    Model,
}

impl Target {
    pub fn baton(served: &Served, agent: &str) -> Self {
        Self { url: served.url.clone(), agent: agent.into(), wire: Wire::Baton }
    }

    pub fn floor(served: &Served, agent: &str) -> Self {
        Self { url: served.url.clone(), agent: agent.into(), wire: Wire::Floor }
    }

    pub fn direct(provider: &Provider, model: &str) -> Self {
        Self { url: provider.base_url.clone(), agent: model.into(), wire: Wire::Model }
    }

    /// A message in a new thread.
    fn request(&self, client: &Client) -> reqwest::RequestBuilder {
        let (url, agent, thread) = (&self.url, &self.agent, Uuid::new_v4());
        let (path, body) = match self.wire {
            Wire::Baton => (
                format!("{url}/api/v1/threads/{thread}/messages"),
                json!({ "agent": agent, "content": "Hello" }),
            ),
            Wire::Floor => {
                (format!("{url}/chat"), json!({ "thread": thread, "agent": agent, "content": "Hello" }))
            }
            Wire::Model => {
                let messages = [json!({ "role": "user", "content": "Hello" })];
                (
                    format!("{url}/chat/completions"),
                    json!({ "model": agent, "stream": true, "messages": messages }),
                )
            }
        };
        client.post(path).json(&body)
    }

    /// What a piece of text has in it.
    fn mark(&self) -> &'static str {
        match self.wire {
            Wire::Baton => "TEXT_MESSAGE_CONTENT",
            Wire::Floor => "\"delta\"",
            Wire::Model => "\"content\"",
        }
    }

    /// Whether the stream holds the whole text once, in order, and its end.
    fn is_right(&self, stream: &str, tokens: usize) -> bool {
        let events: Vec<Value> = events(stream).collect();
        let text = |pointer: &str| -> String {
            events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
        };
        let expected = words(tokens).concat();
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        match self.wire {
            Wire::Baton => {
                let said: String = events
                    .iter()
                    .filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT")
                    .filter_map(|event| event["delta"].as_str())
                    .collect();
                said == expected
                    && (count("RUN_STARTED"), count("RUN_FINISHED")) == (1, 1)
                    && (count("TEXT_MESSAGE_START"), count("TEXT_MESSAGE_END")) == (1, 1)
            }
            Wire::Floor => text("/delta") == expected && stream.ends_with("data: {\"done\":true}\n\n"),
            Wire::Model => text("/choices/0/delta/content") == expected && stream.ends_with("[DONE]\n\n"),
        }
    }
}

/// What came of some runs.
#[derive(Debug, Default)]
pub struct Load {
    pub runs: usize,
    pub wrong: usize,
    /// The median.
    pub first: Duration,
}

/// Clients that ask again and again for some time.
pub async fn during(target: &Target, clients: usize, span: Duration, tokens: usize) -> Load {
    let end = Instant::now() + span;
    let all = join_all((0..clients).map(|_| async {
        let client = Client::new();
        let mut took = Vec::new();
        while Instant::now() < end || took.is_empty() {
            took.push(once(&client, target, tokens).await);
        }
        took
    }));
    sum(all.await.into_iter().flatten().collect())
}

/// One run of each client, all at once, over connections of their own.
pub async fn at_once(target: &Target, clients: usize, tokens: usize) -> Load {
    let client = Client::builder().pool_max_idle_per_host(0).build().expect("a client");
    sum(join_all((0..clients).map(|_| once(&client, target, tokens))).await)
}

fn sum(took: Vec<Option<Duration>>) -> Load {
    let runs = took.len();
    let mut firsts: Vec<Duration> = took.into_iter().flatten().collect();
    firsts.sort_unstable();
    let first = firsts.get(firsts.len() / 2).copied().unwrap_or(Duration::MAX);
    Load { runs, wrong: runs - firsts.len(), first }
}

/// How long the first token took, if everything came.
async fn once(client: &Client, target: &Target, tokens: usize) -> Option<Duration> {
    tokio::time::timeout(PATIENCE, read(client, target, tokens)).await.ok().flatten()
}

async fn read(client: &Client, target: &Target, tokens: usize) -> Option<Duration> {
    let begun = Instant::now();
    let response = target.request(client).send().await.ok()?.error_for_status().ok()?;
    let mut body = response.bytes_stream();
    let (mut stream, mut first) = (Vec::new(), None);
    while let Some(piece) = body.next().await {
        let piece = piece.ok()?;
        if first.is_none() && String::from_utf8_lossy(&piece).contains(target.mark()) {
            first = Some(begun.elapsed());
        }
        stream.extend_from_slice(&piece);
    }
    first.filter(|_| std::str::from_utf8(&stream).is_ok_and(|text| target.is_right(text, tokens)))
}
