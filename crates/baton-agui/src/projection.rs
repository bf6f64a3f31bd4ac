//! Projects the events of a run to AG-UI events.
//!
//! - `subagents`, `sessions`: sub-agents, and the sub-agent that an event belongs to.
//! - `texts`: open texts and thoughts, several at once. `text_delta`: fast path for their deltas, which are most of a stream.
//! - `calls`: tool calls. `extras`: events that AG-UI does not define. `interrupt`: a run that waits for decisions.
//! - `baton`: the agent that speaks to the user, which is AG-UI state.
//! - `catch_up`, `transcript`: joining a run in the middle, with the messages that an earlier subscriber has.
//! - `event_context`: metadata of every event.

mod baton;
mod calls;
mod catch_up;
mod event_context;
mod extras;
mod interrupt;
mod sessions;
mod subagents;
mod text_delta;
mod texts;
mod transcript;

use std::sync::Arc;

use baton_core::event::{Event, EventKind, RunOutcome};
use baton_core::message::Visibility;
use baton_core::{RunId, SessionId, choices};
use serde_json::json;

use crate::AgentProfiles;
use crate::wire::{AguiEvent, EventBody};
use baton::{BatonState, HoldDuration};
use calls::SeenCalls;
use event_context::EventContext;
use subagents::Subagents;
pub use text_delta::TextDelta;
use texts::{OpenTexts, PieceOrigin, TextKind};
use transcript::Transcript;

choices! {
    /// How much a subscriber may see.
    pub enum Detail {
        /// What the user sees.
        Person = "person",
        /// Everything, including sub-agents.
        Trace = "trace",
    }
}

/// The bodies for one event, each with the sub-agent that it belongs to.
type Projected = Vec<(Option<SessionId>, EventBody)>;

/// Projects one run for one subscriber. Tracks what is open, because clients reject an end without a start and a run that ends
/// with something open. Use a new projection for the next run of the thread.
#[derive(Debug)]
pub struct Projection {
    detail: Detail,
    profiles: Arc<AgentProfiles>,
    phase: RunPhase,
    /// Position in the run: metadata of the first event, sequence number and time of the latest.
    context: Option<EventContext>,
    subagents: Subagents,
    texts: OpenTexts,
    calls: SeenCalls,
    baton: BatonState,
    /// Empty unless events were replayed.
    transcript: Transcript,
}

/// Phase of the run for the subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPhase {
    /// `RUN_STARTED` has to be the first event that a client gets.
    NotStarted,
    Running,
    /// `RUN_FINISHED` or `RUN_ERROR` was sent; nothing may follow.
    Finished,
}

impl Projection {
    pub fn new(detail: Detail) -> Self {
        Self {
            detail,
            profiles: Arc::default(),
            phase: RunPhase::NotStarted,
            context: None,
            subagents: Subagents::default(),
            texts: OpenTexts::default(),
            calls: SeenCalls::default(),
            baton: BatonState::default(),
            transcript: Transcript::default(),
        }
    }

    /// Sets the display names and colors.
    #[must_use]
    pub fn with_profiles(self, profiles: impl Into<Arc<AgentProfiles>>) -> Self {
        Self { profiles: profiles.into(), ..self }
    }

    /// The run, or `None` before its first event.
    pub fn run(&self) -> Option<RunId> {
        self.context.as_ref().map(|context| context.run_id)
    }

    /// Whether the run has ended. No more events follow.
    pub fn is_over(&self) -> bool {
        self.phase == RunPhase::Finished
    }

    /// Projects one event to any number of AG-UI events, often one.
    pub fn project(&mut self, event: &Event) -> Vec<AguiEvent> {
        if self.phase == RunPhase::Finished {
            if !matches!(event.kind, EventKind::RunResumed { .. }) {
                return Vec::new();
            }
            self.restart();
        }
        self.advance(event);
        // The user sees who speaks now, even if the reason for the change is internal.
        let is_passed = self.baton.apply(event);
        let is_seen = self.is_visible(event);
        let mut out = Projected::new();
        if is_seen || is_passed {
            self.begin(&mut out);
        }
        if is_seen {
            self.project_event(event, &mut out);
        }
        if is_passed {
            out.extend(self.baton.delta(&self.profiles).map(|delta| (None, delta)));
        }
        let context = EventContext::of(event);
        out.into_iter().map(|(subagent, body)| context.event(subagent, body)).collect()
    }

