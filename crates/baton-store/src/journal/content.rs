//! The compressed content of a journal row.
//!
//! The three JSON arrays of a row are lines of one text, because serialized JSON has no line breaks. Most of the text is names of
//! fields, which LZ4 replaces by references to a dictionary that is part of the program. The rows of a plain answer take less
//! than a third of their size, which saves pages, and the processor time to write them.
//!
//! The first byte is the format. Format 1 is followed by the length of the text (four bytes, little-endian) and an LZ4 block. A
//! changed dictionary needs a new format, so that rows of older versions stay readable.

use baton_core::StoreError;
use lz4_flex::block::{compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size};

use crate::value::{Row, SqlValue};

const PLAIN: u8 = 0;
const LZ4: u8 = 1;
/// Format and length.
const HEAD: usize = 5;
/// An LZ4 block is never shorter than its text by more than this factor.
const MAX_RATIO: usize = 255;

/// Typical rows, with the most frequent ones last.
static DICTIONARY: &[u8] = include_bytes!("dictionary.txt");

/// The arrays of a row as JSON, empty where there are no items.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    pub(super) events: String,
    pub(super) steps: String,
    pub(super) sessions: String,
}

impl Arrays {
    pub(super) fn compress(self) -> SqlValue {
        let Self { events: mut text, steps, sessions } = self;
        for array in [steps, sessions] {
            text.push('\n');
            text.push_str(&array);
        }
        SqlValue::Blob(compress(&text))
    }
}

fn compress(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; HEAD + get_maximum_output_size(text.len())];
    let length = u32::try_from(text.len()).ok();
    let written = compress_into_with_dict(text.as_bytes(), &mut bytes[HEAD..], DICTIONARY).ok();
    if let (Some(length), Some(written)) = (length, written.filter(|written| *written < text.len())) {
        bytes[0] = LZ4;
        bytes[1..HEAD].copy_from_slice(&length.to_le_bytes());
        bytes.truncate(HEAD + written);
    } else {
        bytes.truncate(1);
        bytes[0] = PLAIN;
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

fn decompress(bytes: &[u8]) -> Option<String> {
    let text = match bytes.split_first()? {
        (&PLAIN, text) => text.to_vec(),
        (&LZ4, rest) => {
            let (length, block) = rest.split_first_chunk()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            // A damaged row must not reserve gigabytes.
            if length > block.len().saturating_mul(MAX_RATIO) {
                return None;
            }
            let mut text = vec![0; length];
            let written = decompress_into_with_dict(block, &mut text, DICTIONARY).ok()?;
            text.truncate(written);
            text
        }
        _ => return None,
    };
    String::from_utf8(text).ok()
}

/// The content of a row, decompressed.
#[derive(Debug)]
pub(super) struct Content(String);

impl Content {
    pub(super) fn read(row: &Row, at: usize) -> Result<Self, StoreError> {
        let text = decompress(row.blob(at)?);
        text.map(Self).ok_or_else(|| StoreError::Unreadable("a row of the journal is damaged".to_owned()))
    }

    pub(super) fn events(&self) -> Option<&str> {
        self.line(0)
    }

    pub(super) fn steps(&self) -> Option<&str> {
        self.line(1)
    }

    pub(super) fn sessions(&self) -> Option<&str> {
        self.line(2)
    }

    /// The content with a text replaced by another, or `None` if it does not have it.
    pub(super) fn replaced(&self, from: &str, to: &str) -> Option<SqlValue> {
        self.0.contains(from).then(|| SqlValue::Blob(compress(&self.0.replace(from, to))))
    }

    fn line(&self, number: usize) -> Option<&str> {
        self.0.split('\n').nth(number).filter(|line| !line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(events: &str, steps: &str, sessions: &str) -> (Content, usize) {
        let arrays = Arrays { events: events.into(), steps: steps.into(), sessions: sessions.into() };
        let row = Row(vec![arrays.compress()]);
        let size = row.blob(0).unwrap().len();
        (Content::read(&row, 0).unwrap(), size)
    }

    proptest! {
        #[test]
        fn arrays_are_read_as_they_were_written(texts in prop::array::uniform3("[^\n]{0,300}")) {
            let (read, _) = content(&texts[0], &texts[1], &texts[2]);
            let lines = [read.events(), read.steps(), read.sessions()].map(Option::unwrap_or_default);
            prop_assert_eq!(lines, texts.each_ref().map(String::as_str));
        }

        #[test]
        fn damaged_content_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = decompress(&bytes);
            prop_assert_eq!(decompress(&[&[LZ4, 255, 255, 255, 255], bytes.as_slice()].concat()), None);
        }
    }

    /// The dictionary has to resemble what is written.
    #[test]
    fn a_row_shrinks_by_a_third_at_least() {
        let text = "[[1794957640256220879,\"guide\",[0,\"guide/turn:1\"],\"user\",{\"kind\":\"text_finished\",\
            \"message_id\":\"01a1ebd0-022d-73cb-9deb-eee79a4b2a85\",\"speaker\":\"Guide\",\"text\":\u{1}}],\
            [1794957640256379125,\"guide\",[5,\"\"],\"internal\",{\"kind\":\"session_finished\",\"session_id\":\"\u{2}\"}]]";
        let (read, size) = content(text, "", "");
        assert_eq!((read.events(), read.steps(), read.sessions()), (Some(text), None, None));
        assert!(size * 3 <= text.len() * 2, "{size} of {}", text.len());
    }
}
