//! What a server writes to its standard output, on the way to the protocol reader.
//!
//! One line is one message. A line that is too long would fill the memory or, when it is dropped, leave its caller
//! waiting; here it becomes an error answer to the same call. A line that is no message (a banner, a stray `print`)
//! is kept for error messages and goes no further.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::process::Tail;

/// One message. Far above what a model can read, and what a call's text is cut to.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// A line that goes on for longer has no end: the server is not listened to any more.
const MAX_SKIPPED_BYTES: usize = 8 * MAX_LINE_BYTES;
/// JSON-RPC leaves this range to implementations.
pub(crate) const TOO_LONG: i32 = -32_099;
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) struct Stdout<R> {
    inner: R,
    lines: OutputLines,
    chunk: Box<[u8]>,
    given: usize,
}

impl<R> Stdout<R> {
    pub fn new(inner: R, noise: Tail) -> Self {
        let lines = OutputLines {
            limit: MAX_LINE_BYTES,
            skipped: MAX_SKIPPED_BYTES,
            noise,
            ..OutputLines::default()
        };
        Self { inner, lines, chunk: vec![0; CHUNK_BYTES].into(), given: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Stdout<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = &mut *self;
        while this.given == this.lines.out.len() {
            this.lines.out.clear();
            this.given = 0;
            // The reader takes this for the end of the output, and stops the server.
            if this.lines.is_endless {
                return Poll::Ready(Ok(()));
            }
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                this.lines.finish();
                return Poll::Ready(Ok(()));
            }
            this.lines.feed(chunk.filled());
        }
        let ready = &this.lines.out[this.given..];
        let count = ready.len().min(buffer.remaining());
        buffer.put_slice(&ready[..count]);
        this.given += count;
        Poll::Ready(Ok(()))
    }
}

/// The bytes of messages pass through as they come, so that no line is held twice.
#[derive(Default)]
struct OutputLines {
    limit: usize,
    /// Bytes of a line until it is taken for endless.
    skipped: usize,
    is_endless: bool,
    noise: Tail,
    line: OutputLine,
    out: Vec<u8>,
}

#[derive(Default)]
struct OutputLine {
    bytes: usize,
    /// The beginning, for messages about noise.
    head: Vec<u8>,
    kind: LineKind,
    outline: Outline,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum LineKind {
    #[default]
    Blank,
    Message,
    TooLong,
    Noise,
}

impl OutputLines {
    fn feed(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, ended) = match part.strip_suffix(b"\n") {
                Some(content) => (content, true),
                None => (part, false),
            };
            self.extend(content);
            if ended {
                self.end_line();
            } else if self.line.bytes > self.skipped {
                self.cut_off();
                return;
            }
        }
    }

    /// Answers the call of an endless line if its id is known, and ends the output.
    fn cut_off(&mut self) {
        let text = format!("a line of more than {} bytes, which was not read to its end", self.skipped);
        self.noise.push(text.as_bytes());
        self.end_line();
        self.is_endless = true;
    }

    fn extend(&mut self, content: &[u8]) {
        let line = &mut self.line;
        if line.kind == LineKind::Blank {
            let first = content.iter().find(|byte| !byte.is_ascii_whitespace());
            line.kind = match first {
                None => LineKind::Blank,
                // The last one is the first byte of a byte order mark.
                Some(b'{' | b'[' | 0xEF) => LineKind::Message,
                Some(_) => LineKind::Noise,
            };
        }
        match line.kind {
            LineKind::Blank => {}
            LineKind::Noise => Tail::extend(&mut line.head, content),
            LineKind::Message if line.bytes + content.len() > self.limit => {
                line.kind = LineKind::TooLong;
                line.outline.feed(content);
                // What was passed on is cut off here; half a message is ignored by the reader.
                self.out.push(b'\n');
            }
            LineKind::Message => {
                line.outline.feed(content);
                self.out.extend_from_slice(content);
            }
            LineKind::TooLong => line.outline.feed(content),
        }
        line.bytes += content.len();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        match line.kind {
            LineKind::Blank => {}
            LineKind::Noise => self.noise.push(&line.head),
            LineKind::Message => self.out.push(b'\n'),
            LineKind::TooLong => match line.outline.answered_id() {
                Some(id) => {
                    let message =
                        format!("the answer has {} bytes, and at most {} are read", line.bytes, self.limit);
                    let error = serde_json::json!({ "code": TOO_LONG, "message": message });
                    let answer = serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error });
                    self.out.extend_from_slice(format!("{answer}\n").as_bytes());
                }
                None => tracing::warn!(bytes = line.bytes, "dropped a message of an MCP server: too long"),
            },
        }
    }

    fn finish(&mut self) {
        if self.line.kind == LineKind::Noise {
            self.end_line();
        }
    }
}

