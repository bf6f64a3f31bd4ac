//! Message content on spans: off by default, masked and truncated.

use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::chat::{ChatMessage, Messages, Reply};
use baton_core::message::Part;
use baton_sanitize::{Mask, sanitize};
use serde_json::{Value, json};

/// Characters of one text.
const MOST_TEXT: usize = 8_000;
/// Messages of a conversation, the newest ones.
const MOST_MESSAGES: usize = 20;

/// Process-wide, like the `tracing` subscriber.
static CAPTURES: AtomicBool = AtomicBool::new(false);

/// Sets whether spans carry prompts, answers, and arguments and results of tools. Off by default.
pub fn capture(yes: bool) {
    CAPTURES.store(yes, Ordering::Relaxed);
}

pub(super) fn is_captured() -> bool {
    CAPTURES.load(Ordering::Relaxed)
}

/// Masks the text and then truncates it, so that the cut cannot leave half of a secret.
pub(super) fn text(text: &str) -> String {
    let clean = sanitize(text, Mask::Everything);
    match clean.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean.into_owned(),
    }
}

pub(super) fn instructions(system: &str) -> String {
    json!([text_part(system)]).to_string()
}

pub(super) fn messages(messages: Messages<'_>) -> String {
    let newest = messages.iter().skip(messages.len().saturating_sub(MOST_MESSAGES));
    newest.map(message).collect::<Value>().to_string()
}

pub(super) fn reply(reply: &Reply) -> String {
    json!([{ "role": "assistant", "parts": parts_of(reply) }]).to_string()
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::User { parts } => {
            json!({ "role": "user", "parts": parts.iter().map(part).collect::<Vec<_>>() })
        }
        ChatMessage::Assistant(reply) => json!({ "role": "assistant", "parts": parts_of(reply) }),
        ChatMessage::Tool(result) => json!({ "role": "tool", "parts": [{
            "type": "tool_call_response", "id": result.call_id, "response": text(&result.content),
        }] }),
    }
}

/// The content of files and images is left out.
fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } => text_part(text),
        _ => json!({ "type": "blob" }),
    }
}

fn parts_of(reply: &Reply) -> Vec<Value> {
    let words = (!reply.text.is_empty()).then(|| text_part(&reply.text));
    let calls = reply.calls.iter().map(|call| {
        json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": text(&call.arguments) })
    });
    words.into_iter().chain(calls).collect()
}

fn text_part(words: &str) -> Value {
    json!({ "type": "text", "content": text(words) })
}
