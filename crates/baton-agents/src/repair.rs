//! Quoting of values that hold a colon, and indentation of brackets.
//!
//! `description: Use it when: the person asks` is the mistake everybody makes and most tools accept. When YAML
//! fails at such a line, the value is put in quotes and read again; positions are mapped back to the file.
//!
//! A list in brackets whose lines are not indented, as in a `]` below its key, is what most tools accept without a word: such a
//! line is read as if it had a space before it.

use crate::source::Span;
use crate::yaml::{self, FailureKind, YamlFailure, YamlNode, YamlValue};

/// A file with more such lines is not a slip.
const MAX_REPAIRS: usize = 16;
/// Lines of lists that are indented.
const MAX_INDENTED: usize = 64;

/// What was read, and which values had to be quoted for it.
#[derive(Debug)]
pub struct Read {
    pub root: Option<YamlNode>,
    pub repaired: Vec<Span>,
}

/// Reads `text` (which stands at `offset` in its file), repairing lines as needed.
pub fn parse(text: &str, offset: usize) -> Result<Read, YamlFailure> {
    let mut edited = text.to_owned();
    let mut repairs: Vec<Repair> = Vec::new();
    loop {
        match yaml::parse(&edited, 0) {
            Ok(mut root) => {
                if let Some(node) = &mut root {
                    shift(node, &|at| original(&repairs, at) + offset);
                }
                let quoted = repairs.iter().filter(|repair| !repair.is_indentation());
                let repaired = quoted.map(|r| Span::new(offset + r.start, offset + r.end)).collect();
                return Ok(Read { root, repaired });
            }
            Err(failure) => {
                let at = original(&repairs, failure.span.start);
                let repair = match failure.kind {
                    FailureKind::Syntax(_) => next_repair(text, at, &repairs),
                    _ => None,
                };
                let fresh = repair.filter(|repair| repairs.iter().all(|other| other.start != repair.start));
                let Some(repair) = fresh else {
                    return Err(YamlFailure { span: Span::new(at + offset, at + offset), ..failure });
                };
                repairs.push(repair);
                repairs.sort_by_key(|repair| repair.start);
                edited = apply(text, &repairs);
            }
        }
    }
}

fn next_repair(text: &str, at: usize, repairs: &[Repair]) -> Option<Repair> {
    let indented = repairs.iter().filter(|repair| repair.is_indentation()).count();
    let indentation = || Repair::of_flow(text, at).filter(|_| indented < MAX_INDENTED);
    let quotes = || Repair::of_line(text, at).filter(|_| repairs.len() - indented < MAX_REPAIRS);
    indentation().or_else(quotes)
}

/// A value, by its bytes in the original text, and what it became.
#[derive(Debug)]
struct Repair {
    start: usize,
    end: usize,
    quoted: String,
}

impl Repair {
    fn is_indentation(&self) -> bool {
        self.start == self.end
    }

    /// A space before the line around `at`, if brackets are open there and the line begins at the first column.
    fn of_flow(text: &str, at: usize) -> Option<Self> {
        let at = text.floor_char_boundary(at);
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let begins = text[start..].starts_with(|c: char| !c.is_whitespace());
        (begins && is_in_flow(&text[..start])).then(|| Self { start, end: start, quoted: " ".to_owned() })
    }

    /// The value on the line around `at`, if it is plain text with a colon in it.
    fn of_line(text: &str, at: usize) -> Option<Self> {
        let at = text.floor_char_boundary(at);
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[line_start..].lines().next()?;
        let value_start = value_start(line)?;
        let rest = &line[value_start..];
        let value = rest.find(" #").map_or(rest, |comment| &rest[..comment]).trim();
        if !is_plain(value) || !(value.contains(": ") || value.ends_with(':')) {
            return None;
        }
        let start = line_start + value_start + (rest.len() - rest.trim_start().len());
        let quoted = format!("'{}'", value.replace('\'', "''"));
        Some(Self { start, end: start + value.len(), quoted })
    }
}

/// What follows `key: ` on a line, if it starts with a key, plain or quoted.
fn value_start(line: &str) -> Option<usize> {
    let key = line.trim_start().trim_start_matches("- ").trim_start();
    let key_start = line.len() - key.len();
    let key_end = match key.chars().next()? {
        quote @ ('"' | '\'') => key[1..].find(quote)? + 2,
        _ => key.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'))?,
    };
    let after = &key[key_end..];
    let is_key = key_end > 0 && after.starts_with(": ");
    is_key.then_some(key_start + key_end + ": ".len())
}

/// Whether a value was meant as text: `[Beta] answers` is, `[Beta]` is a list.
fn is_plain(value: &str) -> bool {
    let closing = match value.chars().next() {
        Some('[') => ']',
        Some('{') => '}',
        Some('"' | '\'' | '|' | '>' | '&' | '*' | '!' | '#' | '%') => return false,
        _ => return true,
    };
    let after = value.split_once(closing).map(|(_, after)| after.trim_start()).unwrap_or_default();
    after.starts_with(char::is_alphanumeric)
}

