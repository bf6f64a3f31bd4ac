//! Fits a conversation into the model's context window. The oldest messages and tool results go first.

use std::sync::Arc;

use baton_core::chat::{ChatMessage, Messages, Reply};
use baton_core::event::EventKind;

use crate::scope::Scope;

/// Tokens of the context window if the model's is unknown.
const DEFAULT_WINDOW: u64 = 128_000;
/// Tokens kept free for the answer if the agent sets no limit.
const DEFAULT_ANSWER: u64 = 8_000;
/// Images of tool results that a model sees. Older ones are dropped: they are sent again with every turn.
pub(crate) const MAX_IMAGES: usize = 8;
/// Bytes that stay of a result of the newest turn when even that does not fit.
const MIN_RESULT_BYTES: usize = 2_000;

/// Estimates tokens from bytes. Providers count differently, and an estimate that is too high only shortens the conversation
/// earlier.
pub mod estimate {
    use std::io;

    use baton_core::ToolSpec;
    use baton_core::chat::{ChatMessage, Reply};
    use baton_core::message::{ImageSource, Part};
    use serde_json::Value;

    const BYTES_PER_TOKEN: u64 = 4;
    /// Roles and separators around each message.
    const OVERHEAD: u64 = 8;
    const IMAGE: u64 = 1_200;

    pub fn text(text: &str) -> u64 {
        (text.len() as u64).div_ceil(BYTES_PER_TOKEN)
    }

    pub fn tool(spec: &ToolSpec) -> u64 {
        OVERHEAD + text(&spec.description) + json(&spec.parameters)
    }

    pub fn reply(reply: &Reply) -> u64 {
        let calls = reply.calls.iter().map(|call| text(&call.name) + text(&call.arguments) + OVERHEAD);
        let reasoning = reply.reasoning.iter().map(|reasoning| text(&reasoning.text));
        text(&reply.text) + calls.sum::<u64>() + reasoning.sum::<u64>()
    }

    pub fn message(message: &ChatMessage) -> u64 {
        OVERHEAD
            + match message {
                ChatMessage::User { parts } => parts.iter().map(part).sum(),
                ChatMessage::Assistant(said) => reply(said),
                ChatMessage::Tool(result) => text(&result.content) + IMAGE * result.images.len() as u64,
            }
    }

    fn part(part: &Part) -> u64 {
        match part {
            Part::Text { text: content } => text(content),
            Part::Image(image) => match &image.source {
                ImageSource::Base64(_) | ImageSource::Uri(_) => IMAGE,
            },
            Part::File { name, uri, .. } => text(name) + text(uri),
            Part::Data { data } => json(data),
        }
    }

    /// Tokens of the value's JSON text, counted without allocating it.
    fn json(value: &Value) -> u64 {
        let mut counter = Counter(0);
        // The counter never fails.
        let _ = serde_json::to_writer(&mut counter, value);
        counter.0.div_ceil(BYTES_PER_TOKEN)
    }

    struct Counter(u64);

    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}

/// The messages of a session and a running estimate of their tokens.
#[derive(Debug)]
pub struct Conversation {
    /// Earlier messages of the thread. Shared and never copied: dropped messages are skipped.
    history: Arc<Vec<ChatMessage>>,
    /// How many messages of `history` are skipped.
    passed_over: usize,
    /// The task of the session, and what the session added.
    messages: Vec<ChatMessage>,
    tokens: u64,
}

impl Conversation {
    pub fn new(history: Arc<Vec<ChatMessage>>, task: ChatMessage) -> Self {
        let tokens = history.iter().chain([&task]).map(estimate::message).sum();
        Self { history, passed_over: 0, messages: vec![task], tokens }
    }

    pub fn push(&mut self, message: ChatMessage) {
        self.tokens += estimate::message(&message);
        self.messages.push(message);
    }

    /// Keeps the newest images of tool results. The text of a result still names its images.
    pub fn drop_old_images(&mut self) {
        let mut left = MAX_IMAGES;
        for at in (0..self.messages.len()).rev() {
            let before = estimate::message(&self.messages[at]);
            let ChatMessage::Tool(result) = &mut self.messages[at] else { continue };
            result.images.truncate(left);
            left -= result.images.len();
            self.tokens = self.tokens - before + estimate::message(&self.messages[at]);
        }
    }

    /// Replaces the newest message, a reply of the model.
    pub fn replace_reply(&mut self, reply: Reply) {
        if let Some(replaced) = self.messages.pop_if(|newest| matches!(newest, ChatMessage::Assistant(_))) {
            self.tokens -= estimate::message(&replaced);
        }
        self.push(ChatMessage::Assistant(reply));
    }

