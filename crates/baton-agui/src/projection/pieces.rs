//! Pieces of texts that are open. They are most of what a stream sends, so they are written as JSON without an event in between: all
//! that changes from piece to piece of a text are the delta, the time and the number.

use std::io;
use std::ops::Range;

use baton_core::event::{Event, EventKind};

use super::here::Here;
use super::texts::By;
use super::{Projection, Stage, form};
use crate::wire::{AguiEvent, Body};

/// A piece of an open text, ready to be written.
#[derive(Debug)]
pub struct Piece<'a> {
    template: &'a Template,
    delta: &'a str,
    timestamp: i64,
    seq: u64,
}

impl Piece<'_> {
    /// Writes what serializing the [`AguiEvent`] of the piece would.
    pub fn write_json(&self, out: &mut impl io::Write) -> io::Result<()> {
        let Template { json, delta, timestamp, seq } = self.template;
        out.write_all(json[..delta.start].as_bytes())?;
        serde_json::to_writer(&mut *out, self.delta)?;
        out.write_all(json[delta.end..timestamp.start].as_bytes())?;
        serde_json::to_writer(&mut *out, &self.timestamp)?;
        out.write_all(json[timestamp.end..seq.start].as_bytes())?;
        serde_json::to_writer(&mut *out, &self.seq)?;
        out.write_all(json[seq.end..].as_bytes())
    }
}

/// The JSON of a text's pieces, with the places of the values that change.
#[derive(Debug)]
pub(super) struct Template {
    json: Box<str>,
    delta: Range<usize>,
    timestamp: Range<usize>,
    seq: Range<usize>,
}

impl Template {
    /// From the event of any piece. `None` if it has no content.
    pub(super) fn of(mut event: AguiEvent) -> Option<Self> {
        match &mut event.body {
            Body::TextMessageContent { delta, .. } | Body::ReasoningMessageContent { delta, .. } => {
                delta.clear();
            }
            _ => return None,
        }
        event.timestamp = 0;
        event.metadata.baton.seq = 0;
        let json = serde_json::to_string(&event).ok()?.into_boxed_str();
        // Before each of them stand only ids, in which no such text can be.
        let delta = value(&json, 0, "\"delta\":", "\"\"")?;
        let timestamp = value(&json, delta.end, "\"timestamp\":", "0")?;
        let seq = json.len().checked_sub("0}}}".len())?;
        json.ends_with("\"seq\":0}}}").then_some(Self { json, delta, timestamp, seq: seq..seq + 1 })
    }
}

/// Where the value of a field stands, at or after `from`.
fn value(json: &str, from: usize, field: &str, value: &str) -> Option<Range<usize>> {
    let start = from + json[from..].find(field)? + field.len();
    json[start..].starts_with(value).then_some(start..start + value.len())
}

impl Projection {
    /// The piece that an event is, if its text is open and nothing else is sent for it. `None`, with nothing changed, for every other
    /// event: [`Projection::project`] it.
    pub fn piece<'a>(&'a mut self, event: &'a Event) -> Option<Piece<'a>> {
        let (EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta }) =
            &event.kind
        else {
            return None;
        };
        if self.stage != Stage::Under || !self.sees(event) || !self.baton.is_held() || delta.is_empty() {
            return None;
        }
        let owner = self.owner(event);
        let form = form(event, owner.as_ref());
        let by = By { event, owner: owner.as_ref() };
        let tell = |body, owner| Here::of(event).tell(owner, body);
        let template = self.texts.piece(*message_id, form, delta, by, tell)?;
        if let Some(here) = &mut self.here {
            here.advance(event);
        }
        Some(Piece { template, delta, timestamp: event.at.as_millisecond(), seq: event.seq })
    }
}
