//! What was said, on spans: only for whoever asked for it, without secrets, and never all of a long text.

use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::chat::{ChatMessage, Messages, Reply};
use baton_core::message::Part;
use baton_core::{Mask, sanitize};
use serde_json::{Value, json};

/// Of one text, in characters.
const MOST_TEXT: usize = 8_000;
/// Of a conversation: the newest messages.
const MOST_MESSAGES: usize = 20;

/// For the whole process, as the listener to spans is.
static CAPTURES: AtomicBool = AtomicBool::new(false);

/// Whether spans carry prompts, answers and what goes to and comes from tools. Not unless somebody says so.
pub fn capture(yes: bool) {
    CAPTURES.store(yes, Ordering::Relaxed);
}

pub(super) fn is_captured() -> bool {
    CAPTURES.load(Ordering::Relaxed)
}

/// Masked before it is cut, so that no cut leaves half of a secret.
pub(super) fn text(text: &str) -> String {
    let clean = sanitize(text, Mask::Everything);
    match clean.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean.into_owned(),
    }
}

pub(super) fn instructions(system: &str) -> String {
    json!([said(system)]).to_string()
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

/// Files and pictures are not repeated.
fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } => said(text),
        _ => json!({ "type": "blob" }),
    }
}

fn parts_of(reply: &Reply) -> Vec<Value> {
    let words = (!reply.text.is_empty()).then(|| said(&reply.text));
    let calls = reply.calls.iter().map(|call| {
        json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": text(&call.arguments) })
    });
    words.into_iter().chain(calls).collect()
}

fn said(words: &str) -> Value {
    json!({ "type": "text", "content": text(words) })
}
