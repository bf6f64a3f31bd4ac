//! Arguments: the JSON Schema a model is shown, and the typed value a tool works with.

use baton_core::ToolError;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The schema of an object that has these properties and no others.
#[expect(clippy::needless_pass_by_value, reason = "`json!` at the call makes a value that nobody else needs")]
pub fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// One text or several, because people write lists both ways.
pub fn texts(description: &str) -> Value {
    json!({
        "description": description,
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    })
}

/// The engine has checked arguments against the schema. This check is for callers that have not.
pub fn arguments<T: DeserializeOwned>(value: Value) -> Result<T, ToolError> {
    serde_json::from_value(value).map_err(|error| ToolError::InvalidArguments(error.to_string()))
}
