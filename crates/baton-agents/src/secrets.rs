//! Secrets that stand in files although they should not, made unreadable before any report can quote them.
//!
//! Reports quote lines, help texts quote values, and both end up in logs. So masking is no rule's business: a
//! [`Document`](crate::frontmatter::Document) holds the masked text from the start, and only nodes hold the values.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::SecretName;
use baton_core::choice::snake_case;

use crate::source::{SourceFile, Span};
use crate::yaml::{YamlEntry, YamlNode, YamlValue};

/// Keys below which every text may be a secret.
const SECTIONS: &[&str] = &["auth", "env", "headers"];
/// Keys whose own value is one, wherever they stand; also at the end of a longer key, as in `partner_token`.
const WORDS: &[&str] = &["authorization", "password", "secret", "token"];
const ENDINGS: &[&str] = &["_key", "_password", "_secret", "_token", "apikey"];

/// The file with every text in its head that may be a secret masked.
pub fn masked(source: &Arc<SourceFile>, head: Span, entries: &[YamlEntry]) -> Arc<SourceFile> {
    let mut found = SecretSpan { source, spans: Vec::new(), aliases: BTreeSet::new() };
    for entry in entries {
        found.look(&entry.key, &entry.value, false);
    }
    found.definitions(head);
    if found.spans.is_empty() { Arc::clone(source) } else { source.masked(&found.spans) }
}

/// The same for a head that could not be read: by its lines, and so rather too much than too little.
pub fn masked_lines(source: &Arc<SourceFile>) -> Arc<SourceFile> {
    let mut spans = Vec::new();
    let mut inside: Option<usize> = None;
    let mut offset = 0;
    for line in source.text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let is_blank = line.trim().is_empty();
        // What is indented more than a sensitive key belongs to it, whatever it is.
        inside = inside.filter(|outer| is_blank || indent > *outer);
        if inside.is_some() {
            spans.push(Span::new(offset + indent, offset + line.len()));
        } else if let Some(value) = value_of_sensitive_key(line) {
            spans.push(Span::new(offset + value, offset + line.len()));
            inside = Some(indent);
        }
        offset += line.len();
    }
    if spans.is_empty() { Arc::clone(source) } else { source.masked(&spans) }
}

struct SecretSpan<'a> {
    source: &'a SourceFile,
    spans: Vec<Span>,
    /// Names of aliases that stand where a secret does: the secret stands at the anchor.
    aliases: BTreeSet<&'a str>,
}

impl SecretSpan<'_> {
    fn look(&mut self, key: &str, node: &YamlNode, inside: bool) {
        let key = snake_case(key);
        let sensitive = inside || SECTIONS.contains(&key.as_str()) || is_sensitive(&key);
        match &node.value {
            YamlValue::Scalar(scalar) => {
                if sensitive && !is_name_or_word(&key, scalar.text.trim()) {
                    self.take(node.span);
                }
            }
            YamlValue::List(items) => {
                for item in items {
                    self.look("", item, sensitive);
                }
            }
            YamlValue::Map(entries) => {
                for entry in entries {
                    self.look(&entry.key, &entry.value, sensitive);
                }
            }
        }
    }

    fn take(&mut self, span: Span) {
        self.spans.push(span);
        if let Some(alias) = self.source.text[span.range()].strip_prefix('*') {
            self.aliases.insert(alias.trim_end());
        }
    }

    /// Everything on the line after `&name`.
    fn definitions(&mut self, head: Span) {
        let text = &self.source.text[head.range()];
        for alias in &self.aliases {
            let defined = text.match_indices(alias).map(|(at, _)| at).find(|at| text[..*at].ends_with('&'));
            if let Some(at) = defined {
                let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
                self.spans.push(Span::new(head.start + at + alias.len(), head.start + end));
            }
        }
    }
}

