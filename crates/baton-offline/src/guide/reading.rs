//! What a person means who answers a question. Rules only: what is not clear is asked again, never guessed.

use baton_core::agent::{Slot, StateName};
use baton_core::workflow::consent::{NO, bare, is_yes};
use baton_core::workflow::data::Held;
use baton_core::workflow::value::{self, plain};
use baton_core::workflow::{Machine, Waits};

use super::wording::suspect;
use corrections::{corrections, named};
use words::{BACK, GO_ON, HELP, KEEP, NONE, SKIP, STATUS};

mod corrections;
mod words;

/// What the person was asked last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Topic<'a> {
    /// A value.
    Value(&'a Slot),
    /// Another value in place of the one that is there, because they want to change it.
    Instead(&'a Slot),
    /// What is to change. If it is clear which value, then that one.
    Change(Held, Option<&'a Slot>),
    /// To say yes.
    Confirm(&'a str),
    /// Where to go.
    Way(&'a [StateName]),
    /// Nothing, but it can go on.
    Onward,
    /// Nothing.
    Done,
}

impl<'a> Topic<'a> {
    pub(crate) fn of(machine: &Machine<'a>) -> Self {
        if let Some(slot) = machine.data.asked.as_ref().and_then(|key| machine.slot(key)) {
            return Self::Instead(slot);
        }
        match machine.waits() {
            Waits::Change(held) => {
                let suspect = suspect(machine, &held);
                Self::Change(held, suspect)
            }
            waits => match (machine.open().first(), waits) {
                (Some(slot), _) => Self::Value(slot),
                (None, Waits::Confirm(question)) => Self::Confirm(question),
                (None, Waits::Choice(ways)) => Self::Way(ways),
                (None, Waits::Done) => Self::Done,
                (None, _) => Self::Onward,
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meant<'a> {
    Nothing,
    Back,
    /// They want to know what they are asked.
    Help,
    /// They want to know what is there.
    Status,
    Skip(&'a Slot),
    /// As it is, or once more.
    GoOn,
    /// They want to change this, and have not said how.
    Ask(&'a Slot),
    /// What they were about to change stays as it is.
    Keep,
    Answer(&'a Slot, String),
    Values(Vec<(&'a Slot, String)>),
    Yes,
    No,
    Way(&'a StateName),
    Unclear,
}

pub(crate) fn read<'a>(machine: &Machine<'a>, topic: &Topic<'a>, words: &str) -> Meant<'a> {
    let words = words.trim();
    // Nothing that long is one of the words that are looked for.
    let bare = if words.len() <= 200 { bare(words) } else { String::new() };
    let is = |known: &[&str]| !bare.is_empty() && known.contains(&bare.as_str());
    if words.is_empty() {
        return Meant::Nothing;
    }
    if is(BACK) {
        return Meant::Back;
    }
    if is(HELP) || words.chars().all(|c| c == '?') {
        return Meant::Help;
    }
    if is(STATUS) {
        return Meant::Status;
    }
    let corrected = corrections(machine, topic, words);
    if !corrected.is_empty() {
        return Meant::Values(corrected);
    }
    match topic {
        Topic::Value(slot) if is(SKIP) || (!slot.required && slot.choices.is_empty() && is(NONE)) => {
            Meant::Skip(slot)
        }
        Topic::Value(slot) if !slot.required && is(NONE) && choice(&slot.choices, words).is_none() => {
            Meant::Skip(slot)
        }
        Topic::Value(slot) if asks_back(slot, words) => Meant::Help,
        Topic::Value(slot) => {
            let other = wants_change(machine, &bare).or_else(|| with_choice(machine, slot, words));
            other.unwrap_or_else(|| value(slot, words))
        }
        Topic::Instead(_) if is(KEEP) => Meant::Keep,
        Topic::Instead(slot) => value(slot, words),
        Topic::Change(held, suspect) => change(machine, held, *suspect, words, &bare),
        Topic::Confirm(question) => confirm(machine, question, words, &bare),
        Topic::Way(ways) => way(ways, words, is(GO_ON)).map_or(Meant::Unclear, Meant::Way),
        Topic::Onward if is(GO_ON) => Meant::GoOn,
        Topic::Onward | Topic::Done => wants_change(machine, &bare).unwrap_or(Meant::Unclear),
    }
}

/// A free answer with a sentence that selects a choice of another open value: "I want to summarize my pages. Bullet points would be
/// great."
fn with_choice<'a>(machine: &Machine<'a>, slot: &'a Slot, words: &str) -> Option<Meant<'a>> {
    if !slot.choices.is_empty() || words.contains('\n') {
        return None;
    }
    let sentences: Vec<&str> =
        words.split_inclusive(['.', '!']).map(str::trim).filter(|one| !one.is_empty()).collect();
    let mut others =
        machine.open().into_iter().filter(|other| other.key != slot.key && !other.choices.is_empty());
    let (at, other, chosen) = others.find_map(|other| {
        let is_chosen =
            |sentence: &&str| is_preference(sentence) && choice(&other.choices, sentence).is_some();
        let at = sentences.iter().position(is_chosen)?;
        Some((at, other, choice(&other.choices, sentences[at])?))
    })?;
    let rest = sentences.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, sentence)| *sentence);
    let rest = rest.collect::<Vec<_>>().join(" ");
    let values = vec![(slot, rest.clone()), (other, other.choices[chosen].clone())];
    (!rest.is_empty()).then_some(Meant::Values(values))
}

/// Whether a sentence says how something should be, and nothing else.
fn is_preference(sentence: &str) -> bool {
    const FORMS: &[&str] = &["would be", "please", "prefer", "id like", "should be", "make it"];
    let padded = format!(" {} ", bare(sentence));
    padded.split_whitespace().count() <= 10 && FORMS.iter().any(|form| padded.contains(&format!(" {form} ")))
}

/// An answer to the question for a value.
fn value<'a>(slot: &'a Slot, words: &str) -> Meant<'a> {
    if slot.choices.is_empty() {
        return Meant::Answer(slot, unwrapped(slot, words));
    }
    let text = choice(&slot.choices, words).map_or_else(|| words.to_owned(), |at| slot.choices[at].clone());
    Meant::Answer(slot, text)
}

/// Without quotation marks around it, and a name without the words that only introduce it.
fn unwrapped(slot: &Slot, words: &str) -> String {
    let mut text = words.trim();
    if slot.key == "name" && !text.contains('\n') {
        for intro in [
            "call it ",
            "name it ",
            "it should be called ",
            "let's call it ",
            "it is called ",
            "the name is ",
        ] {
            text = text
                .get(..intro.len())
                .filter(|start| start.eq_ignore_ascii_case(intro))
                .map_or(text, |_| &text[intro.len()..]);
        }
        text = text.trim().trim_end_matches(['.', '!']);
    }
    unquoted(text).to_owned()
}

pub(super) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = [('"', '"'), ('“', '”'), ('\'', '\''), ('`', '`')].iter().find_map(|(open, close)| {
        text.strip_prefix(*open)?.strip_suffix(*close).filter(|inner| !inner.contains([*open, *close]))
    });
    inner.map(str::trim).filter(|inner| !inner.is_empty()).unwrap_or(text)
}

/// A choice by its word, its number, or because it is the only one that is named.
fn choice(choices: &[String], words: &str) -> Option<usize> {
    let said = plain(words.trim_end_matches(['.', '!']));
    let number = said.trim_start_matches("option ").trim_start_matches("number ").trim_start_matches('#');
    if let Ok(number) = number.trim_end_matches(['.', ')']).parse::<usize>() {
        return number.checked_sub(1).filter(|at| *at < choices.len());
    }
    let named = value::choice(choices, words)?;
    choices.iter().position(|choice| choice == named)
}

/// A short question in return, where questions are no answers.
fn asks_back(slot: &Slot, words: &str) -> bool {
    const FIRST: &[&str] =
        &["what", "why", "how", "which", "who", "where", "do", "should", "can", "must", "is", "are", "could"];
    if !words.ends_with('?') || words.contains('\n') || words.chars().count() > 120 {
        return false;
    }
    let ask = bare(&slot.ask);
    let takes_questions = [
        "say",
        "said",
        "example",
        "examples",
        "request",
        "requests",
        "question",
        "questions",
        "phrase",
        "phrases",
    ];
    if ask.split(' ').any(|word| takes_questions.contains(&word)) {
        return false;
    }
    bare(words).split(' ').next().is_some_and(|first| FIRST.contains(&first))
}

/// "Change the name": which, but not how.
fn wants_change<'a>(machine: &Machine<'a>, bare: &str) -> Option<Meant<'a>> {
    const VERBS: &[&str] = &["change", "correct", "edit", "update", "redo", "fix"];
    let (verb, rest) = bare.split_once(' ')?;
    let slot = named(machine, rest).filter(|_| VERBS.contains(&verb))?;
    machine.data.values.contains_key(&slot.key).then_some(Meant::Ask(slot))
}

fn change<'a>(
    machine: &Machine<'a>,
    held: &Held,
    suspect: Option<&'a Slot>,
    words: &str,
    bare: &str,
) -> Meant<'a> {
    if let Some(slot) = wants_change(machine, bare).or_else(|| named(machine, bare).map(Meant::Ask)) {
        return slot;
    }
    if let (Some(slot), Held::Failed { failure, .. }) = (suspect, held)
        && let Some(other) = &failure.alternative
        && is_yes(words, "")
    {
        return Meant::Answer(slot, other.clone());
    }
    if GO_ON.contains(&bare) {
        return Meant::GoOn;
    }
    let only = match machine.state().collect.as_slice() {
        [slot] => Some(slot),
        _ => None,
    };
    match suspect.or(only) {
        Some(slot) if asks_back(slot, words) => Meant::Help,
        Some(slot) => value(slot, words),
        None => Meant::Unclear,
    }
}

fn confirm<'a>(machine: &Machine<'a>, question: &str, words: &str, bare: &str) -> Meant<'a> {
    if is_yes(words, question) {
        return Meant::Yes;
    }
    if let Some(change) = wants_change(machine, bare) {
        return change;
    }
    let first = bare.split(' ').next().unwrap_or_default();
    if NO.contains(&first) { Meant::No } else { Meant::Unclear }
}

/// One of the ways by its name or number; the first when they only want to go on.
fn way<'a>(ways: &'a [StateName], words: &str, goes_on: bool) -> Option<&'a StateName> {
    let names: Vec<String> = ways.iter().map(|way| way.0.clone()).collect();
    choice(&names, words).map(|at| &ways[at]).or_else(|| ways.first().filter(|_| goes_on))
}
