//! The JSON of an event, written directly.

use serde::Serialize;

use super::AguiEvent;

impl AguiEvent {
    /// Appends the JSON that serializing the event would yield. Serializing the flattened body goes through an adapter for each of
    /// its fields; here the other fields are written into the object of the body.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let Self { body, subagent, timestamp, metadata } = self;
        append(out, body);
        // The body has at least a type, so a comma follows it in place of the closing brace.
        out.pop();
        if let Some(subagent) = subagent {
            out.extend_from_slice(b",\"subagentRunId\":");
            append(out, subagent);
        }
        out.extend_from_slice(b",\"timestamp\":");
        append(out, timestamp);
        out.extend_from_slice(b",\"metadata\":");
        append(out, metadata);
        out.push(b'}');
    }
}

/// Appends a value as JSON.
pub(crate) fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing to memory cannot fail, and the types have only string keys and finite numbers.
    serde_json::to_writer(out, value).expect("an event is JSON");
}
