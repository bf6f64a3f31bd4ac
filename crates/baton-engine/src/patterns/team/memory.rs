//! What a member, or the coordinator between the rounds, remembers of earlier rounds.

use baton_core::chat::{ChatMessage, Reply};
use baton_core::message::Part;

use crate::run::words;

/// In characters. However many rounds there are, what somebody is told with each does not grow beyond it.
const MOST: usize = 100_000;

/// Adds what was new in a round and what somebody said to it; the oldest rounds go. The request is told with each round, so it
/// is not remembered: the news are the last words of what was told.
pub(super) fn remember(memory: &mut Vec<ChatMessage>, told: &[Part], said: String) {
    let news = told.iter().rfind(|part| matches!(part, Part::Text { .. }));
    memory.push(ChatMessage::User { parts: news.into_iter().cloned().collect() });
    memory.push(ChatMessage::Assistant(Reply { text: said, ..Reply::default() }));
    let mut size: usize = memory.iter().map(len).sum();
    let mut end = 0;
    while size > MOST && end + 2 < memory.len() {
        size -= len(&memory[end]) + len(&memory[end + 1]);
        end += 2;
    }
    memory.drain(..end);
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
    fn the_newest_rounds_stay() {
        let mut memory = Vec::new();
        for round in 1..=1000 {
            let told = [Part::text("the request"), Part::text(format!("{round} {}", "x".repeat(10_000)))];
            remember(&mut memory, &told, format!("said in {round}"));
            assert!(memory.iter().map(len).sum::<usize>() <= MOST);
        }
        assert_eq!(memory.len(), 18);
        let ChatMessage::User { parts } = &memory[0] else { panic!("not what was told") };
        assert!(words(parts).starts_with("992 x"), "without the request");
    }

    #[test]
    fn a_round_that_is_too_long_by_itself_is_not_forgotten() {
        let mut memory = Vec::new();
        for round in 1..=3 {
            remember(&mut memory, &[Part::text("x".repeat(MOST))], format!("said in {round}"));
        }
        assert_eq!(memory.len(), 2);
    }
}
