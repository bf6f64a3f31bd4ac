//! A conversation that every provider accepts.
//!
//! Providers refuse a conversation in which a call has no result, a result no call, or a message no content. Sessions
//! end up with such conversations honestly: a run was cancelled, old results were dropped, a person spoke in between.

use std::borrow::Cow;

use baton_core::chat::Messages;
use baton_core::hash::fnv1a_32;
use baton_core::message::Image;
use baton_core::{ChatMessage, Part, Reply, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What a model reads where a result is missing.
const NO_RESULT: &str = "no result: the call was not finished";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HistoryEntry<'a> {
    User(&'a [Part]),
    Assistant(&'a Reply),
    /// Of the reply before; never empty.
    Results(Results<'a>),
}

/// The results of a reply's calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Results<'a> {
    reply: &'a Reply,
    /// What came before the next reply.
    after: &'a [ChatMessage],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AssistantEntry<'a> {
    pub call: &'a ToolCall,
    pub content: &'a str,
    pub failed: bool,
    /// Left out of requests to models that do not accept them.
    pub images: &'a [Image],
}

/// Walks over a conversation. Results follow their reply, wherever they stood.
pub(crate) fn entries(messages: Messages<'_>) -> Entries<'_> {
    let (rest, later) = messages.parts();
    Entries { rest, later, unanswered: None }
}

#[derive(Debug, Clone)]
pub(crate) struct Entries<'a> {
    /// Of the part of the conversation that is being walked over.
    rest: &'a [ChatMessage],
    later: &'a [ChatMessage],
    /// The reply before, if it has calls.
    unanswered: Option<&'a Reply>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = HistoryEntry<'a>;

    fn next(&mut self) -> Option<HistoryEntry<'a>> {
        if let Some(reply) = self.unanswered.take() {
            let is_reply = |message: &ChatMessage| matches!(message, ChatMessage::Assistant(_));
            let until = self.rest.iter().position(is_reply).unwrap_or(self.rest.len());
            return Some(HistoryEntry::Results(Results { reply, after: &self.rest[..until] }));
        }
        loop {
            let Some((first, rest)) = self.rest.split_first() else {
                self.rest = std::mem::take(&mut self.later);
                if self.rest.is_empty() {
                    return None;
                }
                continue;
            };
            self.rest = rest;
            match first {
                ChatMessage::User { parts } if !parts.is_empty() => return Some(HistoryEntry::User(parts)),
                ChatMessage::Assistant(reply) if !reply.text.is_empty() || !reply.calls.is_empty() => {
                    self.unanswered = Some(reply).filter(|reply| !reply.calls.is_empty());
                    return Some(HistoryEntry::Assistant(reply));
                }
                // A message without content, or a result whose call is not before it or has been answered.
                _ => {}
            }
        }
    }
}

impl<'a> Results<'a> {
    /// In the order of the calls, one for each.
    pub fn answers(self) -> impl Iterator<Item = AssistantEntry<'a>> {
        self.reply.calls.iter().enumerate().map(move |(at, call)| self.answer(at, call))
    }

    /// Of calls with the same id the first gets the first result.
    fn answer(self, at: usize, call: &'a ToolCall) -> AssistantEntry<'a> {
        let earlier = self.reply.calls[..at].iter().filter(|other| other.id == call.id).count();
        let mut results = self.after.iter().filter_map(|message| match message {
            ChatMessage::Tool(result) if result.call_id == call.id => Some(result),
            _ => None,
        });
        match results.nth(earlier) {
            Some(result) => AssistantEntry {
                call,
                content: &result.content,
                failed: result.failed,
                images: &result.images,
            },
            None => AssistantEntry { call, content: NO_RESULT, failed: true, images: &[] },
        }
    }
}

/// What a provider accepts as the id of a call. Ids come from whichever provider answered that turn, and a session may
/// go on with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdRule {
    /// Letters, digits, `_` and `-`, up to 40.
    Plain,
    /// Exactly nine letters and digits.
    NineAlphanumeric,
}

impl IdRule {
    pub fn spell(self, id: &str) -> Cow<'_, str> {
        let alphanumeric = id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        match self {
            Self::Plain if plain && id.len() <= 40 => id.into(),
            Self::Plain => format!("call_{:08x}", fnv1a_32(id)).into(),
            Self::NineAlphanumeric if alphanumeric && id.len() == 9 => id.into(),
            Self::NineAlphanumeric => format!("c{:08x}", fnv1a_32(id)).into(),
        }
    }
}

/// The arguments of a call as text, for providers that take text but read it: as written if it is an object.
pub(crate) fn argument_text(call: &ToolCall) -> Cow<'_, str> {
    match object(&call.arguments) {
        Some(_) => call.arguments.as_str().into(),
        None => substitute(call).to_string().into(),
    }
}

