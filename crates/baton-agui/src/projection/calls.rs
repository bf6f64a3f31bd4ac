//! Tools that agents use. A call is sent whole, so none is ever open.

use std::sync::Arc;

use baton_core::SessionId;
use baton_core::event::{Event, EventKind, is_within};

use super::Out;
use crate::wire::Body;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Those the listener knows of.
    seen: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    path: Arc<str>,
    owner: Option<SessionId>,
}

impl Calls {
    pub(super) fn add(&mut self, event: &Event, owner: Option<SessionId>, out: &mut Out) {
        match &event.kind {
            EventKind::ToolCalled { call_id, tool, arguments } => {
                let id = unique(event, call_id.as_str());
                if self.seen.iter().any(|call| call.id == id) {
                    return;
                }
                let bodies = [
                    Body::ToolCallStart { tool_call_id: id.clone(), tool_call_name: tool.clone() },
                    Body::ToolCallArgs { tool_call_id: id.clone(), delta: arguments.to_string() },
                    Body::ToolCallEnd { tool_call_id: id.clone() },
                ];
                out.extend(bodies.map(|body| (owner.clone(), body)));
                self.seen.push(Call { id, path: Arc::clone(&event.path), owner });
            }
            EventKind::ToolReturned { call_id, output, .. } => {
                let tool_call_id = unique(event, call_id.as_str());
                let message_id = format!("{tool_call_id}/result");
                let called = self.seen.iter().find(|call| call.id == tool_call_id);
                let owner = called.map_or(owner, |call| call.owner.clone());
                let content = output.clone();
                out.push((owner, Body::ToolCallResult { message_id, tool_call_id, content, role: "tool" }));
            }
            _ => {}
        }
    }

    /// The call within which something happens.
    pub(super) fn around(&self, path: &str) -> Option<String> {
        let around = self.seen.iter().filter(|call| is_within(path, &call.path));
        around.max_by_key(|call| call.path.len()).map(|call| call.id.clone())
    }
}

/// Providers number calls anew in each turn; clients want an id once per run.
fn unique(event: &Event, call_id: &str) -> String {
    format!("{}/{call_id}", event.path)
}
