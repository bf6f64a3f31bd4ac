//! Texts that are stored once.
//!
//! The answer of a run is a message, and also part of the journal and of the run's end. When these are written together, the
//! text is stored in the message only. The other rows contain a raw U+0001 in its place, which never occurs in JSON, and
//! name the message in a column. The id of the run, with which the ids of its sessions begin, is a column of these rows: a raw
//! U+0002 replaces it.

use std::borrow::Cow;

use baton_core::message::{Message, Part};
use baton_core::{Role, RunId, StoreError};
use serde::de::DeserializeOwned;

use crate::value::{Row, SqlValue};

/// Shorter texts cost less than a reference.
const SHORTEST: usize = 32;
const MARK: &str = "\u{1}";
const RUN_MARK: &str = "\u{2}";

/// The texts to omit from the rows of an append.
#[derive(Debug)]
pub(crate) struct StoredTexts {
    run: String,
    /// Texts of messages as JSON literals, with the number of the message.
    texts: Vec<(String, u64)>,
}

impl StoredTexts {
    /// Collects the texts of messages. The first message has the number `first`.
    pub(crate) fn of(run: RunId, first: u64, messages: &[Message]) -> Result<Self, StoreError> {
        let mut texts = Vec::new();
        for (number, message) in (first..).zip(messages) {
            match message.parts.as_slice() {
                [Part::Text { text }] if message.role == Role::Assistant && text.len() >= SHORTEST => {
                    texts.push((literal(text)?, number));
                }
                _ => {}
            }
        }
        Ok(Self { run: run.to_string(), texts })
    }

    /// Replaces the run's id and the text of one message in all `columns`. Also returns the number of that message, if any.
    pub(crate) fn refer<const N: usize>(&self, mut columns: [SqlValue; N]) -> ([SqlValue; N], Option<u64>) {
        let is_in = |literal: &str, column: &SqlValue| matches!(column, SqlValue::Text(text) if text.contains(literal));
        let found =
            self.texts.iter().find(|(literal, _)| columns.iter().any(|column| is_in(literal, column)));
        for column in &mut columns {
            let SqlValue::Text(text) = column else { continue };
            if let Some((literal, _)) = found {
                replace(text, literal, MARK);
            }
            replace(text, &self.run, RUN_MARK);
        }
        (columns, found.map(|(_, number)| *number))
    }
}

/// Replaces the run's id, in a column without texts of messages.
pub(crate) fn without_run(run: RunId, mut column: SqlValue) -> SqlValue {
    if let SqlValue::Text(text) = &mut column {
        replace(text, &run.to_string(), RUN_MARK);
    }
    column
}

/// Replaces in place, without an allocation if there is nothing to replace.
fn replace(text: &mut String, from: &str, to: &str) {
    if text.contains(from) {
        *text = text.replace(from, to);
    }
}

/// Reverses [`StoredTexts::refer`] for column `at`. Column `parts` holds the parts of the message, or null.
fn whole(run: RunId, row: &Row, at: usize, parts: usize) -> Result<Cow<'_, str>, StoreError> {
    let json = row.text(at)?;
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
    Ok(json.replace(MARK, &literal(text)?).into())
}

/// Same as [`whole`], deserialized.
pub(crate) fn json<T: DeserializeOwned>(
    run: RunId,
    row: &Row,
    at: usize,
    parts: usize,
) -> Result<T, StoreError> {
    serde_json::from_str(&whole(run, row, at, parts)?)
        .map_err(|_| StoreError::Unreadable(format!("column {at} of a row has unexpected JSON")))
}

fn literal(text: &str) -> Result<String, StoreError> {
    serde_json::to_string(text)
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
        assert_eq!(texts.refer([SqlValue::from("[\"yes\"]")]), ([SqlValue::from("[\"yes\"]")], None));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(text in ".{32,80}", before in ".*", number in 1_u64..100) {
            let message = message(&text);
            let run = RunId::from_uuid(Uuid::now_v7());
            let texts = StoredTexts::of(run, number, std::slice::from_ref(&message)).unwrap();
            let session = format!("{run}:sub_research_0000002a");
            let json = json!({"answer": text, "before": before, "more": [text, format!("{before}{text}")], "in": session});
            let written = SqlValue::json(&json).unwrap();
            let ([short], referred) = texts.refer([written.clone()]);
            prop_assert_eq!(referred, Some(number));
            let SqlValue::Text(shorter) = &short else { panic!("not a text") };
            prop_assert!(!shorter.contains(&serde_json::to_string(&text).unwrap()));
            prop_assert!(!shorter.contains(&run.to_string()));
            let row = Row(vec![short, SqlValue::json(&message.parts).unwrap()]);
            prop_assert_eq!(SqlValue::Text(whole(run, &row, 0, 1).unwrap().into_owned()), written);
        }
    }
}
