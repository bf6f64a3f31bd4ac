//! Parses JSON that models write.

use serde_json::Value;

/// Maximum nesting. `serde_json` reads 127 levels, and the events and runs that contain a value add some.
const MAX_DEPTH: usize = 64;

/// Parses a value. The error is worded for the model.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if is_deeper(&value, MAX_DEPTH) {
        return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
    }
    Ok(value)
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| is_deeper(field, levels - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_limited() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(parse(&nested(MAX_DEPTH + 1)).unwrap_err().contains("64 levels"));
        assert!(parse("{").unwrap_err().contains("EOF"));
    }
}
