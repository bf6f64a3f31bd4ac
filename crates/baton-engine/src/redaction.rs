//! Redacts and shortens text before another agent sees it.

use baton_core::agent::Agent;
use baton_core::chat::ChatMessage;
use baton_core::message::Part;
pub(crate) use baton_core::text::head;
use baton_sanitize::{Mask, sanitize, sanitize_value};
use serde_json::Value;

/// Masks secrets always, and personal data unless `giver`'s file sets `sanitize: false`.
pub(crate) fn redact(giver: &Agent, text: &str) -> String {
    sanitize(text, mask(giver)).into_owned()
}

/// Like [`redact`], for JSON. A key such as `password` also masks its value.
pub(crate) fn redact_value(giver: &Agent, value: &Value) -> Value {
    sanitize_value(value, mask(giver))
}

fn mask(giver: &Agent) -> Mask {
    if giver.sanitize { Mask::Everything } else { Mask::SecretsOnly }
}

/// Like [`redact`], for the parts of a message. Images and URIs are not masked.
pub(crate) fn redact_parts(giver: &Agent, parts: &[Part]) -> Vec<Part> {
    let masked = parts.iter().map(|part| match part {
        Part::Text { text } => Part::text(redact(giver, text)),
        Part::Data { data } => Part::Data { data: redact_value(giver, data) },
        Part::File { name, uri, media_type } => {
            Part::File { name: redact(giver, name), uri: uri.clone(), media_type: media_type.clone() }
        }
        Part::Image(_) => part.clone(),
    });
    masked.collect()
}

/// Redacted user and assistant texts. Tool calls and tool results are dropped.
pub(crate) fn redact_messages(giver: &Agent, messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let words = messages.iter().filter_map(|message| match message {
        ChatMessage::User { parts } => Some(ChatMessage::User { parts: redact_parts(giver, parts) }),
        ChatMessage::Assistant(reply) if !reply.text.trim().is_empty() => {
            let text = redact(giver, &reply.text);
            Some(ChatMessage::Assistant(baton_core::chat::Reply { text, ..Default::default() }))
        }
        ChatMessage::Assistant(_) | ChatMessage::Tool(_) => None,
    });
    words.collect()
}

/// The last `most` characters, with `...` in front if the text was cut.
pub(crate) fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    format!("...{}", text.chars().skip(count - most).collect::<String>())
}

/// Indents all lines but the first, so that no line of the text looks like the next entry of a list.
pub(crate) fn indented(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("\n   ")
}

#[cfg(test)]
mod tests {
    use super::{head, tail};

    /// G17, X28
    #[test]
    fn tail_keeps_the_last_characters() {
        assert_eq!(tail("äöü", 3), "äöü");
        assert_eq!(tail("äöüß", 2), "...üß");
        assert_eq!(head("äöüß", 2), "äö...");
        assert_eq!(head("äö", 2), "äö");
    }
}
