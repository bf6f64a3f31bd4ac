//! Reads a frame of text by comparing it with the one before.

/// What surrounds the text of the last frame that held nothing but text.
///
/// Most frames of a reply differ in their text only. Such a frame need not be parsed: with the same bytes around it, a string without
/// quotation marks, escapes and control characters is the text, and everything else is as it was.
#[derive(Debug, Default)]
pub(super) struct TextTemplate {
    /// Ends with the quotation mark before the text. Empty until a frame was learned.
    before: String,
    after: String,
}

impl TextTemplate {
    /// The text of a frame that differs from the learned one in its text only.
    pub fn text<'a>(&self, frame: &'a str) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        let text = frame.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        (!text.is_empty() && text.bytes().all(is_plain)).then_some(text)
    }

    /// Learns from a frame. `text` is a part of `frame`: its only content, borrowed.
    pub fn learn(&mut self, frame: &str, text: &str) {
        let start = text.as_ptr().addr().wrapping_sub(frame.as_ptr().addr());
        let parts = frame.split_at_checked(start);
        if let Some((before, after)) =
            parts.and_then(|(before, rest)| Some((before, rest.strip_prefix(text)?)))
        {
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
        }
    }
}

/// Whether a byte of a JSON string needs no escape.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &str = r#"{"choices":[{"delta":{"content":"one"},"finish_reason":null}]}"#;

    fn learned() -> TextTemplate {
        let mut template = TextTemplate::default();
        assert_eq!(template.text(FRAME), None, "nothing is known yet");
        let start = FRAME.find("one").unwrap();
        template.learn(FRAME, &FRAME[start..start + 3]);
        template
    }

    #[test]
    fn frames_with_another_text_are_read() {
        for text in ["two", "a", " ä😀", "{}[]:,"] {
            assert_eq!(learned().text(&FRAME.replace("one", text)), Some(text));
        }
    }

    #[test]
    fn other_frames_are_left_to_the_parser() {
        let stop = FRAME.replace("null", r#""stop""#);
        let more = FRAME.replace("one", r#"one","refusal":"no"#);
        let (escaped, broken) = (FRAME.replace("one", r"a\nb"), FRAME.replace("one", "a\nb"));
        for other in [&stop, &more, &escaped, &broken, &FRAME.replace("one", ""), &FRAME[..40], ""] {
            assert_eq!(learned().text(other), None, "{other}");
        }
    }
}
