//! Card numbers: any sixteen digits in a row, as the specification demands (H2), and 13 to 19 digits whose check digit is right, in
//! groups as people and cards write them. Sixteen digits in groups that the text itself calls a card need no check digit.

use std::ops::Range;

use super::{Found, What};

const DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// How cards print their numbers. Sixteen digits in fours are a card whoever issued it.
const GROUPINGS: &[&[usize]] = &[
    &[4, 4, 4, 4],
    &[4, 6, 5],
    &[4, 6, 4],
    &[4, 4, 4, 4, 1],
    &[4, 4, 4, 4, 2],
    &[4, 4, 4, 4, 3],
    &[4, 4, 5],
    &[8, 8],
];

/// What a number is called that is somebody's card, and how far before it.
const NAMES: &[&str] = &["card", "karte", "visa", "mastercard", "credit", "debit", "carte", "tarjeta"];
const NEAR: usize = 32;

/// Digits without anything between them.
#[derive(Debug)]
struct Group {
    at: Range<usize>,
    /// Touches a letter or a sign that makes it something else: an id, a fraction, a phone number.
    is_part: bool,
    /// What stands between it and the next group of the same run.
    joint: Option<char>,
}

/// The zero of each script that writes numbers in its own digits; the other nine follow it.
const ZEROS: &[u32] = &[
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50,
    0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
];

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    sixteen(text, found);
    grouped(text, found);
}

/// Sixteen digits that no letter, digit or `_` touches.
fn sixteen(text: &str, found: &mut Vec<Found>) {
    let (mut start, mut count, mut is_part) = (0, 0, false);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if is_digit(c) {
            start = if count == 0 { at } else { start };
            count += 1;
            continue;
        }
        let is_word = c.is_alphanumeric() || c == '_';
        if count == 16 && !is_part && !is_word {
            found.push(Found { at: start..at, what: What::Card });
        }
        (count, is_part) = (0, is_word);
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
        || (!c.is_ascii() && ZEROS.iter().any(|zero| (*zero..*zero + 10).contains(&u32::from(c))))
}

fn grouped(text: &str, found: &mut Vec<Found>) {
    let mut at = 0;
    while let Some(start) = text.as_bytes()[at..].iter().position(u8::is_ascii_digit) {
        let groups = groups(text, at + start);
        at = groups.last().map_or(text.len(), |last| last.at.end);
        if groups.iter().map(|group| group.at.len()).sum::<usize>() >= *DIGITS.start() {
            cards(text, &groups, found);
        }
    }
}

/// The groups from here on that single spaces or dashes join.
fn groups(text: &str, mut at: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    loop {
        let end = super::run(text.as_bytes(), at, |byte| byte.is_ascii_digit());
        let joint = text[end..].chars().next().filter(|c| is_joint(*c));
        let next = end + joint.map_or(0, char::len_utf8);
        let joint = joint.filter(|_| text.as_bytes().get(next).is_some_and(u8::is_ascii_digit));
        let is_part = (groups.is_empty() && is_attached_before(&text[..at]))
            || (joint.is_none() && is_attached_behind(&text[end..]));
        groups.push(Group { at: at..end, is_part, joint });
        if joint.is_none() {
            return groups;
        }
        at = next;
    }
}

fn is_joint(c: char) -> bool {
    matches!(c, ' ' | '-' | '\u{a0}' | '\u{202f}' | '\u{2010}' | '\u{2011}' | '\u{2013}')
}

fn is_attached_before(before: &str) -> bool {
    before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '+' | '.'))
}

fn is_attached_behind(rest: &str) -> bool {
    let mut chars = rest.chars();
    match chars.next() {
        Some('.') => chars.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphanumeric(),
        None => false,
    }
}

/// Printed groupings wherever they begin, so that a number before or behind hides none; any other grouping only where
/// nothing else is joined to it.
fn cards(text: &str, groups: &[Group], found: &mut Vec<Found>) {
    let (mut at, mut rest) = (0, 0);
    while at < groups.len() {
        match printed(text, &groups[at..]) {
            Some(count) => {
                found.extend(unusual(text, &groups[rest..at]));
                found.push(whole(&groups[at..at + count]));
                at += count;
                rest = at;
            }
            None => at += 1,
        }
    }
    found.extend(unusual(text, &groups[rest..]));
}

