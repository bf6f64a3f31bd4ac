//! Values that are given by name: `name: Slack Alert`, one a line, or "change the name to Slack Alert".

use baton_core::agent::Slot;
use baton_core::workflow::Machine;
use baton_core::workflow::consent::bare;
use baton_core::workflow::value::plain;

use super::{Topic, unquoted};

/// Words before a correction that say nothing.
const LEADS: &[&str] = &[
    "no", "please", "actually", "sorry", "oh", "and", "but", "can", "could", "you", "i", "want", "would",
    "like", "to", "lets", "id",
];
const VERBS: &[&str] = &["change", "set", "update", "correct", "make", "rename", "edit"];
/// Longer sentences are answers that happen to begin so.
const MOST_CHARS: usize = 300;

/// All of them, in order. Empty where the words are an answer.
pub(super) fn corrections<'a>(
    machine: &Machine<'a>,
    topic: &Topic<'a>,
    words: &str,
) -> Vec<(&'a Slot, String)> {
    let lines = by_line(machine, words);
    if !lines.is_empty() {
        return lines;
    }
    sentence(machine, topic, words).into_iter().collect()
}

/// The slot that somebody calls by its key, with or without an article.
pub(super) fn named<'a>(machine: &Machine<'a>, words: &str) -> Option<&'a Slot> {
    let words = words.strip_prefix("the ").or_else(|| words.strip_prefix("my ")).unwrap_or(words);
    let key = machine.keys().into_iter().find(|key| plain(key) == plain(words))?;
    machine.slot(key)
}

/// The first line has to name a key; lines that name none belong to the one before.
fn by_line<'a>(machine: &Machine<'a>, words: &str) -> Vec<(&'a Slot, String)> {
    let mut found: Vec<(&Slot, String)> = Vec::new();
    for line in words.trim().lines() {
        match (head(machine, line), found.last_mut()) {
            (Some((slot, text)), _) => found.push((slot, text.to_owned())),
            (None, Some((_, text))) => {
                text.push('\n');
                text.push_str(line);
            }
            (None, None) => return Vec::new(),
        }
    }
    found.retain(|(_, text)| !text.trim().is_empty());
    found.into_iter().map(|(slot, text)| (slot, unquoted(&text).to_owned())).collect()
}

fn head<'a, 'b>(machine: &Machine<'a>, line: &'b str) -> Option<(&'a Slot, &'b str)> {
    let line = line.trim().trim_start_matches(['-', '*', '•']).trim_start();
    let at = line.find([':', '='])?;
    let slot = named(machine, &bare_key(&line[..at])?)?;
    Some((slot, line[at + 1..].trim()))
}

fn bare_key(text: &str) -> Option<String> {
    (text.len() <= 64).then(|| plain(text.trim_matches(['*', '`', '"', ' '])))
}

/// One sentence that says what is to be how. Only what is there can be corrected so: "set the format to table" may be a step of
/// somebody's work.
fn sentence<'a>(machine: &Machine<'a>, topic: &Topic<'a>, words: &str) -> Option<(&'a Slot, String)> {
    if words.contains('\n') || words.chars().count() > MOST_CHARS {
        return None;
    }
    let mut rest = words.trim();
    while let Some((word, after)) = first(rest).filter(|(word, _)| LEADS.contains(&word.as_str())) {
        let _ = word;
        rest = after;
    }
    let verb = first(rest).filter(|(word, _)| VERBS.contains(&word.as_str()));
    rest = verb.as_ref().map_or(rest, |(_, after)| after);
    let article = first(rest).filter(|(word, _)| word == "the" || word == "my");
    rest = article.as_ref().map_or(rest, |(_, after)| after);
    let (slot, after) = key(machine, rest)?;
    let asked = matches!(topic, Topic::Value(one) | Topic::Instead(one) if one.key == slot.key);
    let text = if verb.is_some() {
        joined(after, &["to be", "to", "into", "as"])?
    } else {
        let joint = if article.is_some() {
            &["should be", "shall be", "is", "are"][..]
        } else {
            &["should be", "shall be"][..]
        };
        joined(after, joint)?
    };
    let is_there = machine.data.values.contains_key(&slot.key) || asked;
    let text = unquoted(text.trim_end_matches('.')).to_owned();
    (is_there && !text.is_empty()).then_some((slot, text))
}

/// The first word, in small letters, and what follows.
fn first(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let word = bare(&text[..end]);
    (!word.is_empty()).then(|| (word, text[end..].trim_start()))
}

/// The key that the text begins with, and what follows.
fn key<'a, 'b>(machine: &Machine<'a>, text: &'b str) -> Option<(&'a Slot, &'b str)> {
    machine.keys().into_iter().find_map(|key| {
        let mut rest = text;
        for expected in plain(key).split(' ') {
            let (word, after) = first(rest)?;
            if word != expected {
                return None;
            }
            rest = after;
        }
        Some((machine.slot(key)?, rest))
    })
}

/// What follows one of these.
fn joined<'b>(text: &'b str, joints: &[&str]) -> Option<&'b str> {
    joints.iter().find_map(|joint| {
        let mut rest = text;
        for expected in joint.split(' ') {
            let (word, after) = first(rest)?;
            if word != expected {
                return None;
            }
            rest = after;
        }
        (!rest.is_empty()).then_some(rest)
    })
}
