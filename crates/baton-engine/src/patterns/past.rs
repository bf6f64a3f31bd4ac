//! What whoever gets the baton sees of what was said and done before: as much as the giver's `history` allows.

use baton_core::agent::{Agent, History};
use baton_core::chat::{ChatMessage, Reply, ToolResult};

use super::handover::{indented, shared, shared_words, tail};
use super::summary;
use crate::failure::Failure;
use crate::given::Site;
use crate::run::words;
use crate::scope::Scope;

/// Longer transcripts would leave the receiver no room for work of its own.
const TRANSCRIPT_CHARS: usize = 20_000;

/// The past in the two forms in which a session begins with it.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// As messages.
    pub(crate) history: Vec<ChatMessage>,
    /// As material within the task.
    pub(crate) summary: String,
    pub(crate) transcript: String,
}

impl Past {
    /// What the scope's agent passes on of the thread's `history`; without a site, it never began to work.
    pub(crate) async fn of(
        scope: &Scope,
        history: &[ChatMessage],
        site: Option<&Site<'_>>,
    ) -> Result<Self, Failure> {
        let giver = &scope.agent;
        if !giver.sanitize {
            let thread_id = scope.run.caller.thread_id;
            tracing::info!(%thread_id, source_agent = %giver.name, sanitized = false, "Baton passed on with personal data");
        }
        let said = || shared_words(giver, history);
        let past = Self::default();
        Ok(match giver.history {
            History::Conversation => Self { history: said(), ..past },
            History::Full => Self { history: said(), transcript: transcript(giver, site), ..past },
            History::Last(count) => Self { history: last(said(), count), ..past },
            History::Summary => Self { summary: shortened(scope, &said()).await?, ..past },
            History::Brief => past,
        })
    }
}

/// The last `count` messages at most. Some models want to hear a person first.
pub(crate) fn last(words: Vec<ChatMessage>, count: u32) -> Vec<ChatMessage> {
    let skipped = words.len().saturating_sub(count as usize);
    let words = words.into_iter().skip(skipped);
    words.skip_while(|message| matches!(message, ChatMessage::Assistant(_))).collect()
}

async fn shortened(scope: &Scope, said: &[ChatMessage]) -> Result<String, Failure> {
    let lines = said.iter().filter_map(|message| match message {
        ChatMessage::User { parts } => Some(format!("Person: {}", indented(&words(parts)))),
        ChatMessage::Assistant(reply) => Some(format!("Assistant: {}", indented(&reply.text))),
        ChatMessage::Tool(_) => None,
    });
    let conversation = lines.collect::<Vec<_>>().join("\n\n");
    summary::summarize(scope, &conversation, scope.run.engine.parts.policy.context_max_chars).await
}

/// What a giver's session said, asked tools and heard from them.
fn transcript(giver: &Agent, site: Option<&Site<'_>>) -> String {
    let Some(site) = site else { return String::new() };
    let said = |reply: &Reply| {
        let calls = reply.calls.iter().map(|call| format!("calls {}({})", call.name, call.arguments));
        let text = Some(reply.text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
    };
    tail(&shared(giver, &told(site, said)), TRANSCRIPT_CHARS)
}

/// What a giver's session said and found out, not yet masked.
pub(crate) fn work(site: &Site<'_>) -> String {
    told(site, |reply| reply.text.trim().to_owned())
}

/// The session from its task on, a paragraph for each message that has something to say.
fn told(site: &Site<'_>, said: impl Fn(&Reply) -> String) -> String {
    let lines = site.messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant(reply) => Some(said(reply)),
        ChatMessage::Tool(result) => Some(returned(result)),
        ChatMessage::User { .. } => None,
    });
    let lines = lines.chain(site.beside.iter().map(returned)).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n\n")
}

fn returned(result: &ToolResult) -> String {
    format!("{} returned: {}", result.name, result.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_begin_with_a_person() {
        let said = |text: &str| ChatMessage::Assistant(Reply { text: text.into(), ..Reply::default() });
        let all = vec![ChatMessage::user("1"), said("2"), ChatMessage::user("3"), said("4")];
        assert_eq!(last(all.clone(), 2), all[2..]);
        assert_eq!(last(all.clone(), 3), all[2..]);
        assert_eq!(last(all.clone(), 9), all);
        assert!(last(all, 0).is_empty());
    }
}
