//! Fast path for deltas of open texts, which are most of a stream. They are written as JSON from a template, without an event in
//! between: only delta, timestamp and sequence number differ between the deltas of a text.

use std::ops::Range;

use baton_core::event::{Event, EventKind};

use super::event_context::EventContext;
use super::texts::PieceOrigin;
use super::{Projection, RunPhase, text_kind};
use crate::wire::{AguiEvent, EventBody, EventWriter, append};

/// A delta of an open text, ready to be written.
#[derive(Debug)]
pub struct TextDelta<'a> {
    template: &'a DeltaTemplate,
    delta: &'a str,
    timestamp: i64,
    seq: u64,
}

impl TextDelta<'_> {
    /// Appends the JSON that serializing the delta's [`AguiEvent`] would yield.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let DeltaTemplate { json, delta, timestamp, seq } = self.template;
        out.extend_from_slice(json[..delta.start].as_bytes());
        append(out, self.delta);
        out.extend_from_slice(json[delta.end..timestamp.start].as_bytes());
        append(out, &self.timestamp);
        out.extend_from_slice(json[timestamp.end..seq.start].as_bytes());
        append(out, &self.seq);
        out.extend_from_slice(json[seq.end..].as_bytes());
    }
}

/// The JSON of a text's deltas, with the byte ranges of the values that differ.
#[derive(Debug)]
pub(super) struct DeltaTemplate {
    json: Box<str>,
    delta: Range<usize>,
    timestamp: Range<usize>,
    seq: Range<usize>,
}

impl DeltaTemplate {
    /// Builds the template from the event of any delta. Returns `None` for other events.
    pub(super) fn of(mut event: AguiEvent) -> Option<Self> {
        match &mut event.body {
            EventBody::TextMessageContent { delta, .. }
            | EventBody::ReasoningMessageContent { delta, .. } => {
                delta.clear();
            }
            _ => return None,
        }
        event.timestamp = 0;
        event.metadata.baton.seq = 0;
        let mut json = Vec::with_capacity(512);
        EventWriter::default().write(&event, &mut json);
        let json = String::from_utf8(json).ok()?.into_boxed_str();
        // Only ids precede the fields, and these cannot contain the field names.
        let delta = value(&json, 0, "\"delta\":", "\"\"")?;
        let timestamp = value(&json, delta.end, "\"timestamp\":", "0")?;
        let seq = json.len().checked_sub("0}}}".len())?;
        json.ends_with("\"seq\":0}}}").then_some(Self { json, delta, timestamp, seq: seq..seq + 1 })
    }
}

/// Byte range of a field's value, at or after `from`.
fn value(json: &str, from: usize, field: &str, value: &str) -> Option<Range<usize>> {
    let start = from + json[from..].find(field)? + field.len();
    json[start..].starts_with(value).then_some(start..start + value.len())
}

impl Projection {
    /// Projects a delta of an open text. Returns `None`, with nothing changed, for every event that is not exactly one delta; use
    /// [`Projection::project`] for it.
    pub fn piece<'a>(&'a mut self, event: &'a Event) -> Option<TextDelta<'a>> {
        let (EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta }) =
            &event.kind
        else {
            return None;
        };
        if self.phase != RunPhase::Running
            || !self.is_visible(event)
            || !self.baton.is_held()
            || delta.is_empty()
        {
            return None;
        }
        let owner = self.owner(event);
        let form = text_kind(event, owner.as_ref());
        let origin = PieceOrigin { event, owner: owner.as_ref() };
        let tell = |body, owner| EventContext::of(event).event(owner, body);
        let template = self.texts.piece(*message_id, form, delta, origin, tell)?;
        if let Some(context) = &mut self.context {
            context.advance(event);
        }
        Some(TextDelta { template, delta, timestamp: event.at.as_millisecond(), seq: event.seq })
    }
}
