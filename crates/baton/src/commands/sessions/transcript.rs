//! What a session said and heard, put together from the steps it recorded.

use baton_core::chat::{ChatMessage, Reply, ToolResult};
use baton_core::message::Part;
use baton_core::store::{SessionRecord, Step, StepKind, StepState};
use baton_core::{AgentName, SessionId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::archive::Archive;
use crate::report::conversation::{entry, words};

/// One entry, and where it comes from.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Said {
    /// Where in the run's tree.
    path: String,
    at: Timestamp,
    /// What was begun and never finished has no message.
    #[serde(flatten)]
    message: Option<ChatMessage>,
}

/// What is read of a finished turn.
#[derive(Deserialize)]
struct Taken {
    reply: Reply,
}

/// What is read of the beginning of a session that another one called.
#[derive(Default, Deserialize)]
struct Begun {
    #[serde(default)]
    input: Vec<Part>,
}

pub(super) async fn of(archive: &Archive, session: &SessionRecord) -> anyhow::Result<Vec<Said>> {
    let mut said = Vec::new();
    if session.session_id == SessionId::root(session.run_id) {
        let run = archive.tenant.run(session.run_id).await?;
        said.extend(archive.message_of(&run).await?.map(|message| Said {
            path: session.path.clone(),
            at: message.created_at,
            message: Some(ChatMessage::User { parts: message.parts }),
        }));
    }
    let steps = archive.tenant.steps(session.run_id).await?;
    for step in steps.into_iter().filter(|step| step.session_id == session.session_id) {
        add(&mut said, step);
    }
    Ok(said)
}

fn add(said: &mut Vec<Said>, step: Step) {
    let Step { path, kind, state, data, at, .. } = step;
    let message = match (kind, state) {
        (StepKind::Session, _) => {
            let Begun { input } = serde_json::from_value(data).unwrap_or_default();
            if input.is_empty() {
                return;
            }
            Some(ChatMessage::User { parts: input })
        }
        (StepKind::Round | StepKind::Note, _) => return,
        (_, StepState::Started) => None,
        (StepKind::Turn, _) => {
            serde_json::from_value(data).ok().map(|Taken { reply }| ChatMessage::Assistant(reply))
        }
        (StepKind::Tool, _) => serde_json::from_value::<ToolResult>(data).ok().map(ChatMessage::Tool),
        (StepKind::Say, _) => {
            let text = data.as_str().unwrap_or_default().to_owned();
            // Mostly it shows what the last turn said unseen.
            if said.iter().any(|said| said.is_words(&text)) {
                return;
            }
            Some(ChatMessage::Assistant(Reply { text, ..Reply::default() }))
        }
    };
    said.push(Said { path, at, message });
}

impl Said {
    fn is_words(&self, text: &str) -> bool {
        matches!(&self.message, Some(ChatMessage::Assistant(reply)) if reply.text == text)
    }

    /// For reading.
    pub(super) fn text(&self, agent: &AgentName) -> String {
        let at = Some(self.at);
        match &self.message {
            None => entry(&self.path, at, "(never finished)"),
            Some(ChatMessage::User { parts }) => entry("asked", at, &words(parts)),
            Some(ChatMessage::Assistant(reply)) => entry(agent.as_str(), at, &spoken(reply)),
            Some(ChatMessage::Tool(result)) => {
                let failed = if result.failed { " (failed)" } else { "" };
                entry(&format!("{}{failed}", result.name), at, &result.content)
            }
        }
    }
}

fn spoken(reply: &Reply) -> String {
    let calls = reply.calls.iter().map(|call| format!("→ {} {}", call.name, call.arguments));
    let text = Some(reply.text.clone()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}
