//! From what happened to what a client is told.
//!
//! - `subagents`: who works behind the scenes, and whose work an event is.
//! - `texts`: texts and thoughts that grow, several at once.
//! - `calls`: tools that are used.
//! - `extras`: what AG-UI has no event for.

mod calls;
mod extras;
mod subagents;
mod texts;

use std::collections::BTreeMap;

use baton_core::event::{Event, EventKind, Outcome};
use baton_core::message::Visibility;
use baton_core::{AgentName, SessionId, choices};
use serde_json::json;

use crate::wire::{AguiEvent, Body, Metadata, Origin};
use calls::Calls;
use subagents::Subagents;
use texts::Texts;

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
/// ends with something open.
#[derive(Debug)]
pub struct Projection {
    detail: Detail,
    /// How agents are called in front of people.
    names: BTreeMap<AgentName, String>,
    stage: Stage,
    subagents: Subagents,
    texts: Texts,
    calls: Calls,
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
            names: BTreeMap::new(),
            stage: Stage::Before,
            subagents: Subagents::default(),
            texts: Texts::default(),
            calls: Calls::default(),
        }
    }

    /// With names for people; an agent without one is called by its id.
    #[must_use]
    pub fn with_names(self, names: impl IntoIterator<Item = (AgentName, String)>) -> Self {
        Self { names: names.into_iter().collect(), ..self }
    }

    /// The events for one thing that happened; often one, sometimes none or several.
    pub fn project(&mut self, event: &Event) -> Vec<AguiEvent> {
        let is_hidden = event.visibility == Visibility::Internal;
        if self.stage == Stage::After || (is_hidden && self.detail == Detail::Person) {
            return Vec::new();
        }
        let mut out = Out::new();
        if std::mem::replace(&mut self.stage, Stage::Under) == Stage::Before {
            // Also when it ended before it began, as when it was cancelled while it waited.
            out.push((None, Body::RunStarted { thread_id: event.thread_id, run_id: event.run_id }));
        }
        // What the person sees is never anybody's work behind the scenes.
        let owner = if is_hidden { self.subagents.owner(&event.path) } else { None };
        let is_thought = match &event.kind {
            EventKind::Reasoning { .. } => true,
            kind => is_hidden && owner.is_none() && is_text(kind),
        };
        if !is_thought {
            self.texts.end_thoughts(owner.as_ref(), &mut out);
        }
        match &event.kind {
            kind if is_thought => self.texts.think(kind, owner.as_ref(), &mut out),
            kind if is_text(kind) => self.texts.say(kind, owner.as_ref(), &mut out),
            _ => self.happened(event, owner, &mut out),
        }
        out.into_iter().map(|(subagent, body)| envelope(event, subagent, body)).collect()
    }

    fn happened(&mut self, event: &Event, owner: Option<SessionId>, out: &mut Out) {
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
                self.texts.end(&message_id.to_string(), out);
                let value = json!({ "message_id": message_id });
                out.push((owner, Body::Custom { name: "baton.turn_restarted", value }));
            }
            _ => out.extend(extras::of(event, owner.as_ref()).map(|body| (owner, body))),
        }
    }

    fn begin_session(&mut self, event: &Event, out: &mut Out) {
        let EventKind::SessionStarted { session_id, parent, why } = &event.kind else { return };
        let is_shown = event.visibility == Visibility::User || subagents::is_behind_the_scenes(&event.path);
        if is_shown && self.subagents.begin(session_id, &event.path) {
            let name = self.names.get(&event.agent).cloned();
            let begun = crate::wire::Begun {
                subagent_run_id: session_id.clone(),
                name: name.unwrap_or_else(|| event.agent.to_string()),
                description: why.clone().filter(|why| !why.is_empty()),
                parent_subagent_run_id: parent.clone().filter(|parent| self.subagents.knows(parent)),
                parent_tool_call_id: self.calls.around(&event.path),
            };
            out.push((None, Body::SubagentStarted(begun)));
        }
    }

    /// Whatever is still open below it ends first.
    fn end_session(&mut self, session: &SessionId, failed: Option<(&String, &String)>, out: &mut Out) {
        if !self.subagents.is_open(session) {
            return;
        }
        for ended in self.subagents.end(session) {
            self.texts.end_all(Some(&ended), out);
            let subagent_run_id = ended.clone();
            out.push((
                None,
                match failed.filter(|_| ended == *session) {
                    Some((code, message)) => {
                        Body::SubagentError { subagent_run_id, message: message.clone(), code: code.clone() }
                    }
                    None if ended == *session => {
                        Body::SubagentFinished { subagent_run_id, outcome: json!({ "type": "success" }) }
                    }
                    None => cancelled(subagent_run_id),
                },
            ));
        }
    }

    /// The end of the run, before which nothing may be left open.
    fn end(&mut self, event: &Event, out: &mut Out) {
        for ended in self.subagents.end_all() {
            self.texts.end_all(Some(&ended), out);
            out.push((None, cancelled(ended)));
        }
        self.texts.end_all(None, out);
        out.push((None, Body::Custom { name: "baton.usage", value: extras::usage(&event.kind) }));
        let (thread_id, run_id) = (event.thread_id, event.run_id);
        out.push((
            None,
            match &event.kind {
                EventKind::RunFailed { code, message, .. } => {
                    Body::RunError { message: message.clone(), code: code.clone() }
                }
                EventKind::RunFinished { outcome: Outcome::Cancelled, .. } => {
                    Body::RunFinished { thread_id, run_id, outcome: json!({ "type": "cancelled" }) }
                }
                _ => Body::RunFinished { thread_id, run_id, outcome: json!({ "type": "success" }) },
            },
        ));
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

fn cancelled(subagent_run_id: SessionId) -> Body {
    let (message, code) = ("it was ended with what it worked for".to_owned(), "cancelled".to_owned());
    Body::SubagentError { subagent_run_id, message, code }
}

fn envelope(event: &Event, subagent: Option<SessionId>, body: Body) -> AguiEvent {
    let origin = Origin {
        thread_id: event.thread_id,
        run_id: event.run_id,
        agent: event.agent.clone(),
        path: event.path.split('/').map(str::to_owned).collect(),
        seq: event.seq,
    };
    AguiEvent { body, subagent, timestamp: event.at.as_millisecond(), metadata: Metadata { baton: origin } }
}

#[cfg(test)]
mod tests;