/// How many of the first groups are a card.
fn printed(text: &str, groups: &[Group]) -> Option<usize> {
    let alone = groups.first().map(|group| group.at.len()).filter(|length| DIGITS.contains(length));
    let is_alone = alone.is_some_and(|length| is_card(text, &groups[..1], length == 16));
    let matching = GROUPINGS.iter().filter(|sizes| {
        let same = sizes.iter().zip(groups).all(|(size, group)| group.at.len() == *size);
        groups.len() >= sizes.len() && same && is_card(text, &groups[..sizes.len()], **sizes == [4, 4, 4, 4])
    });
    matching.map(|sizes| sizes.len()).max().or(is_alone.then_some(1))
}

fn unusual(text: &str, groups: &[Group]) -> Option<Found> {
    let [first, .., last] = groups else { return None };
    let joints = &groups[..groups.len() - 1];
    let is_even = joints.iter().all(|group| group.joint == first.joint);
    let is_grouped =
        first.at.len() >= 4 && groups.len() <= 8 && groups.iter().all(|group| group.at.len() >= 2);
    let is_short = last.at.end - first.at.start <= 64;
    (is_even && is_grouped && is_short && is_card(text, groups, false)).then(|| whole(groups))
}

fn whole(groups: &[Group]) -> Found {
    let end = groups.last().map_or(0, |last| last.at.end);
    Found { at: groups[0].at.start..end, what: What::Card }
}

/// `anyones` spares the question whether somebody issues such numbers: times, dates and counters begin differently.
fn is_card(text: &str, groups: &[Group], anyones: bool) -> bool {
    let count: usize = groups.iter().map(|group| group.at.len()).sum();
    if !DIGITS.contains(&count) || groups.iter().any(|group| group.is_part) {
        return false;
    }
    let digits: Vec<u8> =
        groups.iter().flat_map(|group| text[group.at.clone()].bytes()).map(|b| b - b'0').collect();
    let is_varied = digits.iter().any(|digit| *digit != digits[0]);
    if !is_varied || is_article(&digits) {
        return false;
    }
    let is_right = (anyones || is_issued(&digits)) && luhn(&digits);
    is_right || (anyones && is_called_one(&text[..groups[0].at.start]))
}

/// Whether the words just before a number speak of a card.
fn is_called_one(before: &str) -> bool {
    // One that others are joined to is not what the words speak of.
    if before.trim_end_matches(is_joint).ends_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let near = before.len().saturating_sub(NEAR);
    let line = before.as_bytes()[near..].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_named =
        |name: &&str| line.windows(name.len()).any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    NAMES.iter().any(is_named)
}

/// Whether the number begins as those of a card network do that have this length. A telephone's number of fifteen digits has
/// a check digit of the same kind.
fn is_issued(digits: &[u8]) -> bool {
    let prefix = digits[..4].iter().fold(0, |number, digit| number * 10 + u32::from(*digit));
    match digits.len() {
        14 => matches!(prefix, 3000..=3999 | 5000..=6999),
        15 => matches!(prefix, 3400..=3499 | 3700..=3799),
        16 => matches!(prefix, 2200..=2204 | 2221..=2720 | 3000..=6999),
        _ => matches!(prefix, 3000..=6999),
    }
}

/// Thirteen digits with the check digit of a trade item: there are more of those than of old cards.
fn is_article(digits: &[u8]) -> bool {
    let weighed = digits.iter().rev().enumerate();
    let sum: u32 = weighed.map(|(nth, digit)| u32::from(*digit) * if nth % 2 == 0 { 1 } else { 3 }).sum();
    digits.len() == 13 && sum.is_multiple_of(10)
}

fn luhn(digits: &[u8]) -> bool {
    let weighed = digits.iter().rev().enumerate().map(|(nth, digit)| match (nth % 2, *digit) {
        (0, digit) => u32::from(digit),
        (_, digit) => u32::from(digit / 5 + digit * 2 % 10),
    });
    weighed.sum::<u32>().is_multiple_of(10)
}
