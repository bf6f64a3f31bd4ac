//! Names of secrets with a value behind them: `password = x`, `"token": "x"`, `API_KEY=x`, `my password is x`,
//! `Authorization: Bearer x`, `--secret x`, `<password>x</password>`. The name stays, the value goes.
//!
//! What is assigned to a name that ends with `password`, `secret` or `token` is masked whatever it says, as the specification
//! demands (H2). For all other names and forms, [`super::plain`] tells a secret from an ordinary word.

use std::ops::Range;

use super::plain::{Bare, Joint, is_plain_word, is_reference};
use super::{CARD, EMAIL, Found, REDACTED, is_marked, run};

/// Endings of names whose assignments are always masked.
const ALWAYS: &[&str] = &["password", "secret", "token"];

/// How sensitive names end, without what joins their words.
const ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "accountkey",
    "sharedkey",
    "authorization",
    "credential",
    "dbpass",
    "userpass",
    "smtppass",
    "mailpass",
    "mysqlpass",
    "redispass",
    "rootpass",
    "adminpass",
    "dbpwd",
    "userpwd",
    "passwort",
    "kennwort",
];
/// How each of them ends: most words end differently, and are not looked at further.
const LAST: &[[u8; 2]] =
    &[*b"rd", *b"wd", *b"se", *b"de", *b"et", *b"en", *b"ey", *b"on", *b"al", *b"ss", *b"rt"];
/// What makes the word `key` behind it a secret.
const BEFORE_KEY: &[&str] =
    &["api ", "access ", "secret ", "private ", "signing ", "encryption ", "master ", "auth "];
const SCHEMES: &[&str] = &["bearer ", "basic ", "token ", "digest ", "apikey "];

/// The longest end of a name that is looked at.
const NAME: usize = 32;
/// How much may stand between a name, its joint and its value.
const GAP: usize = 32;

/// Two passes: what one takes as a value may hold a name that the other has to see.
pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    scan(text, found, Name::assigned_value);
    scan(text, found, Name::stated_value);
}

fn scan<'a>(text: &'a str, found: &mut Vec<Found>, secret: fn(&Name<'a>) -> Option<Range<usize>>) {
    let mut at = 0;
    while at < text.len() {
        let end = run(text.as_bytes(), at, is_name_byte);
        let seen = (end > at).then(|| secret(&Name { text, at: at..end })).flatten();
        at = match seen {
            Some(secret) => {
                let next = secret.end;
                found.push(Found::secret(secret));
                next
            }
            None => end.max(at + 1),
        };
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
}

/// Whether such a name stands before secrets. `max_tokens` and `token_limit` do not.
pub(super) fn is_sensitive(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_behind = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    let name = &name[..bytes.len() - bytes.iter().rev().take_while(|byte| is_behind(byte)).count()];
    let letters = || name.bytes().rev().filter(|byte| !matches!(byte, b'_' | b'-' | b' '));
    let mut last = letters().map(|byte| byte.to_ascii_lowercase());
    let (Some(second), Some(first)) = (last.next(), last.next()) else { return false };
    if [first, second] == *b"pw" {
        return last.next().is_none();
    }
    if !LAST.contains(&[first, second]) {
        return false;
    }
    let mut end: Vec<u8> = letters().take(NAME).map(|byte| byte.to_ascii_lowercase()).collect();
    end.reverse();
    // The shell's `PWD` is a folder.
    let is_short = end == b"pwd" && name != "PWD";
    is_short || ENDINGS.iter().any(|ending| end.ends_with(ending.as_bytes()))
}

/// A run of letters, digits, `_` and `-` that may be the name of a secret.
struct Name<'a> {
    text: &'a str,
    at: Range<usize>,
}

