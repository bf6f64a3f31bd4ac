//! Open texts and thoughts. Concurrent agents have several open at once.

mod text;

use std::collections::BTreeMap;

use baton_core::event::{EventKind, Growing};
use baton_core::{MessageId, SessionId};

use super::Projected;
use super::text_delta::DeltaTemplate;
use crate::wire::{AguiEvent, EventBody};
pub(super) use text::{OpenText, PieceOrigin, TextKind};

/// The open texts and thoughts of a run, with the number of bytes sent of each.
#[derive(Debug, Default)]
pub(super) struct OpenTexts {
    open: Vec<OpenText>,
    /// Bytes sent of texts and thoughts that something else than their own end closed. A thought can be reopened, a text cannot.
    cut: BTreeMap<(MessageId, TextKind), usize>,
}

impl OpenTexts {
    /// Projects a text event to message events.
    pub(super) fn say(&mut self, origin: PieceOrigin<'_>, out: &mut Projected) {
        match &origin.event.kind {
            EventKind::TextStarted { message_id, speaker } => self.start(*message_id, speaker, origin, out),
            // A delta without a start is not sent; `TextFinished` carries the whole text.
            EventKind::TextDelta { message_id, delta } => {
                self.grow(*message_id, TextKind::Message, delta, out);
            }
            EventKind::TextFinished { message_id, speaker, text } => {
                self.start(*message_id, speaker, origin, out);
                self.complete(*message_id, TextKind::Message, text, out);
            }
            _ => {}
        }
    }

    /// Projects a text or reasoning event to reasoning events.
    pub(super) fn think(&mut self, origin: PieceOrigin<'_>, out: &mut Projected) {
        match &origin.event.kind {
            EventKind::TextDelta { message_id, delta } | EventKind::Reasoning { message_id, delta } => {
                self.start_thought(*message_id, origin, out);
                self.grow(*message_id, TextKind::Reasoning, delta, out);
            }
            EventKind::TextFinished { message_id, text, .. } => {
                if text.len() > self.sent(*message_id, TextKind::Reasoning) {
                    self.start_thought(*message_id, origin, out);
                }
                self.complete(*message_id, TextKind::Reasoning, text, out);
            }
            _ => {}
        }
    }

    /// Sends the unsent part of a growing text, after its start if it is not open.
    pub(super) fn catch_up(
        &mut self,
        growing: &Growing,
        kind: TextKind,
        name: &str,
        origin: PieceOrigin<'_>,
        out: &mut Projected,
    ) {
        let (id, sent) = (growing.message_id, self.sent(growing.message_id, kind));
        let rest = growing.text.get(sent..).unwrap_or_default();
        let is_begun = self.find(id, kind).is_some();
        match kind {
            TextKind::Reasoning if !rest.is_empty() => self.start_thought(id, origin, out),
            TextKind::Message if !is_begun || !rest.is_empty() => {
                self.end_thoughts(origin.owner, out);
                self.start(id, name, origin, out);
            }
            _ => {}
        }
        self.grow(id, kind, rest, out);
    }

    fn start(&mut self, id: MessageId, name: &str, origin: PieceOrigin<'_>, out: &mut Projected) {
        if self.find(id, TextKind::Message).is_none() && !self.is_over(id) {
            out.extend(self.open(id, TextKind::Message, name, origin).starts());
        }
    }

    fn start_thought(&mut self, id: MessageId, origin: PieceOrigin<'_>, out: &mut Projected) {
        if self.find(id, TextKind::Reasoning).is_none() && !self.is_over(id) {
            self.end_thoughts(origin.owner, out);
            out.extend(self.open(id, TextKind::Reasoning, "", origin).starts());
        }
    }

    fn open(&mut self, id: MessageId, kind: TextKind, name: &str, origin: PieceOrigin<'_>) -> &OpenText {
        let sent = self.cut.remove(&(id, kind)).unwrap_or(0);
        self.open.push(OpenText::new(id, kind, name, origin, sent));
        &self.open[self.open.len() - 1]
    }

    /// Whether the text was closed together with its session. Reopening it would attribute it to another session.
    fn is_over(&self, id: MessageId) -> bool {
        self.cut.contains_key(&(id, TextKind::Message))
    }

    /// Everything that is open, in the order of its start.
    pub(super) fn all_open(&self) -> impl Iterator<Item = &OpenText> {
        self.open.iter()
    }

    fn find(&mut self, id: MessageId, kind: TextKind) -> Option<&mut OpenText> {
        self.open.iter_mut().find(|text| text.id == id && text.kind == kind)
    }

    fn sent(&mut self, id: MessageId, kind: TextKind) -> usize {
        let open = self.find(id, kind).map(|text| text.sent);
        open.or_else(|| self.cut.get(&(id, kind)).copied()).unwrap_or(0)
    }

    fn grow(&mut self, id: MessageId, kind: TextKind, delta: &str, out: &mut Projected) {
        let Some(text) = self.find(id, kind).filter(|_| !delta.is_empty()) else { return };
        text.sent += delta.len();
        out.push((text.owner.clone(), text.content(delta)));
    }

    /// Adds a delta to an open text if it projects to exactly one event. `tell` builds that event for the template. Returns
    /// `None`, with nothing changed, otherwise.
    pub(super) fn piece(
        &mut self,
        id: MessageId,
        kind: TextKind,
        delta: &str,
        origin: PieceOrigin<'_>,
        tell: impl FnOnce(EventBody, Option<SessionId>) -> AguiEvent,
    ) -> Option<&DeltaTemplate> {
        let ends_a_thought =
            |text: &OpenText| text.kind == TextKind::Reasoning && text.owner.as_ref() == origin.owner;
        if kind == TextKind::Message && self.open.iter().any(ends_a_thought) {
            return None;
        }
        let text = self.find(id, kind).filter(|text| text.is_from(origin.event))?;
        if text.template.is_none() {
            text.template = DeltaTemplate::of(tell(text.content(delta), text.owner.clone()));
        }
        text.template.as_ref()?;
        text.sent += delta.len();
        text.template.as_ref()
    }

    /// Sends the unsent rest of a text and its end.
    fn complete(&mut self, id: MessageId, kind: TextKind, whole: &str, out: &mut Projected) {
        let sent = self.sent(id, kind);
        self.grow(id, kind, whole.get(sent..).unwrap_or_default(), out);
        self.end(id, out);
    }

    /// Ends a text by its own end; it cannot be reopened.
    pub(super) fn end(&mut self, id: MessageId, out: &mut Projected) {
        self.end_matching(|text| text.id == id, out);
        self.cut.remove(&(id, TextKind::Reasoning));
    }

    /// Closes the thoughts of `owner`, because it does something else now. They can be reopened.
    pub(super) fn end_thoughts(&mut self, owner: Option<&SessionId>, out: &mut Projected) {
        self.cut_matching(|text| text.kind == TextKind::Reasoning && text.owner.as_ref() == owner, out);
    }

    pub(super) fn end_all(&mut self, owner: Option<&SessionId>, out: &mut Projected) {
        self.cut_matching(|text| text.owner.as_ref() == owner, out);
    }

    fn cut_matching(&mut self, which: impl Fn(&OpenText) -> bool, out: &mut Projected) {
        let those = self.open.iter().filter(|text| which(text));
        self.cut.extend(those.map(|text| ((text.id, text.kind), text.sent)));
        self.end_matching(which, out);
    }

    fn end_matching(&mut self, which: impl Fn(&OpenText) -> bool, out: &mut Projected) {
        for text in self.open.extract_if(.., |text| which(text)) {
            out.extend(text.ends());
        }
    }
}
