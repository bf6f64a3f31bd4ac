//! What the engine itself says to the user of a workflow, in place of the holder's model.

use baton_core::agent::Slot;
use baton_core::chat::{ToolCall, ToolResult};
use baton_core::text::head;
use baton_core::workflow::data::Held;
use baton_core::workflow::{Machine, Waits, WorkflowChange, label};
use serde_json::Value;

/// Maximum length of a value, in characters.
const MAX_VALUE_CHARS: usize = 120;
/// Maximum length of a tool's output, in characters.
const MAX_OUTPUT_CHARS: usize = 4_000;

/// What was recorded, what the tools of the workflow returned, and the next question.
pub(super) fn text(machine: &Machine<'_>, recorded: &[String], changes: &[WorkflowChange]) -> String {
    let mut paragraphs = Vec::new();
    let noted = list(machine, |key| recorded.iter().any(|one| one == key));
    if !noted.is_empty() {
        paragraphs.push(format!("Noted:\n{noted}"));
    }
    let outputs = changes.iter().filter_map(|change| match change {
        // What third parties wrote is for the model to report.
        WorkflowChange::Ran { text, is_untrusted: false, .. } if !text.trim().is_empty() => {
            Some(head(text.trim(), MAX_OUTPUT_CHARS))
        }
        _ => None,
    });
    let outputs: Vec<String> = outputs.collect();
    if outputs.is_empty() && matches!(machine.waits(), Waits::Confirm(_)) {
        paragraphs.push(format!("This is what I have:\n{}", list(machine, |_| true)));
    }
    paragraphs.extend(outputs);
    paragraphs.extend(question(machine));
    if paragraphs.is_empty() {
        paragraphs.push("Done.".to_owned());
    }
    paragraphs.join("\n\n")
}

/// The same after a call of `advance_workflow`, whose result says what the tools returned.
pub(super) fn after_call(machine: &Machine<'_>, call: &ToolCall, result: &ToolResult) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let given = arguments.get("values").and_then(Value::as_object).or(arguments.as_object());
    let recorded: Vec<String> = given.into_iter().flat_map(|given| given.keys().cloned()).collect();
    let result: Value = serde_json::from_str(&result.content).unwrap_or_default();
    let ran = result["ran"].as_array().into_iter().flatten();
    let outputs = ran.filter_map(|ran| {
        let (tool, text) = (ran["tool"].as_str()?.to_owned(), ran["returned"].as_str()?.to_owned());
        let is_untrusted = text.starts_with("<<<");
        Some(WorkflowChange::Ran { tool, text, is_untrusted })
    });
    text(machine, &recorded, &outputs.collect::<Vec<_>>())
}

/// The question that the workflow waits for an answer to.
pub(super) fn question(machine: &Machine<'_>) -> Option<String> {
    match machine.waits() {
        Waits::Values(slots) => slots.first().map(|slot| ask(slot)),
        Waits::Confirm(question) => Some(format!("{question} (yes or no)")),
        Waits::Change(held) => Some(problem(&held)),
        Waits::Choice(ways) => {
            let ways: Vec<String> = ways.iter().map(|way| label(&way.0)).collect();
            Some(format!("How should we go on: {}?", ways.join(" or ")))
        }
        Waits::Tool(_) | Waits::Onward(_) | Waits::Done => None,
    }
}

fn ask(slot: &Slot) -> String {
    if slot.choices.is_empty() {
        slot.ask.clone()
    } else {
        format!("{} ({})", slot.ask, slot.choices.join(", "))
    }
}

/// Why the workflow waits for an instruction.
fn problem(held: &Held) -> String {
    let why = match held {
        Held::Failed { state, failure } if failure.is_untrusted => {
            format!("“{}” did not work.", label(state))
        }
        Held::Failed { state, failure } => {
            let other = failure.alternative.as_ref().map(|other| format!(" “{other}” would be possible."));
            format!("“{}” did not work: {}.{}", label(state), failure.detail(), other.unwrap_or_default())
        }
        Held::Declined { .. } => "Nothing was done.".to_owned(),
        Held::Back => "We are one step back.".to_owned(),
    };
    format!("{why} What should be different?")
}

fn list(machine: &Machine<'_>, is_listed: impl Fn(&str) -> bool) -> String {
    let line = |key: &str| {
        let text = machine.data.values.get(key)?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("- {}: {}", label(key), head(&text, MAX_VALUE_CHARS)))
    };
    let keys = machine.keys().into_iter().filter(|key| is_listed(key));
    keys.filter_map(line).collect::<Vec<_>>().join("\n")
}