/// Whether a bracket that follows `key: ` at the first column is open at the end of the text. Quotes and comments do not count.
fn is_in_flow(text: &str) -> bool {
    let mut depth = 0_usize;
    for line in text.lines() {
        let inside = match depth {
            0 => line
                .split_once(": ")
                .map(|(_, value)| value)
                .filter(|value| value.trim_start().starts_with(['[', '{'])),
            _ => Some(line),
        };
        let mut quote = None;
        for c in inside.unwrap_or_default().chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                (None, '#') => break,
                (None, '[' | '{') => depth += 1,
                (None, ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    depth > 0
}

fn apply(text: &str, repairs: &[Repair]) -> String {
    let mut edited = String::with_capacity(text.len() + 8);
    let mut done = 0;
    for repair in repairs {
        edited += &text[done..repair.start];
        edited += &repair.quoted;
        done = repair.end;
    }
    edited += &text[done..];
    edited
}

/// The offset in the original text that an offset in the edited one came from.
fn original(repairs: &[Repair], at: usize) -> usize {
    let mut grown = 0;
    for repair in repairs {
        let start = repair.start + grown;
        let end = start + repair.quoted.len();
        if at <= start {
            break;
        }
        if at < end {
            return (repair.start + (at - start - 1)).min(repair.end);
        }
        grown += repair.quoted.len() - (repair.end - repair.start);
    }
    at - grown
}

fn shift(node: &mut YamlNode, to: &dyn Fn(usize) -> usize) {
    let shifted = |span: Span| Span::new(to(span.start), to(span.end));
    node.span = shifted(node.span);
    match &mut node.value {
        YamlValue::Scalar(_) => {}
        YamlValue::List(items) => items.iter_mut().for_each(|item| shift(item, to)),
        YamlValue::Map(entries) => {
            for entry in entries {
                entry.key_span = shifted(entry.key_span);
                shift(&mut entry.value, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_is_quoted_and_positions_stay() {
        let text =
            "name: a\ndescription: Use when: it's needed\ntools: [x]\nitems:\n  - label: Go: now\n    n: 1\n";
        let read = parse(text, 0).unwrap();
        let root = read.root.unwrap();
        assert_eq!(
            root.to_json(),
            serde_json::json!({"name": "a", "description": "Use when: it's needed", "tools": ["x"],
                "items": [{"label": "Go: now", "n": 1}]})
        );
        let shown: Vec<_> = read.repaired.iter().map(|span| &text[span.range()]).collect();
        assert_eq!(shown, ["Use when: it's needed", "Go: now"]);
        let YamlValue::Map(entries) = &root.value else { panic!() };
        assert_eq!(&text[entries[1].value.span.range()], "Use when: it's needed");
        assert_eq!(&text[entries[2].value.span.range()], "[x]");
    }

    #[test]
    fn comments_quoted_keys_and_brackets() {
        let read = |text: &str| parse(text, 0).map(|read| read.root.unwrap().to_json());
        for (text, expected) in [
            ("a: use when: asked # a note\n", serde_json::json!({"a": "use when: asked"})),
            ("\"a\": use when: asked\n", serde_json::json!({"a": "use when: asked"})),
            ("- 'a b': use when: asked\n", serde_json::json!([{"a b": "use when: asked"}])),
            ("a: [Beta] answers: things\nb: 1\n", serde_json::json!({"a": "[Beta] answers: things", "b": 1})),
            ("a: {x} answers: things\n", serde_json::json!({"a": "{x} answers: things"})),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        let text = "a: use when: asked # a note\n";
        assert_eq!(&text[parse(text, 0).unwrap().repaired[0].range()], "use when: asked");
    }

    #[test]
    fn brackets_may_close_at_the_column_of_their_key() {
        let text = "a: [\n  'x', # one\n  y\n]\nb: {\n  c: 1\n}\nd: [\nx,\ny\n]\ne: Use when: asked\n";
        let read = parse(text, 0).unwrap();
        let root = read.root.unwrap();
        let expected =
            serde_json::json!({"a": ["x", "y"], "b": {"c": 1}, "d": ["x", "y"], "e": "Use when: asked"});
        assert_eq!(root.to_json(), expected);
        let YamlValue::Map(entries) = &root.value else { panic!() };
        assert_eq!(&text[entries[3].value.span.range()], "Use when: asked");
        assert_eq!(read.repaired.len(), 1, "only the colon is worth a word");
        let long = format!("a: [\n{}]\n", "x,\n".repeat(10_000));
        assert!(parse(&long, 0).is_err());
    }

    #[test]
    fn other_mistakes_stay_mistakes() {
        for text in ["a: [1, 2\nb: 3\n", "a: 'x\n", "a: {b: c: d}\n", "a: b\n c: d: e\n"] {
            assert!(parse(text, 0).is_err(), "{text}");
        }
    }
}