/// A misspelt key hides nothing.
fn is_sensitive(key: &str) -> bool {
    WORDS.iter().any(|word| strsim::osa_distance(word, key) <= 1)
        || ENDINGS.iter().any(|ending| key.ends_with(ending))
}

/// `$NAME` is what should stand there. The kind of an authentication is worth seeing in an error about it.
fn is_name_or_word(key: &str, text: &str) -> bool {
    let is_kind = matches!(key, "type" | "scheme") && is_short_word(text);
    is_kind || text.is_empty() || SecretName::parse(text).is_ok()
}

/// Too short and too plain for a secret, or the one type of `auth` with a digit.
pub fn is_short_word(text: &str) -> bool {
    text == "oauth2"
        || text.len() <= 12 && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'-')
}

/// Where the value starts on a line that holds a sensitive key, also inside `{…}` and after `- `.
fn value_of_sensitive_key(line: &str) -> Option<usize> {
    let is_key_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    line.match_indices(':').find_map(|(at, _)| {
        let before = line[..at].trim_end().trim_end_matches(['"', '\'']);
        let key = before.rsplit(|c| !is_key_char(c)).next().unwrap_or_default();
        // A key longer than this is none, and looking at it again for every colon would take long.
        let key = snake_case(key.get(..64).unwrap_or(key).trim_start_matches('-'));
        (SECTIONS.contains(&key.as_str()) || is_sensitive(&key)).then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> String {
        let source = SourceFile::new("x.md", text);
        let read = crate::repair::parse(text, 0).unwrap();
        let Some(YamlNode { value: YamlValue::Map(entries), .. }) = read.root else {
            panic!("no map: {text}")
        };
        masked(&source, Span::new(0, text.len()), &entries).text.clone()
    }

    #[test]
    fn texts_that_may_be_secrets_are_masked() {
        for (text, expected) in [
            ("auth: {type: bearer, token: sk-live}", "auth: {type: bearer, token: *******}"),
            ("auth: {type: bearr, tokn: sk-live}", "auth: {type: bearr, tokn: *******}"),
            ("auth: {type: sk-live-0123456789}", "auth: {type: ******************}"),
            ("auth: {type: bearer, token: $NAME}", "auth: {type: bearer, token: $NAME}"),
            ("auth: sk-live", "auth: *******"),
            ("auth: [sk-live]", "auth: [*******]"),
            ("ohth: {pasword: hunter2}", "ohth: {pasword: *******}"),
            ("mcp_servers: {x: {env: {A: b, C: \"${D}\"}}}", "mcp_servers: {x: {env: {A: *, C: \"${D}\"}}}"),
            ("mcp_servers: {x: {headers: {X-Y: z}}}", "mcp_servers: {x: {headers: {X-Y: *}}}"),
            ("password: hunter2: abc", "password: ************"),
            ("x: &t sk-live\nauth: {token: *t}", "x: &t********\nauth: {token: **}"),
            ("auth: &t {key: a}\nx: *t", "auth: &t {key: *}\nx: *t"),
            (
                "limits: {max_tokens: 5}\ncollect: [{key: purpose}]",
                "limits: {max_tokens: 5}\ncollect: [{key: purpose}]",
            ),
        ] {
            assert_eq!(head(text), expected);
        }
    }

    #[test]
    fn lines_that_cannot_be_read_are_masked_whole() {
        for (text, expected) in [
            ("auth: {type: bearer, token: x\nnext: 1\n", "auth:************************\nnext: 1\n"),
            (
                "auth:\n  token: |\n    one\n\n  x: y\nnext: 1\n",
                "auth:\n  ********\n    ***\n\n  ****\nnext: 1\n",
            ),
            ("- {url: \"http://x\", password: y}\n", "- {url: \"http://x\", password:***\n"),
            ("tools: [a: b]\n", "tools: [a: b]\n"),
        ] {
            assert_eq!(masked_lines(&SourceFile::new("x.md", text)).text, expected);
        }
    }
}
