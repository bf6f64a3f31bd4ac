//! From what happened to what a client is told.
//!
//! - `subagents`, `sessions`: who works behind the scenes, and whose work an event is.
//! - `texts`: texts and thoughts that grow, several at once.
//! - `pieces`: the pieces of open texts, which are most of what is sent.
//! - `calls`: tools that are used.
//! - `baton`: who speaks to the person, which is state.
//! - `extras`: what AG-UI has no event for.
//! - `joining`, `transcript`: coming in the middle, with the messages that whoever was there has.
//! - `here`: what every event says about itself.

mod baton;
mod calls;
mod extras;
mod here;
mod joining;
mod pieces;
mod sessions;
mod subagents;
mod texts;
mod transcript;

use std::sync::Arc;

use baton_core::event::{Event, EventKind, Outcome};
use baton_core::message::Visibility;
use baton_core::{RunId, SessionId, choices};
use serde_json::json;

use crate::Faces;
use crate::wire::{AguiEvent, Body};
use baton::{Baton, Hold};
use calls::Calls;
use here::Here;
pub use pieces::Piece;
use subagents::Subagents;
use texts::{By, Form, Texts};
use transcript::Transcript;

choices! {
    /// How much a listener may see.
    pub enum Detail {
        /// What the person sees.
        Person = "person",
        /// Everything, also what agents say behind the scenes.
        Trace = "trace",
    }
}

/// What is sent for one thing that happened.
type Out = Vec<(Option<SessionId>, Body)>;

/// Projects one run for one listener. Keeps what is open, because clients refuse an end without a start and a run that
/// ends with something open. The next run of the thread needs a new one.
#[derive(Debug)]
pub struct Projection {
    detail: Detail,
    faces: Arc<Faces>,
    stage: Stage,
    /// How far it has come, by whoever began the run.
    here: Option<Here>,
    subagents: Subagents,
    texts: Texts,
    calls: Calls,
    baton: Baton,
    /// Empty unless something was replayed.
    transcript: Transcript,
}

/// How far the run has come for its listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Clients want to hear of the run before anything in it.
    Before,
    Under,
    /// Nothing may follow.
    After,
}

impl Projection {
    pub fn new(detail: Detail) -> Self {
        Self {
            detail,
            faces: Arc::default(),
            stage: Stage::Before,
            here: None,
            subagents: Subagents::default(),
            texts: Texts::default(),
            calls: Calls::default(),
            baton: Baton::default(),
            transcript: Transcript::default(),
        }
    }

    /// With names and colours for people.
    #[must_use]
    pub fn with_faces(self, faces: impl Into<Arc<Faces>>) -> Self {
        Self { faces: faces.into(), ..self }
    }

    /// The run, once something of it was heard.
    pub fn run(&self) -> Option<RunId> {
        self.here.as_ref().map(|here| here.run_id)
    }