/// The arguments of a call as an object, for providers that take no text: as written if it is one.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum CallArguments<'a> {
    Written(&'a RawValue),
    Substitute(Value),
}

pub(crate) fn arguments(call: &ToolCall) -> CallArguments<'_> {
    match object(&call.arguments) {
        Some(written) => CallArguments::Written(written),
        None => CallArguments::Substitute(substitute(call)),
    }
}

fn object(text: &str) -> Option<&RawValue> {
    let is_object = text.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(text).ok()).flatten()
}

/// A text that is not an object is kept inside one, so that the model sees what it wrote.
fn substitute(call: &ToolCall) -> Value {
    match call.arguments.trim() {
        "" => json!({}),
        _ => json!({"invalid_arguments": call.arguments}),
    }
}

#[cfg(test)]
mod tests {
    use baton_core::{ToolCallId, ToolResult};

    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: ToolCallId::parse(id).unwrap(),
            name: "t".into(),
            arguments: "{}".into(),
            signature: None,
        }
    }

    fn reply(text: &str, calls: &[&str]) -> ChatMessage {
        let calls = calls.iter().map(|id| call(id)).collect();
        ChatMessage::Assistant(Reply { text: text.into(), calls, ..Reply::default() })
    }

    fn result(id: &str, content: &str) -> ChatMessage {
        let call_id = ToolCallId::parse(id).unwrap();
        ChatMessage::Tool(ToolResult::text(call_id, "t", content, false))
    }

    /// One word an entry.
    fn shape(messages: &[ChatMessage]) -> Vec<String> {
        let word = |entry: HistoryEntry<'_>| match entry {
            HistoryEntry::User(_) => "user".to_owned(),
            HistoryEntry::Assistant(reply) => format!("assistant{}", reply.calls.len()),
            HistoryEntry::Results(results) => {
                let answers = results.answers();
                let answers: Vec<String> =
                    answers.map(|answer| format!("{}={}", answer.call.id, answer.content)).collect();
                answers.join(",")
            }
        };
        entries(messages.into()).map(word).collect()
    }

    #[test]
    fn calls_and_results_are_paired() {
        let conversation = [
            result("x", "orphan"),
            ChatMessage::user("hi"),
            reply("", &["a", "b", "c"]),
            result("b", "2"),
            ChatMessage::user("wait"),
            result("a", "1"),
            result("a", "again"),
            result("z", "orphan"),
            reply("", &[]),
            reply("done", &[]),
            ChatMessage::User { parts: vec![] },
        ];
        assert_eq!(
            shape(&conversation),
            ["user", "assistant3", &format!("a=1,b=2,c={NO_RESULT}"), "user", "assistant0"]
        );
    }

    #[test]
    fn both_parts_of_a_conversation_are_walked_over() {
        let before = [ChatMessage::user("hi"), reply("hello", &[])];
        let own = [ChatMessage::user("look"), reply("", &["a"]), result("a", "1")];
        let kinds: Vec<&str> = entries(Messages::new(&before, &own))
            .map(|entry| match entry {
                HistoryEntry::User(_) => "user",
                HistoryEntry::Assistant(_) => "assistant",
                HistoryEntry::Results(_) => "results",
            })
            .collect();
        assert_eq!(kinds, ["user", "assistant", "user", "assistant", "results"]);
        assert_eq!(entries(Messages::new(&before, &[])).count(), 2);
        assert_eq!(entries(Messages::default()).count(), 0);
    }

    #[test]
    fn the_same_id_in_two_turns() {
        let conversation =
            [reply("", &["call_0"]), result("call_0", "1"), reply("", &["call_0"]), result("call_0", "2")];
        assert_eq!(shape(&conversation), ["assistant1", "call_0=1", "assistant1", "call_0=2"]);
    }

    #[test]
    fn arguments_are_passed_on_as_written_if_they_are_an_object() {
        let spelt = |text: &str| {
            let call = ToolCall { arguments: text.into(), ..call("a") };
            let value = serde_json::to_string(&arguments(&call)).unwrap();
            assert_eq!(value, argument_text(&call).trim(), "{text}");
            value
        };
        assert_eq!(spelt(r#" {"b": 1,  "a": 2} "#), r#"{"b": 1,  "a": 2}"#);
        assert_eq!(spelt(" "), "{}");
        assert_eq!(spelt("[1]"), r#"{"invalid_arguments":"[1]"}"#);
        assert_eq!(spelt("{oops"), r#"{"invalid_arguments":"{oops"}"#);
    }

    #[test]
    fn ids_are_spelt_alike() {
        assert_eq!(IdRule::Plain.spell("toolu_01-A"), "toolu_01-A");
        assert_eq!(IdRule::Plain.spell("functions.x:0").len(), 13);
        assert_eq!(IdRule::NineAlphanumeric.spell("abcDEF123"), "abcDEF123");
        assert_eq!(IdRule::NineAlphanumeric.spell("call_0").len(), 9);
    }
}