/// The top-level keys of a message, read without keeping it: whose answer it is may stand at its very end.
#[derive(Default)]
struct Outline {
    depth: usize,
    place: JsonPosition,
    in_value: bool,
    key: Vec<u8>,
    id: Vec<u8>,
    is_call: bool,
}

#[derive(Default, Clone, Copy)]
enum JsonPosition {
    #[default]
    Structure,
    String,
    Escape,
}

impl Outline {
    /// Ids are small; what is longer is not one of ours.
    const MAX_BYTES: usize = 64;

    fn answered_id(&self) -> Option<serde_json::Value> {
        if self.is_call { None } else { serde_json::from_slice(&self.id).ok() }
    }

    fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.place = match (self.place, byte) {
                (JsonPosition::Structure, b'"') | (JsonPosition::Escape, _) => JsonPosition::String,
                (JsonPosition::Structure, _) => {
                    self.structure(byte);
                    continue;
                }
                (JsonPosition::String, b'\\') => JsonPosition::Escape,
                (JsonPosition::String, b'"') => JsonPosition::Structure,
                (JsonPosition::String, _) => JsonPosition::String,
            };
            self.keep(byte);
        }
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.in_value = true;
                self.is_call |= self.key == b"\"method\"";
            }
            b',' if self.depth == 1 => {
                self.in_value = false;
                self.key.clear();
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        let kept = match (self.depth, self.in_value) {
            (1, false) => &mut self.key,
            (1, true) if self.key == b"\"id\"" => &mut self.id,
            _ => return,
        };
        if kept.len() < Self::MAX_BYTES {
            kept.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes, and what is kept as noise, with the input cut into pieces of every size.
    fn filtered(text: &str) -> (String, String) {
        let results: Vec<_> = (1..=text.len())
            .map(|size| {
                let noise = Tail::default();
                let noise_of = noise.clone();
                let mut lines =
                    OutputLines { limit: 60, skipped: 4000, noise: noise_of, ..OutputLines::default() };
                text.as_bytes().chunks(size).for_each(|piece| lines.feed(piece));
                lines.finish();
                // Half of a long line passes before its length is known; how much depends on the pieces.
                let out = String::from_utf8(lines.out).unwrap();
                let whole = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_ok();
                (out.lines().filter(whole).map(str::trim).collect::<Vec<_>>().join("\n"), noise.text())
            })
            .collect();
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:#?}");
        results[0].clone()
    }

    #[test]
    fn messages_pass_and_noise_stays() {
        let text = "Starting…\n{\"id\":1}\r\n\n  {\"id\":2}\nfatal: no";
        assert_eq!(filtered(text), ("{\"id\":1}\n{\"id\":2}".into(), "Starting…\nfatal: no".into()));
    }

    #[test]
    fn a_long_answer_becomes_an_error_of_the_same_call() {
        let long = "x\\\"}{,\\\"id\\\":9".repeat(9);
        for (text, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"id":8,"t":"{long}"}}}}"#), "7"),
            (
                format!(r#"{{"result":{{"id":8,"t":["{long}"]}},"jsonrpc":"2.0", "id" : "a\"7" }}"#),
                r#""a\"7""#,
            ),
        ] {
            let (out, _) = filtered(&format!("{text}\n{{\"id\":3}}\n"));
            let expected = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32099,"message":"the answer has {} bytes, and at most 60 are read"}}}}"#,
                text.len()
            );
            assert_eq!(out, format!("{expected}\n{{\"id\":3}}"));
        }
        for dropped in [format!(r#"{{"method":"m","id":7,"t":"{long}"}}"#), format!(r#"{{"t":"{long}"}}"#)] {
            assert_eq!(filtered(&format!("{dropped}\n{{\"id\":3}}\n")).0, "{\"id\":3}");
        }
    }

    #[test]
    fn an_endless_line_ends_the_output() {
        let noise = Tail::default();
        let mut lines =
            OutputLines { limit: 60, skipped: 200, noise: noise.clone(), ..OutputLines::default() };
        lines.feed(br#"{"id":7,"result":""#);
        lines.feed(&[b'x'; 150]);
        assert!(!lines.is_endless);
        lines.feed(&[b'x'; 150]);
        assert!(lines.is_endless);
        let out = String::from_utf8(lines.out).unwrap();
        assert!(
            out.lines().last().unwrap().starts_with(r#"{"error":{"code":-32099"#)
                || out.contains(r#""id":7,"error""#),
            "{out}"
        );
        assert_eq!(noise.text(), "a line of more than 200 bytes, which was not read to its end");
    }
}
