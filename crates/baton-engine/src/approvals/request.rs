//! What a person is asked: the call or the question, its preview and its digest.

use std::collections::BTreeMap;

use baton_core::RunId;
use baton_core::store::{ApprovalKind, ApprovalPreview, ApprovalRequest, PreviewField};
use data_encoding::HEXLOWER;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::policy::ASK_USER;
use crate::redaction::head;
use crate::scope::Scope;
use crate::toolset::SessionTool;

/// Path segment of the wait below its call.
pub(crate) const WAIT: &str = "approval";
/// Maximum length of a value in a preview, in characters.
const MAX_FIELD_CHARS: usize = 150;

/// The request for a call at `place` with checked arguments.
pub(super) fn request(place: &Scope, tool: &SessionTool, arguments: Value) -> ApprovalRequest {
    let spec = tool.spec();
    let digest = digest(&spec.name, &arguments);
    let created_at = Timestamp::now();
    let expiry = place.run.extensions.approvals.of(&place.run.caller.tenant).expiry;
    let expiry = SignedDuration::try_from(expiry).unwrap_or(SignedDuration::MAX);
    let question = (spec.name == ASK_USER).then(|| question(&arguments));
    let (kind, preview, schema, choices) = match question {
        Some((heading, schema, choices)) => {
            let preview = ApprovalPreview { heading, fields: Vec::new() };
            (ApprovalKind::Question, preview, schema, choices)
        }
        None => {
            let preview = tool.preview(&arguments).unwrap_or_else(|| preview(&spec.name, &arguments));
            (ApprovalKind::Tool, preview, tool.accepted_parameters().clone(), Vec::new())
        }
    };
    ApprovalRequest {
        approval_id: approval_id(place.run.run_id, place.path(), &digest),
        kind,
        path: place.path().to_owned(),
        agent: place.name().clone(),
        tool: spec.name.clone(),
        arguments,
        digest,
        risk: spec.risk,
        preview,
        schema,
        choices,
        handoff_id: None,
        created_at,
        expires_at: created_at.saturating_add(expiry).unwrap_or(Timestamp::MAX),
    }
}

/// The question, the schema of its answer, and its choices.
fn question(arguments: &Value) -> (String, Value, Vec<String>) {
    let text = arguments["question"].as_str().unwrap_or_default().trim().to_owned();
    let choices = arguments["choices"].as_array().into_iter().flatten();
    let choices = choices.filter_map(Value::as_str).map(str::to_owned).collect();
    let schema = arguments.get("schema").filter(|schema| schema.is_object());
    (text, schema.cloned().unwrap_or_else(|| json!({ "type": "string", "minLength": 1 })), choices)
}

/// The preview of an ordinary tool: its arguments, long ones cut.
fn preview(tool: &str, arguments: &Value) -> ApprovalPreview {
    let arguments = arguments.as_object().into_iter().flatten();
    let arguments = arguments.map(|(name, value)| match value.as_str() {
        Some(text) => field(name, text),
        None => field(name, &value.to_string()),
    });
    let fields = std::iter::once(field("tool", tool)).chain(arguments).collect();
    ApprovalPreview { heading: format!("Use the tool {tool}"), fields }
}

/// A labelled value, cut at 150 characters.
pub(crate) fn field(label: &str, value: &str) -> PreviewField {
    PreviewField { label: label.to_owned(), value: head(value, MAX_FIELD_CHARS) }
}

/// The same after a crash, and another one if the arguments change.
pub(crate) fn approval_id(run: RunId, path: &str, digest: &str) -> Uuid {
    let hash = Sha256::digest(format!("{run}\n{path}\n{digest}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// SHA-256 of the tool and its arguments. The order of keys does not matter.
pub(crate) fn digest(tool: &str, arguments: &Value) -> String {
    HEXLOWER.encode(&Sha256::digest(format!("{tool}\n{}", sorted(arguments))))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted_map: BTreeMap<&String, Value> =
                map.iter().map(|(key, value)| (key, sorted(value))).collect();
            sorted_map.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_the_call_and_not_on_the_order_of_keys() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let first = digest("shell", &parse(r#"{"a": {"x": 1, "y": [2, {"p": 1, "q": 2}]}, "b": 2}"#));
        assert_eq!(first, digest("shell", &parse(r#"{"b": 2, "a": {"y": [2, {"q": 2, "p": 1}], "x": 1}}"#)));
        assert_ne!(first, digest("other", &parse(r#"{"b": 2, "a": {"y": [2, {"q": 2, "p": 1}], "x": 1}}"#)));
        assert_ne!(first, digest("shell", &parse(r#"{"b": 3, "a": {"y": [2, {"q": 2, "p": 1}], "x": 1}}"#)));
        assert_eq!(first.len(), 64);
    }

    #[test]
    fn a_question_has_choices_or_a_form() {
        let schema = json!({"type": "object", "properties": {"when": {"type": "string"}}});
        let (text, form, choices) = question(&json!({"question": " When? ", "schema": schema}));
        assert_eq!((text.as_str(), form, choices), ("When?", schema, Vec::new()));
        let (_, free, choices) = question(&json!({"question": "Which?", "choices": ["a", "b"]}));
        assert_eq!((free["type"].as_str(), choices.len()), (Some("string"), 2));
    }
}
