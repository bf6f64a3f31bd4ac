//! The tool that a state runs on entry, called like one that a model asks for: recorded, accounted for, within its approvals.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::ToolCallId;
use baton_core::chat::ToolCall;
use baton_core::tool::ToolError;
use serde_json::{Map, Value, json};

use super::data::Ran;
use super::machine::Machine;
use crate::calls::{self, Terms};
use crate::failure::Failure;
use crate::scope::Scope;
use crate::toolset::Toolset;

/// Of what it returned, in characters: it is kept with the walk.
const MOST_CHARS: usize = 20_000;
/// How the engine's machinery marks an error for models.
const ERROR: &str = "error: ";

/// What came of it.
#[derive(Debug)]
pub(crate) enum Entered {
    Ran(Ran),
    Failed(String),
    /// The process ended while it ran, and it may not be repeated unasked.
    Unsure(String),
}

/// Calls `tool` at `place` with what was collected. A call that was finished before a crash is not made again.
pub(crate) async fn call(place: &Scope, machine: &Machine<'_>, tool: &str) -> Result<Entered, Failure> {
    let toolset = Toolset::single(place, tool).await;
    let schema = toolset.find(tool).ok().map_or(&Value::Null, |found| &found.spec().parameters);
    let arguments = arguments(schema, &machine.data.values);
    let uses = uses(schema, &machine.keys());
    let call =
        ToolCall { id: id(place), name: tool.to_owned(), arguments: arguments.to_string(), signature: None };
    let terms = Terms { at_once: 1, deadline: place.bounds.deadline };
    let result = calls::run_one(place, &toolset, &call, terms, machine.data.has_consent).await?;
    if place.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    let text: String = result.content.chars().take(MOST_CHARS).collect();
    Ok(match text.strip_prefix(ERROR).filter(|_| result.failed) {
        Some(error) if error.starts_with(&ToolError::OutcomeUnknown.to_string()) => {
            Entered::Unsure(error.to_owned())
        }
        Some(error) => Entered::Failed(error.to_owned()),
        None if result.failed => Entered::Failed(text),
        None => Entered::Ran(Ran { uses, text }),
    })
}

/// The same after a crash, and unlike those of models.
fn id(place: &Scope) -> ToolCallId {
    let number = crate::policy::fingerprint(place.path());
    ToolCallId::parse(&format!("entry_{number:08x}")).expect("a short id")
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())
}

/// The keys that the tool looks at.
fn uses(schema: &Value, keys: &[&str]) -> BTreeSet<String> {
    let looks = |key: &&&str| properties(schema).is_none_or(|properties| properties.contains_key(**key));
    keys.iter().filter(looks).map(ToString::to_string).collect()
}

/// What the tool takes of the values, in the form that it wants.
fn arguments(schema: &Value, values: &BTreeMap<String, String>) -> Value {
    let given = values.iter().filter_map(|(key, text)| {
        let Some(properties) = properties(schema) else { return Some((key.clone(), json!(text))) };
        Some((key.clone(), formed(properties.get(key)?, text)))
    });
    Value::Object(given.collect())
}

/// A text as what the schema plainly asks for. What cannot be read so stays a text, and the tool says what is wrong with it.
fn formed(schema: &Value, text: &str) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(|line| Value::from(line.trim_start_matches("- "))).collect()
        }
        Some("integer" | "number") => match serde_json::from_str(text.trim()) {
            Ok(number @ Value::Number(_)) => number,
            _ => json!(text),
        },
        Some("boolean") => match text.to_lowercase().as_str() {
            "yes" | "true" => json!(true),
            "no" | "false" => json!(false),
            _ => json!(text),
        },
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_gets_what_it_takes_in_the_form_that_it_wants() {
        let schema = json!({"properties": {
            "name": {"type": "string"}, "count": {"type": "integer"}, "tags": {"type": "array"}, "sure": {"type": "boolean"},
            "odd": {"type": "integer"}, "missing": {"type": "string"},
        }});
        let pairs = [
            ("name", "12"),
            ("count", "12"),
            ("tags", "- a\n\n b "),
            ("sure", "Yes"),
            ("odd", "x"),
            ("other", "y"),
        ];
        let values = pairs.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        let expected = json!({"name": "12", "count": 12, "tags": ["a", "b"], "sure": true, "odd": "x"});
        assert_eq!(arguments(&schema, &values), expected);
        assert_eq!(
            arguments(&json!({"type": "object"}), &values)["other"],
            "y",
            "one that says nothing gets everything"
        );
        let uses = uses(&schema, &["name", "other", "missing"]);
        assert_eq!(uses.into_iter().collect::<Vec<_>>(), ["missing", "name"], "also what it did not get yet");
    }
}
