//! The part of Baton's HTTP API that the suite uses.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

/// How often tool calls that wait for approval are looked for.
const APPROVALS_EVERY: Duration = Duration::from_secs(2);
/// Events that carry what a model wrote.
const TOKEN_EVENTS: &[&str] = &["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_START"];

/// A client of one server and one thread.
#[derive(Debug)]
pub struct Api {
    client: Client,
    url: String,
    thread: Uuid,
}

#[derive(Deserialize)]
struct Accepted {
    run_id: String,
}

#[derive(Debug, Deserialize)]
struct Page<T> {
    data: Vec<T>,
}

#[derive(Deserialize)]
struct PendingApproval {
    approval_id: Uuid,
}

#[derive(Deserialize)]
struct StreamEvent {
    #[serde(rename = "type")]
    kind: String,
}

/// A run with its sessions.
#[derive(Debug, Deserialize)]
pub struct Run {
    pub status: String,
    pub answered_by: Option<String>,
    pub answer: Option<String>,
    pub error: Option<RunError>,
    pub sessions: Vec<Session>,
}

#[derive(Debug, Deserialize)]
pub struct RunError {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Deserialize)]
pub struct Session {
    pub agent: String,
    pub status: String,
    pub sessions: Vec<Session>,
}

/// What a run recorded.
#[derive(Debug, Default, Deserialize)]
pub struct Steps {
    pub steps: Vec<Step>,
    pub calls: Vec<Call>,
}

#[derive(Debug, Deserialize)]
pub struct Step {
    pub path: String,
    pub agent: String,
    pub kind: String,
    #[serde(default)]
    pub output: Value,
}

/// A row of the ledger.
#[derive(Debug, Deserialize)]
pub struct Call {
    pub kind: String,
    pub usage: CallUsage,
}

#[derive(Debug, Deserialize)]
pub struct CallUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
}

/// The active handoff of the thread.
#[derive(Debug, Deserialize)]
pub struct Handoff {
    pub target_agent_id: String,
    #[serde(default)]
    pub workflow_state: Option<String>,
    #[serde(default)]
    pub workflow_metadata: Value,
}

#[derive(Debug, Deserialize)]
pub struct PastHandoff {
    pub to: String,
    pub state: String,
}

#[derive(Debug, Deserialize)]
pub struct Skill {
    pub name: String,
}

impl Api {
    /// A client for a new thread.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        let client = Client::builder().no_proxy().build()?;
        Ok(Self { client, url: url.to_owned(), thread: Uuid::new_v4() })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.url))
    }

    fn thread_path(&self, below: &str) -> String {
        format!("/threads/{}{below}", self.thread)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let response = self.request(Method::GET, path).send().await?.error_for_status()?;
        response.json().await.with_context(|| format!("GET {path}"))
    }

    /// Sends a message and returns the id of its run, without waiting for its end.
    pub async fn send(&self, text: &str, agent: Option<&str>) -> anyhow::Result<String> {
        let mut body = json!({ "content": text });
        if let Some(agent) = agent {
            body["agent"] = agent.into();
        }
        let request = self.request(Method::POST, &self.thread_path("/messages"));
        let response = request.header("Prefer", "respond-async").json(&body).send().await?;
        if !response.status().is_success() {
            bail!("the message was refused: {}", response.text().await.unwrap_or_default());
        }
        Ok(response.json::<Accepted>().await?.run_id)
    }

    /// Follows a run to its end. Writes the time of the first text or tool call of a model to `first_token`, so that it is known
    /// also if the future is dropped. Tool calls that wait for approval are denied.
    pub async fn follow(
        &self,
        run: &str,
        sent: Instant,
        first_token: &mut Option<Duration>,
    ) -> anyhow::Result<()> {
        let path = format!("/runs/{run}/events?detail=trace");
        let response = self.request(Method::GET, &path).send().await?.error_for_status()?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(());
        }
        let mut chunks = response.bytes_stream();
        let mut approvals = tokio::time::interval(APPROVALS_EVERY);
        let mut lines = Lines::default();
        loop {
            tokio::select! {
                _ = approvals.tick() => self.deny_approvals().await?,
                chunk = chunks.next() => {
                    let Some(chunk) = chunk else { return Ok(()) };
                    let kinds = lines.push(&chunk?);
                    if first_token.is_none() && kinds.iter().any(|kind| TOKEN_EVENTS.contains(&kind.as_str())) {
                        *first_token = Some(sent.elapsed());
                    }
                }
            }
        }
    }

    async fn deny_approvals(&self) -> anyhow::Result<()> {
        let pending: Page<PendingApproval> = self.get("/approvals?status=pending").await?;
        for PendingApproval { approval_id } in pending.data {
            let request = self.request(Method::POST, &format!("/approvals/{approval_id}"));
            request.json(&json!({ "decision": "deny" })).send().await?;
        }
        Ok(())
    }

    pub async fn cancel(&self, run: &str) -> anyhow::Result<()> {
        let request = self.request(Method::POST, &format!("/runs/{run}/cancel"));
        request.json(&json!({ "mode": "abort" })).send().await?.error_for_status()?;
        Ok(())
    }

    pub async fn run(&self, run: &str) -> anyhow::Result<Run> {
        self.get(&format!("/runs/{run}")).await
    }

    pub async fn steps(&self, run: &str) -> anyhow::Result<Steps> {
        self.get(&format!("/runs/{run}/steps")).await
    }

    /// The active handoff; `None` if there is none.
    pub async fn handoff(&self) -> anyhow::Result<Option<Handoff>> {
        let response = self.request(Method::GET, &self.thread_path("/handoff")).send().await?;
        if response.status() == StatusCode::CONFLICT {
            return Ok(None);
        }
        Ok(Some(response.error_for_status()?.json().await?))
    }

    /// All handoffs of the thread, the oldest first.
    pub async fn handoffs(&self) -> anyhow::Result<Vec<PastHandoff>> {
        Ok(self.get::<Page<_>>(&self.thread_path("/handoffs")).await?.data)
    }

    pub async fn skills(&self) -> anyhow::Result<Vec<Skill>> {
        Ok(self.get::<Page<_>>("/skills").await?.data)
    }
}

/// Splits server-sent events into lines and returns the types of complete events.
#[derive(Debug, Default)]
struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        self.pending.extend_from_slice(chunk);
        let Some(end) = self.pending.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let complete: Vec<u8> = self.pending.drain(..=end).collect();
        let lines = complete.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
        lines
            .filter_map(|data| serde_json::from_slice::<StreamEvent>(data).ok())
            .map(|event| event.kind)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_across_chunks() {
        let mut lines = Lines::default();
        assert!(lines.push(b"retry: 3000\n\nid: 1\ndata: {\"type\":\"RUN_").is_empty());
        assert_eq!(lines.push(b"STARTED\"}\n\ndata:{\"type\":\"B\"}\n"), ["RUN_STARTED", "B"]);
    }
}
