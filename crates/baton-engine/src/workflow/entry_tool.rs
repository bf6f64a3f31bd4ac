//! Calls the entry tool of a workflow state like a tool call of a model: journaled, billed and subject to approval.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::ToolCallId;
use baton_core::chat::ToolCall;
use baton_core::tool::{ToolError, ToolOutput};
use baton_core::workflow::Machine;
use baton_core::workflow::data::{Ran, StateFailure};
use serde_json::{Map, Value, json};

use crate::approvals::gate::Consent;
use crate::failure::Failure;
use crate::scope::Scope;
use crate::tool_calls::{self, CallLimits};
use crate::toolset::Toolset;

/// Maximum length of the stored output, in characters. The output is stored with the workflow's state.
const MAX_CHARS: usize = 20_000;

/// Result of [`call`].
#[derive(Debug)]
pub(crate) enum EntryOutcome {
    Ran {
        ran: Ran,
        is_untrusted: bool,
    },
    Failed(StateFailure),
    /// The process died during the call, and the tool must not be repeated without asking.
    Unsure(StateFailure),
}

/// Calls `tool` at `place` with the collected values. A call that was finished before a crash is not repeated. Fails with
/// [`Failure::Cancelled`] if the scope is cancelled.
pub(crate) async fn call(place: &Scope, machine: &Machine<'_>, tool: &str) -> Result<EntryOutcome, Failure> {
    let toolset = Toolset::single(place, tool).await;
    let schema = toolset.find(tool).ok().map_or(&Value::Null, |found| &found.spec().parameters);
    let arguments = arguments(schema, &machine.data.values);
    let uses = uses(schema, &machine.keys());
    let call =
        ToolCall { id: id(place), name: tool.to_owned(), arguments: arguments.to_string(), signature: None };
    let limits = CallLimits { max_parallel: 1, deadline: place.session.bounds.deadline };
    let consent = if machine.data.has_consent { Consent::Given } else { Consent::None };
    let (result, is_untrusted) = tool_calls::run_one(place, &toolset, &call, limits, consent).await?;
    if place.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    Ok(match result {
        Ok(ToolOutput { text, artifacts, .. }) => {
            let text = text.chars().take(MAX_CHARS).collect();
            EntryOutcome::Ran { ran: Ran { uses, text, artifacts }, is_untrusted }
        }
        Err(error @ ToolError::OutcomeUnknown) => EntryOutcome::Unsure(StateFailure::new(&error, false)),
        Err(error) => EntryOutcome::Failed(StateFailure::new(&error, is_untrusted)),
    })
}

/// Derived from the path, so it is equal after a crash. The prefix keeps it apart from the ids of models.
fn id(place: &Scope) -> ToolCallId {
    let number = crate::policy::fingerprint(place.path());
    ToolCallId::parse(&format!("entry_{number:08x}")).expect("a short id")
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())
}

/// The workflow's keys that the tool has parameters for; all keys if its schema declares none.
fn uses(schema: &Value, keys: &[&str]) -> BTreeSet<String> {
    let looks = |key: &&&str| properties(schema).is_none_or(|properties| properties.contains_key(**key));
    keys.iter().filter(looks).map(ToString::to_string).collect()
}

/// The collected values that the tool has parameters for, coerced to their types.
fn arguments(schema: &Value, values: &BTreeMap<String, String>) -> Value {
    let arguments = values.iter().filter_map(|(key, text)| {
        let Some(properties) = properties(schema) else { return Some((key.clone(), json!(text))) };
        Some((key.clone(), coerce(properties.get(key)?, text)))
    });
    Value::Object(arguments.collect())
}

/// Converts a text to the type that the schema declares. A text that does not parse is passed on, and the tool reports the error.
fn coerce(schema: &Value, text: &str) -> Value {
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
    fn tool_gets_only_its_parameters_with_coerced_types() {
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
