//! Validates what an agent gets against the `input_schema` of its file.

use serde_json::Value;

use crate::bounds::InvocationKind;
use crate::compile_cache;
use crate::failure::Failure;
use crate::input::{Input, PromptEnvelope};
use crate::json;
use crate::scope::Scope;
use crate::structured_output::{describe_errors, strip_code_fence};

/// Fails with [`Failure::InvalidInput`] if the input of the scope's agent does not satisfy its `input_schema`.
pub(crate) fn check(scope: &Scope, input: &Input) -> Result<(), Failure> {
    let Some(schema) = scope.agent().input_schema.as_ref().filter(|_| applies(scope, input)) else {
        return Ok(());
    };
    validate(schema, &PromptEnvelope::of(input).subject())
        .map_err(|message| Failure::InvalidInput { agent: scope.name().clone(), message })
}

/// A holder talks with a person, a member with its team, and an agent that gets the thread back with the engine: no schema
/// describes what they get.
fn applies(scope: &Scope, input: &Input) -> bool {
    let is_talk = match scope.session.bounds.invocation {
        Some(kind) => matches!(kind, InvocationKind::Member | InvocationKind::Return),
        // The engine tells the run's own agent how a handoff ended.
        None => input.sent.is_some(),
    };
    scope.session.lease.is_none() && !is_talk
}

/// An object or array is judged as JSON. Any other text satisfies a schema as JSON or as a string.
fn validate(schema: &Value, text: &str) -> Result<(), String> {
    let validator =
        compile_cache::validator(schema).map_err(|error| format!("the schema is invalid: {error}"))?;
    let parsed = json::parse(strip_code_fence(text));
    let is_text = parsed.as_ref().is_ok_and(|value| !value.is_object() && !value.is_array());
    if (is_text || parsed.is_err()) && validator.is_valid(&Value::String(text.to_owned())) {
        return Ok(());
    }
    match parsed {
        Ok(value) if validator.is_valid(&value) => Ok(()),
        Ok(value) => Err(describe_errors(&validator, &value)),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::validate;

    #[test]
    fn text_is_json_or_a_string() {
        let object = json!({"type": "object", "required": ["n"]});
        assert_eq!(validate(&object, "```json\n{\"n\": 1}\n```"), Ok(()));
        assert!(validate(&object, "{}").unwrap_err().contains("\"n\" is a required property"));
        assert!(validate(&object, "hello").unwrap_err().starts_with("it is not JSON"));
        let text = json!({"type": "string", "maxLength": 5});
        assert_eq!((validate(&text, "hello"), validate(&text, "12")), (Ok(()), Ok(())));
        assert!(validate(&text, "much longer").is_err());
        assert!(validate(&json!({"required": ["n"]}), "{}").is_err(), "an object is no string");
    }
}
