//! Start and end of sub-agent sessions.

use std::sync::Arc;

use baton_core::SessionId;
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use serde_json::json;

use super::subagents::{Subagent, is_behind_the_scenes};
use super::{Projected, Projection};
use crate::wire::{EventBody, SubagentStart};

impl Projection {
    pub(super) fn begin_session(&mut self, event: &Event, out: &mut Projected) {
        let EventKind::SessionStarted { session_id, parent, why } = &event.kind else { return };
        if event.visibility == Visibility::Internal && !is_behind_the_scenes(&event.path) {
            return;
        }
        let start = SubagentStart {
            subagent_run_id: session_id.clone(),
            name: self.profiles.name_of(&event.agent).to_owned(),
            description: why.clone().filter(|why| !why.is_empty()),
            // A client that joined later knows only the open sub-agents.
            parent_subagent_run_id: parent.clone().filter(|parent| self.subagents.is_open(parent)),
            parent_tool_call_id: self.calls.enclosing(&event.path),
        };
        let (agent, path) = (event.agent.clone(), Arc::clone(&event.path));
        if self.subagents.begin(Subagent { start: start.clone(), agent, path }) {
            out.push((None, EventBody::SubagentStarted(start)));
        }
    }

    /// Ends a session. Sessions and texts that are open below it end first.
    pub(super) fn end_session(
        &mut self,
        session: &SessionId,
        failed: Option<(&String, &String)>,
        out: &mut Projected,
    ) {
        for ended in self.subagents.end(session) {
            self.texts.end_all(Some(&ended), out);
            let subagent_run_id = ended.clone();
            out.push((
                None,
                match failed.filter(|_| ended == *session) {
                    Some((code, message)) => EventBody::SubagentError {
                        subagent_run_id,
                        message: message.clone(),
                        code: code.clone(),
                    },
                    None if ended == *session => {
                        EventBody::SubagentFinished { subagent_run_id, outcome: json!({ "type": "success" }) }
                    }
                    None => cancelled(subagent_run_id),
                },
            ));
        }
    }
}

pub(super) fn cancelled(subagent_run_id: SessionId) -> EventBody {
    let (message, code) = ("it was ended with what it worked for".to_owned(), "cancelled".to_owned());
    EventBody::SubagentError { subagent_run_id, message, code }
}
