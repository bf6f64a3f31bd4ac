//! Normalizes tool arguments of models. Small models fill optional fields with blanks, change the case of names and write numbers
//! as text. An argument with exactly one possible meaning is corrected instead of refused.

use serde_json::{Value, json};

/// Removes the fields that are `null`, blank text, or objects of only such values and empty arrays.
pub(crate) fn without_blank_values(arguments: Value) -> Value {
    match arguments {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !is_blank(value)).collect())
        }
        other => other,
    }
}

pub(crate) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Object(fields) => {
            fields.values().all(|value| is_blank(value) || value.as_array().is_some_and(Vec::is_empty))
        }
        _ => false,
    }
}

/// Returns the word that equals `text`, ignoring case, surrounding spaces, and the difference between `-`, `_` and space. An exact
/// match takes precedence. `None` if no word or more than one matches.
pub(crate) fn match_word<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.trim().to_lowercase().replace(['-', ' '], "_");
    let (mut same, meant) = (None, plain(text));
    for word in words {
        if word == text {
            return Some(word);
        }
        match same {
            // Ambiguous: two words differ only in what is ignored.
            Some(_) if plain(word) == meant => return None,
            None if plain(word) == meant => same = Some(word),
            _ => {}
        }
    }
    same
}

/// Replaces a text by the word that [`match_word`] finds, if any.
pub(crate) fn normalize_word<'a>(value: Option<&mut Value>, words: impl IntoIterator<Item = &'a str>) {
    if let Some(value) = value
        && let Some(word) = value.as_str().and_then(|text| match_word(text, words))
    {
        *value = json!(word);
    }
}

/// Replaces `5000.0` or `"5000"` by the integer 5000.
pub(crate) fn normalize_integer(value: Option<&mut Value>) {
    let Some(value) = value else { return };
    let number = match &*value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_f64().filter(|_| !number.is_u64()),
        _ => None,
    };
    // Below 1e15 every whole `f64` is exact. No timeout in milliseconds is that long.
    let number = number.filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number));
    if let Some(number) = number {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole and in range"
        )]
        let number = number as u64;
        *value = json!(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_arguments_are_removed() {
        let filled = json!({
            "mission": "x", "specialist": null, "reason": " ", "agent_definition": {}, "n": 0,
            "nested": {"system_prompt": "", "tool_allowlist": []}
        });
        assert_eq!(without_blank_values(filled), json!({"mission": "x", "n": 0}));
        let said = json!({"agents": [], "agent_definition": {"system_prompt": "x", "tool_allowlist": []}});
        assert_eq!(without_blank_values(said.clone()), said);
        assert_eq!(without_blank_values(json!([])), json!([]));
    }

    #[test]
    fn words_match_in_any_spelling_unless_ambiguous() {
        let words = ["first_success", "a-b", "a_b", "Legal"];
        assert_eq!(match_word(" First-Success", words), Some("first_success"));
        assert_eq!(match_word("legal", words), Some("Legal"));
        assert_eq!((match_word("a_b", words), match_word("A_B", words)), (Some("a_b"), None));
        assert_eq!(match_word("first", words), None);
    }

    #[test]
    fn integers_are_parsed_from_text_and_floats() {
        for (written, meant) in [
            (json!("5000"), json!(5000)),
            (json!(5000.0), json!(5000)),
            (json!(u64::MAX), json!(u64::MAX)),
            (json!(1.5), json!(1.5)),
            (json!(-5), json!(-5)),
            (json!("soon"), json!("soon")),
            (json!("NaN"), json!("NaN")),
        ] {
            let mut value = written;
            normalize_integer(Some(&mut value));
            assert_eq!(value, meant);
        }
    }
}
