//! Texts and thoughts while they grow. Agents at work side by side have several open at once.

mod text;

use std::collections::BTreeMap;

use baton_core::event::{EventKind, Growing};
use baton_core::{MessageId, SessionId};

use super::Out;
use super::pieces::Template;
use crate::wire::{AguiEvent, Body};
pub(super) use text::{By, Form, Text};

#[derive(Debug, Default)]
pub(super) struct Texts {
    open: Vec<Text>,
    /// How much was sent of those that something else ended than their own end. A thought may go on; a text may not.
    cut: BTreeMap<(MessageId, Form), usize>,
}

impl Texts {
    /// What somebody says, to the person or behind the scenes.
    pub(super) fn say(&mut self, by: By<'_>, out: &mut Out) {
        match &by.event.kind {
            EventKind::TextStarted { message_id, speaker } => self.start(*message_id, speaker, by, out),
            // A piece without its beginning is not shown; all of it comes with its end.
            EventKind::TextDelta { message_id, delta } => self.grow(*message_id, Form::Said, delta, out),
            EventKind::TextFinished { message_id, speaker, text } => {
                self.start(*message_id, speaker, by, out);
                self.complete(*message_id, Form::Said, text, out);
            }
            _ => {}
        }
    }

    /// What somebody thinks.
    pub(super) fn think(&mut self, by: By<'_>, out: &mut Out) {
        match &by.event.kind {
            EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta } => {
                self.start_thought(*message_id, by, out);
                self.grow(*message_id, Form::Thought, delta, out);
            }
            EventKind::TextFinished { message_id, text, .. } => {
                if text.len() > self.sent(*message_id, Form::Thought) {
                    self.start_thought(*message_id, by, out);
                }
                self.complete(*message_id, Form::Thought, text, out);
            }
            _ => {}
        }
    }

    /// The part of a growing text that was not sent yet, from wherever it is known.
    pub(super) fn catch_up(&mut self, growing: &Growing, form: Form, name: &str, by: By<'_>, out: &mut Out) {
        let (id, sent) = (growing.message_id, self.sent(growing.message_id, form));
        let rest = growing.text.get(sent..).unwrap_or_default();
        let is_begun = self.find(id, form).is_some();
        match form {
            Form::Thought if !rest.is_empty() => self.start_thought(id, by, out),
            Form::Said if !is_begun || !rest.is_empty() => {
                self.end_thoughts(by.owner, out);
                self.start(id, name, by, out);
            }
            _ => {}
        }
        self.grow(id, form, rest, out);
    }

    fn start(&mut self, id: MessageId, name: &str, by: By<'_>, out: &mut Out) {
        if self.find(id, Form::Said).is_none() && !self.is_over(id) {
            out.extend(self.open(id, Form::Said, name, by).starts());
        }
    }

    fn start_thought(&mut self, id: MessageId, by: By<'_>, out: &mut Out) {
        if self.find(id, Form::Thought).is_none() && !self.is_over(id) {
            self.end_thoughts(by.owner, out);
            out.extend(self.open(id, Form::Thought, "", by).starts());
        }
    }

    fn open(&mut self, id: MessageId, form: Form, name: &str, by: By<'_>) -> &Text {
        let sent = self.cut.remove(&(id, form)).unwrap_or(0);
        self.open.push(Text::new(id, form, name, by, sent));
        &self.open[self.open.len() - 1]
    }

    /// Whether it was a text that ended with its speaker's part. What comes of it later would be somebody else's.
    fn is_over(&self, id: MessageId) -> bool {
        self.cut.contains_key(&(id, Form::Said))
    }

    /// Everything that is open, in the order in which it was begun.
    pub(super) fn all_open(&self) -> impl Iterator<Item = &Text> {
        self.open.iter()
    }

    fn find(&mut self, id: MessageId, form: Form) -> Option<&mut Text> {
        self.open.iter_mut().find(|text| text.id == id && text.form == form)
    }

    fn sent(&mut self, id: MessageId, form: Form) -> usize {
        let open = self.find(id, form).map(|text| text.sent);
        open.or_else(|| self.cut.get(&(id, form)).copied()).unwrap_or(0)
    }

    fn grow(&mut self, id: MessageId, form: Form, delta: &str, out: &mut Out) {
        let Some(text) = self.find(id, form).filter(|_| !delta.is_empty()) else { return };
        text.sent += delta.len();
        out.push((text.owner.clone(), text.content(delta)));
    }

    /// Grows an open text by a piece that becomes one event and nothing else. `tell` makes that event of a body and its owner.
    pub(super) fn piece(
        &mut self,
        id: MessageId,
        form: Form,
        delta: &str,
        by: By<'_>,
        tell: impl FnOnce(Body, Option<SessionId>) -> AguiEvent,
    ) -> Option<&Template> {
        let ends_a_thought = |text: &Text| text.form == Form::Thought && text.owner.as_ref() == by.owner;
        if form == Form::Said && self.open.iter().any(ends_a_thought) {
            return None;
        }
        let text = self.find(id, form).filter(|text| text.is_from(by.event))?;
        if text.template.is_none() {
            text.template = Template::of(tell(text.content(delta), text.owner.clone()));
        }
        text.template.as_ref()?;
        text.sent += delta.len();
        text.template.as_ref()
    }

    /// The end of a text, with whatever of it this listener did not see growing.
    fn complete(&mut self, id: MessageId, form: Form, whole: &str, out: &mut Out) {
        let sent = self.sent(id, form);
        self.grow(id, form, whole.get(sent..).unwrap_or_default(), out);
        self.end(id, out);
    }

    /// Its own end: nothing more comes of it.
    pub(super) fn end(&mut self, id: MessageId, out: &mut Out) {
        self.end_those(|text| text.id == id, out);
        self.cut.remove(&(id, Form::Thought));
    }

    /// Whoever does something else has finished thinking, or thinks on later.
    pub(super) fn end_thoughts(&mut self, owner: Option<&SessionId>, out: &mut Out) {
        self.cut_those(|text| text.form == Form::Thought && text.owner.as_ref() == owner, out);
    }

    pub(super) fn end_all(&mut self, owner: Option<&SessionId>, out: &mut Out) {
        self.cut_those(|text| text.owner.as_ref() == owner, out);
    }

    fn cut_those(&mut self, which: impl Fn(&Text) -> bool, out: &mut Out) {
        let those = self.open.iter().filter(|text| which(text));
        self.cut.extend(those.map(|text| ((text.id, text.form), text.sent)));
        self.end_those(which, out);
    }

    fn end_those(&mut self, which: impl Fn(&Text) -> bool, out: &mut Out) {
        for text in self.open.extract_if(.., |text| which(text)) {
            out.extend(text.ends());
        }
    }
}
