//! Answers that must be JSON of a given schema.

use serde_json::Value;

use crate::compiled;

/// The answer as JSON, or what is wrong with it, in words the model can act on.
pub fn check(schema: &Value, text: &str) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(bare(text)).map_err(|error| format!("it is not JSON: {error}"))?;
    let validator = compiled::validator(schema).map_err(|error| format!("the schema is invalid: {error}"))?;
    let mistakes: Vec<String> = validator
        .iter_errors(&value)
        .take(8)
        .map(|error| format!("at `{}`: {error}", error.instance_path()))
        .collect();
    if mistakes.is_empty() { Ok(value) } else { Err(mistakes.join("; ")) }
}

/// Many models wrap JSON in a code fence, whatever they are told.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.strip_suffix("```").unwrap_or(inner);
    inner.split_once('\n').map_or(inner, |(_language, body)| body).trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;

    #[test]
    fn fences_are_tolerated_and_mistakes_named() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        assert_eq!(check(&schema, "```json\n{\"n\": 1}\n```"), Ok(json!({"n": 1})));
        assert!(check(&schema, "{\"n\": \"x\"}").unwrap_err().contains("`/n`"));
        assert!(check(&schema, "Sure! {").unwrap_err().contains("not JSON"));
        assert!(check(&json!({"type": 5}), "{}").unwrap_err().contains("schema"));
    }
}
