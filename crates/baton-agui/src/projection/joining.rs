//! Joining a run in the middle: what has happened is remembered instead of sent, told in short, and what is growing is caught up with.
//!
//! A client that applies the preamble and everything after it has the same messages and the same state as one that was there from the
//! beginning. Two things are not kept and cannot be told again: thoughts that were over (a model's own; what an agent thinks aloud
//! is kept), and what was begun first of what was said at the same time. Whoever joins sees texts in the order of their ends.

use baton_core::event::{Event, EventKind, Growing};

use super::here::Here;
use super::texts::By;
use super::{Out, Projection, Stage};
use crate::wire::{AguiEvent, AguiMessage, Body};

impl Projection {
    /// Like [`Projection::project`] for something that the listener need not be told: it is only remembered.
    pub fn replay(&mut self, event: &Event) {
        for told in self.project(event) {
            self.transcript.add(told);
        }
    }

    /// What brings a client that knows nothing to where the replayed events end, if that is in the middle of the run. `history` is the
    /// conversation before the run, with the message that the run answers. What was remembered is handed over, so there is
    /// one preamble.
    pub fn preamble(&mut self, history: Vec<AguiMessage>) -> Vec<AguiEvent> {
        let Some(here) = self.here.clone().filter(|_| self.stage == Stage::Under) else { return Vec::new() };
        let mut messages = history;
        messages.extend(std::mem::take(&mut self.transcript).into_messages());
        let run = [Some(here.run_started()), Some(Body::MessagesSnapshot { messages }), self.state()];
        let run = run.into_iter().flatten().map(|body| here.tell(None, body));
        let subagents = self.subagents.open().map(|open| {
            here.at(&open.agent, &open.path).tell(None, Body::SubagentStarted(open.begun.clone()))
        });
        let texts = self.texts.all_open().flat_map(|text| {
            let here = here.at(&text.agent, &text.path);
            text.starts().into_iter().map(move |(owner, body)| here.tell(owner, body))
        });
        run.chain(subagents).chain(texts).collect()
    }

    /// A text that is growing: only the part of it that was not sent yet, after its beginning if it is not open here. Nothing if
    /// there is nothing new, or if it is not for this listener.
    pub fn grown(&mut self, growing: &Growing) -> Vec<AguiEvent> {
        let first = &growing.first;
        if self.stage == Stage::After || !self.sees(first) {
            return Vec::new();
        }
        let mut out = Out::new();
        if self.here.is_none() {
            self.advance(first);
        }
        self.begin(&mut out);
        let owner = self.owner(first);
        let form = super::form(first, owner.as_ref());
        let name = match &first.kind {
            EventKind::TextStarted { speaker, .. } => speaker.as_str(),
            _ => self.faces.name_of(&first.agent),
        };
        let by = By { event: first, owner: owner.as_ref() };
        self.texts.catch_up(growing, form, name, by, &mut out);
        let mut here = Here::of(first);
        here.seq = self.here.as_ref().map_or(here.seq, |now| now.seq.max(here.seq));
        out.into_iter().map(|(subagent, body)| here.tell(subagent, body)).collect()
    }
}
