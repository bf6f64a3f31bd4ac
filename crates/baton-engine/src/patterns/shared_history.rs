//! The part of the conversation and of the giver's session that the next agent sees, as the giver's `history` setting says.

use baton_core::agent::{Agent, HistoryAccess};
use baton_core::chat::{ChatMessage, Reply, ToolResult};

use super::summary;
use crate::engine_tool::CallSite;
use crate::failure::Failure;
use crate::input::text_of;
use crate::redaction::{indented, redact, redact_messages, tail};
use crate::scope::Scope;

/// Maximum length of a transcript, in characters. Leaves room in the receiver's context.
const TRANSCRIPT_CHARS: usize = 20_000;

/// The shared history in the forms that a session can start with.
#[derive(Debug, Default)]
pub(crate) struct SharedHistory {
    /// Chat messages that precede the request.
    pub(crate) history: Vec<ChatMessage>,
    /// Text for a block within the request.
    pub(crate) summary: String,
    pub(crate) transcript: String,
}

impl SharedHistory {
    /// Selects what the scope's agent shares of `history`. Without a `site`, the agent had no session and there is no transcript.
    pub(crate) async fn of(
        scope: &Scope,
        history: &[ChatMessage],
        site: Option<&CallSite<'_>>,
    ) -> Result<Self, Failure> {
        let giver = scope.agent();
        if !giver.sanitize {
            let thread_id = scope.run.caller.thread_id;
            tracing::info!(%thread_id, source_agent = %giver.name, sanitized = false, "Baton passed on with personal data");
        }
        let said = || redact_messages(giver, history);
        let history = Self::default();
        Ok(match giver.history {
            HistoryAccess::Conversation => Self { history: said(), ..history },
            HistoryAccess::Full => Self { history: said(), transcript: transcript(giver, site), ..history },
            HistoryAccess::Last(count) => Self { history: last_messages(said(), count), ..history },
            HistoryAccess::Summary => Self { summary: summarized(scope, &said()).await?, ..history },
            HistoryAccess::Brief => history,
        })
    }
}

/// The last `count` messages at most. Leading assistant messages are dropped, because some models require a user message first.
pub(crate) fn last_messages(words: Vec<ChatMessage>, count: u32) -> Vec<ChatMessage> {
    let skipped = words.len().saturating_sub(count as usize);
    let words = words.into_iter().skip(skipped);
    words.skip_while(|message| matches!(message, ChatMessage::Assistant(_))).collect()
}

async fn summarized(scope: &Scope, said: &[ChatMessage]) -> Result<String, Failure> {
    let lines = said.iter().filter_map(|message| match message {
        ChatMessage::User { parts } => Some(format!("Person: {}", indented(&text_of(parts)))),
        ChatMessage::Assistant(reply) => Some(format!("Assistant: {}", indented(&reply.text))),
        ChatMessage::Tool(_) => None,
    });
    let conversation = lines.collect::<Vec<_>>().join("\n\n");
    summary::summarize(scope, &conversation, scope.run.policy.context_max_chars).await
}

/// Text, tool calls and tool results of the giver's session, redacted.
fn transcript(giver: &Agent, site: Option<&CallSite<'_>>) -> String {
    let Some(site) = site else { return String::new() };
    let said = |reply: &Reply| {
        let calls = reply.calls.iter().map(|call| format!("calls {}({})", call.name, call.arguments));
        let text = Some(reply.text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
    };
    tail(&redact(giver, &session_text(site, said)), TRANSCRIPT_CHARS)
}

/// Text and tool results of the giver's session, not redacted.
pub(crate) fn work(site: &CallSite<'_>) -> String {
    session_text(site, |reply| reply.text.trim().to_owned())
}

/// The session's messages after its task, one paragraph each.
fn session_text(site: &CallSite<'_>, said: impl Fn(&Reply) -> String) -> String {
    let lines = site.messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant(reply) => Some(said(reply)),
        ChatMessage::Tool(result) => Some(tool_result_text(result)),
        ChatMessage::User { .. } => None,
    });
    let lines = lines.chain(site.other_results.iter().map(tool_result_text)).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n\n")
}

fn tool_result_text(result: &ToolResult) -> String {
    format!("{} returned: {}", result.name, result.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_messages_start_with_a_user_message() {
        let said = |text: &str| ChatMessage::Assistant(Reply { text: text.into(), ..Reply::default() });
        let all = vec![ChatMessage::user("1"), said("2"), ChatMessage::user("3"), said("4")];
        assert_eq!(last_messages(all.clone(), 2), all[2..]);
        assert_eq!(last_messages(all.clone(), 3), all[2..]);
        assert_eq!(last_messages(all.clone(), 9), all);
        assert!(last_messages(all, 0).is_empty());
    }
}
