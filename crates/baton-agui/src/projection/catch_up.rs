//! Joins a run in the middle: past events are replayed into a transcript, sent as one snapshot, and open texts are caught up.
//!
//! A client that applies the preamble and everything after it has the same messages and the same state as one that was there from
//! the start, with two exceptions. Finished reasoning of a model is not stored and not sent again; internal text of an agent is.
//! Texts that were written concurrently appear in the order of their ends.

use baton_core::event::{Event, EventKind, Growing};

use super::event_context::EventContext;
use super::texts::PieceOrigin;
use super::{Projected, Projection, RunPhase};
use crate::wire::{AguiEvent, AguiMessage, EventBody};

impl Projection {
    /// Like [`Projection::project`], but adds the events to the transcript instead of returning them.
    pub fn replay(&mut self, event: &Event) {
        for told in self.project(event) {
            self.transcript.add(told);
        }
    }

    /// Moves a new client to the position of the last replayed event. Empty unless the run is in progress. `history` is the
    /// conversation before the run, including the message that the run answers. Takes the transcript, so call it once.
    pub fn preamble(&mut self, history: Vec<AguiMessage>) -> Vec<AguiEvent> {
        let Some(context) = self.context.clone().filter(|_| self.phase == RunPhase::Running) else {
            return Vec::new();
        };
        let mut messages = history;
        messages.extend(std::mem::take(&mut self.transcript).into_messages());
        let run = [Some(context.run_started()), Some(EventBody::MessagesSnapshot { messages }), self.state()];
        let run = run.into_iter().flatten().map(|body| context.event(None, body));
        let subagents = self.subagents.open().map(|open| {
            context.at(&open.agent, &open.path).event(None, EventBody::SubagentStarted(open.start.clone()))
        });
        let texts = self.texts.all_open().flat_map(|text| {
            let context = context.at(&text.agent, &text.path);
            text.starts().into_iter().map(move |(owner, body)| context.event(owner, body))
        });
        run.chain(subagents).chain(texts).collect()
    }

    /// Sends the unsent part of a growing text, preceded by its start if it is not open. Empty if nothing is new or the
    /// subscriber may not see the text.
    pub fn grown(&mut self, growing: &Growing) -> Vec<AguiEvent> {
        let first = &growing.first;
        if self.phase == RunPhase::Finished || !self.is_visible(first) {
            return Vec::new();
        }
        let mut out = Projected::new();
        if self.context.is_none() {
            self.advance(first);
        }
        self.begin(&mut out);
        let owner = self.owner(first);
        let kind = super::text_kind(first, owner.as_ref());
        let name = match &first.kind {
            EventKind::TextStarted { speaker, .. } => speaker.as_str(),
            _ => self.profiles.name_of(&first.agent),
        };
        let origin = PieceOrigin { event: first, owner: owner.as_ref() };
        self.texts.catch_up(growing, kind, name, origin, &mut out);
        let mut context = EventContext::of(first);
        context.seq = self.context.as_ref().map_or(context.seq, |now| now.seq.max(context.seq));
        out.into_iter().map(|(subagent, body)| context.event(subagent, body)).collect()
    }
}