impl<'a> Name<'a> {
    fn name(&self) -> &'a str {
        &self.text[self.at.clone()]
    }

    /// `password: x`, `token = x`: the name ends with a word of [`ALWAYS`], and only white space surrounds the joint.
    fn assigned_value(&self) -> Option<Range<usize>> {
        let name = self.name().as_bytes();
        let ends = |word: &&str| {
            let start = name.len().checked_sub(word.len());
            start.is_some_and(|start| name[start..].eq_ignore_ascii_case(word.as_bytes()))
        };
        if !ALWAYS.iter().any(ends) {
            return None;
        }
        let at = self.behind_space(self.at.end);
        let rest = &self.text[at..];
        let start = match rest.as_bytes().first()? {
            // `token::Kind` is a path.
            b':' if rest.starts_with("::") => return None,
            b':' if rest.starts_with(":=") => at + 2,
            b'=' if rest.starts_with("=>") => at + 2,
            b'=' if rest.starts_with("==") || rest.starts_with("=~") => {
                let start = at + run(rest.as_bytes(), 0, |byte| matches!(byte, b'=' | b'~'));
                // `password == other` compares; `password==x` may hold the password itself.
                let is_spaced = self.text[start..].starts_with(char::is_whitespace);
                return if is_spaced { None } else { self.always_masked(start) };
            }
            b':' | b'=' => at + 1,
            _ => return None,
        };
        let emphasis = run(self.text.as_bytes(), start, |byte| byte == b'*');
        let behind = self.behind_space(emphasis);
        let start = if behind > emphasis { behind } else { self.behind_space(start) };
        self.always_masked(start)
    }

    fn behind_space(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest.len() - rest.trim_start().len()
    }

    /// The value at `start`, if there is anything to hide in it.
    fn always_masked(&self, start: usize) -> Option<Range<usize>> {
        let (quote, within) = quote(self.text, start);
        let quoted_end = quote.map(|quote| self.quoted_end(&quote, within)).filter(|end| *end > within);
        if let Some(end) = quoted_end {
            // `"a"b` is one value.
            let is_joined = self.text[end..].chars().nth(1).is_some_and(char::is_alphanumeric);
            let value = if is_joined { start..assigned_end(self.text, end) } else { within..end };
            return has_content(&self.text[value.clone()]).then_some(value);
        }
        let start = run(self.text.as_bytes(), start, |byte| matches!(byte, b'"' | b'\'' | b'`'));
        // `token: Bearer x`: the second word is the value.
        let second = scheme(self.text, start);
        let end = assigned_end(self.text, start).max(assigned_end(self.text, second));
        let value = &self.text[start..end];
        has_content(value).then(|| start..start + trimmed(value).len())
    }

    /// Where the value stands in all forms in which it may be an ordinary word.
    fn stated_value(&self) -> Option<Range<usize>> {
        if self.name().eq_ignore_ascii_case("bearer") {
            return self.bearer();
        }
        if !is_sensitive(self.name()) && !self.is_key() {
            return None;
        }
        let (joint, start) = self.joint()?;
        let start = self.gap(start, b" \t*");
        let (quote, start) = quote(self.text, start);
        let start = scheme(self.text, start);
        if is_marked(&self.text[start..]) {
            return None;
        }
        match quote {
            Some(quote) => self.quoted(&quote, start),
            None => {
                let longer = self.block(start).or_else(|| self.phrase(joint, start));
                longer.or_else(|| self.bare(joint, start))
            }
        }
    }

    /// `api key`, in two words.
    fn is_key(&self) -> bool {
        let is_before = |word: &str| {
            let bytes = self.text.as_bytes();
            let start = self.at.start.checked_sub(word.len());
            start.is_some_and(|start| bytes[start..self.at.start].eq_ignore_ascii_case(word.as_bytes()))
        };
        self.name().eq_ignore_ascii_case("key") && BEFORE_KEY.iter().any(|word| is_before(word))
    }

    /// Behind at most a few of these bytes.
    fn gap(&self, at: usize, of: &[u8]) -> usize {
        at + self.text.as_bytes()[at..].iter().take(GAP).take_while(|byte| of.contains(byte)).count()
    }

    /// What joins the name to its value, and where the value may begin.
    fn joint(&self) -> Option<(Joint, usize)> {
        let bytes = self.text.as_bytes();
        let is_tag = self.at.start > 0 && bytes[self.at.start - 1] == b'<';
        let closed = self.gap(self.at.end, b"\\\"'`]*");
        let at = self.gap(closed, b" \t");
        let rest = &bytes[at..];
        match rest.first()? {
            b'=' if matches!(rest.get(1), Some(b'=' | b'~')) => None,
            b'=' => Some((Joint::Equals, at + 1 + usize::from(rest.get(1) == Some(&b'>')))),
            b':' if rest.get(1) == Some(&b':') => None,
            b':' if rest.get(1) == Some(&b'=') => Some((Joint::Equals, at + 2)),
            b':' => Some((Joint::Colon, at + 1)),
            b'>' if is_tag => Some((Joint::Colon, at + 1)),
            _ if at == closed => None,
            _ if self.name().starts_with("--") && rest[0] != b'-' => Some((Joint::Colon, at)),
            _ => is(rest).map(|length| (Joint::Is, at + length)),
        }
    }

    /// Up to the quote that closes it, or else to the end of the line.
    fn quoted_end(&self, quote: &Quote, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let (mut end, mut slashes) = (start, 0);
        while end < bytes.len() && bytes[end] != b'\n' && !quote.closes(bytes[end], slashes) {
            slashes = if bytes[end] == b'\\' { slashes + 1 } else { 0 };
            end += 1;
        }
        let is_closed = bytes.get(end) == Some(&quote.sign);
        // The closing quote's own slashes stay with it.
        if is_closed { end - slashes.min(quote.slashes) } else { end }
    }

    fn quoted(&self, quote: &Quote, start: usize) -> Option<Range<usize>> {
        let end = self.quoted_end(quote, start);
        let value = &self.text[start..end];
        // Labels in forms and catalogues: `"password": "Password"`.
        let is_label = value.eq_ignore_ascii_case(self.name());
        let is_kept = is_label || is_reference(value) || (quote.sign == b'`' && is_plain_word(value));
        (!value.is_empty() && !is_kept).then_some(start..end)
    }

    /// Lines below a YAML `|` or `>` that are indented as the first one is.
    fn block(&self, start: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        if !matches!(bytes.get(start), Some(b'|' | b'>')) {
            return None;
        }
        let first = self.gap(start, b"|>+-") + 1;
        let indent = run(bytes, first.min(bytes.len()), |byte| byte == b' ') - first.min(bytes.len());
        if bytes.get(first - 1) != Some(&b'\n') || indent == 0 || is_marked(&self.text[first + indent..]) {
            return None;
        }
        let mut end = first;
        for line in self.text[first..].split_inclusive('\n') {
            if run(line.as_bytes(), 0, |byte| byte == b' ') < indent {
                break;
            }
            end += line.len();
        }
        let start = first + indent;
        Some(start..start + self.text[start..end].trim_end().len())
    }

    /// A passphrase goes to the end of its line: its words look like a sentence.
    fn phrase(&self, joint: Joint, start: usize) -> Option<Range<usize>> {
        if joint == Joint::Is || !self.name().to_ascii_lowercase().ends_with("passphrase") {
            return None;
        }
        // The line is looked at only when all of it is taken.
        let first = bare_end(self.text, start);
        if first == start
            || self.text.as_bytes().get(first) != Some(&b' ')
            || is_reference(&self.text[start..first])
        {
            return None;
        }
        let line = self.text[start..].lines().next().unwrap_or_default();
        Some(start..start + trimmed(line.trim_end()).len().max(first - start))
    }

    fn bare(&self, joint: Joint, start: usize) -> Option<Range<usize>> {
        let end = bare_end(self.text, start);
        if is_reference(&self.text[start..end]) {
            return None;
        }
        let value = trimmed(&self.text[start..end]);
        let is_cut = value.len() < end - start;
        let next = self.gap(end, b" \t");
        let following = self.text.as_bytes().get(next).copied();
        let is_followed = !is_cut
            && next > end
            && following.is_some_and(|byte| !byte.is_ascii_control() && !b",;:!?)]}|&/\\*#-".contains(&byte));
        // `min. 8 characters`, `J. Smith`.
        let is_short = self.text[start + value.len()..end] == *"." && value.len() <= 3;
        let is_short = is_short && following.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let before = &self.text.as_bytes()[self.at.start.saturating_sub(3)..self.at.start];
        let is_mine = before.eq_ignore_ascii_case(b"my ");
        let is_followed = is_followed || is_short;
        let bare = Bare { name: self.name(), joint, value, is_followed, is_mine };
        (!bare.is_plain()).then(|| start..start + value.len())
    }

    /// `Bearer x` without a header's name before it.
    fn bearer(&self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let start = self.gap(self.at.end, b" ");
        let is_credential = |byte: u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte);
        let end = run(bytes, start, is_credential);
        let head = &bytes[start..end.min(start + 64)];
        let is_random = head.len() >= 16 && head.iter().any(u8::is_ascii_digit);
        (start > self.at.end && is_random).then(|| start..start + trimmed(&self.text[start..end]).len())
    }
}

