//! What a remote agent is sent.

use baton_core::chat::ChatMessage;
use baton_core::message::{Part, Role};
use baton_core::remote::{RemoteHandoff, RemoteMessage, RemoteTask};
use baton_core::store::HandoffSession;
use serde_json::Value;

use crate::fence::Fence;
use crate::input::{Input, PromptEnvelope, text_of};
use crate::redaction::{indented, tail};
use crate::scope::Scope;

/// A message at `place`, which is a turn of the session. The same place has the same message id after a crash.
pub(super) fn build(
    place: &Scope,
    task: RemoteTask,
    parts: Vec<Part>,
    handoff: Option<RemoteHandoff>,
) -> RemoteMessage {
    RemoteMessage {
        message_id: place.uuid(),
        task,
        parts,
        handoff: handoff.map(Box::new),
        run_id: place.run.run_id,
        trace: place.call_context().trace.clone(),
    }
}

/// The parts of the first message at `place`: the conversation so far, the task, and the schema of the answer. They are the same
/// after a crash, so that a peer can recognize a repeated message.
pub(super) fn first_parts(place: &Scope, input: &Input, schema: Option<&Value>) -> Vec<Part> {
    let mut parts = input.parts.to_vec();
    let lines: Vec<String> = spoken(&input.history).map(|(role, text)| line(role, &text)).collect();
    if !lines.is_empty() {
        let conversation = tail(&lines.join("\n\n"), place.run.policy.context_max_chars);
        // The run's id is drawn after its conversation was written, so no author can know the mark.
        let mark = place.uuid().simple().to_string();
        let fence = Fence::marked(&mark[16..]);
        let block = fence.block("conversation", "## CONVERSATION SO FAR", &conversation);
        parts.insert(0, Part::text(format!("{}\n\n{block}", fence.material())));
    }
    parts.extend(schema.map(|schema| {
        Part::text(format!(
            "Answer only with JSON that satisfies this JSON Schema, without any other text: {schema}"
        ))
    }));
    parts
}

/// The offer of a thread. `input` is what the agent gets as its first message.
pub(super) fn offer(scope: &Scope, handoff: &HandoffSession, input: &Input) -> RemoteHandoff {
    RemoteHandoff {
        thread_id: handoff.thread_id,
        source_agent_id: handoff.source_agent_id.clone(),
        context_summary: handoff.context_summary.clone(),
        history_count: scope.run.request.message_number,
        recent_messages: recent(&input.history, handoff.notes.recent),
        reason: handoff.handoff_reason.clone(),
        preserve_state: handoff.notes.preserve_state,
        return_expected: handoff.notes.return_expected,
        words: PromptEnvelope::of(input).request(),
        metadata: handoff.metadata.clone(),
    }
}

/// The last `count` messages of users and agents.
pub(super) fn recent(history: &[ChatMessage], count: u32) -> Vec<(Role, String)> {
    let all: Vec<(Role, String)> = spoken(history).collect();
    let skipped = all.len().saturating_sub(count as usize);
    all.into_iter().skip(skipped).collect()
}

fn spoken(history: &[ChatMessage]) -> impl Iterator<Item = (Role, String)> {
    let spoken = history.iter().filter_map(|message| match message {
        ChatMessage::User { parts } => Some((Role::User, text_of(parts))),
        ChatMessage::Assistant(reply) => Some((Role::Assistant, reply.text.clone())),
        ChatMessage::Tool(_) => None,
    });
    spoken.filter(|(_, text)| !text.trim().is_empty())
}

fn line(role: Role, text: &str) -> String {
    let speaker = if role == Role::Assistant { "Assistant" } else { "Person" };
    format!("{speaker}: {}", indented(text))
}
