//! Texts without what others must not see: secrets, e-mail addresses, card numbers.
//!
//! Whatever one agent sends to another and whatever is logged passes through here. In reading order: `assignment`
//! finds `password = …` and its many spellings, with `plain` to tell a secret from an ordinary word; `known` finds
//! keys by their shape; `address` passwords in addresses; `email` and `card` what belongs to people; `json`
//! does the same for values.
//!
//! Each finder goes over the text once. What it has looked at ahead it either takes as a whole and goes on behind it,
//! or it was no more than a fixed number of bytes; so time grows with the length of the text, whatever it says.
//!
//! Sanitising again changes nothing: no finder takes a mark for something else.
//!
//! ```
//! use baton_sanitize::{Mask, sanitize};
//!
//! assert_eq!(sanitize("mail ada@example.com", Mask::Everything), "mail [EMAIL]");
//! assert_eq!(sanitize("mail ada@example.com", Mask::SecretsOnly), "mail ada@example.com");
//! ```

mod address;
mod assignment;
mod card;
mod email;
mod json;
mod known;
mod plain;

use std::borrow::Cow;
use std::ops::Range;

pub use json::sanitize_value;

pub(crate) const REDACTED: &str = "[REDACTED]";
const EMAIL: &str = "[EMAIL]";
const CARD: &str = "[CARD]";

/// How much is masked. There is no way to let secrets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// Secrets, e-mail addresses and card numbers.
    Everything,
    /// For a receiver whose work needs the addresses.
    SecretsOnly,
}

/// A mark may stand for what kept its neighbour from being seen, so the text is looked at again while that finds more.
/// Texts that people or models write are done after the first time; the limit is for those that are made to be looked
/// at for ever.
const PASSES: usize = 8;

/// The text with a mark in place of everything that `mask` covers.
pub fn sanitize(text: &str, mask: Mask) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for _ in 0..PASSES {
        let found = found(&clean, mask);
        if found.is_empty() {
            break;
        }
        clean = Cow::Owned(masked(&clean, found));
    }
    clean
}

/// A kind of text that is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Email,
    Card,
    Secret,
}

/// The kinds that are in a text, each once and in order.
///
/// ```
/// use baton_sanitize::{Kind, kinds};
///
/// assert_eq!(kinds("mail ada@example.com"), [Kind::Email]);
/// assert!(kinds("mail [EMAIL]").is_empty());
/// ```
pub fn kinds(text: &str) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = found(text, Mask::Everything).iter().map(Found::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn found(text: &str, mask: Mask) -> Vec<Found> {
    let mut found = Vec::new();
    assignment::find(text, &mut found);
    known::find(text, &mut found);
    address::find(text, &mut found);
    if mask == Mask::Everything {
        email::find(text, &mut found);
        card::find(text, &mut found);
    }
    found
}

/// In order of precedence where two cover the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Email,
    Card,
    Secret,
}

#[derive(Debug)]
struct Found {
    at: Range<usize>,
    what: What,
}

impl Found {
    fn secret(at: Range<usize>) -> Self {
        Self { at, what: What::Secret }
    }

    fn kind(&self) -> Kind {
        match self.what {
            What::Email => Kind::Email,
            What::Card => Kind::Card,
            What::Secret => Kind::Secret,
        }
    }

    fn mark(&self) -> &'static str {
        match self.what {
            What::Email => EMAIL,
            What::Card => CARD,
            What::Secret => REDACTED,
        }
    }
}

fn masked(text: &str, mut found: Vec<Found>) -> String {
    found.sort_by_key(|found| (found.at.start, std::cmp::Reverse(found.what)));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for found in merged(found) {
        out.push_str(&text[done..found.at.start]);
        out.push_str(found.mark());
        done = found.at.end;
    }
    out.push_str(&text[done..]);
    out
}

/// What overlaps becomes one. In `user:password@host.com` the address begins with the secret: its host stays readable.
fn merged(found: Vec<Found>) -> Vec<Found> {
    let mut out: Vec<Found> = Vec::with_capacity(found.len());
    for next in found {
        match out.last_mut() {
            Some(last) if next.at.start < last.at.end => {
                if last.what == What::Secret && next.what == What::Email {
                    continue;
                }
                last.at.end = last.at.end.max(next.at.end);
                last.what = last.what.max(next.what);
            }
            _ => out.push(next),
        }
    }
    out
}

/// Whether a mark stands here already.
fn is_marked(rest: &str) -> bool {
    [REDACTED, EMAIL, CARD].iter().any(|mark| rest.starts_with(mark))
}

/// Where the bytes from `at` on stop being so.
fn run(bytes: &[u8], at: usize, is_so: impl Fn(u8) -> bool) -> usize {
    at + bytes[at..].iter().take_while(|byte| is_so(**byte)).count()
}

#[cfg(test)]
mod tests;