    /// Whether the run has ended, so that nothing more will be sent.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::After
    }

    /// The events for one thing that happened; often one, sometimes none or several.
    pub fn project(&mut self, event: &Event) -> Vec<AguiEvent> {
        if self.stage == Stage::After {
            return Vec::new();
        }
        self.advance(event);
        // Who speaks to the person is for the person, also when why that changes is not.
        let is_passed = self.baton.hear(event);
        let is_seen = self.sees(event);
        let mut out = Out::new();
        if is_seen || is_passed {
            self.begin(&mut out);
        }
        if is_seen {
            self.happened(event, &mut out);
        }
        if is_passed {
            out.extend(self.baton.delta(&self.faces).map(|delta| (None, delta)));
        }
        let here = Here::of(event);
        out.into_iter().map(|(subagent, body)| here.tell(subagent, body)).collect()
    }

    fn advance(&mut self, event: &Event) {
        self.here.get_or_insert_with(|| Here::of(event)).advance(event);
        // One that ended before it began, as when it was cancelled while it waited, was never anybody's.
        if !self.baton.is_held() && !event.kind.is_end() {
            let is_held = matches!(event.kind, EventKind::RunStarted { is_held: true });
            self.baton.begin(&event.agent, if is_held { Hold::Thread } else { Hold::Run });
        }
    }

    fn sees(&self, event: &Event) -> bool {
        event.visibility == Visibility::User || self.detail == Detail::Trace
    }

    fn begin(&mut self, out: &mut Out) {
        if std::mem::replace(&mut self.stage, Stage::Under) == Stage::Before {
            let started = self.here.as_ref().map(Here::run_started);
            out.extend(started.into_iter().chain(self.state()).map(|body| (None, body)));
        }
    }

    fn state(&self) -> Option<Body> {
        self.baton.snapshot(&self.faces)
    }

    /// What the person sees is never anybody's work behind the scenes.
    fn owner(&self, event: &Event) -> Option<SessionId> {
        let is_hidden = event.visibility == Visibility::Internal;
        if is_hidden { self.subagents.owner(&event.path) } else { None }
    }

    fn happened(&mut self, event: &Event, out: &mut Out) {
        let owner = self.owner(event);
        let by = By { event, owner: owner.as_ref() };
        let form = form(event, by.owner);
        if form != Form::Thought {
            self.texts.end_thoughts(by.owner, out);
        }
        match (is_text(&event.kind), form) {
            (true, Form::Thought) => self.texts.think(by, out),
            (true, Form::Said) => self.texts.say(by, out),
            (false, _) => self.done(event, owner, out),
        }
    }

    fn done(&mut self, event: &Event, owner: Option<SessionId>, out: &mut Out) {
        match &event.kind {
            EventKind::RunFinished { .. } | EventKind::RunFailed { .. } => self.end(event, out),
            EventKind::SessionStarted { .. } => self.begin_session(event, out),
            EventKind::SessionFinished { session_id } => self.end_session(session_id, None, out),
            EventKind::SessionFailed { session_id, code, message } => {
                self.end_session(session_id, Some((code, message)), out);
            }
            EventKind::ToolCalled { .. } | EventKind::ToolReturned { .. } => {
                self.calls.add(event, owner, out);
            }
            EventKind::TurnRestarted { message_id } => {
                self.texts.end(*message_id, out);
                let value = json!({ "message_id": message_id });
                out.push((owner, Body::Custom { name: "baton.turn_restarted", value }));
            }
            _ => out.extend(extras::of(event, owner.as_ref(), &self.faces).map(|body| (owner, body))),
        }
    }

    /// The end of the run, before which nothing may be left open.
    fn end(&mut self, event: &Event, out: &mut Out) {
        for ended in self.subagents.end_all() {
            self.texts.end_all(Some(&ended), out);
            out.push((None, sessions::cancelled(ended)));
        }
        self.texts.end_all(None, out);
        out.push((None, Body::Custom { name: "baton.usage", value: extras::usage(&event.kind) }));
        let here = Here::of(event);
        let end = match &event.kind {
            EventKind::RunFailed { code, message, .. } => {
                Body::RunError { message: message.clone(), code: code.clone() }
            }
            EventKind::RunFinished { outcome: Outcome::Cancelled, .. } => here.run_finished("cancelled"),
            _ => here.run_finished("success"),
        };
        out.push((None, end));
        self.stage = Stage::After;
    }
}

fn is_text(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::TextStarted { .. }
            | EventKind::TextDelta { .. }
            | EventKind::TextFinished { .. }
            | EventKind::Reasoning { .. }
    )
}

/// Whether something is thought rather than said or done. Text that is not for the person, by one who speaks to the person, is thinking
/// aloud.
fn form(event: &Event, owner: Option<&SessionId>) -> Form {
    let is_hidden = event.visibility == Visibility::Internal;
    match &event.kind {
        EventKind::Reasoning { .. } => Form::Thought,
        kind if is_hidden && owner.is_none() && is_text(kind) => Form::Thought,
        _ => Form::Said,
    }
}

#[cfg(test)]
mod tests;
