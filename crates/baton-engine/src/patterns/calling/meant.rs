//! What a model meant. Small ones fill in blanks for what they leave out, write names in capitals and numbers as words; where only
//! one thing can be meant, nobody has to ask back.

use serde_json::{Value, json};

/// Arguments without those that say nothing: `null`, `""`, `{}`, or an object of nothing but such.
pub(crate) fn without_blanks(arguments: Value) -> Value {
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

/// The word that is meant by a text, if it is one of these but for capitals, blanks and dashes.
pub(crate) fn one_of<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.trim().to_lowercase().replace(['-', ' '], "_");
    let (mut same, meant) = (None, plain(text));
    for word in words {
        if word == text {
            return Some(word);
        }
        match same {
            // Two that differ only in this: none of them is meant for certain.
            Some(_) if plain(word) == meant => return None,
            None if plain(word) == meant => same = Some(word),
            _ => {}
        }
    }
    same
}

/// Puts the word that is meant in place of the one that was written.
pub(crate) fn spell<'a>(value: Option<&mut Value>, words: impl IntoIterator<Item = &'a str>) {
    if let Some(value) = value
        && let Some(word) = value.as_str().and_then(|text| one_of(text, words))
    {
        *value = json!(word);
    }
}

/// A whole number that was written as `5000.0` or `"5000"`.
pub(crate) fn whole(value: Option<&mut Value>) {
    let Some(value) = value else { return };
    let number = match &*value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_f64().filter(|_| !number.is_u64()),
        _ => None,
    };
    // Beyond this, numbers with a point are not exact any more, and nobody waits that long.
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
    fn what_is_blank_was_meant_to_be_left_out() {
        let filled = json!({
            "mission": "x", "specialist": null, "reason": " ", "agent_definition": {}, "n": 0,
            "nested": {"system_prompt": "", "tool_allowlist": []}
        });
        assert_eq!(without_blanks(filled), json!({"mission": "x", "n": 0}));
        let said = json!({"agents": [], "agent_definition": {"system_prompt": "x", "tool_allowlist": []}});
        assert_eq!(without_blanks(said.clone()), said);
        assert_eq!(without_blanks(json!([])), json!([]));
    }

    #[test]
    fn words_are_known_in_any_spelling_unless_two_are() {
        let words = ["first_success", "a-b", "a_b", "Legal"];
        assert_eq!(one_of(" First-Success", words), Some("first_success"));
        assert_eq!(one_of("legal", words), Some("Legal"));
        assert_eq!((one_of("a_b", words), one_of("A_B", words)), (Some("a_b"), None));
        assert_eq!(one_of("first", words), None);
    }

    #[test]
    fn numbers_are_numbers() {
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
            whole(Some(&mut value));
            assert_eq!(value, meant);
        }
    }
}