    /// The run continues after it waited. For a client that is a new run: everything was closed before.
    fn restart(&mut self) {
        let (profiles, transcript) = (Arc::clone(&self.profiles), std::mem::take(&mut self.transcript));
        *self = Self { profiles, transcript, ..Self::new(self.detail) };
    }

    fn advance(&mut self, event: &Event) {
        self.context.get_or_insert_with(|| EventContext::of(event)).advance(event);
        // A run that ends before it starts, such as one that is cancelled in the queue, has no speaker.
        if !self.baton.is_held() && !event.kind.is_end() {
            let is_held = matches!(
                event.kind,
                EventKind::RunStarted { is_held: true } | EventKind::RunResumed { is_held: true }
            );
            self.baton.begin(&event.agent, if is_held { HoldDuration::Thread } else { HoldDuration::Run });
        }
    }

    fn is_visible(&self, event: &Event) -> bool {
        event.visibility == Visibility::User || self.detail == Detail::Trace
    }

    fn begin(&mut self, out: &mut Projected) {
        if std::mem::replace(&mut self.phase, RunPhase::Running) == RunPhase::NotStarted {
            let started = self.context.as_ref().map(EventContext::run_started);
            out.extend(started.into_iter().chain(self.state()).map(|body| (None, body)));
        }
    }

    fn state(&self) -> Option<EventBody> {
        self.baton.snapshot(&self.profiles)
    }

    /// The sub-agent that an event belongs to. Events that the user sees belong to none.
    fn owner(&self, event: &Event) -> Option<SessionId> {
        let is_hidden = event.visibility == Visibility::Internal;
        if is_hidden { self.subagents.owner(&event.path) } else { None }
    }

    fn project_event(&mut self, event: &Event, out: &mut Projected) {
        let owner = self.owner(event);
        let origin = PieceOrigin { event, owner: owner.as_ref() };
        let kind = text_kind(event, origin.owner);
        if kind != TextKind::Reasoning {
            self.texts.end_thoughts(origin.owner, out);
        }
        match (is_text(&event.kind), kind) {
            (true, TextKind::Reasoning) => self.texts.think(origin, out),
            (true, TextKind::Message) => self.texts.say(origin, out),
            (false, _) => self.project_action(event, owner, out),
        }
    }

    fn project_action(&mut self, event: &Event, owner: Option<SessionId>, out: &mut Projected) {
        match &event.kind {
            kind if kind.is_end() => self.end(event, out),
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
                out.push((owner, EventBody::Custom { name: "baton.turn_restarted", value }));
            }
            _ => out.extend(extras::of(event, owner.as_ref(), &self.profiles).map(|body| (owner, body))),
        }
    }

    /// Ends the run, after everything that is still open: sub-agents, then texts.
    fn end(&mut self, event: &Event, out: &mut Projected) {
        for ended in self.subagents.end_all() {
            let session = ended.start.subagent_run_id.clone();
            self.texts.end_all(Some(&session), out);
            out.push((
                None,
                match &event.kind {
                    EventKind::RunWaiting { interrupts, .. } => interrupt::suspended(&ended, interrupts),
                    _ => sessions::cancelled(session),
                },
            ));
        }
        self.texts.end_all(None, out);
        out.extend(extras::usage(&event.kind).map(|usage| (None, usage)));
        let context = EventContext::of(event);
        let end = match &event.kind {
            EventKind::RunFailed { code, message, .. } => {
                EventBody::RunError { message: message.clone(), code: code.clone() }
            }
            EventKind::RunWaiting { interrupts, .. } => context.run_finished(interrupt::outcome(interrupts)),
            EventKind::RunFinished { outcome: RunOutcome::Cancelled, .. } => {
                context.run_finished(json!({ "type": "cancelled" }))
            }
            _ => context.run_finished(json!({ "type": "success" })),
        };
        out.push((None, end));
        self.phase = RunPhase::Finished;
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

/// Internal text of an agent that speaks to the user is reasoning. Internal text of a sub-agent is a message.
fn text_kind(event: &Event, owner: Option<&SessionId>) -> TextKind {
    let is_hidden = event.visibility == Visibility::Internal;
    match &event.kind {
        EventKind::Reasoning { .. } => TextKind::Reasoning,
        kind if is_hidden && owner.is_none() && is_text(kind) => TextKind::Reasoning,
        _ => TextKind::Message,
    }
}

#[cfg(test)]
mod tests;