    /// Adds text to the newest message if it is the result of a tool.
    pub fn add_to_result(&mut self, text: &str) {
        if let Some(newest @ ChatMessage::Tool(_)) = self.messages.last_mut() {
            let before = estimate::message(newest);
            if let ChatMessage::Tool(result) = newest {
                result.content = format!("{}{text}", result.content).into();
            }
            self.tokens = self.tokens - before + estimate::message(newest);
        }
    }

    pub fn messages(&self) -> Messages<'_> {
        Messages::new(&self.history[self.passed_over..], &self.messages)
    }

    /// The agent's last text before the task of the session.
    pub fn last_answer(&self) -> Option<&str> {
        self.history.iter().rev().find_map(|message| match message {
            ChatMessage::Assistant(reply) if !reply.text.trim().is_empty() => Some(reply.text.as_str()),
            _ => None,
        })
    }

    /// The messages that the session added after its task.
    pub fn after_task(&self) -> &[ChatMessage] {
        &self.messages[1..]
    }

    /// Estimated tokens of all messages.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Shortens the conversation so that it fits beside `fixed` tokens of system prompt and tools. The trace says what was
    /// removed.
    pub async fn fit(&mut self, scope: &Scope, window: Option<u64>, fixed: u64) {
        let answer = scope.agent().sampling.max_output_tokens.map_or(DEFAULT_ANSWER, u64::from);
        let window = window.unwrap_or(DEFAULT_WINDOW);
        let available = window.saturating_sub(answer.min(window / 2)).saturating_sub(fixed);
        self.shorten_to(scope, available).await;
    }

    /// Shortens the conversation by a third, after a provider has rejected it as too long. Returns `false` if nothing could be
    /// removed.
    pub async fn shorten(&mut self, scope: &Scope) -> bool {
        let before = self.tokens;
        self.shorten_to(scope, before * 2 / 3).await;
        self.tokens < before
    }

    async fn shorten_to(&mut self, scope: &Scope, available: u64) {
        if self.tokens <= available {
            return;
        }
        let before = self.tokens;
        let history = self.drop_history(available);
        let (results, dropped) = (self.compact_old_results(available), history + self.drop_oldest(available));
        let cut = self.cut_newest_results(available);
        let text = if self.tokens < before {
            format!(
                "the conversation was shortened from about {before} to {} tokens: {results} old tool results and {dropped} \
                 messages removed, {cut} new tool results cut",
                self.tokens
            )
        } else {
            format!("the conversation has about {before} tokens, and there is nothing in it that can go")
        };
        Box::pin(scope.trace(EventKind::Status { text })).await;
    }

    /// The index of the newest exchange: the last reply of the model and its tool results. It is not dropped.
    fn newest_exchange(&self) -> usize {
        let last_turn =
            self.messages.iter().rposition(|message| matches!(message, ChatMessage::Assistant(_)));
        last_turn.unwrap_or(self.messages.len() - 1).max(1)
    }

    /// Replaces old tool results by a line that says what was removed.
    fn compact_old_results(&mut self, available: u64) -> usize {
        let end = self.newest_exchange();
        let mut compacted = 0;
        for at in 0..end {
            if self.tokens > available && self.cut_result(at, 0) {
                compacted += 1;
            }
        }
        compacted
    }

    /// Drops earlier messages of the thread, the oldest first, up to a user message.
    fn drop_history(&mut self, available: u64) -> usize {
        let before = self.passed_over;
        while let Some(message) = self.history.get(self.passed_over) {
            let is_answer = matches!(message, ChatMessage::Assistant(_));
            if self.tokens <= available && !(is_answer && self.passed_over > before) {
                break;
            }
            self.tokens -= estimate::message(message);
            self.passed_over += 1;
        }
        self.passed_over - before
    }

    /// Drops the oldest exchanges, but never the task. A call and its results are dropped together.
    fn drop_oldest(&mut self, available: u64) -> usize {
        let (first, last) = (1, self.newest_exchange());
        let mut end = first;
        while end < last && (self.tokens > available || matches!(self.messages[end], ChatMessage::Tool(_))) {
            // Nothing was dropped yet, so a result here still has its call.
            if end == first && self.tokens <= available {
                break;
            }
            self.tokens -= estimate::message(&self.messages[end]);
            end += 1;
        }
        self.messages.drain(first..end).count()
    }

    /// Shortens the results of the newest exchange to their beginning.
    fn cut_newest_results(&mut self, available: u64) -> usize {
        let mut cut = 0;
        for at in self.newest_exchange()..self.messages.len() {
            if self.tokens > available && self.cut_result(at, MIN_RESULT_BYTES) {
                cut += 1;
            }
        }
        cut
    }

    /// Shortens a tool result to its first `keep` bytes and a note. Returns `false` if that would save nothing.
    fn cut_result(&mut self, at: usize, keep: usize) -> bool {
        let before = estimate::message(&self.messages[at]);
        let ChatMessage::Tool(result) = &mut self.messages[at] else { return false };
        let had_images = !std::mem::take(&mut result.images).is_empty();
        let kept = result.content.floor_char_boundary(keep);
        let removed = result.content.len() - kept;
        let note = format!("[removed to save space: {removed} bytes of output of `{}`]", result.name);
        if removed <= note.len() {
            self.tokens = self.tokens - before + estimate::message(&self.messages[at]);
            return had_images;
        }
        // Untrusted output ends with a closing mark, which stays.
        let last = result.content.rsplit('\n').next().filter(|line| line.starts_with("<<<end "));
        let end = last.map(|line| format!("\n{line}")).unwrap_or_default();
        result.content = Arc::from(format!("{}{note}{end}", &result.content[..kept]));
        self.tokens = self.tokens - before + estimate::message(&self.messages[at]);
        true
    }
}

