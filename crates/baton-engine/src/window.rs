//! What still fits into the model. When a conversation grows too long, the oldest tool results go first.

use std::sync::Arc;

use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;

use crate::scope::Scope;

/// Assumed when nothing is known about a model.
const DEFAULT_WINDOW: u64 = 128_000;
/// Kept free for the answer when the agent does not say how long it may be.
const DEFAULT_ANSWER: u64 = 8_000;
/// The newest messages are what the model is working on; they stay.
const KEPT: usize = 4;

/// Tokens, estimated by bytes: providers count differently, and a guess that is too high only compacts earlier.
pub mod estimate {
    use baton_core::chat::ChatMessage;
    use baton_core::message::{ImageSource, Part};

    const BYTES_PER_TOKEN: u64 = 4;
    /// Roles and separators around each message.
    const OVERHEAD: u64 = 8;
    const IMAGE: u64 = 1_200;

    pub fn text(text: &str) -> u64 {
        (text.len() as u64).div_ceil(BYTES_PER_TOKEN)
    }

    pub fn message(message: &ChatMessage) -> u64 {
        OVERHEAD
            + match message {
                ChatMessage::User { parts } => parts.iter().map(part).sum(),
                ChatMessage::Assistant(reply) => {
                    let calls =
                        reply.calls.iter().map(|call| text(&call.name) + text(&call.arguments) + OVERHEAD);
                    let reasoning = reply.reasoning.iter().map(|reasoning| text(&reasoning.text));
                    text(&reply.text) + calls.sum::<u64>() + reasoning.sum::<u64>()
                }
                ChatMessage::Tool(result) => text(&result.content),
            }
    }

    fn part(part: &Part) -> u64 {
        match part {
            Part::Text { text: content } => text(content),
            Part::Image(image) => match &image.source {
                ImageSource::Base64(_) | ImageSource::Uri(_) => IMAGE,
            },
            Part::File { name, uri, .. } => text(name) + text(uri),
            Part::Data { data } => text(&data.to_string()),
        }
    }
}

/// A session's messages and a running estimate of their size: adding one costs as much as that one.
#[derive(Debug, Default)]
pub struct Conversation {
    messages: Vec<ChatMessage>,
    tokens: u64,
}

impl Conversation {
    pub fn push(&mut self, message: ChatMessage) {
        self.tokens += estimate::message(&message);
        self.messages.push(message);
    }

    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Makes the conversation fit beside `fixed` tokens of system prompt and tools, and says in the trace what went.
    pub async fn fit(&mut self, scope: &Scope, window: Option<u64>, fixed: u64) {
        let answer = scope.agent.sampling.max_output_tokens.map_or(DEFAULT_ANSWER, u64::from);
        let window = window.unwrap_or(DEFAULT_WINDOW);
        let room = window.saturating_sub(answer.min(window / 2)).saturating_sub(fixed);
        self.shorten_to(scope, room).await;
    }

    /// The same when a provider said that it is too long: a third less than it is.
    pub async fn shorten(&mut self, scope: &Scope) {
        self.shorten_to(scope, self.tokens * 2 / 3).await;
    }

    async fn shorten_to(&mut self, scope: &Scope, room: u64) {
        if self.tokens <= room {
            return;
        }
        let before = self.tokens;
        let (results, dropped) = (self.compact_results(room), self.drop_oldest(room));
        let text = format!(
            "the conversation was shortened from about {before} to {} tokens: {results} tool results and {dropped} messages removed",
            self.tokens
        );
        scope.trace(EventKind::Status { text }).await;
    }

    /// Replaces old tool results by a line that says what stood there.
    fn compact_results(&mut self, room: u64) -> usize {
        let mut compacted = 0;
        let end = self.messages.len().saturating_sub(KEPT);
        for message in &mut self.messages[..end] {
            if self.tokens <= room {
                break;
            }
            let before = estimate::message(message);
            let ChatMessage::Tool(result) = message else { continue };
            let note = format!(
                "[removed to save space: {} bytes of output of `{}`]",
                result.content.len(),
                result.name
            );
            if note.len() < result.content.len() {
                result.content = Arc::from(note);
                self.tokens = self.tokens - before + estimate::message(message);
                compacted += 1;
            }
        }
        compacted
    }

    /// Drops the oldest exchanges, but never the first message, which is the task. A call and its results go together.
    fn drop_oldest(&mut self, room: u64) -> usize {
        let mut end = 1;
        let last = self.messages.len().saturating_sub(KEPT).max(1);
        let mut tokens = self.tokens;
        while end < last && (tokens > room || matches!(self.messages[end], ChatMessage::Tool(_))) {
            tokens -= estimate::message(&self.messages[end]);
            end += 1;
        }
        // Results whose call is gone would be orphans.
        while end < self.messages.len() && end > 1 && matches!(self.messages[end], ChatMessage::Tool(_)) {
            tokens -= estimate::message(&self.messages[end]);
            end += 1;
        }
        self.tokens = tokens;
        self.messages.drain(1..end.max(1)).count()
    }
}
