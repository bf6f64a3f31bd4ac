//! Texts that are stored once.
//!
//! The answer of a run is a message, and also part of the journal and of the run's end. When these are written together, the
//! text is stored in the message only. The other rows contain a raw U+0001 in its place, which never occurs in JSON, and
//! name the message in a column. The id of the run, with which the ids of its sessions begin, is a column of these rows: a raw
//! U+0002 replaces it.

use std::borrow::Cow;

use baton_core::message::{Message, Part};
use baton_core::{Role, RunId, StoreError};
use memchr::memmem::Finder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::value::Row;

/// Shorter texts cost less than a reference.
const SHORTEST: usize = 32;
const MARK: &str = "\u{1}";
const RUN_MARK: &str = "\u{2}";

/// The texts to omit from the rows of an append.
#[derive(Debug)]
pub(crate) struct StoredTexts {
    run: StoredText,
    /// Texts of messages as JSON literals, with the number of the message.
    texts: Vec<(StoredText, u64)>,
}

impl StoredTexts {
    /// Collects the texts of messages. The first message has the number `first`.
    pub(crate) fn of(run: RunId, first: u64, messages: &[Message]) -> Result<Self, StoreError> {
        let mut texts = Vec::new();
        for (number, message) in (first..).zip(messages) {
            match message.parts.as_slice() {
                [Part::Text { text }] if message.role == Role::Assistant && text.len() >= SHORTEST => {
                    texts.push((StoredText::new(to_json(text)?, 0), number));
                }
                _ => {}
            }
        }
        Ok(Self { run: StoredText::new(run.to_string(), RANDOM), texts })
    }

    /// Replaces the run's id and the text of one message in all `columns`. Also returns the number of that message, if any.
    pub(crate) fn refer<const N: usize>(&self, mut columns: [String; N]) -> ([String; N], Option<u64>) {
        let mut found = None;
        for (text, number) in &self.texts {
            for column in &mut columns {
                if text.replace(column, MARK) {
                    found = Some(*number);
                }
            }
            if found.is_some() {
                break;
            }
        }
        for column in &mut columns {
            self.run.replace(column, RUN_MARK);
        }
        (columns, found)
    }

    /// Replaces the run's id, in a column without texts of messages.
    pub(crate) fn without_run(&self, mut column: String) -> String {
        self.run.replace(&mut column, RUN_MARK);
        column
    }
}

/// Where the random part of a UUID begins. Ids that were made at the same time differ in it only.
const RANDOM: usize = 24;
/// How many bytes of a text are searched for: the preparation of a search takes longer than the search itself, and grows with the
/// text.
const SEARCHED: usize = 12;

/// A text that is replaced wherever it occurs.
#[derive(Debug)]
struct StoredText {
    text: String,
    /// Finds the bytes of `text` from `from` on.
    part: Finder<'static>,
    from: usize,
}

impl StoredText {
    /// The text is longer than `from` by [`SEARCHED`] bytes or more.
    fn new(text: String, from: usize) -> Self {
        let part = Finder::new(&text.as_bytes()[from..from + SEARCHED]).into_owned();
        Self { text, part, from }
    }

    /// Replaces in a text, without an allocation if there is nothing to replace. Returns whether there was.
    fn replace(&self, json: &mut String, mark: &str) -> bool {
        let (mut shorter, mut copied) = (String::new(), 0);
        for place in self.part.find_iter(json.as_bytes()) {
            let Some(start) = place.checked_sub(self.from).filter(|start| *start >= copied) else { continue };
            if !json.as_bytes()[start..].starts_with(self.text.as_bytes()) {
                continue;
            }
            if copied == 0 {
                shorter.reserve_exact(json.len());
            }
            shorter.push_str(&json[copied..start]);
            shorter.push_str(mark);
            copied = start + self.text.len();
        }
        if copied == 0 {
            return false;
        }
        shorter.push_str(&json[copied..]);
        *json = shorter;
        true
    }
}

/// Reverses [`StoredTexts::refer`]. Column `parts` of the row holds the parts of the message, or null.
fn whole<'a>(run: RunId, json: &'a str, row: &Row, parts: usize) -> Result<Cow<'a, str>, StoreError> {
    // The run's id first: the text of the message may contain any character.
    let json = if json.contains(RUN_MARK) {
        json.replace(RUN_MARK, &run.to_string()).into()
    } else {
        Cow::from(json)
    };
    let Some(parts) = row.optional(parts, Row::json::<Vec<Part>>)? else { return Ok(json) };
    let [Part::Text { text }] = parts.as_slice() else {
        return Err(StoreError::Unreadable("a row refers to a message that is not a text".to_owned()));
    };
    Ok(json.replace(MARK, &to_json(text)?).into())
}

/// Same as [`whole`], deserialized.
pub(crate) fn json<T: DeserializeOwned>(
    run: RunId,
    json: &str,
    row: &Row,
    parts: usize,
) -> Result<T, StoreError> {
    serde_json::from_str(&whole(run, json, row, parts)?)
        .map_err(|_| StoreError::Unreadable("a row has unexpected JSON".to_owned()))
}

pub(crate) fn to_json(value: &(impl Serialize + ?Sized)) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Failed(format!("cannot be written as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use baton_core::{MessageId, Visibility};
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::value::SqlValue;

    fn message(text: &str) -> Message {
        Message {
            id: MessageId::from_uuid(Uuid::nil()),
            run_id: RunId::from_uuid(Uuid::nil()),
            role: Role::Assistant,
            agent: None,
            visibility: Visibility::User,
            parts: vec![Part::text(text)],
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_short_text_is_kept_as_it_is() {
        let texts = StoredTexts::of(RunId::from_uuid(Uuid::nil()), 1, &[message("yes")]).unwrap();
        assert_eq!(texts.refer(["[\"yes\"]".to_owned()]), (["[\"yes\"]".to_owned()], None));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(text in ".{32,80}", before in ".*", number in 1_u64..100) {
            let message = message(&text);
            let run = RunId::from_uuid(Uuid::now_v7());
            let texts = StoredTexts::of(run, number, std::slice::from_ref(&message)).unwrap();
            let session = format!("{run}:sub_research_0000002a");
            let json = json!({"answer": text, "before": before, "more": [text, format!("{before}{text}")], "in": session});
            let written = json.to_string();
            let ([shorter], referred) = texts.refer([written.clone()]);
            prop_assert_eq!(referred, Some(number));
            prop_assert!(!shorter.contains(&serde_json::to_string(&text).unwrap()));
            prop_assert!(!shorter.contains(&run.to_string()));
            let row = Row(vec![SqlValue::json(&message.parts).unwrap()]);
            prop_assert_eq!(whole(run, &shorter, &row, 0).unwrap().into_owned(), written);
        }
    }
}
