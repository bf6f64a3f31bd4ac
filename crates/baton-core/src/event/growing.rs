//! Texts and reasoning that are still streaming and not yet stored.

use super::{Event, EventKind, is_within};
use crate::id::MessageId;

/// An unfinished text or reasoning with its content so far, for subscribers that join late.
#[derive(Debug, Clone, PartialEq)]
pub struct Growing {
    /// The first event. Later content is in `text`.
    pub first: Event,
    pub message_id: MessageId,
    pub text: String,
}

impl Growing {
    /// Updates the unfinished texts with an event.
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

    /// Whether a delta belongs to this text. Reasoning may have the same message id as the text that follows it.
    fn is(&self, message_id: MessageId, piece: &Event) -> bool {
        self.message_id == message_id
            && self.is_thought() == matches!(piece.kind, EventKind::Reasoning { .. })
    }

    /// Reasoning has no end event: it ends with the next stored event of its turn. The end of a session ends all texts below
    /// it.
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
