//! The agent that speaks to the user, as AG-UI state `activeAgent`.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::event::{Event, EventKind, HandoffEvent, HandoffPhase, is_within};
use baton_core::message::Visibility;
use serde_json::json;

use crate::AgentProfiles;
use crate::wire::{ActiveAgent, EventBody, ThreadState};

/// Stack of the agents that have held the baton in this run.
#[derive(Debug, Default)]
pub(super) struct BatonState {
    /// The last one holds the baton. An earlier one gets it back if a pass fails.
    holders: Vec<BatonHolder>,
}

/// An agent on the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BatonHolder {
    agent: AgentName,
    hold: HoldDuration,
    /// Path of its part, if it got the baton by a pass within the run.
    place: Option<Arc<str>>,
}

/// How long an agent holds the baton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldDuration {
    /// For the rest of the run.
    Run,
    /// Until it returns the thread or the user leaves.
    Thread,
}

impl BatonState {
    /// The agent that starts the run holds the baton first.
    pub(super) fn begin(&mut self, agent: &AgentName, hold: HoldDuration) {
        self.holders.push(BatonHolder { agent: agent.clone(), hold, place: None });
    }

    pub(super) fn is_held(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Applies an event. Returns whether the state has changed.
    pub(super) fn apply(&mut self, event: &Event) -> bool {
        let to_person = event.visibility == Visibility::User;
        let now = match &event.kind {
            // The target of a handoff holds the thread beyond this run.
            EventKind::Passed { to, .. } if self.has_thread(to) => return false,
            EventKind::Passed { to, heard_by: Visibility::User, .. } => BatonHolder {
                agent: to.clone(),
                hold: HoldDuration::Run,
                place: Some(Arc::clone(&event.path)),
            },
            EventKind::Handoff(handoff) if to_person => match holder_after(handoff) {
                Some((agent, hold)) => BatonHolder { agent: agent.clone(), hold, place: None },
                None => return false,
            },
            EventKind::SessionFailed { .. } => return self.take_back(&event.path),
            _ => return false,
        };
        let before = self.holders.last();
        let is_new = before.is_none_or(|before| (&before.agent, before.hold) != (&now.agent, now.hold));
        self.holders.push(now);
        is_new
    }

    fn has_thread(&self, agent: &AgentName) -> bool {
        self.holders
            .last()
            .is_some_and(|holder| holder.hold == HoldDuration::Thread && holder.agent == *agent)
    }

    /// Removes the holders at `place` and below, which have failed. Returns whether the state has changed.
    fn take_back(&mut self, place: &str) -> bool {
        let before = self.holders.last().cloned();
        self.holders.retain(|holder| !holder.place.as_ref().is_some_and(|path| is_within(path, place)));
        before.as_ref() != self.holders.last()
    }

    /// The whole state, for a client without any.
    pub(super) fn snapshot(&self, profiles: &AgentProfiles) -> Option<EventBody> {
        Some(EventBody::StateSnapshot { snapshot: ThreadState { active_agent: self.active(profiles)? } })
    }

    pub(super) fn delta(&self, profiles: &AgentProfiles) -> Option<EventBody> {
        let patch = json!([{ "op": "replace", "path": "/activeAgent", "value": self.active(profiles)? }]);
        Some(EventBody::StateDelta { delta: patch })
    }

    fn active(&self, profiles: &AgentProfiles) -> Option<ActiveAgent> {
        let BatonHolder { agent, hold, .. } = self.holders.last()?;
        let face = profiles.get(agent);
        let may_be_left = face.is_none_or(|face| face.exitable);
        let has_thread = *hold == HoldDuration::Thread;
        Some(ActiveAgent {
            id: agent.clone(),
            display_name: profiles.name_of(agent).to_owned(),
            color: face.and_then(|face| face.color.clone()),
            exitable: has_thread && may_be_left,
            mode: face.and_then(|face| face.mode.clone()).filter(|_| has_thread),
        })
    }
}

/// The holder after a phase of a handoff. `None` if the phase does not change it.
fn holder_after(handoff: &HandoffEvent) -> Option<(&AgentName, HoldDuration)> {
    match handoff.phase {
        HandoffPhase::Connecting | HandoffPhase::Returning => None,
        HandoffPhase::Active => Some((&handoff.to, HoldDuration::Thread)),
        HandoffPhase::Completed | HandoffPhase::Cancelled | HandoffPhase::Error => {
            Some((&handoff.from, HoldDuration::Run))
        }
    }
}
