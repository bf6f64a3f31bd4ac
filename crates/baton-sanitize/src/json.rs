//! The same for JSON: what a key says about its value counts as much as what the value says itself.

use serde_json::{Map, Value};

use super::{Mask, REDACTED, assignment, plain, sanitize};

/// The value with every string in it sanitised, also those that are keys.
pub fn sanitize_value(value: &Value, mask: Mask) -> Value {
    match value {
        Value::String(text) => Value::String(sanitize(text, mask).into_owned()),
        Value::Array(items) => items.iter().map(|item| sanitize_value(item, mask)).collect(),
        Value::Object(entries) => Value::Object(sanitized(entries, mask)),
        other => other.clone(),
    }
}

fn sanitized(entries: &Map<String, Value>, mask: Mask) -> Map<String, Value> {
    let mut out = Map::with_capacity(entries.len());
    for (nth, (key, value)) in entries.iter().enumerate() {
        let clean =
            if assignment::is_sensitive(key) { redacted(value, mask) } else { sanitize_value(value, mask) };
        let name = sanitize(key, mask).into_owned();
        // Two addresses get the same mark, and both entries stay.
        let name = if out.contains_key(&name) { format!("{name} {nth}") } else { name };
        out.insert(name, clean);
    }
    out
}

fn redacted(value: &Value, mask: Mask) -> Value {
    match value {
        Value::String(text) if text.is_empty() || plain::is_reference(text) => value.clone(),
        Value::String(_) => Value::String(REDACTED.to_owned()),
        Value::Array(items) => items.iter().map(|item| redacted(item, mask)).collect(),
        other => sanitize_value(other, mask),
    }
}
