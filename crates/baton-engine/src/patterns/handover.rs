//! What another agent gets to see of a text.

use baton_core::agent::Agent;
use baton_core::chat::ChatMessage;
use baton_core::message::Part;
use baton_core::sanitize::{Mask, sanitize, sanitize_value};

/// A text as `giver` gives it to somebody else: secrets never, personal data only if its file says so.
pub(crate) fn shared(giver: &Agent, text: &str) -> String {
    sanitize(text, mask(giver)).into_owned()
}

fn mask(giver: &Agent) -> Mask {
    if giver.sanitize { Mask::Everything } else { Mask::SecretsOnly }
}

/// The same for a whole message.
pub(crate) fn shared_parts(giver: &Agent, parts: &[Part]) -> Vec<Part> {
    let masked = parts.iter().map(|part| match part {
        Part::Text { text } => Part::text(shared(giver, text)),
        Part::Data { data } => Part::Data { data: sanitize_value(data, mask(giver)) },
        other => other.clone(),
    });
    masked.collect()
}

/// What was said, without tool traffic.
pub(crate) fn shared_words(giver: &Agent, messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let words = messages.iter().filter_map(|message| match message {
        ChatMessage::User { parts } => Some(ChatMessage::User { parts: shared_parts(giver, parts) }),
        ChatMessage::Assistant(reply) if !reply.text.trim().is_empty() => {
            let text = shared(giver, &reply.text);
            Some(ChatMessage::Assistant(baton_core::chat::Reply { text, ..Default::default() }))
        }
        ChatMessage::Assistant(_) | ChatMessage::Tool(_) => None,
    });
    words.collect()
}

/// The last `most` characters, with a mark in front if something was left out.
pub(crate) fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    format!("...{}", text.chars().skip(count - most).collect::<String>())
}

/// The first `most` characters, with a mark behind if something was left out.
pub(crate) fn head(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}...", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::{head, tail};

    /// G17, X28
    #[test]
    fn the_most_recent_is_kept_in_characters() {
        assert_eq!(tail("äöü", 3), "äöü");
        assert_eq!(tail("äöüß", 2), "...üß");
        assert_eq!(head("äöüß", 2), "äö...");
        assert_eq!(head("äö", 2), "äö");
    }
}
