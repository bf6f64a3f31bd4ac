//! Who has the baton, as far as the person is concerned: whoever speaks to them. In AG-UI that is state.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::event::{Event, EventKind, HandoffEvent, HandoffPhase, is_within};
use baton_core::message::Visibility;
use serde_json::{Map, Value, json};

use crate::Faces;
use crate::wire::Body;

#[derive(Debug, Default)]
pub(super) struct Baton {
    /// The last one has it. Those before get it back if passing it on fails.
    holders: Vec<Holder>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    agent: AgentName,
    hold: Hold,
    /// Where its part is, if it got the baton within the run.
    place: Option<Arc<str>>,
}

/// For how long somebody has the baton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// For the rest of the run.
    Run,
    /// Until it gives the thread back, or the person leaves.
    Thread,
}

impl Baton {
    /// Whoever begins the run has it first.
    pub(super) fn begin(&mut self, agent: &AgentName, hold: Hold) {
        self.holders.push(Holder { agent: agent.clone(), hold, place: None });
    }

    pub(super) fn is_held(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Whether somebody else has it now.
    pub(super) fn hear(&mut self, event: &Event) -> bool {
        let to_person = event.visibility == Visibility::User;
        let now = match &event.kind {
            // Whoever has got the thread has it for longer than this run.
            EventKind::Passed { to, .. } if self.has_thread(to) => return false,
            EventKind::Passed { to, heard_by: Visibility::User, .. } => {
                Holder { agent: to.clone(), hold: Hold::Run, place: Some(Arc::clone(&event.path)) }
            }
            EventKind::Handoff(handoff) if to_person => match handed(handoff) {
                Some((agent, hold)) => Holder { agent: agent.clone(), hold, place: None },
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
        self.holders.last().is_some_and(|holder| holder.hold == Hold::Thread && holder.agent == *agent)
    }

    /// Whoever failed here, or below, does not have it any more.
    fn take_back(&mut self, place: &str) -> bool {
        let before = self.holders.last().cloned();
        self.holders.retain(|holder| !holder.place.as_ref().is_some_and(|path| is_within(path, place)));
        before.as_ref() != self.holders.last()
    }

    /// All of the state, for whoever has none of it.
    pub(super) fn snapshot(&self, faces: &Faces) -> Option<Body> {
        Some(Body::StateSnapshot { snapshot: json!({ "activeAgent": self.active(faces)? }) })
    }

    pub(super) fn delta(&self, faces: &Faces) -> Option<Body> {
        let patch = json!([{ "op": "replace", "path": "/activeAgent", "value": self.active(faces)? }]);
        Some(Body::StateDelta { delta: patch })
    }

    fn active(&self, faces: &Faces) -> Option<Value> {
        let Holder { agent, hold, .. } = self.holders.last()?;
        let face = faces.get(agent);
        let may_be_left = face.is_none_or(|face| face.exitable);
        let mut active = Map::new();
        active.insert("id".into(), json!(agent));
        active.insert("display_name".into(), json!(faces.name_of(agent)));
        active.extend(face.and_then(|face| Some(("color".into(), json!(face.color.as_ref()?)))));
        active.insert("exitable".into(), json!(*hold == Hold::Thread && may_be_left));
        Some(Value::Object(active))
    }
}

/// Who has the baton after a change of the thread's lease, if it changes that.
fn handed(handoff: &HandoffEvent) -> Option<(&AgentName, Hold)> {
    match handoff.phase {
        HandoffPhase::Connecting | HandoffPhase::Returning => None,
        HandoffPhase::Active => Some((&handoff.to, Hold::Thread)),
        HandoffPhase::Completed | HandoffPhase::Cancelled | HandoffPhase::Error => {
            Some((&handoff.from, Hold::Run))
        }
    }
}
