//! A conversation that every provider accepts.
//!
//! Providers refuse a conversation in which a call has no result, a result no call, or a message no content. Sessions
//! end up with such conversations honestly: a run was cancelled, old results were dropped, a person spoke in between.

use std::borrow::Cow;

use baton_core::{ChatMessage, Part, Reply, ToolCall, ToolResult};

use crate::tool_names::fnv1a;

/// What a model reads where a result is missing.
const NO_RESULT: &str = "no result: the call was not finished";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry<'a> {
    User(&'a [Part]),
    Assistant(&'a Reply),
    /// The results of the calls of the reply before, in the order of the calls; never empty.
    Results(Vec<Answer<'a>>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer<'a> {
    pub call: &'a ToolCall,
    pub content: &'a str,
    pub failed: bool,
}

pub(crate) fn entries(messages: &[ChatMessage]) -> Vec<Entry<'_>> {
    let mut entries = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((first, mut after)) = rest.split_first() {
        match first {
            ChatMessage::User { parts } if parts.is_empty() => {}
            ChatMessage::User { parts } => entries.push(Entry::User(parts)),
            // Its call is not before it.
            ChatMessage::Tool(_) => {}
            ChatMessage::Assistant(reply) => {
                let is_reply = |message: &ChatMessage| matches!(message, ChatMessage::Assistant(_));
                let until = after.iter().position(is_reply).unwrap_or(after.len());
                add_turn(reply, &after[..until], &mut entries);
                after = &after[until..];
            }
        }
        rest = after;
    }
    entries
}

/// A reply and what came before the next one: the results go first, wherever they stood.
fn add_turn<'a>(reply: &'a Reply, after: &'a [ChatMessage], entries: &mut Vec<Entry<'a>>) {
    if !reply.text.is_empty() || !reply.calls.is_empty() {
        entries.push(Entry::Assistant(reply));
    }
    if !reply.calls.is_empty() {
        let results = after.iter().filter_map(|message| match message {
            ChatMessage::Tool(result) => Some(result),
            _ => None,
        });
        let mut results: Vec<&ToolResult> = results.collect();
        entries.push(Entry::Results(reply.calls.iter().map(|call| answer(call, &mut results)).collect()));
    }
    entries.extend(after.iter().filter_map(|message| match message {
        ChatMessage::User { parts } if !parts.is_empty() => Some(Entry::User(parts)),
        _ => None,
    }));
}

fn answer<'a>(call: &'a ToolCall, results: &mut Vec<&'a ToolResult>) -> Answer<'a> {
    match results.iter().position(|result| result.call_id == call.id) {
        Some(at) => {
            let result = results.remove(at);
            Answer { call, content: &result.content, failed: result.failed }
        }
        None => Answer { call, content: NO_RESULT, failed: true },
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
            Self::Plain => format!("call_{:08x}", fnv1a(id)).into(),
            Self::NineAlphanumeric if alphanumeric && id.len() == 9 => id.into(),
            Self::NineAlphanumeric => format!("c{:08x}", fnv1a(id)).into(),
        }
    }
}

/// The arguments of a call as text, for providers that take text but read it: as written if it is an object.
pub(crate) fn argument_text(call: &ToolCall) -> Cow<'_, str> {
    let is_object = call.arguments.trim_start().starts_with('{');
    match serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments) {
        Ok(_) if is_object => call.arguments.as_str().into(),
        _ => arguments(call).to_string().into(),
    }
}

/// The arguments of a call as an object, for providers that take no text. A text that is not an object is kept inside
/// one, so that the model sees what it wrote.
pub(crate) fn arguments(call: &ToolCall) -> serde_json::Value {
    match serde_json::from_str(&call.arguments) {
        Ok(object @ serde_json::Value::Object(_)) => object,
        _ if call.arguments.trim().is_empty() => serde_json::json!({}),
        _ => serde_json::json!({"invalid_arguments": call.arguments}),
    }
}

#[cfg(test)]
mod tests {
    use baton_core::ToolCallId;

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
        ChatMessage::Tool(ToolResult { call_id, name: "t".into(), content: content.into(), failed: false })
    }

    /// One word an entry.
    fn shape(messages: &[ChatMessage]) -> Vec<String> {
        let word = |entry: &Entry<'_>| match entry {
            Entry::User(_) => "user".to_owned(),
            Entry::Assistant(reply) => format!("assistant{}", reply.calls.len()),
            Entry::Results(answers) => {
                let answers: Vec<String> =
                    answers.iter().map(|answer| format!("{}={}", answer.call.id, answer.content)).collect();
                answers.join(",")
            }
        };
        entries(messages).iter().map(word).collect()
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
    fn the_same_id_in_two_turns() {
        let conversation =
            [reply("", &["call_0"]), result("call_0", "1"), reply("", &["call_0"]), result("call_0", "2")];
        assert_eq!(shape(&conversation), ["assistant1", "call_0=1", "assistant1", "call_0=2"]);
    }

    #[test]
    fn ids_are_spelt_alike() {
        assert_eq!(IdRule::Plain.spell("toolu_01-A"), "toolu_01-A");
        assert_eq!(IdRule::Plain.spell("functions.x:0").len(), 13);
        assert_eq!(IdRule::NineAlphanumeric.spell("abcDEF123"), "abcDEF123");
        assert_eq!(IdRule::NineAlphanumeric.spell("call_0").len(), 9);
    }
}
