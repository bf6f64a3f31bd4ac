//! Function syntax: `name({…})` and `name(key="value", other=3)`.

use baton_core::ToolSpec;
use serde_json::{Map, Value};

use super::{TextCall, find, first_value, typed};

/// Parses a call at the start of `text`. Returns it and where it ends.
pub(super) fn parse(text: &str, tools: &[&ToolSpec]) -> Option<(TextCall, usize)> {
    let (name, inner) = text.split_once('(')?;
    if name.len() > 128 || name.contains(char::is_whitespace) {
        return None;
    }
    let tool = find(name, tools)?;
    let (arguments, rest) = arguments(inner.trim_start(), tool)?;
    let rest = rest.trim_start().strip_prefix(')')?;
    Some((TextCall { name: tool.name.clone(), arguments }, text.len() - rest.len()))
}

/// Parses what stands between the parentheses. Returns the text from the closing one on.
fn arguments<'a>(text: &'a str, tool: &ToolSpec) -> Option<(Map<String, Value>, &'a str)> {
    if text.starts_with('{') {
        let (value, length) = first_value(text)?;
        let Value::Object(arguments) = value else { return None };
        return Some((arguments, &text[length..]));
    }
    let mut arguments = Map::new();
    let mut rest = text;
    while !rest.starts_with(')') {
        let (key, after) = rest.split_once(['=', ':'])?;
        let key = key.trim();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        let (value, after) = value(after.trim_start(), tool, key)?;
        arguments.insert(key.to_owned(), value);
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.starts_with(')') => {}
            None => return None,
        }
    }
    Some((arguments, rest))
}

/// Parses a value: JSON, a text in single quotes, or a word.
fn value<'a>(text: &'a str, tool: &ToolSpec, key: &str) -> Option<(Value, &'a str)> {
    match text.chars().next()? {
        '"' | '[' | '{' => {
            let (value, length) = first_value(text)?;
            Some((value, &text[length..]))
        }
        '\'' => {
            let (content, rest) = single_quoted(&text[1..])?;
            Some((Value::from(content), rest))
        }
        _ => {
            let end = text.find([',', ')'])?;
            let word = text[..end].trim();
            let value = match word {
                "" => return None,
                "True" => Value::Bool(true),
                "False" => Value::Bool(false),
                "None" => Value::Null,
                word => serde_json::from_str(word).unwrap_or_else(|_| typed(tool, key, word)),
            };
            Some((value, &text[end..]))
        }
    }
}

/// The text up to the closing single quote, and the rest.
fn single_quoted(text: &str) -> Option<(String, &str)> {
    let mut content = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((content, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => content.push('\n'),
                't' => content.push('\t'),
                other => content.push(other),
            },
            c => content.push(c),
        }
    }
    None
}
