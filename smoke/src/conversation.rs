//! Sends the messages of a case and collects what they led to.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::api::Api;
use crate::cases::{Case, Line};
use crate::observation::{MessageResult, Observation};

/// How long the state after a time-out may take to be read.
const AFTER_TIMEOUT: Duration = Duration::from_secs(5);

/// What a conversation led to.
#[derive(Debug)]
pub struct Played {
    pub observation: Observation,
    /// Why the conversation ended early.
    pub problem: Option<String>,
}

/// Plays a case in a new thread. `limit` applies to each message.
pub async fn play(url: &str, case: &Case, limit: Duration) -> Played {
    let mut observation = Observation::default();
    let problem = match Api::new(url) {
        Ok(api) => play_lines(&api, case, limit, &mut observation).await.err(),
        Err(error) => Some(error),
    };
    Played { observation, problem: problem.map(|error| format!("{error:#}")) }
}

async fn play_lines(api: &Api, case: &Case, limit: Duration, seen: &mut Observation) -> anyhow::Result<()> {
    // The holder of a handoff answers without being named.
    let mut agent = case.agent.as_deref();
    for Line { text, while_held } in &case.messages {
        let (times, needs_holder) = while_held.map_or((1, false), |times| (times, true));
        for _ in 0..times {
            if needs_holder && seen.holder.is_none() {
                break;
            }
            exchange(api, text, agent.take(), limit, seen).await?;
        }
    }
    let handoffs = api.handoffs().await?.into_iter().filter(|handoff| handoff.state == "completed");
    seen.completed_handoffs = handoffs.map(|handoff| handoff.to).collect();
    seen.skills = api.skills().await?.into_iter().map(|skill| skill.name).collect();
    Ok(())
}

/// Sends one message and waits for the end of its run, at most for `limit`.
async fn exchange(
    api: &Api,
    text: &str,
    agent: Option<&str>,
    limit: Duration,
    seen: &mut Observation,
) -> anyhow::Result<()> {
    let sent = Instant::now();
    let mut message = MessageResult { text: text.to_owned(), ..MessageResult::default() };
    let run =
        tokio::time::timeout(limit, api.send(text, agent)).await.context("the message is not accepted")??;
    let mut first_token = None;
    let followed = tokio::time::timeout(limit, api.follow(&run, sent, &mut first_token)).await;
    message.total_ms = millis(sent.elapsed());
    message.first_token_ms = first_token.map(millis);
    if followed.is_err() {
        let _ = tokio::time::timeout(AFTER_TIMEOUT, api.cancel(&run)).await;
    }
    let read = tokio::time::timeout(AFTER_TIMEOUT, collect(api, &run, &mut message, seen)).await;
    seen.messages.push(message);
    match followed {
        Err(_) => bail!("timed out after {} s", limit.as_secs()),
        Ok(followed) => {
            followed?;
            read??;
            Ok(())
        }
    }
}

async fn collect(
    api: &Api,
    run: &str,
    message: &mut MessageResult,
    seen: &mut Observation,
) -> anyhow::Result<()> {
    message.add_run(api.run(run).await?);
    message.add_steps(&api.steps(run).await?);
    let handoff = api.handoff().await?;
    seen.holder = handoff.as_ref().map(|handoff| handoff.target_agent_id.clone());
    if let Some(handoff) = handoff {
        seen.workflow_state = handoff.workflow_state;
        let values = handoff.workflow_metadata["values"].as_object().into_iter().flatten();
        let text =
            |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        seen.values = values.map(|(key, value)| (key.clone(), text(value))).collect();
    }
    Ok(())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
