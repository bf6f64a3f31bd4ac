//! Server-sent events: writing frames, and an incremental reader with a size limit.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

/// A comment, which keeps an idle connection open.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// One event with one `data:` line. JSON never contains a line break, because serde escapes them in strings.
pub fn frame(json: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(json.len() + 8);
    frame.extend_from_slice(b"data: ");
    frame.extend_from_slice(json.as_bytes());
    frame.extend_from_slice(b"\n\n");
    frame.freeze()
}

/// An error within a stream of REST, as the official JavaScript SDK writes it.
pub fn error_frame(json: &str) -> Bytes {
    let mut frame = BytesMut::from(&b"event: error\n"[..]);
    frame.extend_from_slice(&self::frame(json));
    frame.freeze()
}

/// One received event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// `message` if the stream does not say.
    pub event: String,
    /// The `data` lines, joined with line breaks.
    pub data: String,
}

/// Why a stream cannot be read further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

/// Splits a stream into events. Memory is bounded by the limit for one event plus the chunk that is read.
#[derive(Debug)]
pub struct SseReader {
    max_event_bytes: usize,
    line: Vec<u8>,
    event: String,
    data: Vec<String>,
    /// Bytes of the event so far.
    held: usize,
    ends_with_cr: bool,
}

impl SseReader {
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            line: Vec::new(),
            event: String::new(),
            data: Vec::new(),
            held: 0,
            ends_with_cr: false,
        }
    }

    /// Reads a chunk and returns the events that it completes. An event without a final empty line is dropped at the end of the
    /// stream, as the standard demands.
    pub fn read(&mut self, mut chunk: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        if self.ends_with_cr && chunk.first() == Some(&b'\n') {
            chunk = &chunk[1..];
        }
        self.ends_with_cr = self.ends_with_cr && chunk.is_empty();
        while let Some(at) = memchr2(b'\n', b'\r', chunk) {
            self.hold(&chunk[..at])?;
            let is_cr = chunk[at] == b'\r';
            chunk = &chunk[at + 1..];
            if is_cr && chunk.first() == Some(&b'\n') {
                chunk = &chunk[1..];
            } else {
                self.ends_with_cr = is_cr && chunk.is_empty();
            }
            events.extend(self.end_line()?);
        }
        self.hold(chunk)?;
        Ok(events)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        self.held += bytes.len();
        if self.held > self.max_event_bytes {
            return Err(SseError::TooLarge(self.max_event_bytes));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, SseError> {
        let line = String::from_utf8(std::mem::take(&mut self.line)).map_err(|_| SseError::NotUtf8)?;
        if line.is_empty() {
            return Ok(self.end_event());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data.push(value.to_owned()),
            "event" => value.clone_into(&mut self.event),
            // A comment, or a field that this reader does not need. It does not count towards the event's size.
            _ => self.held -= line.len(),
        }
        Ok(None)
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        self.held = 0;
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if data.is_empty() {
            return None;
        }
        let event = if event.is_empty() { "message".to_owned() } else { event };
        Some(SseEvent { event, data: data.join("\n") })
    }
}
