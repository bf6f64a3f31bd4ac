//! The JSON of events, written directly.

use serde::Serialize;

use super::{AguiEvent, EventOrigin};

/// Origins that are kept. Most events of a stream have one of two.
const MAX_ORIGINS: usize = 4;

/// Writes the events of a stream as JSON. The origin of an event, which many events share, is written once and then copied.
#[derive(Debug, Default)]
pub struct EventWriter {
    /// Origins, each with its JSON up to the sequence number.
    origins: Vec<(EventOrigin, Vec<u8>)>,
}

impl EventWriter {
    /// Appends the JSON that serializing the event would yield. Serializing the flattened body goes through an adapter for each of
    /// its fields; here the other fields are written into the object of the body.
    pub fn write(&mut self, event: &AguiEvent, out: &mut Vec<u8>) {
        let AguiEvent { body, subagent, timestamp, metadata } = event;
        append(out, body);
        // The body has at least a type, so a comma follows it in place of the closing brace.
        out.pop();
        if let Some(subagent) = subagent {
            out.extend_from_slice(b",\"subagentRunId\":");
            append(out, subagent);
        }
        out.extend_from_slice(b",\"timestamp\":");
        append(out, timestamp);
        out.extend_from_slice(b",\"metadata\":{\"baton\":");
        out.extend_from_slice(self.origin(&metadata.baton));
        append(out, &metadata.baton.seq);
        out.extend_from_slice(b"}}}");
    }

    /// The JSON of an origin up to the value of its last field, the sequence number.
    fn origin(&mut self, origin: &EventOrigin) -> &[u8] {
        let found = self.origins.iter().position(|(known, _)| known.is_same_place(origin));
        let at = found.unwrap_or_else(|| {
            if self.origins.len() == MAX_ORIGINS {
                self.origins.clear();
            }
            let origin = EventOrigin { seq: 0, ..origin.clone() };
            let mut json = Vec::with_capacity(256);
            append(&mut json, &origin);
            json.truncate(json.len() - b"0}".len());
            self.origins.push((origin, json));
            self.origins.len() - 1
        });
        &self.origins[at].1
    }
}

/// Appends a value as JSON.
pub(crate) fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing to memory cannot fail, and the types have only string keys and finite numbers.
    serde_json::to_writer(out, value).expect("an event is JSON");
}
