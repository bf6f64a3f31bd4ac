//! Validation of collected values.

use crate::agent::Slot;
use crate::stem::stem;
use serde_json::Value;

use super::consent::bare;
use super::refusal::Refusal;

/// Maximum length of a value in characters.
pub const MOST_CHARS: usize = 4_000;
/// Longer texts name a choice by chance.
const MOST_CHOOSING_BYTES: usize = 200;
/// Words that turn the name of a choice into a refusal of it.
const NEGATIONS: &[&str] = &["not", "no", "dont", "without", "except", "neither", "never"];
/// Maximum edit distance of a misspelling.
const MOST_EDITS: usize = 2;

/// Validates and normalizes a value: trims it, removes control characters, and spells a choice as the file does.
pub fn checked(slot: &Slot, text: &str) -> Result<String, Refusal> {
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let text = text.trim();
    let key = || slot.key.clone();
    if text.is_empty() {
        return Err(Refusal::Empty(key()));
    }
    if text.chars().count() > MOST_CHARS {
        return Err(Refusal::TooLong(key()));
    }
    if slot.choices.is_empty() && is_only_yes_or_no(slot, text) {
        return Err(Refusal::OnlyYesOrNo { key: key(), text: text.to_owned() });
    }
    if slot.choices.is_empty() {
        return Ok(text.to_owned());
    }
    choice(&slot.choices, text).map(str::to_owned).ok_or_else(|| Refusal::NotAChoice {
        key: key(),
        choices: slot.choices.clone(),
        nearest: nearest(text, slot.choices.iter().map(String::as_str)).map(str::to_owned),
    })
}

/// Whether the text is a bare yes or no, to a question that has another answer. An optional value can be declined.
fn is_only_yes_or_no(slot: &Slot, text: &str) -> bool {
    const YES_OR_NO: &[&str] = &["yes", "y", "yeah", "yep", "yup", "no", "nope", "nah", "ok", "okay", "sure"];
    const ASKING: &[&str] = &[
        "is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should", "shall",
        "has", "have", "had", "may", "must",
    ];
    let asks_yes_or_no = bare(&slot.ask).split(' ').next().is_some_and(|first| ASKING.contains(&first));
    slot.required && !slot.ask.is_empty() && !asks_yes_or_no && YES_OR_NO.contains(&bare(text).as_str())
}

/// Finds the choice that a text selects: the text is the choice, ignoring case and separators, or the choice is the only one that the
/// text names, in any form of its words ("Bullet points would be great." selects `bullets`).
pub fn choice<'a>(choices: &'a [String], text: &str) -> Option<&'a str> {
    let said = text.trim().trim_end_matches(['.', '!']);
    if let Some(same) = choices.iter().find(|choice| joined(choice) == joined(said)) {
        return Some(same);
    }
    let stems = stems(said);
    if text.len() > MOST_CHOOSING_BYTES || NEGATIONS.iter().any(|word| stems.contains(&format!(" {word} "))) {
        return None;
    }
    let mut named = choices.iter().filter(|choice| stems.contains(&self::stems(choice)));
    named.next().filter(|_| named.next().is_none()).map(String::as_str)
}

/// The words without their endings, with a space around each.
fn stems(text: &str) -> String {
    let text = text.to_lowercase().replace(['\'', '’'], "");
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |line, word| line + &stem(word) + " ")
}

/// Lower case, with single spaces as separators.
pub fn plain(text: &str) -> String {
    let text = text.to_lowercase();
    let words =
        text.split(|c: char| c.is_whitespace() || c == '_' || c == '-').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Like [`plain`], without separators: `pick-up` and `pickup` are equal.
pub fn joined(text: &str) -> String {
    plain(text).replace(' ', "")
}

/// The known word closest to a text, if it may be a misspelling.
pub fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = plain(text);
    // A text this long is not a misspelling, and the cost of the distance is the product of both lengths.
    if text.len() > 80 {
        return None;
    }
    let near = known.filter_map(|one| {
        let plain = plain(one);
        let distance = strsim::osa_distance(&text, &plain);
        let begins = text.len() > 2 && plain.starts_with(&text);
        (distance <= MOST_EDITS || begins).then_some((distance, one))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

/// Converts a JSON value to text: a model may write a number, a boolean or a list.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) => {
            let lines: Option<Vec<String>> = items.iter().map(text).collect();
            Some(lines?.join("\n"))
        }
        Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slot(choices: &[&str]) -> Slot {
        let choices = choices.iter().map(ToString::to_string).collect();
        Slot { key: "k".into(), ask: "Which?".into(), choices, required: true }
    }

    #[test]
    fn choices_are_known_however_they_are_written() {
        let slot = slot(&["drop-off", "Pick up"]);
        assert_eq!(checked(&slot, " Drop off ").unwrap(), "drop-off");
        assert_eq!(checked(&slot, "PICK-UP").unwrap(), "Pick up");
        assert_eq!(checked(&slot, "pickup").unwrap(), "Pick up");
        let Err(Refusal::NotAChoice { nearest, .. }) = checked(&slot, "dropof") else { panic!() };
        assert_eq!(nearest.as_deref(), Some("drop-off"));
        let Err(Refusal::NotAChoice { nearest, .. }) = checked(&slot, "carry it away") else { panic!() };
        assert_eq!(nearest, None);
    }

    #[test]
    fn c_25_choice_is_selected_by_a_sentence_that_names_only_it() {
        let slot = slot(&["bullets", "paragraphs", "table", "pick-up"]);
        for (text, choice) in [
            ("Bullet points would be great.", "bullets"),
            ("as a table please", "table"),
            ("I'd like two paragraphs", "paragraphs"),
            ("Please pick up", "pick-up"),
        ] {
            assert_eq!(checked(&slot, text).unwrap(), choice, "{text}");
        }
        for text in ["bullets or a table", "no bullets", "a tablet", "anything but that"] {
            assert!(matches!(checked(&slot, text), Err(Refusal::NotAChoice { .. })), "{text}");
        }
    }

    #[test]
    fn c_25_yes_is_no_value_unless_the_question_asks_for_it() {
        let name = Slot { ask: "What shall we call it?".into(), ..slot(&[]) };
        for text in ["yes", "Yes!", "no", "ok"] {
            assert!(matches!(checked(&name, text), Err(Refusal::OnlyYesOrNo { .. })), "{text}");
        }
        assert_eq!(checked(&name, "Yes Men").unwrap(), "Yes Men");
        let asked = Slot { ask: "Does it happen every time?".into(), ..slot(&[]) };
        assert_eq!(checked(&asked, "yes").unwrap(), "yes");
        assert_eq!(checked(&Slot { required: false, ..name }, "no").unwrap(), "no");
    }

    #[test]
    fn values_are_bounded_and_never_blank() {
        assert!(matches!(checked(&slot(&[]), " \n "), Err(Refusal::Empty(_))));
        assert_eq!(checked(&slot(&[]), "\u{1b}[31mred\0\nline").unwrap(), "[31mred\nline");
        assert!(checked(&slot(&[]), &"ä".repeat(MOST_CHARS)).is_ok());
        assert!(matches!(checked(&slot(&[]), &"ä".repeat(MOST_CHARS + 1)), Err(Refusal::TooLong(_))));
    }

    #[test]
    fn json_becomes_text() {
        assert_eq!(text(&json!(["a", 2, true])).unwrap(), "a\n2\nyes");
        assert_eq!(text(&json!(null)).unwrap(), "");
        assert_eq!(text(&json!({"a": 1})), None);
        assert_eq!(text(&json!(["a", {"b": 1}])), None);
    }
}
