//! Tool calls. A call is sent as start, arguments and end at once, so none is ever open.

use std::sync::Arc;

use baton_core::SessionId;
use baton_core::event::{Event, EventKind, is_within};

use super::Projected;
use crate::wire::EventBody;

/// The tool calls that the subscriber knows.
#[derive(Debug, Default)]
pub(super) struct SeenCalls {
    seen: Vec<SeenCall>,
}

#[derive(Debug)]
struct SeenCall {
    id: String,
    path: Arc<str>,
    owner: Option<SessionId>,
}

impl SeenCalls {
    pub(super) fn add(&mut self, event: &Event, owner: Option<SessionId>, out: &mut Projected) {
        match &event.kind {
            EventKind::ToolCalled { call_id, tool, arguments } => {
                let id = unique(event, call_id.as_str());
                if self.seen.iter().any(|call| call.id == id) {
                    return;
                }
                let bodies = [
                    EventBody::ToolCallStart { tool_call_id: id.clone(), tool_call_name: tool.clone() },
                    EventBody::ToolCallArgs { tool_call_id: id.clone(), delta: arguments.to_string() },
                    EventBody::ToolCallEnd { tool_call_id: id.clone() },
                ];
                out.extend(bodies.map(|body| (owner.clone(), body)));
                self.seen.push(SeenCall { id, path: Arc::clone(&event.path), owner });
            }
            EventKind::ToolReturned { call_id, output, .. } => {
                let tool_call_id = unique(event, call_id.as_str());
                let message_id = format!("{tool_call_id}/result");
                let called = self.seen.iter().find(|call| call.id == tool_call_id);
                let owner = called.map_or(owner, |call| call.owner.clone());
                let content = output.clone();
                out.push((
                    owner,
                    EventBody::ToolCallResult { message_id, tool_call_id, content, role: "tool" },
                ));
            }
            _ => {}
        }
    }

    /// The innermost call that contains `path`.
    pub(super) fn enclosing(&self, path: &str) -> Option<String> {
        let around = self.seen.iter().filter(|call| is_within(path, &call.path));
        around.max_by_key(|call| call.path.len()).map(|call| call.id.clone())
    }
}

/// Providers reuse call ids in each turn; clients require them to be unique within a run.
fn unique(event: &Event, call_id: &str) -> String {
    format!("{}/{call_id}", event.path)
}
