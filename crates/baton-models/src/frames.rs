//! Cuts a body into frames: server-sent events, or one JSON object a line.

use crate::fault::Fault;
use crate::lines::Lines;

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

/// Call [`push`](Self::push), then [`advance`](Self::advance) until it says no, looking at [`frame`](Self::frame) each time.
#[derive(Debug)]
pub(crate) struct Frames {
    framing: Framing,
    lines: Lines,
    name: String,
    data: String,
    has_data: bool,
    /// `name` and `data` were handed out and make room for the next frame.
    is_spent: bool,
    /// A byte order mark may precede the very first line.
    at_start: bool,
}

impl Frames {
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            lines: Lines::default(),
            name: String::new(),
            data: String::new(),
            has_data: false,
            is_spent: false,
            at_start: true,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    pub fn frame(&self) -> Frame<'_> {
        Frame { name: &self.name, data: &self.data }
    }

    /// Moves to the next whole frame, if there is one.
    pub fn advance(&mut self) -> Result<bool, Fault> {
        self.clear_if_spent();
        while let Some(line) = self.lines.next() {
            self.check_size(line.len())?;
            if self.take(&line)? {
                return Ok(true);
            }
        }
        self.check_size(0)?;
        Ok(false)
    }

    /// Moves to the frame that the end of the body leaves, if there is one. Some servers forget the last empty line.
    pub fn finish(&mut self) -> Result<bool, Fault> {
        self.clear_if_spent();
        let line = self.lines.rest();
        if !line.is_empty() && self.take(&line)? {
            return Ok(true);
        }
        Ok(self.dispatch())
    }

    fn check_size(&self, line: usize) -> Result<(), Fault> {
        if self.data.len() + self.lines.pending() + line > MAX_FRAME_BYTES {
            return Err(Fault::malformed("a frame is larger than 8 MiB"));
        }
        Ok(())
    }

    /// Reads one line. Lines are cut at ASCII bytes, so a character is never split here, only at the network.
    fn take(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let mut line = str::from_utf8(line).map_err(|_| Fault::malformed("the answer is not UTF-8"))?;
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        match self.framing {
            Framing::Sse if line.is_empty() => Ok(self.dispatch()),
            // No event has such a field: gateways answer some errors as bare JSON under the event-stream type.
            Framing::Sse if line.starts_with('{') && !self.has_data => Ok(self.take_whole(line)),
            Framing::Sse => {
                self.take_field(line);
                Ok(false)
            }
            Framing::Ndjson if line.trim().is_empty() => Ok(false),
            Framing::Ndjson => Ok(self.take_whole(line)),
        }
    }

    fn take_whole(&mut self, line: &str) -> bool {
        self.data.push_str(line);
        self.has_data = true;
        self.dispatch()
    }

    fn take_field(&mut self, line: &str) {
        // A comment has an empty field name and falls through.
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
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

    /// An empty line ends a frame; without data there was none.
    fn dispatch(&mut self) -> bool {
        self.is_spent = true;
        if !self.has_data {
            self.clear_if_spent();
        }
        self.has_data
    }

    fn clear_if_spent(&mut self) {
        if std::mem::take(&mut self.is_spent) {
            self.name.clear();
            self.data.clear();
            self.has_data = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<(String, String)>, Fault> {
        let mut frames = Frames::new(framing);
        let mut found = Vec::new();
        let keep = |frame: Frame<'_>| (frame.name.to_owned(), frame.data.to_owned());
        for piece in pieces {
            frames.push(piece);
            while frames.advance()? {
                found.push(keep(frames.frame()));
            }
        }
        if frames.finish()? {
            found.push(keep(frames.frame()));
        }
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
