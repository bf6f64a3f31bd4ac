//! Parts of sentences.

use baton_core::agent::{Agent, Slot};
use baton_core::text::head;
use baton_core::workflow::data::{Held, StateFailure};
use baton_core::workflow::value::plain;
use baton_core::workflow::{Machine, label};

/// Of a value that is shown, in characters.
const SHOWN: usize = 160;

/// Step 2 of 5: Defining triggers.
pub(super) fn place(machine: &Machine<'_>) -> String {
    let (step, total) = machine.step();
    format!("Step {step} of {total}: {}.", label(machine.name()))
}

pub(super) fn ask(slot: &Slot) -> String {
    let choices = if slot.choices.is_empty() {
        String::new()
    } else {
        format!(" You can choose {}.", series(&slot.choices, "or"))
    };
    let skip = if slot.required { "" } else { " Say “skip” to leave it out." };
    format!("{}{choices}{skip}", slot.ask)
}

/// What is there, a line for each value, in the order of the file.
pub(super) fn list(machine: &Machine<'_>) -> String {
    let values = machine.keys().into_iter().filter_map(|key| {
        let text = machine.data.values.get(key)?;
        Some(format!("- {}: {}", label(key), shown(text)))
    });
    values.collect::<Vec<_>>().join("\n")
}

/// A key that can be corrected.
pub(super) fn example<'a>(machine: &Machine<'a>) -> &'a str {
    let is_there = |key: &&str| machine.data.values.contains_key(*key);
    let here = machine.state().collect.iter().rev().map(|slot| slot.key.as_str());
    here.chain(machine.keys()).find(is_there).unwrap_or("name")
}

/// The one value that an error is about: its value stands there, or else its name does.
pub(in super::super) fn suspect<'a>(machine: &Machine<'a>, held: &Held) -> Option<&'a Slot> {
    let Held::Failed { failure: StateFailure { error, .. }, .. } = held else { return None };
    let (error, words) = (
        plain(error),
        format!(" {} ", plain(&error.replace(|c: char| !c.is_alphanumeric() && c != '_', " "))),
    );
    let is_quoted = |key: &&str| {
        let value = machine.data.values.get(*key).map(|text| plain(text));
        value.is_some_and(|value| (3..=80).contains(&value.len()) && error.contains(&value))
    };
    let is_named = |key: &&str| words.contains(&format!(" {} ", plain(key)));
    let only = |of: &dyn Fn(&&str) -> bool| {
        let mut found = machine.keys().into_iter().filter(|key| of(key));
        found.next().filter(|_| found.next().is_none())
    };
    machine.slot(only(&is_quoted).or_else(|| only(&is_named))?)
}

/// What a tool returned, without advice about tools; a file in a block of its own.
pub(super) fn tool_text(text: &str, machine: &Machine<'_>) -> String {
    let tools = machine.workflow().states.iter().filter_map(|state| state.run.as_deref());
    // A name that is also a word says nothing about tools.
    let tools: Vec<&str> = tools.filter(|tool| tool.contains(['_', ':'])).collect();
    let (first, rest) = text.trim().split_once("\n\n").unwrap_or((text.trim(), ""));
    let sentences = first.split_inclusive(". ").filter(|one| !tools.iter().any(|tool| one.contains(tool)));
    let first = sentences.collect::<String>().trim().to_owned();
    let rest = if rest.starts_with("---\n") { fenced(rest.trim_end()) } else { rest.trim_end().to_owned() };
    [first, rest].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// With more marks than there are inside.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let marks = "`".repeat(longest.max(2) + 1);
    format!("{marks}markdown\n{text}\n{marks}")
}

/// A value in a sentence: one line, not too long.
pub(super) fn shown(text: &str) -> String {
    head(&text.split_whitespace().collect::<Vec<_>>().join(" "), SHOWN)
}

/// `non_triggers` is "non triggers" in a sentence.
pub(super) fn spoken(key: &str) -> String {
    key.replace('_', " ")
}

pub(super) fn display(agent: &Agent) -> String {
    if agent.display_name.starts_with("The ") {
        agent.display_name.clone()
    } else {
        format!("the {}", agent.display_name)
    }
}

pub(super) fn exit_word(agent: &Agent) -> &str {
    let words = agent.accepts_handoff.as_ref().map(|terms| &terms.exit_words);
    words.and_then(|words| words.first()).map_or("cancel", String::as_str)
}

/// a, b or c.
pub(super) fn series(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., end] => format!("{} {last} {end}", rest.join(", ")),
    }
}

/// A text as a sentence of its own.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let text: String =
        chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default();
    if text.ends_with(['.', '!', '?']) || text.contains('\n') { text } else { format!("{text}.") }
}
