//! An open text or thought.

use std::sync::Arc;

use baton_core::event::Event;
use baton_core::{AgentName, MessageId, SessionId};

use crate::projection::Projected;
use crate::projection::text_delta::DeltaTemplate;
use crate::wire::EventBody;

/// A text or thought that is being written, with the number of bytes sent.
#[derive(Debug)]
pub(in crate::projection) struct OpenText {
    pub(super) id: MessageId,
    pub(super) owner: Option<SessionId>,
    pub(super) kind: TextKind,
    /// Display name of the author.
    name: String,
    pub(in crate::projection) agent: AgentName,
    pub(in crate::projection) path: Arc<str>,
    /// In bytes. Always on a character boundary, because deltas are whole strings.
    pub(super) sent: usize,
    /// Template of its deltas, built with the first one.
    pub(super) template: Option<DeltaTemplate>,
}

/// Whether a text is sent as a message or as reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::projection) enum TextKind {
    Message,
    /// A model's reasoning, or internal text of an agent that speaks to the user.
    Reasoning,
}

/// The event of a delta, and the sub-agent that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(in crate::projection) struct PieceOrigin<'a> {
    pub(in crate::projection) event: &'a Event,
    pub(in crate::projection) owner: Option<&'a SessionId>,
}

impl OpenText {
    pub(super) fn new(
        id: MessageId,
        kind: TextKind,
        name: &str,
        origin: PieceOrigin<'_>,
        sent: usize,
    ) -> Self {
        let (agent, path) = (origin.event.agent.clone(), Arc::clone(&origin.event.path));
        Self {
            id,
            owner: origin.owner.cloned(),
            kind,
            name: name.to_owned(),
            agent,
            path,
            sent,
            template: None,
        }
    }

    /// Its start events. Sent again when a thought is reopened or a client joins.
    pub(in crate::projection) fn starts(&self) -> Projected {
        let id = || self.id.to_string();
        let bodies = match self.kind {
            TextKind::Message => {
                let name = self.name.clone();
                vec![EventBody::TextMessageStart { message_id: id(), role: "assistant", name }]
            }
            TextKind::Reasoning => vec![
                EventBody::ReasoningStart { message_id: id() },
                EventBody::ReasoningMessageStart { message_id: id(), role: "reasoning" },
            ],
        };
        bodies.into_iter().map(|body| (self.owner.clone(), body)).collect()
    }

    /// The event body of a delta.
    pub(super) fn content(&self, delta: &str) -> EventBody {
        let (message_id, delta) = (self.id.to_string(), delta.to_owned());
        match self.kind {
            TextKind::Message => EventBody::TextMessageContent { message_id, delta },
            TextKind::Reasoning => EventBody::ReasoningMessageContent { message_id, delta },
        }
    }

    /// Whether the event has the agent and path of this text, so that the template applies.
    pub(super) fn is_from(&self, event: &Event) -> bool {
        self.agent == event.agent && self.path == event.path
    }

    pub(super) fn ends(self) -> Projected {
        let id = || self.id.to_string();
        let bodies = match self.kind {
            TextKind::Message => vec![EventBody::TextMessageEnd { message_id: id() }],
            TextKind::Reasoning => {
                vec![
                    EventBody::ReasoningMessageEnd { message_id: id() },
                    EventBody::ReasoningEnd { message_id: id() },
                ]
            }
        };
        bodies.into_iter().map(|body| (self.owner.clone(), body)).collect()
    }
}
