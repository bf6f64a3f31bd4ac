//! Cuts a stream of bytes into lines.

use bytes::{Buf, BytesMut};

/// Lines end with LF, CRLF or CR, as server-sent events allow. A line is never copied on its way out, and no byte is
/// looked at twice, however small the pieces are in which it arrives.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// How many bytes of the buffer are known to hold no line end.
    scanned: usize,
    /// The last line ended with CR; an LF that follows belongs to it, even if it comes much later.
    after_cr: bool,
}

impl Lines {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, without its end.
    pub fn next(&mut self) -> Option<BytesMut> {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let fresh = &self.buffer[self.scanned..];
        let Some(found) = fresh.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.scanned + found);
        self.after_cr = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        self.scanned = 0;
        Some(line)
    }

    /// What is left when no more bytes come: a last line without an end.
    pub fn rest(&mut self) -> BytesMut {
        self.scanned = 0;
        self.buffer.split()
    }

    /// Bytes that wait for the end of their line.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece);
            while let Some(line) = lines.next() {
                found.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        found.push(String::from_utf8(lines.rest().to_vec()).unwrap());
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
