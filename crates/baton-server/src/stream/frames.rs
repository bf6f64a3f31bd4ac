//! Frames: events encoded for sending, once for all subscribers.

use std::io::Write as _;

use baton_agui::{AguiEvent, EventWriter, TextDelta};
use bytes::Bytes;

/// Fits the frames of most items.
const BUFFER: usize = 1024;
const ID: &str = "id: ";
const DATA: &[u8] = b"\ndata: ";
const END: &[u8] = b"\n\n";

/// Encodes events as server-sent events: `id: <number>`, `data: <JSON>`, an empty line.
#[derive(Debug, Default)]
pub struct FrameEncoder {
    /// Reused, so that the frames of an item are allocated once and with their size.
    buffer: Vec<u8>,
    writer: EventWriter,
}

impl FrameEncoder {
    /// Encodes the events of one item, which are sent together. The last frame has the id `last`, the others `before`.
    pub fn encode(&mut self, events: &[AguiEvent], before: u64, last: u64) -> Bytes {
        for (at, event) in events.iter().enumerate() {
            let id = if at + 1 == events.len() { last } else { before };
            self.frame(id, |writer, out| writer.write(event, out));
        }
        self.take()
    }

    /// Encodes one delta.
    pub fn encode_piece(&mut self, piece: &TextDelta<'_>, id: u64) -> Bytes {
        self.frame(id, |_, out| piece.write_json(out));
        self.take()
    }

    fn frame(&mut self, id: u64, write_json: impl FnOnce(&mut EventWriter, &mut Vec<u8>)) {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve(BUFFER);
        }
        write!(self.buffer, "{ID}{id}").expect("memory can be written");
        self.buffer.extend_from_slice(DATA);
        write_json(&mut self.writer, &mut self.buffer);
        self.buffer.extend_from_slice(END);
    }

    fn take(&mut self) -> Bytes {
        let frames = Bytes::copy_from_slice(&self.buffer);
        self.buffer.clear();
        frames
    }

    /// Frees the buffers when nothing is expected to be sent soon.
    pub fn rest(&mut self) {
        *self = Self::default();
    }
}

/// The id and the JSON of each frame, without copying.
pub fn events(frames: &Bytes) -> impl Iterator<Item = (u64, Bytes)> {
    let mut rest = frames.clone();
    std::iter::from_fn(move || {
        // The JSON contains no line breaks.
        let end = rest.windows(END.len()).position(|at| at == END)?;
        let frame = rest.split_to(end + END.len());
        let id_end = frame.windows(DATA.len()).position(|at| at == DATA)?;
        let id = std::str::from_utf8(&frame[ID.len()..id_end]).ok()?.parse().ok()?;
        Some((id, frame.slice(id_end + DATA.len()..end)))
    })
}