/// How long `is` and the space behind it are, also `is:`.
fn is(rest: &[u8]) -> Option<usize> {
    let word = [&b"is"[..], b"was"]
        .into_iter()
        .find(|word| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word))?;
    let colon = usize::from(rest[word.len()] == b':');
    matches!(rest.get(word.len() + colon), Some(b' ' | b'\t')).then_some(word.len() + colon + 1)
}

struct Quote {
    sign: u8,
    /// How many stand before it: JSON in JSON escapes its quotes.
    slashes: usize,
}

impl Quote {
    fn closes(&self, byte: u8, slashes: usize) -> bool {
        let is_escaped = if self.slashes == 0 { slashes % 2 == 1 } else { slashes > self.slashes };
        byte == self.sign && !is_escaped
    }
}

/// The quote that a value begins with, also behind a letter as in `b"x"`, and where the value itself begins.
fn quote(text: &str, at: usize) -> (Option<Quote>, usize) {
    let bytes = text.as_bytes();
    let is_quote = |at: usize| matches!(bytes.get(at), Some(b'"' | b'\'' | b'`'));
    let prefix = usize::from(matches!(bytes.get(at), Some(b'b' | b'f' | b'r' | b'u')) && is_quote(at + 1));
    let start = at + prefix;
    let slashes = bytes[start..].iter().take(GAP).take_while(|byte| **byte == b'\\').count();
    if !is_quote(start + slashes) {
        return (None, at);
    }
    let opening = start + slashes;
    let is_triple =
        is_quote(opening + 2) && bytes[opening..opening + 3].iter().all(|byte| *byte == bytes[opening]);
    (Some(Quote { sign: bytes[opening], slashes }), opening + if is_triple { 3 } else { 1 })
}