#[cfg(test)]
mod tests {
    use baton_core::ToolCallId;
    use baton_core::chat::{Reply, ToolCall, ToolResult};

    use super::*;

    fn exchange(conversation: &mut Conversation, calls: usize, bytes: usize) {
        let ids: Vec<ToolCallId> = (0..calls).map(|n| ToolCallId::parse(&format!("c{n}")).unwrap()).collect();
        let call = |id: &ToolCallId| ToolCall {
            id: id.clone(),
            name: "t".into(),
            arguments: "{}".into(),
            signature: None,
        };
        let reply = Reply { calls: ids.iter().map(call).collect(), ..Reply::default() };
        conversation.push(ChatMessage::Assistant(reply));
        for call_id in ids {
            let content = "x".repeat(bytes);
            conversation.push(ChatMessage::Tool(ToolResult::text(call_id, "t", content, false)));
        }
    }

    /// Whether each call is followed by its results.
    fn is_whole(messages: &[ChatMessage]) -> bool {
        let mut waiting = 0;
        for message in messages {
            match message {
                ChatMessage::Assistant(reply) if waiting == 0 => waiting = reply.calls.len(),
                ChatMessage::Tool(_) if waiting > 0 => waiting -= 1,
                ChatMessage::User { .. } if waiting == 0 => {}
                _ => return false,
            }
        }
        waiting == 0
    }

    #[test]
    fn newest_results_are_kept() {
        let mut conversation = Conversation::new(Arc::default(), ChatMessage::user("the task"));
        exchange(&mut conversation, 2, 10_000);
        exchange(&mut conversation, 6, 10_000);
        let (compacted, dropped) =
            (conversation.compact_old_results(16_000), conversation.drop_oldest(16_000));
        assert_eq!((compacted, dropped, conversation.messages.len()), (2, 0, 11));
        assert_eq!(conversation.drop_oldest(100), 3);
        assert_eq!(conversation.messages.len(), 8);
        assert!(is_whole(&conversation.messages));
        assert_eq!(conversation.cut_newest_results(100), 6);
        let tokens = conversation.messages.iter().map(estimate::message).sum::<u64>();
        assert_eq!(conversation.tokens, tokens, "the running estimate is right");
    }

    #[test]
    fn history_is_shared_and_dropped_up_to_a_user_message() {
        let said = |text: &str| ChatMessage::Assistant(Reply { text: text.into(), ..Reply::default() });
        let history = Arc::new(vec![ChatMessage::user("1"), said("2"), ChatMessage::user("3"), said("4")]);
        let mut conversation = Conversation::new(Arc::clone(&history), ChatMessage::user("5"));
        assert!(std::ptr::eq(conversation.messages().parts().0, history.as_slice()), "not a copy");
        let available = conversation.tokens - 1;
        assert_eq!(conversation.drop_history(available), 2, "a question goes with its answer");
        assert_eq!(conversation.messages().iter().next(), Some(&history[2]));
        assert_eq!(conversation.drop_history(0), 2);
        assert_eq!(conversation.messages().len(), 1, "the task stays");
        assert_eq!(conversation.tokens, estimate::message(&ChatMessage::user("5")));
    }

    #[test]
    fn calls_and_results_are_dropped_together() {
        for available in (0..30_000).step_by(97) {
            let mut conversation = Conversation::new(Arc::default(), ChatMessage::user("the task"));
            for (calls, bytes) in [(1, 400), (3, 9_000), (0, 0), (5, 20_000), (2, 100)] {
                exchange(&mut conversation, calls, bytes);
                conversation.push(ChatMessage::user("go on"));
            }
            conversation.compact_old_results(available);
            conversation.drop_oldest(available);
            assert!(is_whole(&conversation.messages), "{available}");
            assert!(matches!(&conversation.messages[0], ChatMessage::User { .. }));
        }
    }
}
