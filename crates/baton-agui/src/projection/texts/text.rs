//! One text or thought.

use std::sync::Arc;

use baton_core::event::Event;
use baton_core::{AgentName, MessageId, SessionId};

use crate::projection::Out;
use crate::projection::pieces::Template;
use crate::wire::Body;

/// A text that is being written, and how much of it was sent.
#[derive(Debug)]
pub(in crate::projection) struct Text {
    pub(super) id: MessageId,
    pub(super) owner: Option<SessionId>,
    pub(super) form: Form,
    /// Who says it, as people call them.
    name: String,
    pub(in crate::projection) agent: AgentName,
    pub(in crate::projection) path: Arc<str>,
    /// Always between two characters, because pieces are whole.
    pub(super) sent: usize,
    /// How its pieces are written, once there is one.
    pub(super) template: Option<Template>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::projection) enum Form {
    Said,
    /// Also text that is not for the person, by one who speaks to the person: that is thinking aloud.
    Thought,
}

/// Where a piece comes from.
#[derive(Debug, Clone, Copy)]
pub(in crate::projection) struct By<'a> {
    pub(in crate::projection) event: &'a Event,
    pub(in crate::projection) owner: Option<&'a SessionId>,
}

impl Text {
    pub(super) fn new(id: MessageId, form: Form, name: &str, by: By<'_>, sent: usize) -> Self {
        let (agent, path) = (by.event.agent.clone(), Arc::clone(&by.event.path));
        Self { id, owner: by.owner.cloned(), form, name: name.to_owned(), agent, path, sent, template: None }
    }

    /// How it begins, once or once more.
    pub(in crate::projection) fn starts(&self) -> Out {
        let id = || self.id.to_string();
        let bodies = match self.form {
            Form::Said => {
                let name = self.name.clone();
                vec![Body::TextMessageStart { message_id: id(), role: "assistant", name }]
            }
            Form::Thought => vec![
                Body::ReasoningStart { message_id: id() },
                Body::ReasoningMessageStart { message_id: id(), role: "reasoning" },
            ],
        };
        bodies.into_iter().map(|body| (self.owner.clone(), body)).collect()
    }

    /// What a piece of it becomes.
    pub(super) fn content(&self, delta: &str) -> Body {
        let (message_id, delta) = (self.id.to_string(), delta.to_owned());
        match self.form {
            Form::Said => Body::TextMessageContent { message_id, delta },
            Form::Thought => Body::ReasoningMessageContent { message_id, delta },
        }
    }

    /// Whether a piece says of itself what the others of the text do.
    pub(super) fn is_from(&self, event: &Event) -> bool {
        self.agent == event.agent && self.path == event.path
    }

    pub(super) fn ends(self) -> Out {
        let id = || self.id.to_string();
        let bodies = match self.form {
            Form::Said => vec![Body::TextMessageEnd { message_id: id() }],
            Form::Thought => {
                vec![Body::ReasoningMessageEnd { message_id: id() }, Body::ReasoningEnd { message_id: id() }]
            }
        };
        bodies.into_iter().map(|body| (self.owner.clone(), body)).collect()
    }
}
