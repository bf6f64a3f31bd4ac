//! Frames: events encoded for sending, once for all subscribers.

use bytes::{BufMut as _, Bytes, BytesMut};
use std::io::Write as _;

use baton_agui::{AguiEvent, TextDelta};

/// Fits a few deltas. The buffer is reused while the reader keeps up.
const BUFFER: usize = 1024;
const DATA: &[u8] = b"\ndata: ";
const END: &[u8] = b"\n\n";

/// Encodes events as server-sent events: `id: <number>`, `data: <JSON>`, an empty line.
#[derive(Debug, Default)]
pub struct FrameEncoder {
    buffer: BytesMut,
}

impl FrameEncoder {
    /// Encodes the events of one item, which are sent together. The last frame has the id `last`, the others `before`.
    pub fn encode(&mut self, events: &[AguiEvent], before: u64, last: u64) -> Bytes {
        for (at, event) in events.iter().enumerate() {
            let id = if at + 1 == events.len() { last } else { before };
            self.frame(id, |out| Ok(serde_json::to_writer(out, event)?));
        }
        self.buffer.split().freeze()
    }

    /// Encodes one delta.
    pub fn encode_piece(&mut self, piece: &TextDelta<'_>, id: u64) -> Bytes {
        self.frame(id, |mut out| piece.write_json(&mut out));
        self.buffer.split().freeze()
    }

    fn frame(
        &mut self,
        id: u64,
        data: impl FnOnce(&mut bytes::buf::Writer<&mut BytesMut>) -> std::io::Result<()>,
    ) {
        if self.buffer.capacity() < BUFFER / 2 {
            self.buffer.reserve(BUFFER);
        }
        let mut out = (&mut self.buffer).writer();
        // Writing to memory cannot fail, and the types contain only string keys and finite numbers.
        write!(out, "id: {id}\ndata: ").and_then(|()| data(&mut out)).expect("an event is JSON");
        self.buffer.extend_from_slice(END);
    }

    /// Frees the buffer when nothing is expected to be sent soon.
    pub fn rest(&mut self) {
        self.buffer = BytesMut::new();
    }
}

/// The JSON of each frame, without copying.
pub fn events(frames: &Bytes) -> impl Iterator<Item = Bytes> {
    let mut rest = frames.clone();
    std::iter::from_fn(move || {
        // The JSON contains no line breaks.
        let end = rest.windows(END.len()).position(|at| at == END)?;
        let frame = rest.split_to(end + END.len());
        let start = frame.windows(DATA.len()).position(|at| at == DATA)? + DATA.len();
        Some(frame.slice(start..end))
    })
}
