//! Tags and comments, as far as they matter for text.

use super::entity::decode;

pub enum Markup<'a> {
    /// So many bytes are text after all.
    Text(usize),
    /// So many bytes are a comment or a declaration.
    Nothing(usize),
    Tag(Tag<'a>),
}

pub struct Tag<'a> {
    /// In lower case.
    pub name: String,
    pub is_end: bool,
    /// Written as `<x/>`.
    pub is_closed: bool,
    attributes: &'a str,
    /// In the page, with both brackets.
    pub length: usize,
}

impl<'a> Markup<'a> {
    /// Reads what begins with the `<` at the start of `text`. What never ends goes to the end, as in browsers.
    pub fn read(text: &'a str) -> Self {
        let inside = &text[1..];
        if inside.starts_with("!--") {
            return Self::Nothing(inside.find("-->").map_or(text.len(), |end| end + 4));
        }
        if inside.starts_with(['!', '?']) {
            return Self::Nothing(inside.find('>').map_or(text.len(), |end| end + 2));
        }
        let is_end = inside.starts_with('/');
        let start = 1 + usize::from(is_end);
        if !text[start..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Self::Text(1);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '_');
        let name_end = text[start..].find(|c| !is_name(c)).map_or(text.len(), |length| start + length);
        let Some(end) = tag_end(text, name_end) else { return Self::Nothing(text.len()) };
        let attributes = &text[name_end..end];
        Self::Tag(Tag {
            name: text[start..name_end].to_ascii_lowercase(),
            is_end,
            is_closed: attributes.ends_with('/'),
            attributes,
            length: end + 1,
        })
    }
}

/// The `>` that is not inside quotes.
fn tag_end(text: &str, from: usize) -> Option<usize> {
    let mut quote: Option<u8> = None;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

impl Tag<'_> {
    pub fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            let ends = |(_, c): &(usize, char)| c.is_whitespace() || matches!(c, '=' | '/');
            let name_end = rest.char_indices().skip(1).find(ends).map_or(rest.len(), |(at, _)| at);
            let name = &rest[..name_end];
            let after = rest[name_end..].trim_start();
            let (value, remaining) = match after.strip_prefix('=') {
                Some(value) => value_of(value.trim_start()),
                None => ("", after),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decode(value));
            }
            rest = remaining;
        }
    }
}

/// A value and what follows it.
fn value_of(text: &str) -> (&str, &str) {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].split_once(quote).unwrap_or((&text[1..], "")),
        _ => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            text.split_at(end)
        }
    }
}

/// What follows the end tag of a dropped element. Elements of the same name may be nested in it, except where the content
/// is not markup at all.
pub fn after_end<'a>(text: &'a str, name: &str) -> &'a str {
    let nests = !matches!(name, "script" | "style" | "iframe" | "noscript");
    let mut depth = 1_usize;
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        at += found;
        let inside = &text[at + 1..];
        let is_end = inside.starts_with('/');
        let candidate = &inside[usize::from(is_end)..];
        at += 1;
        if !starts_with_name(candidate, name) || !(is_end || nests) {
            continue;
        }
        let Some(end) = text[at..].find('>') else { return "" };
        let is_closed = text[..at + end].ends_with('/');
        at += end + 1;
        depth = if is_end { depth - 1 } else { depth + usize::from(!is_closed) };
        if depth == 0 {
            return &text[at..];
        }
    }
    ""
}

fn starts_with_name(text: &str, name: &str) -> bool {
    let is_same = text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    is_same && !text[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
}
