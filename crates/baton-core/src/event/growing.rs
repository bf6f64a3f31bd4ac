//! What is being said or thought, before it is finished and kept.

use super::{Event, EventKind, is_within};
use crate::id::MessageId;

/// A text or a thought that is not finished, with all of it so far: what whoever comes late has missed of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Growing {
    /// The envelope of its first piece; what has grown since is in `text`.
    pub first: Event,
    pub message_id: MessageId,
    pub text: String,
}

impl Growing {
    /// Brings what is growing up to date with something that happened.
    pub fn follow(growing: &mut Vec<Self>, event: &Event) {
        let (message_id, piece) = match &event.kind {
            EventKind::TextStarted { message_id, .. } => (*message_id, ""),
            EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta } => {
                (*message_id, delta.as_str())
            }
            _ => return growing.retain(|text| !text.is_ended_by(event)),
        };
        let at = growing.iter().position(|text| text.is(message_id, event)).unwrap_or_else(|| {
            growing.push(Self { first: event.clone(), message_id, text: String::new() });
            growing.len() - 1
        });
        growing[at].text.push_str(piece);
    }

    pub fn is_thought(&self) -> bool {
        matches!(self.first.kind, EventKind::Reasoning { .. })
    }

    /// Whether a piece belongs to it. What somebody thinks before a text may have that text's id.
    fn is(&self, message_id: MessageId, piece: &Event) -> bool {
        self.message_id == message_id
            && self.is_thought() == matches!(piece.kind, EventKind::Reasoning { .. })
    }

    /// A thought has no end of its own: it is over when whoever has it does something that is kept. Nothing grows any more where a
    /// session has ended.
    fn is_ended_by(&self, event: &Event) -> bool {
        let place = &self.first.path;
        match &event.kind {
            EventKind::TextFinished { message_id, .. } | EventKind::TurnRestarted { message_id } => {
                self.message_id == *message_id || (self.is_thought() && is_within(&event.path, place))
            }
            EventKind::SessionFinished { .. } | EventKind::SessionFailed { .. } => {
                is_within(place, &event.path)
            }
            EventKind::RunFinished { .. } | EventKind::RunFailed { .. } => true,
            _ => self.is_thought() && is_within(&event.path, place),
        }
    }
}

#[cfg(test)]
mod tests;
