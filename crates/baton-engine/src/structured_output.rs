//! Validates answers that must be JSON of a given schema.

use jsonschema::Validator;
use serde_json::Value;

use crate::{compile_cache, json};

/// Parses and validates an answer. The error lists up to 8 violations, worded for the model.
pub fn validate(schema: &Value, text: &str) -> Result<Value, String> {
    let value = json::parse(strip_code_fence(text)).map_err(|error| format!("it is not JSON: {error}"))?;
    let validator =
        compile_cache::validator(schema).map_err(|error| format!("the schema is invalid: {error}"))?;
    if validator.is_valid(&value) { Ok(value) } else { Err(describe_errors(&validator, &value)) }
}

/// Up to 8 violations, each with its place.
pub(crate) fn describe_errors(validator: &Validator, value: &Value) -> String {
    let errors = validator.iter_errors(value).take(8);
    errors.map(|error| format!("at `{}`: {error}", error.instance_path())).collect::<Vec<_>>().join("; ")
}

/// Many models wrap JSON in a code fence, even if they are told not to.
pub(crate) fn strip_code_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.strip_suffix("```").unwrap_or(inner);
    inner.split_once('\n').map_or(inner, |(_language, body)| body).trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::validate;

    #[test]
    fn code_fences_are_stripped_and_errors_described() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        assert_eq!(validate(&schema, "```json\n{\"n\": 1}\n```"), Ok(json!({"n": 1})));
        assert!(validate(&schema, "{\"n\": \"x\"}").unwrap_err().contains("`/n`"));
        assert!(validate(&schema, "Sure! {").unwrap_err().contains("not JSON"));
        assert!(validate(&json!({"type": 5}), "{}").unwrap_err().contains("schema"));
    }
}
