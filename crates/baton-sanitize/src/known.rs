//! Keys that are recognised by their shape alone.

use super::{Found, run};

/// How the keys of well-known services begin, and how many more characters they have at least.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 12),
    ("sk_test_", 12),
    ("rk_live_", 12),
    ("rk_test_", 12),
    ("whsec_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxe-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("AIza", 30),
    ("gsk_", 24),
    ("xai-", 24),
    ("hf_", 24),
    ("npm_", 24),
    ("pypi-", 24),
    ("dop_v1_", 24),
    ("baton_", 40),
];

/// No key is shorter, prefix and all.
const SHORTEST: usize = 15;
/// How far into a key one looks for a sign that it is no word.
const LOOK: usize = 64;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// No word of prose is as long.
const LINE: usize = 16;
const DASHES: &str = "-----";

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    tokens(text, found);
    blocks(text, found);
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Every run of letters, digits, `_` and `-` is looked at once, and within it each place where a key may begin.
fn tokens(text: &str, found: &mut Vec<Found>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = run(bytes, at, is_token);
        let key = (at..(end + 1).saturating_sub(SHORTEST)).find(|start| {
            let is_start = *start == 0 || !bytes[*start - 1].is_ascii_alphanumeric();
            is_start && is_key(&text[*start..end])
        });
        let web_token = web_token(bytes, at, end);
        let end = web_token.unwrap_or(end);
        if let Some(start) = key.or(web_token.map(|_| at)) {
            found.push(Found::secret(start..end));
        }
        at = end.max(at + 1);
    }
}

fn is_key(token: &str) -> bool {
    let has_prefix = |(prefix, least): &(&str, usize)| {
        token.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *least && is_random(rest))
    };
    PREFIXES.iter().any(has_prefix) || is_access_key(token)
}

/// Names such as `sk-learn-based-estimator` have neither digits nor capitals nor a part without end.
fn is_random(rest: &str) -> bool {
    let start = &rest.as_bytes()[..rest.len().min(LOOK)];
    let first = start.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    first >= 20 || start.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// The ids of access keys of AWS: twenty capitals and digits.
fn is_access_key(token: &str) -> bool {
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    token.len() == 20
        && (token.starts_with("AKIA") || token.starts_with("ASIA"))
        && token.bytes().all(is_capital)
}

/// Where a JSON Web Token ends whose head is this run: two or three runs with dots between them.
fn web_token(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    if !bytes[at..end].starts_with(b"eyJ") || end - at < 10 || bytes.get(end) != Some(&b'.') {
        return None;
    }
    let claims = run(bytes, end + 1, is_token);
    if claims - end <= 8 {
        return None;
    }
    let signature = if bytes.get(claims) == Some(&b'.') { run(bytes, claims + 1, is_token) } else { claims };
    Some(if signature == claims + 1 { claims } else { signature })
}

/// Private keys in PEM. A block that was cut has no end: then what follows counts as far as it looks like one.
fn blocks(text: &str, found: &mut Vec<Found>) {
    let mut at = 0;
    let mut is_end_known = true;
    while let Some(start) = text[at..].find(BEGIN).map(|start| at + start) {
        at = start + BEGIN.len();
        let Some(body) = body(text, at) else { continue };
        let end = is_end_known.then(|| text[body..].find(END)).flatten();
        is_end_known = end.is_some();
        at = end.map_or_else(|| cut(text, body), |end| footer(text, body + end + END.len()));
        found.push(Found::secret(start..at));
    }
}

/// Where the header of a private key ends, if it is one.
fn body(text: &str, at: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[at..];
    let label =
        run(bytes, 0, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ').min(LOOK);
    let is_key =
        text[at..at + label].contains("PRIVATE KEY") && bytes[label..].starts_with(DASHES.as_bytes());
    is_key.then_some(at + label + DASHES.len())
}

fn footer(text: &str, at: usize) -> usize {
    let label =
        run(text.as_bytes(), at, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    if text[label..].starts_with(DASHES) { label + DASHES.len() } else { label }
}

/// How much of what follows can belong to a key: long words, and short ones that have a line of their own.
fn cut(text: &str, body: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = body;
    while let Some((start, next)) = word(bytes, end) {
        let is_line =
            bytes[end..start].contains(&b'\n') && matches!(bytes.get(next), None | Some(b'\n' | b'\r'));
        let is_header = matches!(&text[start..next], "Proc-Type:" | "4,ENCRYPTED" | "DEK-Info:");
        if next - start < LINE && !is_line && !is_header {
            break;
        }
        end = next;
    }
    end
}

/// The next word. One that is far away does not count.
fn word(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let gap = bytes[at..].iter().take(LOOK).take_while(|byte| byte.is_ascii_whitespace()).count();
    let end = run(bytes, at + gap, |byte| !byte.is_ascii_whitespace());
    (end > at + gap).then_some((at + gap, end))
}
