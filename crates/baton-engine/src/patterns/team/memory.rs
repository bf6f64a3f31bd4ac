//! What a member, or the coordinator between the rounds, remembers of earlier rounds.

use std::sync::Arc;

use baton_core::chat::{ChatMessage, Reply};
use baton_core::message::Part;

use crate::run::words;

/// In characters. However many rounds there are, what somebody is told with each does not grow beyond it.
const MOST: usize = 100_000;

/// Adds what somebody was told in a round and said to it. The first round stays, because the request is in it; of the others
/// the oldest go.
pub(super) fn remember(memory: &mut Vec<ChatMessage>, told: Arc<Vec<Part>>, said: String) {
    memory.push(ChatMessage::User { parts: Arc::unwrap_or_clone(told) });
    memory.push(ChatMessage::Assistant(Reply { text: said, ..Reply::default() }));
    let mut size: usize = memory.iter().map(len).sum();
    let mut end = 2;
    while size > MOST && end + 2 < memory.len() {
        size -= len(&memory[end]) + len(&memory[end + 1]);
        end += 2;
    }
    memory.drain(2..end);
}

fn len(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User { parts } => words(parts).chars().count(),
        ChatMessage::Assistant(reply) => reply.text.chars().count(),
        ChatMessage::Tool(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E34
    #[test]
    fn the_first_round_and_the_newest_stay() {
        let mut memory = Vec::new();
        for round in 1..=1000 {
            let told = Arc::new(vec![Part::text(format!("{round} {}", "x".repeat(10_000)))]);
            remember(&mut memory, told, format!("said in {round}"));
            assert!(memory.iter().map(len).sum::<usize>() <= MOST);
        }
        let said: Vec<&str> = memory
            .iter()
            .filter_map(|message| match message {
                ChatMessage::Assistant(reply) => Some(reply.text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!((said.len(), said[0], said[1], said[8]), (9, "said in 1", "said in 993", "said in 1000"));
    }

    #[test]
    fn a_round_that_is_too_long_by_itself_is_not_forgotten() {
        let mut memory = Vec::new();
        for round in 1..=3 {
            remember(&mut memory, Arc::new(vec![Part::text("x".repeat(MOST))]), format!("said in {round}"));
        }
        assert_eq!(memory.len(), 4);
    }
}
