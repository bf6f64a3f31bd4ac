//! The same for JSON: what a key says about its value counts as much as what the value says itself.

use serde_json::{Map, Number, Value};

use super::{Mask, REDACTED, assignment, plain, sanitize};

/// The value with every string in it sanitised, also those that are keys.
pub fn sanitize_value(value: &Value, mask: Mask) -> Value {
    match value {
        Value::String(text) => Value::String(sanitize(text, mask).into_owned()),
        Value::Array(items) => items.iter().map(|item| sanitize_value(item, mask)).collect(),
        Value::Object(entries) => Value::Object(sanitized(entries, mask)),
        Value::Number(number) => sanitized_number(number, mask),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// A number that is a card's becomes a mark.
fn sanitized_number(number: &Number, mask: Mask) -> Value {
    // Cards have 13 to 19 digits.
    let may_be_card = number.as_f64().is_some_and(|number| (1e12..1e19).contains(&number.abs()));
    if may_be_card {
        let text = number.to_string();
        let clean = sanitize(&text, mask);
        if clean != text {
            return Value::String(clean.into_owned());
        }
    }
    Value::Number(number.clone())
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
        Value::String(_) | Value::Number(_) => Value::String(REDACTED.to_owned()),
        Value::Array(items) => items.iter().map(|item| redacted(item, mask)).collect(),
        other => sanitize_value(other, mask),
    }
}
