//! Cuts a stream of bytes into lines.

/// Lines end with LF, CRLF or CR, as server-sent events allow. A line that arrives in one piece is borrowed from that
/// piece; only a line that is split between pieces is copied. No byte is looked at twice.
#[derive(Debug, Default)]
pub(crate) struct LineReader {
    /// The beginning of a line whose end has not arrived. Holds no line end.
    pending: Vec<u8>,
    /// `pending` was handed out as a line and makes room for the next.
    is_spent: bool,
    /// The last line ended with CR; an LF that follows belongs to it, even if it comes much later.
    after_cr: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TextLine<'a> {
    /// Without its end.
    pub bytes: &'a [u8],
    /// The next line has arrived too, and is empty.
    pub before_empty: bool,
}

impl LineReader {
    /// Takes the next whole line from the front of `bytes`. Keeps a line that is not whole.
    pub fn next<'a, 'b: 'a>(&'a mut self, bytes: &mut &'b [u8]) -> Option<TextLine<'a>> {
        if std::mem::take(&mut self.is_spent) {
            self.pending.clear();
        }
        self.skip_lf(bytes);
        let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
            self.pending.extend_from_slice(bytes);
            *bytes = &[];
            return None;
        };
        let (line, rest) = bytes.split_at(end);
        self.after_cr = rest[0] == b'\r';
        *bytes = &rest[1..];
        let next = if self.after_cr { bytes.strip_prefix(b"\n").unwrap_or(bytes) } else { bytes };
        let before_empty = matches!(next.first(), Some(b'\n' | b'\r'));
        if self.pending.is_empty() {
            return Some(TextLine { bytes: line, before_empty });
        }
        self.pending.extend_from_slice(line);
        self.is_spent = true;
        Some(TextLine { bytes: &self.pending, before_empty })
    }

    /// What is left when no more bytes come: a last line without an end.
    pub fn rest(&mut self) -> Vec<u8> {
        if std::mem::take(&mut self.is_spent) {
            self.pending.clear();
        }
        std::mem::take(&mut self.pending)
    }

    /// Bytes that wait for the end of their line.
    pub fn pending(&self) -> usize {
        if self.is_spent { 0 } else { self.pending.len() }
    }

    fn skip_lf(&mut self, bytes: &mut &[u8]) {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = LineReader::default();
        let mut found = Vec::new();
        for piece in pieces {
            let mut piece = *piece;
            while let Some(line) = lines.next(&mut piece) {
                found.push(String::from_utf8(line.bytes.to_vec()).unwrap());
            }
        }
        found.push(String::from_utf8(lines.rest()).unwrap());
        found
    }

    #[test]
    fn every_line_end_at_every_split() {
        let bytes = "a\nb\r\nc\rd\n\n\r\n\r\rä\r\nrest".as_bytes();
        let expected = ["a", "b", "c", "d", "", "", "", "", "ä", "rest"];
        assert_eq!(lines(&[bytes]), expected);
        for at in 0..=bytes.len() {
            assert_eq!(lines(&[&bytes[..at], &bytes[at..]]), expected, "split at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(lines(&single), expected);
    }
}
