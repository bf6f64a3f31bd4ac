//! Sessions that begin and end behind the scenes.

use std::sync::Arc;

use baton_core::SessionId;
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use serde_json::json;

use super::subagents::{Subagent, is_behind_the_scenes};
use super::{Out, Projection};
use crate::wire::{Begun, Body};

impl Projection {
    pub(super) fn begin_session(&mut self, event: &Event, out: &mut Out) {
        let EventKind::SessionStarted { session_id, parent, why } = &event.kind else { return };
        if event.visibility == Visibility::Internal && !is_behind_the_scenes(&event.path) {
            return;
        }
        let begun = Begun {
            subagent_run_id: session_id.clone(),
            name: self.faces.name_of(&event.agent).to_owned(),
            description: why.clone().filter(|why| !why.is_empty()),
            // Whoever joins later hears only of those that are at work.
            parent_subagent_run_id: parent.clone().filter(|parent| self.subagents.is_open(parent)),
            parent_tool_call_id: self.calls.around(&event.path),
        };
        let (agent, path) = (event.agent.clone(), Arc::clone(&event.path));
        if self.subagents.begin(Subagent { begun: begun.clone(), agent, path }) {
            out.push((None, Body::SubagentStarted(begun)));
        }
    }

    /// Whatever is still open below it ends first.
    pub(super) fn end_session(
        &mut self,
        session: &SessionId,
        failed: Option<(&String, &String)>,
        out: &mut Out,
    ) {
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
}

pub(super) fn cancelled(subagent_run_id: SessionId) -> Body {
    let (message, code) = ("it was ended with what it worked for".to_owned(), "cancelled".to_owned());
    Body::SubagentError { subagent_run_id, message, code }
}
