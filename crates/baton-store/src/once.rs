//! A text that is stored once.
//!
//! The answer of a run is a message, and also part of an event, of steps and of the run's end. When all of these are written together, the
//! text is kept in the message only. In the others one character that no JSON contains, a raw U+0001, stands in its place, and
//! a column names the message. The id of the run, with which the ids of its sessions begin, is in a column of each of these rows: a
//! raw U+0002 stands in its place.

use std::borrow::Cow;

use baton_core::message::{Message, Part};
use baton_core::{Role, RunId, StoreError};
use serde::de::DeserializeOwned;

use crate::value::{Row, Value};

/// Shorter texts cost less than the reference to them.
const SHORTEST: usize = 32;
const MARK: &str = "\u{1}";
const RUN_MARK: &str = "\u{2}";

/// What is left out of the rows that a run is about to write.
#[derive(Debug)]
pub(crate) struct Texts {
    run: String,
    /// Of messages: each as JSON, with the number of its message.
    texts: Vec<(String, u64)>,
}

impl Texts {
    /// The first message has the number `first`.
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

    /// The same JSON without the id of the run and without the text of a message, and the number of that message if there is one.
    pub(crate) fn refer(&self, json: Value) -> (Value, Option<u64>) {
        let Value::Text(mut text) = json else { return (json, None) };
        let found = self.texts.iter().find(|(literal, _)| text.contains(literal.as_str()));
        if let Some((literal, _)) = found {
            text = text.replace(literal.as_str(), MARK);
        }
        if text.contains(&self.run) {
            text = text.replace(&self.run, RUN_MARK);
        }
        (Value::Text(text), found.map(|(_, number)| *number))
    }
}

/// The JSON of column `at` as it was before [`Texts::refer`]; column `parts` is that of the message, or null.
fn whole(run: RunId, row: &Row, at: usize, parts: usize) -> Result<Cow<'_, str>, StoreError> {
    let json = row.text(at)?;
    // Before the text, which may contain anything.
    let json = if json.contains(RUN_MARK) {
        json.replace(RUN_MARK, &run.to_string()).into()
    } else {
        Cow::from(json)
    };
    let Some(parts) = row.optional(parts, Row::json::<Vec<Part>>)? else { return Ok(json) };
    let [Part::Text { text }] = parts.as_slice() else {
        return Err(StoreError::Corrupt("a row refers to a message that is not a text".to_owned()));
    };
    Ok(json.replace(MARK, &literal(text)?).into())
}

/// The same, read.
pub(crate) fn json<T: DeserializeOwned>(
    run: RunId,
    row: &Row,
    at: usize,
    parts: usize,
) -> Result<T, StoreError> {
    serde_json::from_str(&whole(run, row, at, parts)?)
        .map_err(|_| StoreError::Corrupt(format!("column {at} of a row has unexpected JSON")))
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
        let texts = Texts::of(RunId::from_uuid(Uuid::nil()), 1, &[message("yes")]).unwrap();
        assert_eq!(texts.refer(Value::from("[\"yes\"]")), (Value::from("[\"yes\"]"), None));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(text in ".{32,80}", before in ".*", number in 1_u64..100) {
            let message = message(&text);
            let run = RunId::from_uuid(Uuid::now_v7());
            let texts = Texts::of(run, number, std::slice::from_ref(&message)).unwrap();
            let session = format!("{run}:sub_research_0000002a");
            let json = json!({"answer": text, "before": before, "more": [text, format!("{before}{text}")], "in": session});
            let written = Value::json(&json).unwrap();
            let (short, referred) = texts.refer(written.clone());
            prop_assert_eq!(referred, Some(number));
            let Value::Text(shorter) = &short else { panic!("not a text") };
            prop_assert!(!shorter.contains(&serde_json::to_string(&text).unwrap()));
            prop_assert!(!shorter.contains(&run.to_string()));
            let row = Row(vec![short, Value::json(&message.parts).unwrap()]);
            prop_assert_eq!(Value::Text(whole(run, &row, 0, 1).unwrap().into_owned()), written);
        }
    }
}
