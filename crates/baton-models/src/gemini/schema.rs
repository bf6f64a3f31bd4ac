//! A tool's JSON Schema in the words that Gemini knows. It refuses the whole request for one word that it does not.

use serde_json::{Map, Value, json};

/// Deeper schemas are cut; one that refers to itself has no end.
const MAX_DEPTH: usize = 12;

/// Keywords whose value is passed on as it is.
const PLAIN: [&str; 12] = [
    "title",
    "description",
    "required",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
];

/// `None` for a tool without parameters: an object without properties is refused too.
pub(super) fn cleaned(schema: &Value) -> Option<Value> {
    let has_properties =
        schema.get("properties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    has_properties.then(|| clean(schema, schema, 0))
}

fn clean(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(object) = resolve(schema, root) else { return json!({}) };
    let mut clean_object = Map::new();
    if depth == MAX_DEPTH {
        return json!({"type": "object"});
    }
    for key in PLAIN {
        if let Some(value) = object.get(key) {
            clean_object.insert(key.into(), value.clone());
        }
    }
    add_type(object, &mut clean_object);
    add_choices(object, &mut clean_object);
    if let Some(Value::Object(fields)) = object.get("properties") {
        let fields = fields.iter().map(|(name, field)| (name.clone(), clean(field, root, depth + 1)));
        clean_object.insert("properties".into(), Value::Object(fields.collect()));
    }
    if let Some(items) = object.get("items") {
        clean_object.insert("items".into(), clean(items, root, depth + 1));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(variants)) = object.get(key) {
            let variants = variants.iter().map(|variant| clean(variant, root, depth + 1)).collect();
            clean_object.insert("anyOf".into(), variants);
        }
    }
    Value::Object(clean_object)
}

/// Follows references inside the schema itself, a few steps.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Map<String, Value>> {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
            None => return schema.as_object(),
        }
    }
    None
}

/// `["string", "null"]` is a nullable string here.
fn add_type(object: &Map<String, Value>, clean: &mut Map<String, Value>) {
    match object.get("type") {
        Some(Value::Array(kinds)) => {
            if let Some(kind) = kinds.iter().find(|kind| *kind != "null") {
                clean.insert("type".into(), kind.clone());
            }
            if kinds.iter().any(|kind| kind == "null") {
                clean.insert("nullable".into(), Value::Bool(true));
            }
        }
        Some(kind) => {
            clean.insert("type".into(), kind.clone());
        }
        None => {}
    }
    let format = object.get("format").filter(|format| *format == "date-time");
    clean.extend(format.map(|format| ("format".to_owned(), format.clone())));
}

/// Only strings can be chosen from.
fn add_choices(object: &Map<String, Value>, clean: &mut Map<String, Value>) {
    let constant = object.get("const").map(|value| vec![value.clone()]);
    let choices = object.get("enum").and_then(Value::as_array).cloned().or(constant);
    if let Some(choices) = choices.filter(|choices| choices.iter().all(Value::is_string)) {
        clean.entry("type").or_insert_with(|| json!("string"));
        clean.insert("enum".into(), Value::Array(choices));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_are_left() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "$defs": {"level": {"enum": ["low", "high"]}, "tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}},
            "properties": {
                "title": {"type": "string", "description": "What", "format": "uri"},
                "count": {"type": ["integer", "null"], "exclusiveMinimum": 0, "enum": [1, 2]},
                "level": {"$ref": "#/$defs/level"},
                "kind": {"oneOf": [{"const": "a"}, {"type": "array", "items": {"type": "string"}}]},
                "tree": {"$ref": "#/$defs/tree"},
                "lost": {"$ref": "#/nowhere"}
            },
            "required": ["title"]
        });
        let mut clean = cleaned(&schema).unwrap();
        let tree = clean["properties"].as_object_mut().unwrap().remove("tree").unwrap();
        assert_eq!(tree.to_string().matches("next").count(), MAX_DEPTH - 1, "an endless schema ends");
        assert_eq!(
            clean,
            json!({
                "required": ["title"],
                "type": "object",
                "properties": {
                    "title": {"description": "What", "type": "string"},
                    "count": {"type": "integer", "nullable": true},
                    "level": {"type": "string", "enum": ["low", "high"]},
                    "kind": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "array", "items": {"type": "string"}}]},
                    "lost": {}
                }
            })
        );
        assert_eq!(cleaned(&json!({"type": "object", "properties": {}})), None);
    }
}
