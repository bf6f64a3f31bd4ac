//! Fills a JSON form with the simplest values its schema allows.

use serde_json::{Map, Value, json};

use super::words::overlap;

/// Deeper schemas are cut off; they describe more than rules can fill.
const MAX_DEPTH: usize = 16;

/// `text` is what is known: texts are filled with its beginning, and a choice is made by its words.
pub(super) fn fill(schema: &Value, text: &str) -> Value {
    value(schema, text, 0)
}

/// The allowed value that the text speaks of most; the first of equals.
fn choice<'a>(schema: &'a Value, text: &str) -> Option<&'a Value> {
    let allowed = schema["enum"].as_array()?;
    let fit = |value: &&Value| value.as_str().map_or(0, |word| overlap(text, word));
    allowed.iter().rev().max_by_key(fit)
}

fn value(schema: &Value, question: &str, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(fixed) =
        schema.get("const").or_else(|| choice(schema, question)).or_else(|| schema.get("default"))
    {
        return fixed.clone();
    }
    let alternative = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema[*key].get(0));
    if let Some(alternative) = alternative.filter(|_| schema.get("type").is_none()) {
        return value(alternative, question, depth + 1);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].get(0).and_then(Value::as_str));
    match kind.unwrap_or("object") {
        "string" => text(schema, question).into(),
        "integer" => json!(schema["minimum"].as_i64().unwrap_or(0)),
        "number" => json!(schema["minimum"].as_f64().unwrap_or(0.0)),
        "boolean" => json!(false),
        "null" => Value::Null,
        "array" => {
            let count = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap_or(0).min(100);
            let item = schema.get("items").map_or(Value::Null, |items| value(items, question, depth + 1));
            Value::Array(vec![item; count])
        }
        _ => object(schema, question, depth),
    }
}

fn object(schema: &Value, question: &str, depth: usize) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let filled = required.map(|key| (key.to_owned(), value(&schema["properties"][key], question, depth + 1)));
    Value::Object(filled.collect::<Map<_, _>>())
}

fn text(schema: &Value, question: &str) -> String {
    let limit = |key: &str, default| usize::try_from(schema[key].as_u64().unwrap_or(default)).unwrap_or(200);
    let mut text: String = question.chars().take(limit("maxLength", 200).min(10_000)).collect();
    while text.chars().count() < limit("minLength", 0).min(10_000) {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fill;

    #[test]
    fn required_fields_are_filled() {
        let schema = json!({"type": "object", "required": ["name", "tags", "score", "kind"], "properties": {
            "name": {"type": "string", "minLength": 3}, "tags": {"type": "array", "minItems": 2, "items": {"type": "boolean"}},
            "score": {"type": "integer", "minimum": 1}, "kind": {"enum": ["low", "high"]}, "other": {"type": "string"}}});
        assert_eq!(
            fill(&schema, "x"),
            json!({"name": "x..", "tags": [false, false], "score": 1, "kind": "low"})
        );
        assert_eq!(fill(&schema, "rather high")["kind"], "high");
    }
}
