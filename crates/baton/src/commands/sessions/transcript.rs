//! What a session said and heard, put together from the steps it recorded.

use baton_core::chat::{ChatMessage, Reply};
use baton_core::store::{SessionRecord, Step};
use baton_core::{AgentName, SessionId};
use baton_engine::recorded::RecordedStep;
use jiff::Timestamp;
use serde::Serialize;

use super::super::archive::Archive;
use crate::report::conversation::{entry, text_of};

/// One entry, and where it comes from.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TranscriptEntry {
    /// Where in the run's tree.
    path: String,
    at: Timestamp,
    /// What was begun and never finished has no message.
    #[serde(flatten)]
    message: Option<ChatMessage>,
}

pub(super) async fn of(archive: &Archive, session: &SessionRecord) -> anyhow::Result<Vec<TranscriptEntry>> {
    let mut said = Vec::new();
    if session.session_id == SessionId::root(session.run_id) {
        let run = archive.tenant.run(session.run_id).await?;
        said.extend(archive.message_of(&run).await?.map(|message| TranscriptEntry {
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

fn add(said: &mut Vec<TranscriptEntry>, step: Step) {
    let message = match RecordedStep::of(&step) {
        RecordedStep::Task(input) if input.is_empty() => return,
        RecordedStep::Task(input) => Some(ChatMessage::User { parts: input }),
        RecordedStep::Data(_) => return,
        RecordedStep::Unfinished => None,
        RecordedStep::Reply(reply) => Some(ChatMessage::Assistant(reply)),
        RecordedStep::Returned(result) => Some(ChatMessage::Tool(result)),
        // Usually the text of the last turn, which is listed already.
        RecordedStep::Text(text) if said.iter().any(|said| said.is_words(&text)) => return,
        RecordedStep::Text(text) => Some(ChatMessage::Assistant(Reply { text, ..Reply::default() })),
    };
    let Step { path, at, .. } = step;
    said.push(TranscriptEntry { path, at, message });
}

impl TranscriptEntry {
    fn is_words(&self, text: &str) -> bool {
        matches!(&self.message, Some(ChatMessage::Assistant(reply)) if reply.text == text)
    }

    /// For reading.
    pub(super) fn text(&self, agent: &AgentName) -> String {
        let at = Some(self.at);
        match &self.message {
            None => entry(&self.path, at, "(never finished)"),
            Some(ChatMessage::User { parts }) => entry("asked", at, &text_of(parts)),
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
