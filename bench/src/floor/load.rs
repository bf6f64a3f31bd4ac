//! Clients that ask one after the other, and look at every token of what they get.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::provider::{ProviderProcess, words};
use crate::server::{ServedProcess, events};

/// No run takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whom to ask.
#[derive(Debug, Clone)]
pub struct LoadTarget {
    url: String,
    agent: String,
    wire: LoadWire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadWire {
    Baton,
    /// Baton over A2A 0.3, JSON-RPC.
    A2a,
    Floor,
    Model,
}

impl LoadTarget {
    pub fn baton(served: &ServedProcess, agent: &str) -> Self {
        Self { url: served.url.clone(), agent: agent.into(), wire: LoadWire::Baton }
    }

    pub fn a2a(served: &ServedProcess, agent: &str) -> Self {
        Self { url: served.url.clone(), agent: agent.into(), wire: LoadWire::A2a }
    }

    pub fn floor(served: &ServedProcess, agent: &str) -> Self {
        Self { url: served.url.clone(), agent: agent.into(), wire: LoadWire::Floor }
    }

    pub fn direct(provider: &ProviderProcess, model: &str) -> Self {
        Self { url: provider.base_url.clone(), agent: model.into(), wire: LoadWire::Model }
    }

    /// A message in a new thread.
    fn request(&self, client: &Client) -> reqwest::RequestBuilder {
        let (url, agent, thread) = (&self.url, &self.agent, Uuid::new_v4());
        let (path, body) = match self.wire {
            LoadWire::Baton => (
                format!("{url}/api/v1/threads/{thread}/messages"),
                json!({ "agent": agent, "content": "Hello" }),
            ),
            LoadWire::A2a => {
                let message = json!({
                    "kind": "message", "messageId": Uuid::new_v4(), "role": "user", "contextId": thread,
                    "parts": [{ "kind": "text", "text": "Hello" }],
                });
                let params = json!({ "message": message });
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params });
                (format!("{url}/a2a/{agent}"), call)
            }
            LoadWire::Floor => {
                (format!("{url}/chat"), json!({ "thread": thread, "agent": agent, "content": "Hello" }))
            }
            LoadWire::Model => {
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
            LoadWire::Baton => "TEXT_MESSAGE_CONTENT",
            LoadWire::A2a => "artifact-update",
            LoadWire::Floor => "\"delta\"",
            LoadWire::Model => "\"content\"",
        }
    }

    /// What is wrong with a stream that should hold the whole text once, in order, and its end.
    fn mistake(&self, stream: &str, tokens: usize) -> Option<String> {
        let events: Vec<Value> = events(stream).collect();
        let pointer = match self.wire {
            LoadWire::Model => "/choices/0/delta/content",
            LoadWire::A2a => "/result/artifact/parts/0/text",
            LoadWire::Baton | LoadWire::Floor => "/delta",
        };
        let is_text =
            |event: &&Value| self.wire != LoadWire::Baton || event["type"] == "TEXT_MESSAGE_CONTENT";
        let said: String =
            events.iter().filter(is_text).filter_map(|event| event.pointer(pointer)?.as_str()).collect();
        let has_ended = match self.wire {
            LoadWire::Baton => {
                [("RUN_STARTED", 1), ("TEXT_MESSAGE_START", 1), ("TEXT_MESSAGE_END", 1), ("RUN_FINISHED", 1)]
                    .iter()
                    .all(|(kind, count)| {
                        events.iter().filter(|event| event["type"] == *kind).count() == *count
                    })
            }
            LoadWire::A2a => events.last().is_some_and(|event| {
                event["result"]["final"] == true && event["result"]["status"]["state"] == "completed"
            }),
            LoadWire::Floor => stream.ends_with("data: {\"done\":true}\n\n"),
            LoadWire::Model => stream.ends_with("[DONE]\n\n"),
        };
        let is_right = has_ended && said == words(tokens).concat();
        let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
        (!is_right).then(|| format!("{:?} said {said:?} in {kinds:?}", self.wire))
    }
}

/// The outcomes of some runs.
#[derive(Debug, Default)]
pub struct LoadResult {
    pub runs: usize,
    /// What was wrong with each stream that was not as it should be.
    pub wrong: Vec<String>,
    /// The median.
    pub first: Duration,
}

/// Clients that ask again and again for some time.
pub async fn during(target: &LoadTarget, clients: usize, span: Duration, tokens: usize) -> LoadResult {
    let client = Client::new();
    let end = Instant::now() + span;
    let all = join_all((0..clients).map(|_| async {
        let mut took = Vec::new();
        while Instant::now() < end || took.is_empty() {
            took.push(once(&client, target, tokens).await);
        }
        took
    }));
    sum(all.await.into_iter().flatten())
}

/// One run of each client, all at once, over connections of their own.
pub async fn at_once(target: &LoadTarget, clients: usize, tokens: usize) -> LoadResult {
    let client = Client::builder().pool_max_idle_per_host(0).build().expect("a client");
    sum(join_all((0..clients).map(|_| once(&client, target, tokens))).await.into_iter())
}

fn sum(took: impl Iterator<Item = Result<Duration, String>>) -> LoadResult {
    let (mut firsts, mut wrong) = (Vec::new(), Vec::new());
    for one in took {
        match one {
            Ok(first) => firsts.push(first),
            Err(mistake) => wrong.push(mistake),
        }
    }
    firsts.sort_unstable();
    let first = firsts.get(firsts.len() / 2).copied().unwrap_or(Duration::MAX);
    LoadResult { runs: firsts.len() + wrong.len(), wrong, first }
}

/// How long the first token took, or what is wrong with the stream.
async fn once(client: &Client, target: &LoadTarget, tokens: usize) -> Result<Duration, String> {
    let read = tokio::time::timeout(PATIENCE, read(client, target)).await;
    let (first, stream) =
        read.map_err(|_| format!("{:?} took too long", target.wire))?.map_err(|e| e.to_string())?;
    match target.mistake(&stream, tokens) {
        None => first.ok_or_else(|| "no first token".to_owned()),
        Some(mistake) => Err(mistake),
    }
}

/// The whole stream, and when its first token came.
async fn read(client: &Client, target: &LoadTarget) -> reqwest::Result<(Option<Duration>, String)> {
    let begun = Instant::now();
    let response = target.request(client).send().await?.error_for_status()?;
    let mut body = response.bytes_stream();
    let (mut stream, mut first) = (Vec::new(), None);
    while let Some(piece) = body.next().await {
        let piece = piece?;
        if first.is_none() && String::from_utf8_lossy(&piece).contains(target.mark()) {
            first = Some(begun.elapsed());
        }
        stream.extend_from_slice(&piece);
    }
    Ok((first, String::from_utf8_lossy(&stream).into_owned()))
}
