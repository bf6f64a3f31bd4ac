//! Tool calls that a model wrote as text instead of calling the tool.
//!
//! Recognized are JSON objects (`{"name": …, "arguments": {…}}`), tags (`<tool_call>…</tool_call>`, `<function=name>…</function>`)
//! and function syntax (`name({…})`, `name(key="value")`), bare or in a code fence. Only a block that starts the reply counts, or a
//! fenced JSON block that ends it and is its only block: a call that a reply quotes in the middle of a text is not executed.
//!
//! [`holdback`] decides which part of a reply must not be streamed yet. [`tags`] and [`function`] parse the other notations.

mod function;
pub(crate) mod holdback;
mod tags;

use baton_core::ToolSpec;
use serde_json::{Map, Value};

/// A longer reply is not read as a call.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum calls in one reply.
const MAX_CALLS: usize = 8;
/// Characters that may follow a block of JSON that is otherwise the whole reply.
const MAX_REST_CHARS: usize = 200;

const FENCE: &str = "```";
/// The keys of a call's name and of its arguments.
const NAME_KEYS: &[&str] = &["name", "tool", "function", "tool_name", "function_name", "action"];
const ARGUMENT_KEYS: &[&str] = &["arguments", "parameters", "args", "params", "input", "action_input"];
/// The keys of an object that contains calls.
const WRAPPER_KEYS: &[&str] = &["tool_calls", "tool_call", "function_call"];
/// Other keys that a call may have.
const OTHER_KEYS: &[&str] = &["id", "type", "index"];
/// The languages of a code fence that may contain a call.
const CALL_LANGUAGES: &[&str] = &["", "json", "tool_call", "tool_code", "xml", "python"];
/// The languages of a code fence that may contain a call if there is text before it.
const JSON_LANGUAGES: &[&str] = &["json", "tool_call"];

/// A call that was written as text. Its arguments are not validated yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextCall {
    /// The name of an offered tool.
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
}

/// The calls of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextCalls {
    pub(crate) calls: Vec<TextCall>,
    /// How many bytes of the reply come before the calls and stay its text.
    pub(crate) text_before: usize,
    /// Whether the reply contains anything besides the calls.
    pub(crate) has_prose: bool,
}

/// Returns the calls that a reply consists of, or `None` if it is a text. Every call names one of `tools`. Takes time linear in the
/// length of the reply.
pub(crate) fn recognize(reply: &str, tools: &[&ToolSpec]) -> Option<TextCalls> {
    if reply.len() > MAX_BYTES || tools.is_empty() {
        return None;
    }
    let body = reply.trim_start();
    let found = match body.chars().next()? {
        '`' => first_block(body, tools),
        '{' | '[' => json_calls(body, tools).and_then(|(calls, end)| whole(calls, &body[end..])),
        // Tags are unmistakable, whatever follows them.
        '<' => tags::parse(body, tools).map(|(calls, end)| {
            let has_prose = !body[end..].trim().is_empty();
            TextCalls { calls, text_before: 0, has_prose }
        }),
        _ => function::parse(body, tools).and_then(|(call, end)| only(vec![call], &body[end..])),
    };
    found.or_else(|| last_block(reply, tools))
}

/// The calls, if hardly anything follows them.
fn whole(calls: Vec<TextCall>, rest: &str) -> Option<TextCalls> {
    let rest = rest.trim();
    let is_short = rest.chars().nth(MAX_REST_CHARS).is_none() && !rest.contains(FENCE);
    is_short.then_some(TextCalls { calls, text_before: 0, has_prose: !rest.is_empty() })
}

/// The calls, if nothing follows them.
fn only(calls: Vec<TextCall>, rest: &str) -> Option<TextCalls> {
    let is_end = rest.trim_matches(|c: char| c.is_whitespace() || c == ';').is_empty();
    is_end.then_some(TextCalls { calls, text_before: 0, has_prose: false })
}

/// The calls of the code fence that starts the reply.
fn first_block(body: &str, tools: &[&ToolSpec]) -> Option<TextCalls> {
    let fenced = Fenced::parse(body)?;
    let content = fenced.content.trim();
    let is_call = CALL_LANGUAGES.contains(&fenced.language);
    let calls = match content.chars().next().filter(|_| is_call)? {
        '{' | '[' => json_calls(content, tools).and_then(|(calls, end)| only(calls, &content[end..])),
        '<' => tags::parse(content, tools).and_then(|(calls, end)| only(calls, &content[end..])),
        _ => function::parse(content, tools).and_then(|(call, end)| only(vec![call], &content[end..])),
    }?;
    whole(calls.calls, fenced.rest)
}

/// The calls of the code fence with JSON that ends the reply, if it is its only fence.
fn last_block(reply: &str, tools: &[&ToolSpec]) -> Option<TextCalls> {
    let at = first_fence(reply)?;
    let fenced = Fenced::parse(reply[at..].trim_start_matches(' '))?;
    if !fenced.is_closed || !fenced.rest.trim().is_empty() || !JSON_LANGUAGES.contains(&fenced.language) {
        return None;
    }
    let content = fenced.content.trim();
    let (calls, end) = json_calls(content, tools)?;
    let found = only(calls, &content[end..])?;
    let has_prose = !reply[..at].trim().is_empty();
    Some(TextCalls { text_before: at, has_prose, ..found })
}

