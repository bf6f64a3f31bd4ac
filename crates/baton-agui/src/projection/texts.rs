//! Texts and thoughts while they grow. Agents at work side by side have several open at once.

use baton_core::SessionId;
use baton_core::event::EventKind;

use super::Out;
use crate::wire::Body;

#[derive(Debug, Default)]
pub(super) struct Texts {
    open: Vec<Text>,
}

/// A text that is being written, and how much of it was sent.
#[derive(Debug)]
struct Text {
    id: String,
    owner: Option<SessionId>,
    form: Form,
    sent: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Said,
    Thought,
}

impl Texts {
    /// What somebody says, to the person or behind the scenes.
    pub(super) fn say(&mut self, kind: &EventKind, owner: Option<&SessionId>, out: &mut Out) {
        match kind {
            EventKind::TextStarted { message_id, speaker } => {
                self.start(&message_id.to_string(), speaker, owner, out);
            }
            // A piece without its beginning is not shown; all of it comes with its end.
            EventKind::TextDelta { message_id, delta } => self.grow(&message_id.to_string(), delta, out),
            EventKind::TextFinished { message_id, speaker, text } => {
                let id = message_id.to_string();
                self.start(&id, speaker, owner, out);
                self.complete(&id, text, out);
            }
            _ => {}
        }
    }

    /// What somebody thinks. Text that is not for the person, by one who speaks to the person, is thinking aloud.
    pub(super) fn think(&mut self, kind: &EventKind, owner: Option<&SessionId>, out: &mut Out) {
        match kind {
            EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta } => {
                let id = message_id.to_string();
                self.start_thought(&id, owner, out);
                self.grow(&id, delta, out);
            }
            EventKind::TextFinished { message_id, text, .. } => {
                let id = message_id.to_string();
                if !text.is_empty() {
                    self.start_thought(&id, owner, out);
                }
                self.complete(&id, text, out);
            }
            _ => {}
        }
    }

    fn start(&mut self, id: &str, speaker: &str, owner: Option<&SessionId>, out: &mut Out) {
        if self.find(id).is_none() {
            self.open(id, owner, Form::Said);
            let (message_id, name) = (id.to_owned(), speaker.to_owned());
            out.push((owner.cloned(), Body::TextMessageStart { message_id, role: "assistant", name }));
        }
    }

    fn start_thought(&mut self, id: &str, owner: Option<&SessionId>, out: &mut Out) {
        if self.find(id).is_none() {
            self.end_thoughts(owner, out);
            self.open(id, owner, Form::Thought);
            let message_id = id.to_owned();
            out.push((owner.cloned(), Body::ReasoningStart { message_id: message_id.clone() }));
            out.push((owner.cloned(), Body::ReasoningMessageStart { message_id, role: "reasoning" }));
        }
    }

    fn open(&mut self, id: &str, owner: Option<&SessionId>, form: Form) {
        self.open.push(Text { id: id.to_owned(), owner: owner.cloned(), form, sent: 0 });
    }

    fn find(&mut self, id: &str) -> Option<&mut Text> {
        self.open.iter_mut().find(|text| text.id == id)
    }

    fn grow(&mut self, id: &str, delta: &str, out: &mut Out) {
        let Some(text) = self.find(id).filter(|_| !delta.is_empty()) else { return };
        text.sent += delta.len();
        let (message_id, delta) = (id.to_owned(), delta.to_owned());
        let body = match text.form {
            Form::Said => Body::TextMessageContent { message_id, delta },
            Form::Thought => Body::ReasoningMessageContent { message_id, delta },
        };
        out.push((text.owner.clone(), body));
    }

    /// The end of a text, with whatever of it this listener did not see growing.
    fn complete(&mut self, id: &str, whole: &str, out: &mut Out) {
        let sent = self.find(id).map_or(0, |text| text.sent);
        self.grow(id, whole.get(sent..).unwrap_or_default(), out);
        self.end(id, out);
    }

    pub(super) fn end(&mut self, id: &str, out: &mut Out) {
        self.end_those(|text| text.id == id, out);
    }

    /// Whoever does something else has finished thinking.
    pub(super) fn end_thoughts(&mut self, owner: Option<&SessionId>, out: &mut Out) {
        self.end_those(|text| text.form == Form::Thought && text.owner.as_ref() == owner, out);
    }

    pub(super) fn end_all(&mut self, owner: Option<&SessionId>, out: &mut Out) {
        self.end_those(|text| text.owner.as_ref() == owner, out);
    }

    fn end_those(&mut self, which: impl Fn(&Text) -> bool, out: &mut Out) {
        for Text { id: message_id, owner, form, .. } in self.open.extract_if(.., |text| which(text)) {
            match form {
                Form::Said => out.push((owner, Body::TextMessageEnd { message_id })),
                Form::Thought => {
                    let message = Body::ReasoningMessageEnd { message_id: message_id.clone() };
                    out.push((owner.clone(), message));
                    out.push((owner, Body::ReasoningEnd { message_id }));
                }
            }
        }
    }
}
