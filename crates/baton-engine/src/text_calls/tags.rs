//! Calls in tags: `<tool_call>{…}</tool_call>` and `<function=name>…</function>`.

use baton_core::ToolSpec;
use serde_json::{Map, Value};

use super::{MAX_CALLS, TextCall, find, json_calls, typed};

/// The tags around JSON.
const AROUND_JSON: &[(&str, &str)] =
    &[("<tool_call>", "</tool_call>"), ("<function_call>", "</function_call>")];
const FUNCTION: (&str, &str) = ("<function=", "</function>");
const PARAMETER: (&str, &str) = ("<parameter=", "</parameter>");

/// The texts that open a tag.
pub(super) fn openings() -> impl Iterator<Item = &'static str> {
    AROUND_JSON.iter().map(|(open, _)| *open).chain([FUNCTION.0])
}

/// Parses the tags at the start of `text`, one or several. Returns their calls and where they end. The last closing tag may be
/// missing, because models stop there.
pub(super) fn parse(text: &str, tools: &[&ToolSpec]) -> Option<(Vec<TextCall>, usize)> {
    let mut calls = Vec::new();
    let mut rest = text;
    loop {
        let inner = rest.trim_start();
        let around = AROUND_JSON.iter().find_map(|(open, close)| Some((inner.strip_prefix(open)?, *close)));
        if let Some((body, close)) = around {
            let (content, after) = until(body, close);
            calls.extend(content_calls(content.trim(), tools)?);
            rest = after;
        } else if inner.starts_with(FUNCTION.0) {
            let (call, after) = function(inner, tools)?;
            calls.push(call);
            rest = after;
        } else {
            return (!calls.is_empty()).then_some((calls, text.len() - rest.len()));
        }
        if calls.len() > MAX_CALLS {
            return None;
        }
    }
}

/// The text before `mark` and the text after it; all of it and nothing if there is no mark.
fn until<'a>(text: &'a str, mark: &str) -> (&'a str, &'a str) {
    text.split_once(mark).unwrap_or((text, ""))
}

fn content_calls(content: &str, tools: &[&ToolSpec]) -> Option<Vec<TextCall>> {
    if content.starts_with(FUNCTION.0) {
        let (call, after) = function(content, tools)?;
        return after.trim().is_empty().then(|| vec![call]);
    }
    let (calls, end) = json_calls(content, tools)?;
    content[end..].trim().is_empty().then_some(calls)
}

/// Parses `<function=name>…</function>`, whose content is JSON or one tag for each parameter.
fn function<'a>(text: &'a str, tools: &[&ToolSpec]) -> Option<(TextCall, &'a str)> {
    let (name, body) = text.strip_prefix(FUNCTION.0)?.split_once('>')?;
    let tool = find(name.trim_matches(['"', '\'']), tools)?;
    let (content, after) = until(body, FUNCTION.1);
    let content = content.trim();
    let arguments = if content.starts_with('{') {
        match serde_json::from_str(content).ok()? {
            Value::Object(arguments) => arguments,
            _ => return None,
        }
    } else {
        parameters(content, tool)?
    };
    Some((TextCall { name: tool.name.clone(), arguments }, after))
}

fn parameters(content: &str, tool: &ToolSpec) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    let mut rest = content;
    while !rest.trim().is_empty() {
        let (key, body) = rest.trim_start().strip_prefix(PARAMETER.0)?.split_once('>')?;
        let (value, after) = until(body, PARAMETER.1);
        let key = key.trim_matches(['"', '\'']);
        arguments.insert(key.to_owned(), typed(tool, key, value.trim()));
        rest = after;
    }
    Some(arguments)
}