/// The start of the first line that opens a code fence.
fn first_fence(reply: &str) -> Option<usize> {
    let mut at = 0;
    for line in reply.split_inclusive('\n') {
        if line.trim_start_matches(' ').starts_with(FENCE) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// A code fence and what follows it.
struct Fenced<'a> {
    language: &'a str,
    content: &'a str,
    rest: &'a str,
    is_closed: bool,
}

impl<'a> Fenced<'a> {
    /// Parses a text that starts with a code fence. One that is not closed extends to the end.
    fn parse(text: &'a str) -> Option<Self> {
        let (language, body) = text.strip_prefix(FENCE)?.split_once('\n')?;
        let language = language.trim();
        let mut at = 0;
        for line in body.split_inclusive('\n') {
            let trimmed = line.trim_start_matches(' ');
            if let Some(after) = trimmed.strip_prefix(FENCE) {
                let rest = &body[at + line.len() - after.len()..];
                return Some(Self { language, content: &body[..at], rest, is_closed: true });
            }
            at += line.len();
        }
        Some(Self { language, content: body, rest: "", is_closed: false })
    }
}

/// Parses the JSON calls at the start of `text`, one or several. Returns them and where they end.
fn json_calls(text: &str, tools: &[&ToolSpec]) -> Option<(Vec<TextCall>, usize)> {
    let (mut calls, mut end) = (Vec::new(), 0);
    loop {
        let (value, length) = first_value(&text[end..])?;
        add_calls(&value, tools, &mut calls)?;
        end += length;
        let rest = text[end..].trim_start();
        if !rest.starts_with('{') {
            return (!calls.is_empty()).then_some((calls, end));
        }
        end = text.len() - rest.len();
    }
}

/// Parses the JSON value at the start of `text`. Returns it and its length.
fn first_value(text: &str) -> Option<(Value, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

/// Adds the calls of a value. Returns `None` if it contains anything else, or an array without an object at its start, which
/// [`holdback`] publishes as text.
fn add_calls(value: &Value, tools: &[&ToolSpec], calls: &mut Vec<TextCall>) -> Option<()> {
    if let Value::Array(values) = value {
        values.first().filter(|first| first.is_object())?;
        return values.iter().try_for_each(|value| add_calls(value, tools, calls));
    }
    let object = value.as_object()?;
    if let Some(wrapped) = WRAPPER_KEYS.iter().find_map(|key| object.get(*key)) {
        return (object.len() == 1).then(|| add_calls(wrapped, tools, calls))?;
    }
    // `{"type": "function", "function": {"name": …, "arguments": …}}`
    if let Some(function @ Value::Object(_)) = object.get("function") {
        let is_wrapper = object.keys().all(|key| key == "function" || OTHER_KEYS.contains(&key.as_str()));
        return is_wrapper.then(|| add_calls(function, tools, calls))?;
    }
    calls.push(call(object, tools)?);
    (calls.len() <= MAX_CALLS).then_some(())
}

fn call(object: &Map<String, Value>, tools: &[&ToolSpec]) -> Option<TextCall> {
    let is_known = |key: &str| [NAME_KEYS, ARGUMENT_KEYS, OTHER_KEYS].iter().any(|keys| keys.contains(&key));
    if !object.keys().all(|key| is_known(key)) {
        return None;
    }
    let name = NAME_KEYS.iter().find_map(|key| object.get(*key))?.as_str()?;
    let arguments = match ARGUMENT_KEYS.iter().find_map(|key| object.get(*key))? {
        Value::Object(arguments) => arguments.clone(),
        Value::String(text) => match serde_json::from_str(text).ok()? {
            Value::Object(arguments) => arguments,
            _ => return None,
        },
        Value::Null => Map::new(),
        _ => return None,
    };
    Some(TextCall { name: find(name, tools)?.name.clone(), arguments })
}

/// The offered tool that a written name means.
fn find<'a>(name: &str, tools: &[&'a ToolSpec]) -> Option<&'a ToolSpec> {
    let name = spelled(name);
    tools.iter().find(|tool| spelled(&tool.name) == name).copied()
}

/// The spelling in which names are compared: providers replace characters in the names that models see.
fn spelled(name: &str) -> String {
    let character = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.trim().chars().map(character).collect()
}

/// Converts the text of an argument to the type that the tool's schema declares. A text that does not parse stays a text.
fn typed(tool: &ToolSpec, key: &str, text: &str) -> Value {
    let declared = &tool.parameters["properties"][key]["type"];
    if matches!(declared.as_str(), Some("integer" | "number" | "boolean" | "array" | "object")) {
        let lower = text.trim().to_lowercase();
        let is_flag = declared == "boolean" && matches!(lower.as_str(), "true" | "false");
        return serde_json::from_str(if is_flag { &lower } else { text.trim() })
            .unwrap_or_else(|_| Value::from(text));
    }
    Value::from(text)
}

#[cfg(test)]
mod tests;