/// Behind the word that says how a header's credentials are to be read.
fn scheme(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    let is_scheme =
        |word: &&&str| rest.len() > word.len() && rest[..word.len()].eq_ignore_ascii_case(word.as_bytes());
    at + SCHEMES.iter().find(is_scheme).map_or(0, |word| word.len())
}

/// Up to a space, a quote, a tag, or what begins the next pair.
fn bare_end(text: &str, start: usize) -> usize {
    value_end(text, start, |bytes, at| match bytes[at] {
        b'\'' => !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric),
        _ => true,
    })
}

/// Like [`bare_end`], but a quote or `<` within a word belongs to it.
fn assigned_end(text: &str, start: usize) -> usize {
    value_end(text, start, |bytes, at| match bytes[at] {
        b'<' => begins_tag(&bytes[at + 1..]),
        _ => !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric),
    })
}

/// `closes` decides about the quotes and `<`.
fn value_end(text: &str, start: usize, closes: impl Fn(&[u8], usize) -> bool) -> usize {
    let bytes = text.as_bytes();
    let ends = |at: usize| match bytes[at] {
        b'"' | b'`' | b'\'' | b'<' => closes(bytes, at),
        b'&' | b';' | b',' => begins_pair(&bytes[at + 1..]),
        byte => byte.is_ascii_whitespace(),
    };
    (start..bytes.len()).find(|at| ends(*at)).unwrap_or(bytes.len())
}

fn begins_pair(rest: &[u8]) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-\"' ".contains(&byte);
    let name = rest.iter().take(NAME).take_while(|byte| is_name(**byte)).count();
    name > 0 && matches!(rest.get(name), Some(b'=' | b':'))
}

/// `</b>`, `<br>`.
fn begins_tag(rest: &[u8]) -> bool {
    let name =
        rest.iter().take(NAME).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'/').count();
    name > 0 && (rest[0] == b'/' || rest.get(name) == Some(&b'>'))
}

/// Without the punctuation of the sentence or structure around it. `!` is more often part of a password.
fn trimmed(value: &str) -> &str {
    value.trim_end_matches(['.', ',', ';', ':', '?', ')', ']', '}', '\\', '*'])
}

/// Whether there is more in a value than marks, brackets and signs that others use to hide one.
fn has_content(value: &str) -> bool {
    let mut rest = value;
    while let Some(c) = rest.chars().next() {
        if let Some(mark) = [REDACTED, EMAIL, CARD].iter().find(|mark| rest.starts_with(**mark)) {
            rest = &rest[mark.len()..];
        } else if c.is_whitespace() || "{}[]()<>|,;:.=-*•…\"'`\\?".contains(c) {
            rest = &rest[c.len_utf8()..];
        } else {
            return true;
        }
    }
    false
}
