//! Cuts a body into frames: server-sent events, or one JSON object a line.

use crate::fault::ModelFault;
use crate::lines::LineReader;

/// No provider sends frames of this size; one that does must not fill our memory.
pub(crate) const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream`.
    Sse,
    /// Newline-delimited JSON.
    Ndjson,
}

impl Framing {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The `event:` field; empty when there is none.
    pub name: &'a str,
    pub data: &'a str,
}

/// Cuts what arrives into frames. A frame whose lines arrive together is borrowed from what arrived.
#[derive(Debug)]
pub(crate) struct FrameReader {
    framing: Framing,
    lines: LineReader,
    event: FrameEvent,
    /// A byte order mark may precede the very first line.
    at_start: bool,
}

/// The event whose lines are being read.
#[derive(Debug, Default)]
struct FrameEvent {
    name: String,
    data: String,
    has_data: bool,
}

impl FrameReader {
    pub fn new(framing: Framing) -> Self {
        Self { framing, lines: LineReader::default(), event: FrameEvent::default(), at_start: true }
    }

    /// Calls `each` for every frame that is whole now, until it returns something.
    pub fn feed<T>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Frame<'_>) -> Result<Option<T>, ModelFault>,
    ) -> Result<Option<T>, ModelFault> {
        let Self { framing, lines, event, at_start } = self;
        while let Some(line) = lines.next(&mut bytes) {
            check_size(event.data.len() + line.bytes.len())?;
            let text = text(line.bytes, at_start)?;
            if let Some(found) = event.take(*framing, text, line.before_empty, &mut each)? {
                return Ok(Some(found));
            }
        }
        check_size(event.data.len() + lines.pending())?;
        Ok(None)
    }

    /// Calls `each` for the frame that the end of the body leaves, if there is one. Some servers forget the last empty
    /// line.
    pub fn finish<T>(
        &mut self,
        mut each: impl FnMut(Frame<'_>) -> Result<Option<T>, ModelFault>,
    ) -> Result<Option<T>, ModelFault> {
        let line = self.lines.rest();
        let found = match text(&line, &mut self.at_start)? {
            "" => None,
            text => self.event.take(self.framing, text, true, &mut each)?,
        };
        if found.is_some() { Ok(found) } else { self.event.dispatch(&mut each) }
    }
}

fn check_size(bytes: usize) -> Result<(), ModelFault> {
    if bytes > MAX_FRAME_BYTES {
        return Err(ModelFault::malformed("a frame is larger than 8 MiB"));
    }
    Ok(())
}

/// Lines are cut at ASCII bytes, so a character is never split here, only at the network.
fn text<'a>(line: &'a [u8], at_start: &mut bool) -> Result<&'a str, ModelFault> {
    let line = str::from_utf8(line).map_err(|_| ModelFault::malformed("the answer is not UTF-8"))?;
    Ok(if std::mem::take(at_start) { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line })
}

impl FrameEvent {
    /// Reads one line. `is_last`: an empty line follows it, so that a frame of one line need not be kept.
    fn take<T>(
        &mut self,
        framing: Framing,
        line: &str,
        is_last: bool,
        each: &mut impl FnMut(Frame<'_>) -> Result<Option<T>, ModelFault>,
    ) -> Result<Option<T>, ModelFault> {
        match framing {
            Framing::Ndjson if line.trim().is_empty() => Ok(None),
            Framing::Ndjson => self.hand_out(line, each),
            Framing::Sse if line.is_empty() => self.dispatch(each),
            // No event has such a field: gateways answer some errors as bare JSON under the event-stream type.
            Framing::Sse if line.starts_with('{') && !self.has_data => self.hand_out(line, each),
            Framing::Sse => match field(line) {
                ("data", value) if is_last && !self.has_data => self.hand_out(value, each),
                (name, value) => {
                    self.take_field(name, value);
                    Ok(None)
                }
            },
        }
    }

    fn take_field(&mut self, name: &str, value: &str) {
        match name {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.name),
            _ => {}
        }
    }

    /// A frame that was not kept.
    fn hand_out<T>(
        &mut self,
        data: &str,
        each: &mut impl FnMut(Frame<'_>) -> Result<Option<T>, ModelFault>,
    ) -> Result<Option<T>, ModelFault> {
        let found = each(Frame { name: &self.name, data });
        self.clear();
        found
    }

    /// An empty line ends a frame; without data there was none.
    fn dispatch<T>(
        &mut self,
        each: &mut impl FnMut(Frame<'_>) -> Result<Option<T>, ModelFault>,
    ) -> Result<Option<T>, ModelFault> {
        let found = if self.has_data { each(Frame { name: &self.name, data: &self.data }) } else { Ok(None) };
        self.clear();
        found
    }

    fn clear(&mut self) {
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }
}

/// A comment has an empty name.
fn field(line: &str) -> (&str, &str) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name, value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<(String, String)>, ModelFault> {
        let mut frames = FrameReader::new(framing);
        let mut found = Vec::new();
        let mut keep = |frame: Frame<'_>| {
            found.push((frame.name.to_owned(), frame.data.to_owned()));
            Ok(None::<()>)
        };
        for piece in pieces {
            frames.feed(piece, &mut keep)?;
        }
        frames.finish(&mut keep)?;
        Ok(found)
    }

    fn pair(name: &str, data: &str) -> (String, String) {
        (name.into(), data.into())
    }

    #[test]
    fn events_at_every_split() {
        let text = "\u{feff}: hello\nevent: a\ndata: one\ndata:two\nid: 7\n\n\n:ping\r\n\r\ndata: drei ä€😀\r\r\
                    event: empty\n\ndata\n\nevent: last\ndata: {\"x\": 1}";
        let expected =
            vec![pair("a", "one\ntwo"), pair("", "drei ä€😀"), pair("", ""), pair("last", "{\"x\": 1}")];
        let bytes = text.as_bytes();
        for at in 0..=bytes.len() {
            assert_eq!(frames(Framing::Sse, &[&bytes[..at], &bytes[at..]]), Ok(expected.clone()), "at {at}");
        }
    }

    #[test]
    fn objects_a_line() {
        let found = frames(Framing::Ndjson, &[b"{\"a\":1}\n\n  \n{\"b\"", b":2}\r\n{\"c\":3}"]);
        assert_eq!(found, Ok(vec![pair("", "{\"a\":1}"), pair("", "{\"b\":2}"), pair("", "{\"c\":3}")]));
    }

    #[test]
    fn an_error_without_a_field_is_a_frame() {
        let found = frames(Framing::Sse, &[b"{\"error\":\"no\"}"]);
        assert_eq!(found, Ok(vec![pair("", "{\"error\":\"no\"}")]));
    }

    #[test]
    fn size_and_encoding_are_checked() {
        let huge = vec![b'x'; MAX_FRAME_BYTES + 1];
        for framing in [Framing::Sse, Framing::Ndjson] {
            assert!(frames(framing, &[&huge]).is_err(), "one line");
            assert!(frames(framing, &[b"data: \xff\xfe\n\n"]).is_err(), "not UTF-8");
        }
        let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
        let many: Vec<&[u8]> = vec![&line; 9];
        assert!(frames(Framing::Sse, &many).is_err(), "many lines of one frame");
    }

    #[test]
    fn a_frame_that_arrives_whole_is_not_copied() {
        let bytes = b"event: a\ndata: one\n\ndata: two\r\n\r\n";
        let mut frames = FrameReader::new(Framing::Sse);
        let mut count = 0;
        let check = |frame: Frame<'_>| {
            count += 1;
            assert!(bytes.as_ptr_range().contains(&frame.data.as_ptr()), "{frame:?}");
            Ok(None::<()>)
        };
        frames.feed(bytes, check).unwrap();
        assert_eq!(count, 2);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_read_the_same(bytes: Vec<u8>, cuts: Vec<prop::sample::Index>) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            for framing in [Framing::Sse, Framing::Ndjson] {
                prop_assert_eq!(frames(framing, &pieces), frames(framing, &[&bytes]));
            }
        }
    }
}
