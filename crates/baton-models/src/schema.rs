//! Asking for an answer that is JSON of a schema.

use std::borrow::Cow;

use serde_json::Value;

/// Whether providers that promise to keep to a schema accept this one. They compile it to a grammar and refuse what they
/// cannot compile: an object must be closed and name all its fields, and most checks of values are unknown to them.
pub(crate) fn is_enforceable(schema: &Value) -> bool {
    const KNOWN: [&str; 12] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "description",
        "title",
        "anyOf",
        "$defs",
        "$ref",
    ];
    let Some(object) = schema.as_object() else { return false };
    let children = |key: &str| match object.get(key) {
        Some(Value::Object(children)) => children.values().collect(),
        Some(Value::Array(children)) => children.iter().collect(),
        _ => Vec::new(),
    };
    let is_closed = || {
        let fields = object.get("properties").and_then(Value::as_object);
        let required = object.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        object.get("additionalProperties") == Some(&Value::Bool(false))
            && fields.is_some_and(|fields| fields.keys().all(|key| required.iter().any(|name| name == key)))
    };
    let is_object =
        object.get("type").is_some_and(|kind| kind == "object") || object.contains_key("properties");
    object.keys().all(|key| KNOWN.contains(&key.as_str()))
        && (!is_object || is_closed())
        && ["properties", "$defs", "anyOf"].iter().flat_map(|key| children(key)).all(is_enforceable)
        && object.get("items").is_none_or(is_enforceable)
}

/// The system text with the schema at its end, for calls in which a provider cannot be held to it. A forced tool whose
/// arguments are the answer would be kept to more strictly, but then the model could use no other tool, and its answer
/// would not be an answer any more.
pub(crate) fn with_instruction<'a>(system: &'a str, schema: Option<&Value>) -> Cow<'a, str> {
    let Some(schema) = schema else { return system.into() };
    let instruction = format!(
        "Your final answer must be one JSON value that satisfies this JSON Schema, without any other text and without a \
         code fence:\n{schema}"
    );
    match system.trim_end() {
        "" => instruction.into(),
        system => format!("{system}\n\n{instruction}").into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_enforceable;

    #[test]
    fn what_can_be_enforced() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
        assert!(is_enforceable(&closed));
        assert!(is_enforceable(&json!({"type": "array", "items": closed})));
        for schema in [
            json!(true),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"anyOf": [{"type": "null"}, {"type": "string", "pattern": "x"}]}),
        ] {
            assert!(!is_enforceable(&schema), "{schema}");
        }
    }
}
