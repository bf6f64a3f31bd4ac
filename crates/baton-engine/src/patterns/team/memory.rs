//! The memory of earlier rounds, for a member or the coordinator.

use baton_core::chat::{ChatMessage, Reply};
use baton_core::message::Part;

use crate::input::text_of;

/// Maximum length of a memory, in characters.
const MAX_CHARS: usize = 100_000;

/// Appends a round and drops the oldest ones beyond [`MAX_CHARS`]; the newest round is always kept. Only the last text part of
/// `prompt` is remembered, because every prompt repeats the request.
pub(super) fn remember(memory: &mut Vec<ChatMessage>, prompt: &[Part], said: String) {
    let news = prompt.iter().rfind(|part| matches!(part, Part::Text { .. }));
    memory.push(ChatMessage::User { parts: news.into_iter().cloned().collect() });
    memory.push(ChatMessage::Assistant(Reply { text: said, ..Reply::default() }));
    let mut size: usize = memory.iter().map(len).sum();
    let mut end = 0;
    while size > MAX_CHARS && end + 2 < memory.len() {
        size -= len(&memory[end]) + len(&memory[end + 1]);
        end += 2;
    }
    memory.drain(..end);
}

fn len(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User { parts } => text_of(parts).chars().count(),
        ChatMessage::Assistant(reply) => reply.text.chars().count(),
        ChatMessage::Tool(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E34
    #[test]
    fn newest_rounds_are_kept() {
        let mut memory = Vec::new();
        for round in 1..=1000 {
            let prompt = [Part::text("the request"), Part::text(format!("{round} {}", "x".repeat(10_000)))];
            remember(&mut memory, &prompt, format!("said in {round}"));
            assert!(memory.iter().map(len).sum::<usize>() <= MAX_CHARS);
        }
        assert_eq!(memory.len(), 18);
        let ChatMessage::User { parts } = &memory[0] else { panic!("not what was told") };
        assert!(text_of(parts).starts_with("992 x"), "without the request");
    }

    #[test]
    fn oversized_round_is_kept() {
        let mut memory = Vec::new();
        for round in 1..=3 {
            remember(&mut memory, &[Part::text("x".repeat(MAX_CHARS))], format!("said in {round}"));
        }
        assert_eq!(memory.len(), 2);
    }
}
