//! What people wrote, made safe to put into a file.

use serde::Deserialize;

/// One text that may hold several, or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMany {
    pub fn chars(&self) -> usize {
        match self {
            Self::One(text) => text.chars().count(),
            Self::Many(texts) => texts.iter().map(|text| text.chars().count()).sum(),
        }
    }

    /// Examples of what people say: one per line, or between semicolons, or else between commas.
    pub fn examples(&self) -> Vec<String> {
        self.items(&[";", "；", ","])
    }

    /// Steps of work: one per line, or between semicolons, or else one per sentence. Commas are part of a step.
    pub fn steps(&self) -> Vec<String> {
        self.items(&[";", "；", ". "])
    }

    /// Sentences: one per line, or between semicolons. Commas and full stops are part of a sentence.
    pub fn sentences(&self) -> Vec<String> {
        self.items(&[";", "；"])
    }

    fn items(&self, separators: &[&str]) -> Vec<String> {
        let raw: Vec<&str> = match self {
            Self::Many(texts) => texts.iter().map(String::as_str).collect(),
            Self::One(text) => {
                let several = |separator: &&&str| text.trim().contains(**separator);
                let separator = if text.trim().contains('\n') {
                    Some("\n")
                } else {
                    separators.iter().find(several).copied()
                };
                separator.map_or_else(|| vec![text.as_str()], |separator| text.split(separator).collect())
            }
        };
        let cleaned = raw.into_iter().map(|text| unmarked(&clean(text)).to_owned());
        // A lone hyphen is a list item that nobody filled in.
        cleaned.filter(|text| text.chars().any(|c| !c.is_ascii_punctuation())).collect()
    }
}

/// Without the `- `, `2. ` or quotes that lists come with.
fn unmarked(item: &str) -> &str {
    let number = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = match number.strip_prefix(['.', ')']) {
        Some(rest) if number.len() < item.len() && rest.starts_with(' ') => rest,
        _ => item.strip_prefix("- ").or_else(|| item.strip_prefix("* ")).unwrap_or(item),
    };
    let item = item.trim();
    item.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(item).trim()
}

/// One line of printable characters with single spaces.
pub fn clean(text: &str) -> String {
    let printable: String = text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
    printable.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Not what breaks lines, turns the direction of writing, or cannot be seen.
fn is_printable(c: char) -> bool {
    let is_invisible = matches!(c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{e0fff}');
    let is_noncharacter = u32::from(c) & 0xfffe == 0xfffe;
    !c.is_control() && !is_invisible && !is_noncharacter
}

/// For the head of a file, where three hyphens end it for careless readers and angle brackets are not allowed.
pub fn for_head(text: &str) -> String {
    let mut safe = clean(text).replace('<', "‹").replace('>', "›");
    while safe.contains("---") {
        safe = safe.replace("---", "–");
    }
    safe
}

/// At most so many characters, cut between words where there are any.
pub fn cut(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let end = text.char_indices().nth(max_chars.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let end = head.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", head[..end].trim_end())
}

/// As a sentence begins.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// With a full stop, unless it ends a sentence already.
pub fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?', '…', '。']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// A YAML text that no reader takes for anything else.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_every_form() {
        let one = |text: &str| OneOrMany::One(text.to_owned());
        assert_eq!(one("a b; c, d").examples(), ["a b", "c, d"]);
        assert_eq!(one("a, b").examples(), ["a", "b"]);
        assert_eq!(one("- \"a\"\n2. b\n\n* c").examples(), ["a", "b", "c"]);
        assert_eq!(one("Read it, twice. Then answer.").steps(), ["Read it, twice", "Then answer."]);
        assert_eq!(OneOrMany::Many(vec!["a, b".into(), " ".into()]).examples(), ["a, b"]);
        assert_eq!(one("3.5 percent").examples(), ["3.5 percent"]);
    }

    #[test]
    fn texts_are_made_safe() {
        assert_eq!(clean("a\u{0}\r\n\tb\u{202e}c"), "a b c");
        assert_eq!(for_head("<x> ---- y"), "‹x› –- y");
        assert_eq!(cut("one two three", 9), "one two…");
        assert_eq!(cut("äöü", 2), "ä…");
        assert_eq!(quoted("a \"b\" \\"), r#""a \"b\" \\""#);
    }
}
